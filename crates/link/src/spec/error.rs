//! Errors in a description, with their position.

use std::fmt;

/// An invalid description: the position, the word there, and the expected words.
///
/// Displayed in one line: ``at byte 5, `5`: expected a share from 0% to 100%, such as `1%` ``.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct SpecError {
    /// The offset of the word in bytes; the length of the text if a word is missing at its end.
    pub offset: usize,
    /// The word, cut to 40 characters; empty at the end of the text.
    pub word: String,
    /// The expected words at this position.
    pub expected: &'static str,
    /// An example of them; empty if there is none.
    pub example: &'static str,
}

impl SpecError {
    /// The maximum length of a word in an error, so that the error stays one line.
    const SHOWN: usize = 40;

    pub(crate) fn new(
        offset: usize,
        word: &str,
        expected: &'static str,
        example: &'static str,
    ) -> Self {
        let word = word.chars().take(Self::SHOWN).flat_map(char::escape_debug).collect();
        Self { offset, word, expected, example }
    }

    /// Returns the message without the position.
    pub fn what(&self) -> String {
        let word =
            if self.word.is_empty() { "the end".to_owned() } else { format!("`{}`", self.word) };
        let expected = self.expected;
        // Suggest only for words, not for values, and not the word itself, which may be in the
        // wrong place.
        let names = self.example.split(' ').filter(|name| is_word(name) && *name != self.word);
        let meant = airtcp_types::nearest(&self.word, names).filter(|_| is_word(&self.word));
        let comma = if self.word.ends_with(',') { "; separate parts with spaces" } else { "" };
        match (self.example, meant) {
            ("", _) => format!("{word}: expected {expected}{comma}"),
            (_, Some(meant)) => format!("{word}: expected {expected}; did you mean `{meant}`?"),
            (example, None) => format!("{word}: expected {expected}, such as `{example}`{comma}"),
        }
    }
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}, {}", self.offset, self.what())
    }
}
