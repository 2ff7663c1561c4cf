//! Settings that override the file: `flow.0.congestion=reno`.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use ::toml::Spanned;
use ::toml::de::{DeTable, DeValue};

/// A value that overrides a key of a scenario file, written `path=value`.
///
/// A path consists of keys and list indices (from 0), joined by points. Strings need no quotes;
/// whole and decimal numbers, `true`, `false` and quoted strings are parsed as in TOML.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    path: String,
    value: String,
}

/// The key that replaces all keys of [`PARTS`].
const WHOLE: &str = "strategies";
/// The keys that [`WHOLE`] replaces, each with its alias.
const PARTS: [&[&str]; 3] = [&["detection", "recovery"], &["congestion", "control"], &["judge"]];

/// A setting that is not `path=value`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is not `path=value`, such as `flow.0.congestion=reno` or `duration=60s`")]
pub struct SettingError(String);

impl FromStr for Setting {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        let (path, value) = text.split_once('=').ok_or_else(|| SettingError(text.to_owned()))?;
        let (path, value) = (path.trim(), value.trim());
        if path.split('.').any(str::is_empty) {
            return Err(SettingError(text.to_owned()));
        }
        Ok(Self { path: path.to_owned(), value: value.to_owned() })
    }
}

/// As it was written.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.path, self.value)
    }
}

impl Setting {
    /// Inserts the value into a document, with the position `span`. Unknown keys are detected when
    /// the document is deserialized.
    ///
    /// # Errors
    ///
    /// The reason why the path cannot be followed.
    pub(super) fn apply<'a>(
        &'a self,
        document: &mut DeTable<'a>,
        span: Range<usize>,
    ) -> Result<(), String> {
        let key = |key: &'a str| Spanned::new(span.clone(), Cow::Borrowed(key));
        let value = Spanned::new(span.clone(), self.value());
        let (first, rest) = self.split();
        let Some((last, between)) = rest.split_last() else {
            document.insert(key(first), value);
            return Ok(());
        };
        let table = || Spanned::new(span.clone(), DeValue::Table(DeTable::new()));
        let mut walked = first.to_owned();
        let mut here = document.entry(key(first)).or_insert_with(table).get_mut();
        for step in between {
            here = match here {
                DeValue::Table(inner) => inner.entry(key(step)).or_insert_with(table),
                other => element(other, step, &walked)?,
            }
            .get_mut();
            walked = format!("{walked}.{step}");
        }
        match here {
            DeValue::Table(inner) => {
                for names in PARTS.iter().filter(|part| *last == WHOLE || part.contains(last)) {
                    for name in *names {
                        inner.remove(*name);
                    }
                }
                inner.insert(key(last), value);
            }
            other => *element(other, last, &walked)? = value,
        }
        Ok(())
    }

    /// The path without its last key.
    pub(super) fn parent(&self) -> &str {
        self.path.rsplit_once('.').map_or("", |(parent, _)| parent)
    }

    fn split(&self) -> (&str, Vec<&str>) {
        let mut steps = self.path.split('.');
        (steps.next().unwrap_or_default(), steps.collect())
    }

    fn value(&self) -> DeValue<'_> {
        match DeValue::parse(&self.value).map(Spanned::into_inner) {
            // A table or a list would contain spans that do not refer to the setting; set their
            // keys one by one.
            Ok(
                value @ (DeValue::Integer(_)
                | DeValue::Float(_)
                | DeValue::Boolean(_)
                | DeValue::String(_)),
            ) => value,
            _ => DeValue::String(Cow::Borrowed(&self.value)),
        }
    }
}

/// The element of a list with the index `step`.
fn element<'a, 'i>(
    value: &'a mut DeValue<'i>,
    step: &str,
    walked: &str,
) -> Result<&'a mut Spanned<DeValue<'i>>, String> {
    let DeValue::Array(list) = value else {
        return Err(format!("`{walked}` has no keys: it is a {}", value.type_str()));
    };
    let count = list.len();
    let index = step.parse().ok().filter(|index: &usize| *index < count);
    let elements = match count {
        0 => "the list is empty".to_owned(),
        1 => format!("the only element is `{walked}.0`"),
        _ => format!("the elements are `{walked}.0` to `{walked}.{}`", count - 1),
    };
    index
        .and_then(|index| list.get_mut(index))
        .ok_or_else(|| format!("`{walked}.{step}` does not exist: {elements}"))
}
