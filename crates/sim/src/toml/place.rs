//! Positions in a source text.

use std::ops::Range;

use ::toml::Spanned;

use super::{Setting, Source};
use crate::SimError;

/// The maximum length of a message, so that an error stays one readable line.
const LONGEST: usize = 500;

impl Source<'_> {
    /// The span of a setting's value: settings have positions after the end of the text.
    pub(super) fn setting_span(&self, index: usize) -> Range<usize> {
        let start = self.text.len() + 1 + index;
        start..start + 1
    }

    /// The setting at the position `at`; `None` if `at` is in the text.
    pub(super) fn setting_at(&self, at: usize) -> Option<&Setting> {
        self.settings.get(at.checked_sub(self.text.len() + 1)?)
    }

    /// Creates an error that says `what` is wrong at the byte `at` of the text. If `what` starts
    /// with "unknown" and lists names in backquotes, a suggestion is added.
    pub fn refuse(&self, at: usize, what: &str) -> SimError {
        let what = in_one_line(what) + &airtcp_types::suggestion(what);
        match self.setting_at(at) {
            Some(setting) => SimError::Setting { setting: setting.to_string(), what },
            None => SimError::File { place: self.place(at), what },
        }
    }

    /// Converts an error of the TOML parser.
    pub(super) fn refuse_toml(&self, error: &::toml::de::Error) -> SimError {
        self.refuse(error.span().map_or(0, |span| span.start), error.message())
    }

    /// Creates the error of [`refuse`](Self::refuse), at the byte `offset` of a string's content.
    pub(super) fn refuse_within(
        &self,
        string: &Spanned<String>,
        offset: usize,
        what: &str,
    ) -> SimError {
        let span = string.span();
        // A content with escapes does not occur literally in the text; then the position is the
        // start of the string.
        let content =
            self.text.get(span.clone()).and_then(|raw| raw.find(string.as_ref().as_str()));
        let at = content.map_or(span.start, |content| span.start + content + offset);
        self.refuse(at, what)
    }

    /// The position as `name:line:column`, both counted from 1, columns in characters.
    fn place(&self, at: usize) -> String {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let begin = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before[begin..].chars().count() + 1;
        format!("{}:{line}:{column}", self.name)
    }
}

fn in_one_line(text: &str) -> String {
    let mut line = String::new();
    for (count, c) in text.trim().chars().enumerate() {
        if count == LONGEST {
            line.push_str("...");
            break;
        }
        if c.is_control() { line.extend(c.escape_debug()) } else { line.push(c) }
    }
    line
}
