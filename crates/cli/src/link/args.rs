//! The command line of `airtcp link`.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use airtcp_link::LinkSpec;
use airtcp_link::named::LINKS;
use airtcp_link::spec::PARTS;
use clap::Args;

use crate::table::{parts, wrapped};
use crate::value::{self, LinkPair};

/// `airtcp link`.
#[derive(Args, Debug)]
#[command(
    after_help = "A SPEC uses netem's syntax, such as: rate 10mbit delay 5ms 1ms loss 1% limit 50\n\
                  or a named link, such as: weak-4g. --help and docs/links.md list all words.",
    after_long_help = explained()
)]
pub(crate) struct LinkArgs {
    /// TUN device at the first end; it is created if it does not exist, and then removed at exit
    #[arg(long, value_name = "TUN", value_parser = value::tun)]
    pub(crate) a: String,
    /// TUN device at the other end; created and removed in the same way
    #[arg(long, value_name = "TUN", value_parser = value::tun)]
    pub(crate) b: String,
    /// Link from a to b, and from b to a if there is no SPEC BACK; or a named link, whose downlink
    /// is from a to b
    #[arg(value_name = "SPEC", value_parser = value::link)]
    pub(crate) forth: LinkPair,
    /// Link from b to a
    #[arg(value_name = "SPEC BACK", value_parser = value::link)]
    pub(crate) back: Option<LinkPair>,
    /// Open the devices with offload: accept super-segments and incomplete checksums from the
    /// kernel, and segment them before the link
    #[arg(long)]
    pub(crate) offload: bool,
    /// Keep the devices at exit, with their addresses and routes, for the next link with these
    /// names. In a namespace that a device was moved to, only a link that runs there opens it again
    #[arg(long)]
    pub(crate) persist: bool,
    /// Stop after this time
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = value::seconds)]
    pub(crate) seconds: Option<Duration>,
    /// Write a capture and an event log of the link to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) trace: Option<PathBuf>,
    /// Print the counters as JSON, one line at a time
    #[arg(long)]
    pub(crate) json: bool,
}

/// Returns the words of a description and the named links, for `--help`.
fn explained() -> String {
    let mut text = "SIGUSR1 prints the counters so far, without rows that are 0 in both directions.\n\n\
                    A SPEC is a list of these, in any order, `at` last, or a named link, with or\n\
                    without more of these behind its name, as in: geo-satellite loss 1%\n\
                    docs/links.md explains them with units. A packet passes the policer, the queue,\n\
                    the rate, loss and damage, the delay and the aggregation, in that order.\n"
        .to_owned();
    text.push_str(&parts(PARTS));
    text.push_str("\nNamed links, down to the user and up from the user:\n");
    for link in LINKS {
        let [down, up] = [("down", link.down), ("up", link.up)]
            .map(|(way, words)| wrapped(&format!("    {way}: {words}"), 8));
        let _ = write!(text, "\n{}\n{down}\n{up}\n", link.name);
    }
    text
}

impl LinkArgs {
    /// Checks the options against each other.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.a == self.b {
            return Err(format!(
                "--a and --b are both {}: a link has two ends; for example: airtcp link --a tun0 --b \
                 tun1 \"rate 10mbit delay 5ms\"",
                self.a
            ));
        }
        Ok(())
    }

    /// Returns the descriptions from a to b, and from b to a.
    pub(crate) fn specs(&self) -> [&LinkSpec; 2] {
        [&self.forth.forth, &self.back.as_ref().unwrap_or(&self.forth).back]
    }
}

#[cfg(test)]
mod tests {
    use crate::args::{Cli, Command, parse};

    fn link(words: &[&str]) -> Result<super::LinkArgs, String> {
        let line = [&["airtcp", "link", "--a", "t0", "--b", "t1"], words].concat();
        match parse(line) {
            Ok(Cli { command: Command::Link(link), .. }) => Ok(*link),
            Ok(_) => panic!("that is link"),
            Err(refusal) => {
                assert!(
                    refusal.is_mistake && refusal.text.lines().count() == 1,
                    "{}",
                    refusal.text
                );
                Err(refusal.text)
            }
        }
    }

    fn specs(words: &[&str]) -> [String; 2] {
        link(words).unwrap().specs().map(ToString::to_string)
    }

    #[test]
    fn one_description_is_for_both_ways_two_are_for_one_each() {
        let [forth, back] = specs(&["rate 10mbit delay 5ms"]);
        assert_eq!(forth, back);
        assert!(forth.starts_with("rate 10mbit") && forth.contains("delay 5ms"), "{forth}");
        let [forth, back] = specs(&["rate 10mbit", "rate 1mbit"]);
        assert!(
            forth.starts_with("rate 10mbit") && back.starts_with("rate 1mbit"),
            "{forth} {back}"
        );
    }

    #[test]
    fn a_direction_has_its_own_bursts_and_changes() {
        let [forth, back] = specs(&["rate 10mbit at 5s rate 1mbit", "delay 5ms aggregate 4ms"]);
        assert_eq!(forth, "rate 10mbit seed 0 at 5s rate 1mbit");
        assert_eq!(back, "delay 5ms aggregate 4ms seed 0");
    }

    #[test]
    fn a_name_is_a_link_with_its_two_ways() {
        let [down, up] = specs(&["slow-4g"]);
        assert!(down.starts_with("rate 1600kbit") && up.starts_with("rate 750kbit"), "{down} {up}");
        let [down, up] = specs(&["slow-4g", "delay 1s"]);
        assert!(down.starts_with("rate 1600kbit") && up.contains("delay 1s"), "{down} {up}");
    }

    #[test]
    fn a_mistake_in_a_link_names_its_place() {
        assert_eq!(
            link(&["rate 10mbit delay"]).unwrap_err(),
            "error: invalid value 'rate 10mbit delay' for '<SPEC>': at byte 17, the end: expected a time \
             with its unit (s, ms, us or ns), such as `5ms`"
        );
        let change = link(&["rate 10mbit at 5s limit 9"]).unwrap_err();
        assert!(change.contains("at byte 18, `limit`: expected rate, delay or loss"), "{change}");
        let named = link(&["lte rate 1mbit"]).unwrap_err();
        assert!(
            named.contains("at byte 4, `rate`: expected a part that the named link does not have"),
            "{named}"
        );
        let back = link(&["rate 10mbit", "loss 1"]).unwrap_err();
        assert!(back.contains("[SPEC BACK]") && back.contains("at byte 5, `1`"), "{back}");
        let name = link(&["weak4g"]).unwrap_err();
        assert!(name.contains("`weak4g`") && name.contains("weak-4g"), "{name}");
        let empty = link(&[" "]).unwrap_err();
        assert!(empty.contains("the link is empty") && empty.contains("weak-4g"), "{empty}");
        let time = link(&["rate 10mbit", "--seconds", "0"]).unwrap_err();
        assert!(time.contains("for example 10"), "{time}");
        let missing = link(&[]).unwrap_err();
        assert!(missing.contains("<SPEC>"), "{missing}");
        let same = parse(["airtcp", "link", "--a", "t0", "--b", "t0", "seed 1"]).unwrap_err();
        assert!(same.is_mistake && same.text.contains("both t0"), "{}", same.text);
    }
}
