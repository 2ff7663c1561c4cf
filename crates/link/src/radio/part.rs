//! What the description of a radio is made of, for pages and help.

use crate::spec::{Part, part};

/// All parts there are.
pub const PARTS: &[Part] = &[
    part(
        "plain",
        "nothing of 802.11: a link each way, in which a frame takes its packet's time at the rate, and link ACKs and RTS none",
        "plain rate 1mbit delay 20ms",
    ),
    part("rate RATE", "of data frames; 11mbit if not said", "rate 5.5mbit"),
    part("control RATE", "of link ACKs, RTS and CTS; 2mbit if not said", "control 1mbit"),
    part(
        "preamble long|short",
        "192 or 96 us before each frame (IEEE 802.11b); long if not said",
        "preamble short",
    ),
    part("rts", "each data frame is announced by RTS and CTS", "rts"),
    part(
        "tries N",
        "how often the MAC sends a frame before it hands it back; 7 if not said",
        "tries 4",
    ),
    part(
        "passes N",
        "how often the link layer passes a frame to the MAC, where it does so again at all; 3 if not said",
        "passes 1",
    ),
    part("queue N", "frames that wait in each direction; 50 if not said", "queue 100"),
    part("delay TIME", "between the antennas, in each direction; none if not said", "delay 1us"),
    part(
        "error P",
        "data frames that are hit, whatever their length; link ACKs, RTS and CTS, which are shorter, are hit as often \
         as their bits would be in a frame of 1500 bytes",
        "error 20%",
    ),
    part("biterror BER", "each bit of each frame by itself", "biterror 1e-6"),
    part(
        "deliver-corrupt",
        "a data frame that is hit in its payload alone arrives damaged, and is acknowledged",
        "error 10% deliver-corrupt",
    ),
    part(
        "at TIME METRES",
        "where the mobile is; it moves in a straight line from one such point to the next",
        "at 0s 50 at 20s 300",
    ),
    part(
        "rx-thresh WATT",
        "what is received with less power is not received; 3.652e-10 if not said, ns-2's: 250 m",
        "rx-thresh 3.652e-10",
    ),
    part(
        "fz-thresh WATT",
        "with less than so much above that, the end of the connection is near; 0.5e-10 if not said (TCP-ECN 7.1.2)",
        "fz-thresh 1e-10",
    ),
    part(
        "down FROM FOR [every TIME]",
        "out of reach, from FROM after the start; may stand several times",
        "down 5s 2s every 20s",
    ),
    part("seed N", "what is drawn at random; 0 if not said", "seed 7"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RadioSpec;
    use crate::spec::part::tests::assert_examples;

    #[test]
    fn every_example_is_understood_and_has_its_part() {
        assert_examples::<RadioSpec>(PARTS);
    }

    #[test]
    fn every_part_that_is_read_is_there() {
        let error = "nonsense".parse::<RadioSpec>().unwrap_err().to_string();
        let (_, expected) = error.split_once("expected ").unwrap();
        let (names, _) = expected.split_once(", such as").unwrap();
        let names = names.replace("(each up to 1000 times) or", ",");
        let mut names: Vec<_> = names.split(',').map(str::trim).collect();
        let mut parts: Vec<_> =
            PARTS.iter().map(|part| part.words.split(' ').next().unwrap()).collect();
        names.sort_unstable();
        parts.sort_unstable();
        assert_eq!(names, parts);
    }
}
