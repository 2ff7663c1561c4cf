//! Settings that override the file: `flow.0.congestion=reno`.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use ::toml::Spanned;
use ::toml::de::{DeTable, DeValue};

/// A value for a place in a scenario file, written `path=value`.
///
/// A path is keys and places in lists (from 0), joined by points. A value is text, and needs no
/// quotes; a whole number, `true` and `false` are what they are in TOML, and so is what has quotes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    path: String,
    value: String,
}

/// What takes the place of several keys, and these.
const WHOLE: &str = "strategies";
/// Each with its other name.
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

/// As it is written.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.path, self.value)
    }
}

impl Setting {
    /// Puts the value into a document, as if it stood at `span`. Whether the keys exist at all is
    /// seen when the document is read.
    ///
    /// # Errors
    ///
    /// What the path meets where it cannot go on.
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

    /// The path of what the value is put into.
    pub(super) fn parent(&self) -> &str {
        self.path.rsplit_once('.').map_or("", |(parent, _)| parent)
    }

    fn split(&self) -> (&str, Vec<&str>) {
        let mut steps = self.path.split('.');
        (steps.next().unwrap_or_default(), steps.collect())
    }

    fn value(&self) -> DeValue<'_> {
        match DeValue::parse(&self.value).map(Spanned::into_inner) {
            // A table or a list would have spans of its own inside, which lead nowhere; it is set
            // key by key.
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

/// The element of a list that `step` names.
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
