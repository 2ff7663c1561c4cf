//! Scenario files: TOML read into a [`Scenario`].
//!
//! A file contains what differs from the defaults; eight lines are a scenario. Quantities are
//! strings with a unit (`"5ms"`, `"10MB"`), links are descriptions in netem's syntax or [named
//! links](airtcp_link::named). An error is one line with the position and the expected values.
//!
//! ```
//! let text = r#"
//!     duration = "2s"
//!     [bottleneck]
//!     forth = "rate 10mbit delay 10ms limit 50"
//!     [[flow]]
//!     congestion = "reno"
//!     count = 2
//! "#;
//! let source = airtcp_sim::toml::Source { name: "two.toml", text, settings: &[] };
//! let scenario = source.read(|trace| Err(format!("no trace `{trace}` here")))?;
//! assert_eq!((scenario.name.as_str(), scenario.flows[0].count), ("two", 2));
//! # Ok::<(), airtcp_sim::SimError>(())
//! ```

mod build;
mod file;
mod fill;
mod place;
mod quantity;
mod setting;
#[cfg(test)]
mod tests;

use ::toml::Spanned;
use ::toml::de::DeTable;
use airtcp_link::Trace;
use serde::Deserialize;

pub use fill::Template;
pub use setting::{Setting, SettingError};

use crate::{Scenario, SimError};
use file::ScenarioFile;

/// A commented scenario file that runs in about a second.
pub const EXAMPLE: &str = include_str!("example.toml");

/// A scenario file, and settings that override it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The name of the file, for errors and for scenarios without a name.
    pub name: &'a str,
    /// The text of the file.
    pub text: &'a str,
    /// Settings that override the file; the last one wins.
    pub settings: &'a [Setting],
}

impl Source<'_> {
    /// Parses the scenario. `load` returns the packet-delivery traces that links name: this crate
    /// opens no files.
    ///
    /// # Errors
    ///
    /// [`SimError::File`] or [`SimError::Setting`], for the first invalid value.
    pub fn read(
        &self,
        mut load: impl FnMut(&str) -> Result<Trace, String>,
    ) -> Result<Scenario, SimError> {
        let file = ScenarioFile::deserialize(::toml::de::Deserializer::from(self.document()?));
        build::scenario(self, file.map_err(|error| self.refuse_toml(&error))?, &mut load)
    }

    /// Returns the text with the settings applied, as a file of its own. Comments are lost, and
    /// keys are in alphabetical order.
    ///
    /// ```
    /// let settings = ["duration=2s".parse()?];
    /// let text = "# Two seconds\nduration = \"10s\"\n";
    /// let source = airtcp_sim::toml::Source { name: "two.toml", text, settings: &settings };
    /// assert_eq!(source.settled_text()?, "duration = \"2s\"\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`SimError::File`] if the text is not TOML, and [`SimError::Setting`] if the path of a
    /// setting cannot be followed.
    pub fn settled_text(&self) -> Result<String, SimError> {
        self.text_of(self.document()?)
    }

    /// Parses the file and applies the settings.
    fn document(&self) -> Result<Spanned<DeTable<'_>>, SimError> {
        let refuse = |error: ::toml::de::Error| self.refuse_toml(&error);
        let mut document = DeTable::parse(self.text).map_err(refuse)?;
        for (index, setting) in self.settings.iter().enumerate() {
            let at = self.setting_span(index);
            let applied = setting.apply(document.get_mut(), at.clone());
            applied.map_err(|what| self.refuse(at.start, &what))?;
        }
        Ok(document)
    }

    fn text_of(&self, table: Spanned<DeTable<'_>>) -> Result<String, SimError> {
        let table = ::toml::Table::deserialize(::toml::de::Deserializer::from(table));
        Ok(table.map_err(|error| self.refuse_toml(&error))?.to_string())
    }
}
