//! A setting that can be switched off: absent, `null` (or `false`), or a value.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{
    self, Deserialize, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};

/// TOML has no null, so `false` says the same in every syntax.
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
        deserializer.deserialize_any(Reader(PhantomData))
    }
}

struct Reader<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Reader<T> {
    type Value = Maybe<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, or null (false) for none")
    }

    fn visit_bool<E: de::Error>(self, on: bool) -> Result<Self::Value, E> {
        if on {
            T::deserialize(true.into_deserializer()).map(Maybe::On)
        } else {
            Ok(Maybe::Off)
        }
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(Maybe::Off)
    }

    fn visit_none<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(Maybe::Off)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
        T::deserialize(value.into_deserializer()).map(Maybe::On)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
        T::deserialize(value.into_deserializer()).map(Maybe::On)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
        T::deserialize(value.into_deserializer()).map(Maybe::On)
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Self::Value, E> {
        T::deserialize(value.into_deserializer()).map(Maybe::On)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        T::deserialize(SeqAccessDeserializer::new(seq)).map(Maybe::On)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Maybe::On)
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<Self::Value, A::Error> {
        T::deserialize(de::value::EnumAccessDeserializer::new(data)).map(Maybe::On)
    }
}
