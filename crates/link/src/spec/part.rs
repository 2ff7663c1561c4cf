//! The words of a description, for documentation and help.

/// A part of a description.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// The syntax: words in capitals are values, brackets are optional.
    pub words: &'static str,
    /// The effect on packets, in one line.
    pub meaning: &'static str,
    /// An example.
    pub example: &'static str,
}

pub(crate) const fn part(
    words: &'static str,
    meaning: &'static str,
    example: &'static str,
) -> Part {
    Part { words, meaning, example }
}

/// Returns the first word of each part, and its example.
pub(crate) fn names_of(
    parts: &'static [Part],
) -> impl Iterator<Item = (&'static str, &'static str)> {
    parts.iter().map(|part| (part.words.split(' ').next().unwrap_or_default(), part.example))
}

/// Returns the example of the name that contains `word`, or else is most similar to it.
pub(crate) fn nearest_of(
    names: impl Iterator<Item = (&'static str, &'static str)>,
    word: &str,
) -> &'static str {
    let order = |(name, _): &(&str, _)| (!name.contains(word), airtcp_types::distance(name, word));
    names.min_by_key(order).map_or("", |(_, example)| example)
}

/// All parts of a description.
pub const PARTS: &[Part] = &[
    part(
        "rate RATE [BYTES]",
        "bottleneck rate; each packet counts as BYTES longer (netem's packet overhead)",
        "rate 10mbit",
    ),
    part(
        "trace FILE",
        "mahimahi packet-delivery trace instead of a rate: each line is the time in ms at which 1500 bytes may leave",
        "trace verizon-lte.up",
    ),
    part(
        "half TIME",
        "half duplex: both directions alternate on the channel; each frame of this direction takes TIME longer",
        "rate 20mbit half 150us",
    ),
    part(
        "limit PACKETS [SIZE]",
        "queue size in packets, and optionally in bytes; packets that arrive at a full queue are dropped; default 1000 packets",
        "rate 10mbit limit 50",
    ),
    part(
        "codel [target TIME] [interval TIME] [ecn]",
        "CoDel (RFC 8289; defaults 5ms, 100ms); with ecn it marks ECN-capable packets instead of dropping them",
        "rate 10mbit codel target 5ms interval 100ms ecn",
    ),
    part(
        "fq_codel [target TIME] [interval TIME] [ecn]",
        "FQ-CoDel (RFC 8290): a CoDel queue per flow, served round robin",
        "rate 10mbit limit 1000 fq_codel ecn",
    ),
    part(
        "red min PACKETS max PACKETS probability P",
        "RED on the average queue length: marks ECN-capable packets and drops others",
        "rate 10mbit red min 5 max 15 probability 10%",
    ),
    part(
        "mark PACKETS",
        "at a queue of PACKETS or more: marks ECN-capable packets and drops others",
        "rate 10mbit mark 65",
    ),
    part(
        "police rate RATE burst SIZE",
        "token-bucket policer before the queue, as tc-police: the bucket holds SIZE and fills at RATE; packets that exceed \
         it are dropped",
        "police rate 10mbit burst 64kb",
    ),
    part(
        "delay TIME [JITTER [distribution uniform|normal|pareto]] [inorder]",
        "propagation delay, with jitter: uniform (the default) within JITTER in either direction, otherwise with the \
         standard deviation JITTER; packets may be reordered unless inorder is set",
        "delay 5ms 1ms distribution normal inorder",
    ),
    part(
        "delayed P MEAN SD",
        "a share P of packets is delayed by an additional, normally distributed time (MEAN, SD), which reorders them",
        "delay 25ms delayed 5% 25ms 8ms",
    ),
    part(
        "paths TIME TIME",
        "packets alternate between two paths, each with its additional delay",
        "paths 0ms 40ms",
    ),
    part(
        "aggregate TIME [packets PACKETS] [bytes SIZE]",
        "packets leave the end of the link in bursts: TIME after the first packet of a burst arrived, or when the burst \
         has that many packets or bytes",
        "rate 200mbit aggregate 5ms packets 42 bytes 64kb",
    ),
    part("loss [random] P", "each packet is lost independently with probability P", "loss 1%"),
    part(
        "loss gemodel P [R [1-H [1-K]]]",
        "burst losses (Gilbert-Elliott, netem's order): per packet, P is the probability of good to bad, R that of bad to \
         good (bad lasts 1/R packets on average), 1-H the loss in the bad state and 1-K that in the good state; \
         defaults 100%-P, 100% and 0%",
        "loss gemodel 1% 10% 75% 0.1%",
    ),
    part(
        "burst P LEN",
        "each packet outside of a burst starts one with probability P: LEN consecutive packets are lost",
        "burst 0.5% 5",
    ),
    part("drop every N", "each N-th packet is lost", "drop every 100"),
    part(
        "drop LIST",
        "the packets with these numbers are lost; the first packet is 1",
        "drop 3,7,10-12",
    ),
    part(
        "duty TIME TIME",
        "alternates between no loss and total loss for these times",
        "duty 900ms 100ms",
    ),
    part("duplicate P", "a share P of packets is duplicated", "duplicate 1%"),
    part(
        "biterror BER",
        "each bit is flipped with probability BER; receivers drop the packet because of its checksum",
        "biterror 1e-6",
    ),
    part(
        "corrupt P [header H] [run LEN] [bits N]",
        "a share P of packets is corrupted, and delivered: in the IP and TCP header for a share H of them, in the \
         payload for the others (without header: anywhere); with run, P starts runs of LEN packets; N consecutive \
         bits are flipped",
        "corrupt 5% header 10% run 3 bits 32",
    ),
    part(
        "down FROM FOR [every TIME]",
        "no connection for FOR, starting FROM after the start, and again every TIME; may be repeated",
        "down 5s 2s every 20s",
    ),
    part(
        "only payload",
        "loss and damage affect only packets with data, not pure ACKs",
        "loss 1% only payload",
    ),
    part(
        "only forth | only back",
        "loss and damage affect only one direction: forth is the direction of the data in `compare` and `demo`, from left \
         to right in scenarios, and from --a to --b in `link`; by default both",
        "loss 1% only forth",
    ),
    part(
        "seed N",
        "seed of all random numbers: the same seed loses the same packets; default 0",
        "loss 1% seed 7",
    ),
    part(
        "at TIME [rate ...] [delay ...] [loss ...]",
        "TIME after the start, the rate, delay or loss changes to these values; other parts are unchanged; must follow all \
         other words; may be repeated, in order of time",
        "rate 10mbit delay 20ms at 5s rate 1mbit at 10s rate 10mbit delay 50ms",
    ),
];

#[cfg(test)]
pub(crate) mod tests {
    use std::str::FromStr;

    use super::*;
    use crate::LinkSpec;

    pub(crate) fn assert_examples<T: FromStr>(parts: &[Part]) {
        for part in parts {
            assert!(part.example.parse::<T>().is_ok(), "{}", part.example);
            let first = part.words.split(' ').next().unwrap();
            assert!(part.example.split(' ').any(|word| word == first), "{}", part.example);
        }
    }

    #[test]
    fn every_example_is_understood_and_has_its_part() {
        assert_examples::<LinkSpec>(PARTS);
    }

    #[test]
    fn every_word_that_is_read_is_in_a_part() {
        let source = [include_str!("parse.rs"), include_str!("words.rs")].concat();
        let reads = ["is_next(", "keyword(", "names = [", "&[\"uniform\"", "            \""];
        let mut words = Vec::new();
        for line in source.lines().filter(|line| reads.iter().any(|read| line.contains(read))) {
            words.extend(line.split('"').skip(1).step_by(2));
        }
        words.retain(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase()));
        assert!(words.len() > 30, "{words:?}");
        for word in words {
            let separators = [' ', '[', ']', '|'];
            let is_there = |part: &Part| part.words.split(separators).any(|other| other == word);
            assert!(PARTS.iter().any(is_there), "`{word}` is in no part");
        }
    }
}
