//! A setting that can be switched off: absent, `null` (or `false`), or a value.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, Visitor};

/// TOML has no null, so `false` says the same in every syntax; `strict` sees to that.
///
/// An untagged enum would do, but it swallows the path of an error inside of the value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Maybe<T> {
    #[default]
    Absent,
    Off,
    On(T),
}

impl<T> Maybe<T> {
    /// The value, with absent and off being the same.
    pub(crate) fn value(self) -> Option<T> {
        match self {
            Self::On(value) => Some(value),
            Self::Absent | Self::Off => None,
        }
    }

    /// The value, or the default where the key is absent.
    pub(crate) fn or_default(self, default: Option<T>) -> Option<T> {
        match self {
            Self::On(value) => Some(value),
            Self::Off => None,
            Self::Absent => default,
        }
    }

    pub(crate) const fn is_on(&self) -> bool {
        matches!(self, Self::On(_))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Maybe<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_option(Reader(PhantomData))
    }
}

struct Reader<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Reader<T> {
    type Value = Maybe<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, or null (false) for none")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(Maybe::Off)
    }

    fn visit_none<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(Maybe::Off)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        T::deserialize(deserializer).map(Maybe::On)
    }
}
