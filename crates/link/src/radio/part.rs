//! The words of a radio description, for documentation and help.

use crate::spec::{Part, part};

/// All parts of a description.
pub const PARTS: &[Part] = &[
    part(
        "plain",
        "without 802.11: two independent links, on which a frame takes the packet's time at the rate; link ACKs and RTS take none",
        "plain rate 1mbit delay 20ms",
    ),
    part("rate RATE", "rate of data frames; default 11mbit", "rate 5.5mbit"),
    part("control RATE", "rate of link ACKs, RTS and CTS; default 2mbit", "control 1mbit"),
    part(
        "preamble long|short",
        "preamble of 192 or 96 us before each frame (IEEE 802.11b); default long",
        "preamble short",
    ),
    part("rts", "RTS and CTS precede each data frame", "rts"),
    part("tries N", "transmissions of a frame by the MAC before it gives up; default 7", "tries 4"),
    part(
        "passes N",
        "attempts of the link layer, each with all tries of the MAC, in the modes that retry; default 3",
        "passes 1",
    ),
    part("queue N", "queue size of each direction in frames; default 50", "queue 100"),
    part(
        "delay TIME",
        "propagation delay in each direction; default 0. In the modes mac and mac+link a frame waits for the link ACK of the one \
         before, so the radio carries one frame per round trip",
        "delay 1us",
    ),
    part(
        "error P",
        "share of data frames with errors, whatever their length; the shorter link ACKs, RTS and CTS have errors according \
         to the bit error rate of a frame of 1500 bytes",
        "error 20%",
    ),
    part(
        "biterror BER",
        "each bit of each frame is flipped independently with probability BER",
        "biterror 1e-6",
    ),
    part(
        "deliver-corrupt",
        "a data frame with errors only in its payload is acknowledged and delivered damaged",
        "error 10% deliver-corrupt",
    ),
    part(
        "at TIME METRES",
        "distance of the mobile; it moves in a straight line between these points",
        "at 0s 50 at 20s 300",
    ),
    part(
        "rx-thresh WATT",
        "receive threshold: weaker frames are not received; default 3.652e-10, as in ns-2: 250 m",
        "rx-thresh 3.652e-10",
    ),
    part(
        "fz-thresh WATT",
        "margin above rx-thresh below which the mobile is about to leave; default 0.5e-10 (TCP-ECN 7.1.2)",
        "fz-thresh 1e-10",
    ),
    part(
        "down FROM FOR [every TIME]",
        "out of reach for FOR, starting FROM after the start; may be repeated",
        "down 5s 2s every 20s",
    ),
    part("seed N", "seed of all random numbers; default 0", "seed 7"),
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
