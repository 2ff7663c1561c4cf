//! The program `airtcp` with a loss detection, a congestion control and a loss judge of your own.

mod calm;
mod gentle;
#[cfg(test)]
mod tests;
mod tolerant;

use airtcp::recovery::{Registry, RegistryError};

fn main() -> Result<std::process::ExitCode, RegistryError> {
    let registry = Registry::new().with_detection(&tolerant::ENTRY)?;
    registry.with_control(&gentle::ENTRY)?.with_judge(&calm::ENTRY)?.install()?;
    Ok(airtcp_cli::main())
}
