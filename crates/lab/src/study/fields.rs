//! The measurements of one run.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{Recorded, Value};

/// The measurements of one run: names and values, in the order of its record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields {
    fields: Vec<(Cow<'static, str>, Value)>,
    /// The records that they were read from.
    recorded: Option<Arc<Recorded>>,
}

/// The [`Fields`] of names and values: `fields! { sender, loss: 0.1 }`.
macro_rules! fields {
    ($($name:ident $(: $value:expr)?),+ $(,)?) => {
        $crate::study::Fields::default()
            $(.with(stringify!($name), $crate::study::fields!(@$name $($value)?)))+
    };
    (@$name:ident) => { $name };
    (@$name:ident $value:expr) => { $value };
}
pub(crate) use fields;

impl Fields {
    /// Adds a field.
    #[must_use]
    pub(crate) fn with(
        mut self,
        name: impl Into<Cow<'static, str>>,
        value: impl Into<Value>,
    ) -> Self {
        self.fields.push((name.into(), value.into()));
        self
    }

    /// Adds the fields of `other`.
    #[must_use]
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.fields.extend(other.fields);
        self
    }

    /// Reads a record, or an object in it.
    ///
    /// # Errors
    ///
    /// The text is not an object, or an object in it has other objects.
    pub(super) fn read(text: &str, recorded: Option<&Arc<Recorded>>) -> serde_json::Result<Self> {
        let Entries(entries) = serde_json::from_str(text)?;
        let read = |(name, value): (String, Box<RawValue>)| {
            let value = match value.get() {
                text if text.starts_with('{') && recorded.is_some() => {
                    Self::read(text, None)?.into()
                }
                text => Value::of_json(text)?,
            };
            Ok((name.into(), value))
        };
        let fields = entries.into_iter().map(read).collect::<serde_json::Result<_>>()?;
        Ok(Self { fields, recorded: recorded.cloned() })
    }

    /// Returns the value of a field, or of a field of a group: `group.field`.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        if let Some((_, value)) = self.fields.iter().find(|(known, _)| known == name) {
            return Some(value);
        }
        let (group, name) = name.split_once('.')?;
        match self.get(group)? {
            Value::Group(fields) => fields.get(name),
            _ => None,
        }
    }

    /// Returns names and values in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.fields.iter().map(|(name, value)| (name.as_ref(), value))
    }

    /// Returns the value of a field. A record without it fails the experiment at its end.
    ///
    /// # Panics
    ///
    /// Panics if a run does not measure the field.
    pub(crate) fn value(&self, name: &str) -> &Value {
        match (self.get(name), &self.recorded) {
            (Some(value), _) => value,
            (None, None) => panic!("no field `{name}` in {self:?}"),
            (None, Some(recorded)) => {
                recorded.lacks(name);
                &Value::Missing
            }
        }
    }

    /// Returns whether a field has this value.
    pub(crate) fn is(&self, name: &str, value: impl Into<Value>) -> bool {
        *self.value(name) == value.into()
    }

    /// Returns a number, if it was measured.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.value(name).number()
    }

    /// Returns a list of numbers, such as one for each flow; empty if the value is not a list.
    pub(crate) fn list(&self, name: &str) -> &[f64] {
        match self.value(name) {
            Value::List(list) => list,
            _ => &[],
        }
    }
}

impl PartialEq for Fields {
    fn eq(&self, other: &Self) -> bool {
        self.fields == other.fields
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// The entries of a JSON object, in their order.
struct Entries(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(Object)
    }
}
