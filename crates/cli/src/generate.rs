//! Generates completions for shells and manual pages from the command line.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Command, ValueEnum};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::output::{self, Mistake};

/// `completions`.
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// Shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Kind,
}

/// The shells that there are completions for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Kind {
    /// bash, 4.4 or later
    Bash,
    /// zsh
    Zsh,
    /// fish
    Fish,
}

/// `man`.
#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// Command, such as `completions` [default: the program itself]
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
    /// Write the man pages of all commands to this directory
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    out: Option<PathBuf>,
}

/// Prints the completions of `command` for a shell.
///
/// # Errors
/// Those of writing.
pub(crate) fn completions(args: &CompletionsArgs, mut command: Command) -> anyhow::Result<()> {
    let shell = match args.shell {
        Kind::Bash => Shell::Bash,
        Kind::Zsh => Shell::Zsh,
        Kind::Fish => Shell::Fish,
    };
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    output::print(String::from_utf8(script)?.trim_end())
}

/// Prints the man page of `command` or of one of its subcommands, or writes all pages to a
/// directory.
///
/// # Errors
/// The subcommand does not exist; a page cannot be written; the directory cannot be created.
pub(crate) fn man(args: &ManArgs, mut command: Command) -> anyhow::Result<()> {
    // Sets the full name of each command.
    command.build();
    match &args.out {
        None => {
            let command = below(command, &args.command)?;
            output::print(String::from_utf8(page(command)?)?.trim_end())
        }
        Some(directory) => {
            std::fs::create_dir_all(directory)
                .with_context(|| format!("--out {}", directory.display()))?;
            write(directory, command)
        }
    }
}

/// Returns the subcommand that `names` lead to.
fn below(mut command: Command, names: &[String]) -> Result<Command, Mistake> {
    for name in names {
        let Some(next) = command.find_subcommand(name) else {
            let known: Vec<_> = command
                .get_subcommands()
                .map(Command::get_name)
                .filter(|name| *name != "help")
                .collect();
            let program = command.get_name();
            let hint = if name.contains('/') {
                "; to write pages to a directory, use --out".to_owned()
            } else if known.is_empty() {
                format!("; `{program}` has none")
            } else {
                format!("; `{program}` has {}", known.join(", "))
            };
            return Err(Mistake::new(format!("there is no command `{name}`{hint}")));
        };
        command = next.clone();
    }
    Ok(command)
}

fn write(directory: &Path, command: Command) -> anyhow::Result<()> {
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        write(directory, below.clone())?;
    }
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let path = directory.join(format!("{name}.1"));
    std::fs::write(&path, page(command)?).with_context(|| path.display().to_string())
}

fn page(command: Command) -> io::Result<Vec<u8>> {
    let command = command.disable_help_subcommand(true);
    // The display name with dashes is the name of the page; the name with spaces is what a user
    // types.
    let title = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let mut text = Vec::new();
    Man::new(command).title(title.to_uppercase()).render(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn every_command_has_a_page() {
        let directory = tempfile::tempdir().unwrap();
        let args = ManArgs { command: Vec::new(), out: Some(directory.path().join("man1")) };
        man(&args, Cli::command()).unwrap();
        let mut expected: Vec<_> = Cli::command()
            .get_subcommands()
            .map(|command| format!("airtcp-{}.1", command.get_name()))
            .collect();
        expected.push("airtcp.1".to_owned());
        for name in expected {
            let text = std::fs::read_to_string(directory.path().join("man1").join(&name)).unwrap();
            assert!(text.contains(".TH ") && text.contains(".SH SYNOPSIS"), "{name}: {text}");
        }
    }

    #[test]
    fn the_page_of_a_command_is_found_by_its_name() {
        let find = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            let found = below(Cli::command(), &names).map(|found| found.get_name().to_owned());
            found.map_err(|error| error.to_string())
        };
        assert_eq!(find(&["sim", "run"]), Ok("run".to_owned()));
        assert_eq!(find(&[]), Ok("airtcp".to_owned()));
        let error = find(&["sim", "walk"]).unwrap_err();
        assert!(error.starts_with("there is no command `walk`; `sim` has "), "{error}");
        assert!(find(&["/usr/share/man"]).unwrap_err().contains("--out"));
        assert!(find(&["names", "x"]).unwrap_err().ends_with("`names` has none"));
    }
}
