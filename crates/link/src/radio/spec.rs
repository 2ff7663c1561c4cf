//! The description of a radio.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use airtcp_types::Rate;

use super::part::PARTS;
use super::power::Position;
use crate::spec::value::{self, show_rate, show_time};
use crate::spec::words::{MOST, Words, read_parts};
use crate::spec::{DownSpec, Share, SpecError, names_of, nearest_of};

/// The description of a radio channel and its stations.
///
/// The description is a list of words, those of [`PARTS`](super::PARTS). Every part is optional and
/// may be given once, except `at` and `down`, which may be repeated. Values are written as in a
/// [`LinkSpec`](crate::LinkSpec).
///
/// ```
/// use airtcp_link::RadioSpec;
///
/// let spec: RadioSpec = "error 20% tries 7 at 0s 50 at 20s 300".parse()?;
/// assert_eq!(spec.to_string().parse::<RadioSpec>()?, spec);
/// let error = "tries 0".parse::<RadioSpec>().unwrap_err();
/// assert_eq!(error.to_string(), "at byte 6, `0`: expected a whole number from 1 to 1000000, such as `7`");
/// # Ok::<(), airtcp_link::SpecError>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct RadioSpec {
    /// Whether the radio is a plain link in each direction, without 802.11.
    pub plain: bool,
    /// The rate of data frames.
    pub rate: Rate,
    /// The rate of link ACKs, RTS and CTS.
    pub control: Rate,
    /// The preamble of each frame.
    pub preamble: Preamble,
    /// Whether RTS and CTS precede data frames.
    pub rts: bool,
    /// The number of transmissions of a frame by the MAC before it gives up.
    pub tries: u32,
    /// The number of times that the link layer passes a frame to the MAC.
    pub passes: u32,
    /// The queue size in each direction, in frames.
    pub queue: usize,
    /// The propagation delay.
    pub delay: Duration,
    /// The share of data frames with errors.
    pub error: Share,
    /// The probability that a bit is flipped, `0.0..=0.5`.
    pub biterror: f64,
    /// Whether damaged frames are delivered.
    pub deliver_corrupt: bool,
    /// The mobile's path, in the order of time; if it is empty, the mobile is beside the station.
    pub at: Vec<Position>,
    /// The receive threshold in watts.
    pub rx_thresh: f64,
    /// The margin above the threshold, in watts, within which the mobile is about to leave.
    pub fz_thresh: f64,
    /// Times at which the mobile is out of reach whatever the power.
    pub down: Vec<DownSpec>,
    /// The seed of all random numbers.
    pub seed: u64,
}

/// The preamble of each frame: synchronisation and the PLCP header (IEEE 802.11b).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Preamble {
    /// 192 us.
    #[default]
    Long,
    /// 96 us.
    Short,
}

impl Default for RadioSpec {
    fn default() -> Self {
        Self {
            plain: false,
            rate: Rate::from_bits_per_sec(11_000_000),
            control: Rate::from_bits_per_sec(2_000_000),
            preamble: Preamble::default(),
            rts: false,
            tries: 7,
            passes: 3,
            queue: 50,
            delay: Duration::ZERO,
            error: Share::NONE,
            biterror: 0.0,
            deliver_corrupt: false,
            at: Vec::new(),
            rx_thresh: 3.652e-10,
            fz_thresh: 0.5e-10,
            down: Vec::new(),
            seed: 0,
        }
    }
}

/// The maximum distance of a mobile.
const MAX_METRES: f64 = 1e6;

impl FromStr for RadioSpec {
    type Err = SpecError;

    /// Parses a description. The empty one is 802.11b without errors.
    ///
    /// # Errors
    ///
    /// The first unknown word, or the end of the text where a word is missing.
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let mut spec = Self::default();
        read_parts(
            &mut Words::new(text),
            None,
            &["at", "down"],
            |part| part,
            |at, part, words| spec.read_part(at, part, words),
        )?;
        Ok(spec)
    }
}

/// The parts that may differ between mobiles.
const OF_MOBILE: [&str; 7] =
    ["error", "biterror", "deliver-corrupt", "at", "rx-thresh", "fz-thresh", "down"];

impl RadioSpec {
    /// Returns the description with the parts in `words` replaced. Only properties of the channel
    /// to one mobile are accepted.
    ///
    /// # Errors
    ///
    /// The first word that is unknown, or not the property of a mobile.
    pub fn of_mobile(&self, words: &str) -> Result<Self, SpecError> {
        let mut own = Self { at: Vec::new(), down: Vec::new(), ..self.clone() };
        read_parts(
            &mut Words::new(words),
            None,
            &["at", "down"],
            |part| part,
            |at, part, words| {
                if OF_MOBILE.contains(&part) {
                    return own.read_part(at, part, words);
                }
                let expected = "error, biterror, deliver-corrupt, at, rx-thresh, fz-thresh or down, \
                                the words of one mobile";
                let names = names_of(PARTS).filter(|(name, _)| OF_MOBILE.contains(name));
                Err(SpecError::new(at, part, expected, nearest_of(names, part)))
            },
        )?;
        if own.at.is_empty() {
            own.at.clone_from(&self.at);
        }
        if own.down.is_empty() {
            own.down.clone_from(&self.down);
        }
        Ok(own)
    }

    fn read_part(&mut self, at: usize, part: &str, words: &mut Words<'_>) -> Result<(), SpecError> {
        let watts = |word: &str| value::number(word);
        match part {
            "plain" => self.plain = true,
            "rate" => self.rate = words.rate_value("11mbit")?,
            "control" => self.control = words.rate_value("2mbit")?,
            "preamble" => {
                let name = words.choice(&["long", "short"], "long or short", "long")?;
                self.preamble = [Preamble::Long, Preamble::Short][name];
            }
            "rts" => self.rts = true,
            "tries" => self.tries = words.count("7")? as u32,
            "passes" => self.passes = words.count("3")? as u32,
            "queue" => self.queue = words.count("50")? as usize,
            "delay" => self.delay = words.time("1us")?,
            "error" => self.error = words.share("20%")?,
            "biterror" => {
                let rate = |word: &str| value::number(word).filter(|rate| *rate <= 0.5);
                self.biterror = words.take(rate, "a bit error rate up to 0.5", "1e-6")?;
            }
            "deliver-corrupt" => self.deliver_corrupt = true,
            "at" if self.at.len() < MOST => {
                let last = self.at.last().map(|last| last.at);
                let later =
                    |word: &str| value::time(word).filter(|at| last.is_none_or(|last| *at > last));
                let at = words.take(later, "a time after that of the point before", "20s")?;
                let distance =
                    |word: &str| value::number(word).filter(|metres| *metres <= MAX_METRES);
                let metres = words.take(distance, "metres up to 1e6", "250")?;
                self.at.push(Position { at, metres });
            }
            "rx-thresh" => self.rx_thresh = words.take(watts, "a power in watts", "3.652e-10")?,
            "fz-thresh" => self.fz_thresh = words.take(watts, "a power in watts", "0.5e-10")?,
            "down" if self.down.len() < MOST => self.down.push(words.down()?),
            "seed" => {
                let seed = |word: &str| value::whole(word, 0..=u64::MAX);
                self.seed = words.take(seed, "a whole number", "7")?;
            }
            other => {
                let expected = "plain, rate, control, preamble, rts, tries, passes, queue, delay, error, biterror, \
                                deliver-corrupt, at, rx-thresh, fz-thresh, down (each up to 1000 times) or seed";
                let example = nearest_of(names_of(PARTS), other);
                return Err(SpecError::new(at, other, expected, example));
            }
        }
        Ok(())
    }
}

impl fmt::Display for RadioSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let preamble = match self.preamble {
            Preamble::Long => "long",
            Preamble::Short => "short",
        };
        if self.plain {
            f.write_str("plain ")?;
        }
        let (rate, control) = (show_rate(self.rate), show_rate(self.control));
        write!(f, "rate {rate} control {control} preamble {preamble} ")?;
        if self.rts {
            f.write_str("rts ")?;
        }
        write!(f, "tries {} passes {} queue {} ", self.tries, self.passes, self.queue)?;
        write!(
            f,
            "delay {} error {} biterror {} ",
            show_time(self.delay),
            self.error,
            self.biterror
        )?;
        if self.deliver_corrupt {
            f.write_str("deliver-corrupt ")?;
        }
        for Position { at, metres } in &self.at {
            write!(f, "at {} {metres} ", show_time(*at))?;
        }
        write!(f, "rx-thresh {:e} fz-thresh {:e} ", self.rx_thresh, self.fz_thresh)?;
        for down in &self.down {
            write!(f, "{down} ")?;
        }
        write!(f, "seed {}", self.seed)
    }
}
