//! Options of every command: colours, and the amount of output on stderr.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::sync::OnceLock;

use clap::{ArgAction, Args, ColorChoice};

/// The section of `--help` that lists these options.
const HEADING: &str = "Global options";

/// The options of this process, set once the command line has been parsed.
static CHOSEN: OnceLock<GlobalArgs> = OnceLock::new();

/// Options of every command.
#[derive(Args, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct GlobalArgs {
    /// When to use colours; auto: on a terminal, unless NO_COLOR is set
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto", global = true, help_heading = HEADING)]
    color: ColorChoice,
    /// Print results and errors only
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = HEADING)]
    quiet: bool,
    /// Log more on stderr: -v events, -vv details. RUST_LOG takes precedence
    #[arg(short, long, action = ArgAction::Count, global = true, help_heading = HEADING)]
    verbose: u8,
}

impl GlobalArgs {
    /// Reads the options of a command line that runs no command, so that its help has the right
    /// colours.
    pub(crate) fn of_refused(arguments: impl IntoIterator<Item = OsString>) -> Self {
        let mut words = arguments.into_iter().filter_map(|word| word.into_string().ok());
        let mut color = ColorChoice::default();
        while let Some(word) = words.next() {
            let value = match word.strip_prefix("--color") {
                Some("") => words.next(),
                Some(rest) => rest.strip_prefix('=').map(str::to_owned),
                None => None,
            };
            color = value.and_then(|value| value.parse().ok()).unwrap_or(color);
        }
        Self { color, ..Self::default() }
    }

    /// Sets the options of this process. Only the first call has an effect.
    pub(crate) fn install(self) {
        let _ = CHOSEN.set(self);
    }

    /// Returns the log filter that applies if RUST_LOG is not set.
    const fn log_level(self) -> &'static str {
        match (self.quiet, self.verbose) {
            (true, _) => "error",
            // A gateway itself reports handshakes that fail.
            (false, 0) => "warn,boringtun=error",
            (false, 1) => "info",
            (false, _) => "debug",
        }
    }

    fn has_colors(self, is_terminal: bool) -> bool {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            // https://no-color.org
            ColorChoice::Auto => is_terminal && !is_set("NO_COLOR"),
        }
    }
}

fn chosen() -> GlobalArgs {
    CHOSEN.get().copied().unwrap_or_default()
}

/// Returns whether notes and progress are suppressed.
pub(crate) fn is_quiet() -> bool {
    chosen().quiet
}

/// Returns the log filter that applies if RUST_LOG is not set.
pub(crate) fn log_level() -> &'static str {
    chosen().log_level()
}

/// Returns whether text on `stream` has colours.
pub(crate) fn has_colors(stream: &impl IsTerminal) -> bool {
    chosen().has_colors(stream.is_terminal())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    fn of(line: &str) -> GlobalArgs {
        parse(line.split(' ')).unwrap().global
    }

    #[test]
    fn the_options_stand_before_the_command_or_behind_it() {
        for line in ["airtcp -q --color never names", "airtcp names --quiet --color=never"] {
            let expected = GlobalArgs { color: ColorChoice::Never, quiet: true, verbose: 0 };
            assert_eq!(of(line), expected, "{line}");
        }
        assert_eq!(of("airtcp sim init"), GlobalArgs::default());
        let both = parse("airtcp names -q -v".split(' ')).unwrap_err().text;
        assert!(both.contains("cannot be used with"), "{both}");
        let color = parse("airtcp names --color blue".split(' ')).unwrap_err().text;
        assert!(color.contains("possible values: auto, always, never"), "{color}");
    }

    #[test]
    fn the_log_follows_the_flags() {
        let level = |line| of(line).log_level();
        assert_eq!(level("airtcp names"), "warn,boringtun=error");
        assert_eq!(level("airtcp names -q"), "error");
        assert_eq!(level("airtcp names -v"), "info");
        assert_eq!(level("airtcp names -vv"), "debug");
        for line in ["airtcp names", "airtcp names -q", "airtcp names -v", "airtcp names -vv"] {
            assert!(level(line).parse::<tracing_subscriber::filter::Targets>().is_ok());
        }
    }

    #[test]
    fn a_line_that_runs_nothing_has_the_colours_that_it_asks_for() {
        let color = |line: &str| GlobalArgs::of_refused(line.split(' ').map(OsString::from)).color;
        assert_eq!(color("airtcp --help"), ColorChoice::Auto);
        assert_eq!(color("airtcp sim --help --color always"), ColorChoice::Always);
        assert_eq!(color("airtcp --color=never sim --help"), ColorChoice::Never);
        assert_eq!(color("airtcp --color blue"), ColorChoice::Auto);
        assert_eq!(color("airtcp --colored never --color"), ColorChoice::Auto);
    }

    #[test]
    fn only_a_terminal_has_colours_unless_they_are_asked_for() {
        let has = |color, is_terminal| {
            GlobalArgs { color, ..GlobalArgs::default() }.has_colors(is_terminal)
        };
        assert!(has(ColorChoice::Always, false) && !has(ColorChoice::Never, true));
        assert!(!has(ColorChoice::Auto, false));
    }
}
