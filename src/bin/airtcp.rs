//! `airtcp`: see the crate `airtcp_cli`.

fn main() -> std::process::ExitCode {
    airtcp_cli::main()
}
