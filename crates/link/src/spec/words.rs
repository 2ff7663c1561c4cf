//! The tokenizer of descriptions.

use std::time::Duration;

use airtcp_types::{ByteCount, Rate};

use super::value::{self, Share};
use super::{DownSpec, SpecError};

/// The largest number of packets in a description.
pub(crate) const MAX_PACKETS: u64 = 1_000_000;

/// The maximum length of a list, and of repetitions of a part: this bounds the size of a
/// description.
pub(crate) const MOST: usize = 1_000;

/// Parses a description part by part, up to the end or to the part `until`. A part may be given
/// once, except those in `add_up`; parts of the same `kind` exclude each other; `read` parses the
/// words of a part.
///
/// # Errors
///
/// The first unknown word, or the end of the text where a word is missing.
pub(crate) fn read_parts<'a>(
    words: &mut Words<'a>,
    until: Option<&str>,
    add_up: &[&str],
    kind: impl Fn(&'a str) -> &'a str,
    mut read: impl FnMut(usize, &'a str, &mut Words<'a>) -> Result<(), SpecError>,
) -> Result<(), SpecError> {
    let mut seen = Vec::new();
    while let Some((offset, part)) = words.peek().filter(|(_, part)| Some(*part) != until) {
        words.next();
        let kind = kind(part);
        let earlier = seen.iter().find(|(seen, _)| *seen == kind && !add_up.contains(&kind));
        if let Some((kind, earlier)) = earlier {
            let expected = match *kind {
                _ if *earlier == part => "this part only once",
                "rate" => "either rate or trace, not both: remove one",
                _ => "one of codel, fq_codel, red and mark, and no second: remove one",
            };
            return Err(SpecError::new(offset, part, expected, ""));
        }
        read(offset, part, words)?;
        seen.push((kind, part));
    }
    Ok(())
}

/// The rest of a description, with its position.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
}

impl<'a> Iterator for Words<'a> {
    type Item = (usize, &'a str);

    fn next(&mut self) -> Option<(usize, &'a str)> {
        let rest = self.text.get(self.at..)?;
        let offset = self.at + (rest.len() - rest.trim_start().len());
        let word = rest.split_whitespace().next()?;
        self.at = offset + word.len();
        Some((offset, word))
    }
}

impl<'a> Words<'a> {
    pub(crate) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Returns the next word without consuming it.
    pub(crate) fn peek(&self) -> Option<(usize, &'a str)> {
        let mut ahead = *self;
        ahead.next()
    }

    /// Consumes and parses the next word. An error if it is missing or invalid.
    pub(crate) fn take<T>(
        &mut self,
        read: impl FnOnce(&str) -> Option<T>,
        expected: &'static str,
        example: &'static str,
    ) -> Result<T, SpecError> {
        let (offset, word) = self.next().unwrap_or((self.text.len(), ""));
        let value = if word.is_empty() { None } else { read(word) };
        value.ok_or_else(|| SpecError::new(offset, word, expected, example))
    }

    /// Consumes the next word if `read` accepts it.
    pub(crate) fn take_if<T>(&mut self, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let mut ahead = *self;
        let value = read(ahead.next()?.1)?;
        *self = ahead;
        Some(value)
    }

    pub(crate) fn is_next(&mut self, wanted: &str) -> bool {
        self.take_if(|word| (word == wanted).then_some(())).is_some()
    }

    /// Whether the next word starts with a digit, and so cannot be the next part.
    pub(crate) fn is_value_next(&self) -> bool {
        self.peek().is_some_and(|(_, word)| word.starts_with(|c: char| c.is_ascii_digit()))
    }

    pub(crate) fn share(&mut self, example: &'static str) -> Result<Share, SpecError> {
        self.take(value::share, "a share from 0% to 100%", example)
    }

    pub(crate) fn time(&mut self, example: &'static str) -> Result<Duration, SpecError> {
        self.take(value::time, "a time with its unit (s, ms, us or ns)", example)
    }

    /// Parses a time above zero.
    pub(crate) fn period(&mut self, example: &'static str) -> Result<Duration, SpecError> {
        let read = |word: &str| value::time(word).filter(|time| !time.is_zero());
        self.take(read, "a time over zero with its unit (s, ms, us or ns)", example)
    }

    /// Parses a rate above zero.
    pub(crate) fn rate_value(&mut self, example: &'static str) -> Result<Rate, SpecError> {
        let expected = match self.peek() {
            Some((_, word)) if value::is_zero_rate(word) => "a rate above zero",
            _ => "a rate with its unit (gbit, mbit, kbit or bit)",
        };
        self.take(value::rate, expected, example)
    }

    pub(crate) fn count(&mut self, example: &'static str) -> Result<u64, SpecError> {
        let read = |word: &str| value::whole(word, 1..=MAX_PACKETS);
        self.take(read, "a whole number from 1 to 1000000", example)
    }

    pub(crate) fn size(&mut self, example: &'static str) -> Result<ByteCount, SpecError> {
        let read = |word: &str| value::size(word).filter(|size| size.0 > 0);
        self.take(read, "a size over zero with its unit (b, kb or mb)", example)
    }

    /// Consumes the keyword `wanted` of a part with the syntax `form`.
    pub(crate) fn keyword(
        &mut self,
        wanted: &str,
        form: &'static str,
        example: &'static str,
    ) -> Result<(), SpecError> {
        self.take(|word| (word == wanted).then_some(()), form, example)
    }

    /// Consumes one of the names, and returns its index.
    pub(crate) fn choice(
        &mut self,
        names: &[&'static str],
        expected: &'static str,
        example: &'static str,
    ) -> Result<usize, SpecError> {
        self.take(|word| names.iter().position(|name| *name == word), expected, example)
    }

    pub(crate) fn down(&mut self) -> Result<DownSpec, SpecError> {
        let (from, length) = (self.time("5s")?, self.period("2s")?);
        let longer = |word: &str| value::time(word).filter(|every| *every >= length);
        let every = if self.is_next("every") {
            Some(self.take(longer, "a time no shorter than the disconnection", "20s")?)
        } else {
            None
        };
        Ok(DownSpec { from, length, every })
    }
}
