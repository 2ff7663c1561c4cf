//! What a description is made of, for pages and help.

/// A part of a description.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Its words: what stands in capitals is a value, what stands in brackets may be left out.
    pub words: &'static str,
    /// What it does to packets, in a line.
    pub meaning: &'static str,
    /// A description with it.
    pub example: &'static str,
}

pub(crate) const fn part(
    words: &'static str,
    meaning: &'static str,
    example: &'static str,
) -> Part {
    Part { words, meaning, example }
}

/// The first word of each part, and an example of it.
pub(crate) fn names_of(
    parts: &'static [Part],
) -> impl Iterator<Item = (&'static str, &'static str)> {
    parts.iter().map(|part| (part.words.split(' ').next().unwrap_or_default(), part.example))
}

/// The example of the name that has `word` in it, or else is written most like it.
pub(crate) fn nearest_of(
    names: impl Iterator<Item = (&'static str, &'static str)>,
    word: &str,
) -> &'static str {
    let order = |(name, _): &(&str, _)| (!name.contains(word), airtcp_types::distance(name, word));
    names.min_by_key(order).map_or("", |(_, example)| example)
}

/// All parts there are.
pub const PARTS: &[Part] = &[
    part(
        "rate RATE [BYTES]",
        "how fast packets leave the queue; each counts BYTES more than it has (netem's packet overhead)",
        "rate 10mbit",
    ),
    part(
        "trace FILE",
        "a mahimahi packet-delivery trace in place of a rate: each line is the ms at which 1500 bytes may leave",
        "trace verizon-lte.up",
    ),
    part(
        "half TIME",
        "half duplex: both directions share the air in turns, and a frame of this one costs TIME more",
        "rate 20mbit half 150us",
    ),
    part(
        "limit PACKETS [SIZE]",
        "what the queue holds; what finds it full is dropped; 1000 packets if not said, of any size",
        "rate 10mbit limit 50",
    ),
    part(
        "codel [target TIME] [interval TIME] [ecn]",
        "the queue is kept short by CoDel (RFC 8289: 5ms, 100ms); with ecn it marks where it can",
        "rate 10mbit codel target 5ms interval 100ms ecn",
    ),
    part(
        "fq_codel [target TIME] [interval TIME] [ecn]",
        "a queue with CoDel for each flow, served in turns (FQ-CoDel, RFC 8290)",
        "rate 10mbit limit 1000 fq_codel ecn",
    ),
    part(
        "red min PACKETS max PACKETS probability P",
        "the queue is kept short by RED on its average length: it marks where it can, and drops others",
        "rate 10mbit red min 5 max 15 probability 10%",
    ),
    part(
        "mark PACKETS",
        "from so many queued packets on: marks where it can, and drops others",
        "rate 10mbit mark 65",
    ),
    part(
        "police rate RATE burst SIZE",
        "a token-bucket policer before the queue, as tc-police: tokens for bytes come at RATE, up \
         to SIZE; a packet that finds too few is dropped, no packet waits",
        "police rate 10mbit burst 64kb",
    ),
    part(
        "delay TIME [JITTER [distribution uniform|normal|pareto]] [inorder]",
        "how long a packet is under way, and how that varies: uniform if not said, up to JITTER either way, else \
         JITTER is the standard deviation; packets overtake each other, but with inorder",
        "delay 5ms 1ms distribution normal inorder",
    ),
    part(
        "delayed P MEAN SD",
        "a share P of packets comes later than its turn: a normal time of that mean and standard deviation on top, \
         and others overtake it",
        "delay 25ms delayed 5% 25ms 8ms",
    ),
    part(
        "paths TIME TIME",
        "packets take two paths in turn, each with its delay on top",
        "paths 0ms 40ms",
    ),
    part(
        "aggregate TIME [packets PACKETS] [bytes SIZE]",
        "packets are held at the end of the link and leave in bursts: TIME after the first of a \
         burst came, or as soon as it has so many packets or bytes",
        "rate 200mbit aggregate 5ms packets 42 bytes 64kb",
    ),
    part(
        "loss [random] P",
        "each packet is lost with probability P, whatever became of others",
        "loss 1%",
    ),
    part(
        "loss gemodel P [R [1-H [1-K]]]",
        "losses in bad spells (Gilbert-Elliott, netem's order): per packet, P from good to bad, R from bad to good \
         (a spell has 1/R packets on average), 1-H lost in the bad state and 1-K in the good one; 100%-P, 100% and \
         0% if not said",
        "loss gemodel 1% 10% 75% 0.1%",
    ),
    part(
        "burst P LEN",
        "each packet outside of a burst begins one with probability P: LEN packets in a row are lost",
        "burst 0.5% 5",
    ),
    part("drop every N", "each N-th packet is lost", "drop every 100"),
    part("drop LIST", "packets are lost by their number; the first is 1", "drop 3,7,10-12"),
    part(
        "duty TIME TIME",
        "in turn, nothing is lost for a time and everything for a time",
        "duty 900ms 100ms",
    ),
    part("duplicate P", "a share P of packets arrives twice", "duplicate 1%"),
    part(
        "biterror BER",
        "each bit is flipped with probability BER; receivers drop the packet for its checksum",
        "biterror 1e-6",
    ),
    part(
        "corrupt P [header H] [run LEN] [bits N]",
        "a share P of packets is damaged, and delivered: in the IP and TCP header for a share H of them, in the \
         payload for the others (anywhere if not said); P begins runs of LEN packets; N bits in a row are hit",
        "corrupt 5% header 10% run 3 bits 32",
    ),
    part(
        "down FROM FOR [every TIME]",
        "disconnected for a time, from FROM after the start on, and again every TIME; may stand several times",
        "down 5s 2s every 20s",
    ),
    part(
        "only payload",
        "loss and damage befall packets with data alone, and spare ACKs",
        "loss 1% only payload",
    ),
    part(
        "only forth | only back",
        "loss and damage befall one direction alone: forth is the way of the data in `compare` and `demo`, from left \
         to right in scenarios, from --a to --b in `link`; without, both have it",
        "loss 1% only forth",
    ),
    part(
        "seed N",
        "what is drawn at random: the same seed loses the same packets; 0 if not said",
        "loss 1% seed 7",
    ),
    part(
        "at TIME [rate ...] [delay ...] [loss ...]",
        "from TIME after the start on, a new rate, delay or loss in the words above; parts that \
         are not named stay; may stand several times, behind all other words, each time later than \
         the one before",
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
