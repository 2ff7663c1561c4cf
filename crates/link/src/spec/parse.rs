//! Parsing of a description.

use std::str::FromStr;
use std::time::Duration;

use airtcp_types::{ByteCount, Rate};

use super::value::{self, Share};
use super::words::{MAX_PACKETS, MOST, Words, read_parts};
use super::{
    AggregateSpec, ChangeSpec, CorruptSpec, DelaySpec, DelayedSpec, Discipline, Distribution,
    DropSpec, LinkSpec, LossSpec, PARTS, PoliceSpec, RateSpec, SpecError, Way, names_of,
    nearest_of,
};

/// The parts that may follow `at`.
const CHANGEABLE: &str = "rate, delay or loss, the parts that can change";

/// Expected if a value, such as netem's correlation, stands where a part should start.
const NO_MORE_VALUES: &str = "the next part (the part before takes no more values, and netem's \
                              correlations are not supported: for burst losses use `loss gemodel`)";

/// The syntax of parts with several keywords, and an example of each.
const POLICE: (&str, &str) = ("police rate RATE burst SIZE", "police rate 10mbit burst 64kb");
const RED: (&str, &str) =
    ("red min PACKETS max PACKETS probability P", "red min 5 max 15 probability 10%");

/// Words of tc that are not supported, each with an equivalent example.
const OF_TC: [(&str, &str); 4] = [
    ("netem", "delay 10ms"),
    ("reorder", "delayed 5% 25ms 8ms"),
    ("slot", "aggregate 5ms"),
    ("tbf", "rate 10mbit limit 50"),
];

/// The number of bits of the largest IP packet.
const MAX_BITS: u64 = 65_535 * 8;

impl FromStr for LinkSpec {
    type Err = SpecError;

    /// Parses a description. The empty one is a link without any effect on packets.
    ///
    /// # Errors
    ///
    /// The first unknown word, or the end of the text where a word is missing.
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let mut spec = Self::default();
        // `rate` and `trace` exclude each other, and so do two disciplines.
        let kind = |part| match part {
            "trace" => "rate",
            "fq_codel" | "red" | "mark" => "codel",
            other => other,
        };
        let mut words = Words::new(text);
        read_parts(&mut words, Some("at"), &["down", "only"], kind, |at, part, words| {
            spec.read_part(at, part, words)
        })?;
        while spec.changes.len() < MOST && words.is_next("at") {
            let before = spec.changes.last().map(|change| change.at);
            spec.changes.push(words.change(before)?);
        }
        match words.peek() {
            None => Ok(spec),
            Some((offset, word)) => {
                Err(SpecError::new(offset, word, "no more than 1000 changes", ""))
            }
        }
    }
}

impl LinkSpec {
    fn read_part(&mut self, at: usize, part: &str, words: &mut Words<'_>) -> Result<(), SpecError> {
        match part {
            "rate" => {
                let (rate, overhead) = words.rate()?;
                self.rate = RateSpec::Constant { rate, overhead };
            }
            "trace" => {
                let file = words.take(|word| Some(word.to_owned()), "a file", "verizon-lte.up")?;
                self.rate = RateSpec::Trace(file);
            }
            "half" => self.half = Some(words.time("100us")?),
            "police" => self.police = Some(words.police()?),
            "limit" => {
                let count = |word: &str| value::whole(word, 1..=MAX_PACKETS);
                let expected =
                    "a number of packets from 1 to 1000000, before the size in bytes if any";
                self.queue.packets = words.take(count, expected, "50")? as usize;
                self.queue.bytes = words.take_if(value::size);
            }
            "codel" => {
                let (target, interval, ecn) = words.codel()?;
                self.queue.discipline = Discipline::CoDel { target, interval, ecn };
            }
            "fq_codel" => {
                let (target, interval, ecn) = words.codel()?;
                self.queue.discipline = Discipline::FqCoDel { target, interval, ecn };
            }
            "red" => self.queue.discipline = words.red()?,
            "mark" => self.queue.discipline = Discipline::Mark(words.count("65")? as u32),
            "delay" => self.delay = words.delay()?,
            "delayed" => {
                let (share, mean) = (words.share("10%")?, words.time("25ms")?);
                self.delayed = Some(DelayedSpec { share, mean, deviation: words.time("8ms")? });
            }
            "paths" => self.paths = Some((words.time("0ms")?, words.time("40ms")?)),
            "aggregate" => self.aggregate = Some(words.aggregate()?),
            "loss" => self.loss = Some(words.loss()?),
            "burst" => self.burst = Some((words.share("5%")?, words.count("5")?)),
            "drop" => self.drop = Some(words.drop_list()?),
            "duty" => {
                let (on, off) = (words.time("900ms")?, words.period("100ms")?);
                self.duty = Some((on, off));
            }
            "duplicate" => self.duplicate = Some(words.share("1%")?),
            "biterror" => {
                let rate = |word: &str| value::number(word).filter(|rate| *rate <= 0.5);
                self.biterror = Some(words.take(rate, "a bit error rate up to 0.5", "1e-6")?);
            }
            "corrupt" => self.corrupt = Some(words.corrupt()?),
            "down" if self.down.len() < MOST => self.down.push(words.down()?),
            "only" => {
                let place = words.peek().map_or(words.text.len(), |(offset, _)| offset);
                let names = ["payload", "forth", "back"];
                let way = match words.choice(&names, "payload, forth or back", "forth")? {
                    0 => {
                        self.only.payload = true;
                        return Ok(());
                    }
                    1 => Way::Forth,
                    _ => Way::Back,
                };
                if self.only.way.replace(way).is_some_and(|before| before != way) {
                    let word = words.text.get(place..words.at).unwrap_or("");
                    return Err(SpecError::new(place, word, "one direction only", "forth"));
                }
            }
            "seed" => {
                let seed = |word: &str| value::whole(word, 0..=u64::MAX);
                self.seed = words.take(seed, "a whole number", "7")?;
            }
            other => {
                let expected = "rate, trace, half, police, limit, codel, fq_codel, red, mark, delay, \
                                delayed, paths, aggregate, loss, burst, drop, duty, duplicate, \
                                biterror, corrupt, down (up to 1000 times), only, seed or at";
                if other.starts_with(|c: char| c.is_ascii_digit()) {
                    return Err(SpecError::new(at, other, NO_MORE_VALUES, "loss 1%"));
                }
                let example = of_tc(other).unwrap_or_else(|| nearest_of(names_of(PARTS), other));
                return Err(SpecError::new(at, other, expected, example));
            }
        }
        Ok(())
    }
}

impl Words<'_> {
    /// Parses a rate, and the bytes that each packet counts beyond its own.
    fn rate(&mut self) -> Result<(Rate, ByteCount), SpecError> {
        let rate = self.rate_value("10mbit")?;
        let overhead = self.take_if(|word| value::whole(word, 0..=value::MAX_BYTES));
        Ok((rate, ByteCount(overhead.unwrap_or(0))))
    }

    fn police(&mut self) -> Result<PoliceSpec, SpecError> {
        let (form, example) = POLICE;
        self.keyword("rate", form, example)?;
        let rate = self.rate_value("10mbit")?;
        self.keyword("burst", form, example)?;
        Ok(PoliceSpec { rate, burst: self.size("64kb")? })
    }

    fn aggregate(&mut self) -> Result<AggregateSpec, SpecError> {
        let timeout = self.period("5ms")?;
        let packets = if self.is_next("packets") { Some(self.count("42")? as usize) } else { None };
        let bytes = if self.is_next("bytes") { Some(self.size("64kb")?) } else { None };
        Ok(AggregateSpec { timeout, packets, bytes })
    }

    /// Parses the words after `at`. The time must be later than `before`.
    fn change(&mut self, before: Option<Duration>) -> Result<ChangeSpec, SpecError> {
        let later =
            |word: &str| value::time(word).filter(|at| before.is_none_or(|before| *at > before));
        let at = self.take(later, "a time with its unit, after that of the change before", "5s")?;
        let mut change = ChangeSpec { at, rate: None, delay: None, loss: None };
        let begin = self.at;
        read_parts(
            self,
            Some("at"),
            &[],
            |part| part,
            |offset, part, words| {
                match part {
                    "rate" => change.rate = Some(words.rate()?),
                    "delay" => change.delay = Some(words.delay()?),
                    "loss" => change.loss = Some(words.loss()?),
                    other => return Err(SpecError::new(offset, other, CHANGEABLE, "rate 1mbit")),
                }
                Ok(())
            },
        )?;
        if self.at == begin {
            let (offset, word) = self.peek().unwrap_or((self.text.len(), ""));
            return Err(SpecError::new(offset, word, CHANGEABLE, "rate 1mbit"));
        }
        Ok(change)
    }

    /// Parses the target, the interval, and whether ECN is on.
    fn codel(&mut self) -> Result<(Duration, Duration, bool), SpecError> {
        // The defaults of RFC 8289 sections 4.2 and 4.3.
        let mut target = Duration::from_millis(5);
        let mut interval = Duration::from_millis(100);
        if self.is_next("target") {
            target = self.time("5ms")?;
        }
        if self.is_next("interval") {
            interval = self.period("100ms")?;
        }
        Ok((target, interval, self.is_next("ecn")))
    }

    fn red(&mut self) -> Result<Discipline, SpecError> {
        let (form, example) = RED;
        self.keyword("min", form, example)?;
        let min = self.count("5")?;
        self.keyword("max", form, example)?;
        let above = |word: &str| value::whole(word, min + 1..=MAX_PACKETS);
        let max = self.take(above, "a count above min", "15")?;
        self.keyword("probability", form, example)?;
        let probability = self.share("10%")?;
        Ok(Discipline::Red { min: min as u32, max: max as u32, probability })
    }

    fn delay(&mut self) -> Result<DelaySpec, SpecError> {
        let mut delay = DelaySpec { base: self.time("5ms")?, ..DelaySpec::default() };
        if self.is_value_next() {
            delay.jitter = self.period("1ms")?;
        }
        if !delay.jitter.is_zero() && self.is_next("distribution") {
            delay.distribution = match self.choice(
                &["uniform", "normal", "pareto"],
                "uniform, normal or pareto",
                "normal",
            )? {
                0 => Distribution::Uniform,
                1 => Distribution::Normal,
                _ => Distribution::Pareto,
            };
        }
        delay.in_order = self.is_next("inorder");
        Ok(delay)
    }

    fn loss(&mut self) -> Result<LossSpec, SpecError> {
        if !self.is_next("gemodel") {
            self.is_next("random");
            return Ok(LossSpec::Random(self.share("1%")?));
        }
        // Defaults as in tc-netem(8): r is 1-p, 1-h is 100 % and 1-k is 0 %.
        let to_bad = self.share("1%")?;
        let rest = Share::from_percent(100.0 - to_bad.probability() * 100.0).unwrap_or(Share::ALL);
        let [mut to_good, mut loss_bad, mut loss_good] = [rest, Share::ALL, Share::NONE];
        for value in [&mut to_good, &mut loss_bad, &mut loss_good] {
            if !self.is_value_next() {
                break;
            }
            *value = self.share("10%")?;
        }
        Ok(LossSpec::GilbertElliott { to_bad, to_good, loss_bad, loss_good })
    }

    fn drop_list(&mut self) -> Result<DropSpec, SpecError> {
        if self.is_next("every") {
            return Ok(DropSpec::Every(self.count("100")?));
        }
        let numbers = self.take(numbers, "every, or packet numbers from 1 on", "3,7,10-12")?;
        Ok(DropSpec::Numbers(numbers))
    }

    fn corrupt(&mut self) -> Result<CorruptSpec, SpecError> {
        let mut corrupt = CorruptSpec { share: self.share("5%")?, header: None, run: 1, bits: 1 };
        if self.is_next("header") {
            corrupt.header = Some(self.share("95%")?);
        }
        if self.is_next("run") {
            corrupt.run = self.count("5")?;
        }
        if self.is_next("bits") {
            let bits = |word: &str| value::whole(word, 1..=MAX_BITS);
            corrupt.bits = self.take(bits, "a count of bits up to 524280", "32")? as u32;
        }
        Ok(corrupt)
    }
}

/// The equivalent of a word of tc that is not supported.
pub(crate) fn of_tc(word: &str) -> Option<&'static str> {
    OF_TC.iter().find(|(name, _)| *name == word).map(|(_, example)| *example)
}

/// Parses a list of ranges such as `3,7,10-12`.
fn numbers(word: &str) -> Option<Vec<(u64, u64)>> {
    let mut ranges = Vec::new();
    for part in word.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first = value::whole(first, 1..=u64::MAX)?;
        ranges.push((first, value::whole(last, first..=u64::MAX)?));
        if ranges.len() > MOST {
            return None;
        }
    }
    Some(ranges)
}
