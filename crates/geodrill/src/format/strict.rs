//! A tree of values as the keys of the format read it: each in its own type, and no other.
//!
//! Serde reads a structure off a list too, in the order of its fields, and names the types of the
//! program in its messages. A drill has objects with keys, and its messages are for people.

use std::fmt;

use serde::de::value::{MapDeserializer, SeqDeserializer, StringDeserializer};
use serde::de::{self, Deserializer, Expected, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Number, Value};

/// A value to be read.
pub(super) struct Strict(pub(super) Value);

/// Why a value cannot be read.
#[derive(Debug)]
pub(super) enum Failure {
    /// A key that the object does not have; the message tells which it has.
    Unknown(String),
    /// A key that the object must have.
    Missing(&'static str),
    Other(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(message) | Self::Other(message) => f.write_str(message),
            Self::Missing(_) => f.write_str("missing"),
        }
    }
}

impl std::error::Error for Failure {}

impl de::Error for Failure {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Other(message.to_string())
    }

    fn unknown_field(_: &str, known: &'static [&'static str]) -> Self {
        Self::Unknown(format!("unknown key{}", one_of(known)))
    }

    fn unknown_variant(word: &str, known: &'static [&'static str]) -> Self {
        Self::Other(format!("unknown word `{word}`{}", one_of(known)))
    }

    fn missing_field(key: &'static str) -> Self {
        Self::Missing(key)
    }
}

fn one_of(known: &[&str]) -> String {
    match known {
        [] => String::new(),
        [one] => format!(", expected `{one}`"),
        many => format!(", expected one of `{}`", many.join("`, `")),
    }
}

/// What a value is, in the words of the three syntaxes.
fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(on) => on.to_string(),
        Value::Number(number) => format!("the number {number}"),
        // The text may be long, or a secret.
        Value::String(_) => "a text".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn refuse(wanted: impl fmt::Display, got: &Value) -> Failure {
    Failure::Other(format!("expected {wanted}, got {}", kind(got)))
}

impl Strict {
    /// A whole number up to a limit.
    fn whole(&self, most: u64) -> Result<u64, Failure> {
        let number = self.0.as_u64().filter(|number| *number <= most);
        number.ok_or_else(|| {
            let wanted = if most == u64::MAX {
                "a whole number that is not negative".to_owned()
            } else {
                format!("a whole number from 0 to {most}")
            };
            refuse(wanted, &self.0)
        })
    }
}

impl<'de> IntoDeserializer<'de, Failure> for Strict {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! whole_numbers {
    ($($method:ident: $number:ident;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
            visitor.visit_u64(self.whole($number::MAX.into())?)
        })*
    };
}

impl<'de> Deserializer<'de> for Strict {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(on) => visitor.visit_bool(on),
            Value::Number(number) => any_number(&number, visitor),
            Value::String(text) => visitor.visit_string(text),
            list @ Value::Array(_) => Self(list).deserialize_seq(visitor),
            object @ Value::Object(_) => Self(object).deserialize_map(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.0 {
            Value::Bool(on) => visitor.visit_bool(on),
            other => Err(refuse("true or false", &other)),
        }
    }

    whole_numbers! {
        deserialize_u8: u8;
        deserialize_u16: u16;
        deserialize_u32: u32;
        deserialize_u64: u64;
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.0.as_f64() {
            Some(number) => visitor.visit_f64(number),
            None => Err(refuse("a number", &self.0)),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.0 {
            Value::String(text) => visitor.visit_string(text),
            other => Err(refuse(&visitor as &dyn Expected, &other)),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.0 {
            Value::String(text) => visitor.visit_string(text),
            other => Err(refuse("a text", &other)),
        }
    }

    /// `null` and `false` are the same: TOML has no null.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.0 {
            Value::Null | Value::Bool(false) => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.0 {
            Value::Array(list) => {
                visitor.visit_seq(SeqDeserializer::new(list.into_iter().map(Self)))
            }
            other => Err(refuse("a list", &other)),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.0 {
            Value::Object(map) => {
                let entries = map.into_iter().map(|(key, value)| (key, Self(value)));
                visitor.visit_map(MapDeserializer::new(entries))
            }
            other => Err(refuse("an object", &other)),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        match self.0 {
            Value::String(word) => visitor.visit_enum(StringDeserializer::new(word)),
            other => Err(refuse(
                one_of(words).trim_start_matches(", expected "),
                &other,
            )),
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u128 f32 char bytes byte_buf unit unit_struct newtype_struct tuple
        tuple_struct identifier ignored_any
    }
}

fn any_number<'de, V: Visitor<'de>>(number: &Number, visitor: V) -> Result<V::Value, Failure> {
    if let Some(whole) = number.as_u64() {
        visitor.visit_u64(whole)
    } else if let Some(whole) = number.as_i64() {
        visitor.visit_i64(whole)
    } else {
        visitor.visit_f64(number.as_f64().unwrap_or_default())
    }
}
