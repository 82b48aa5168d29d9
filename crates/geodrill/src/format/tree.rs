//! The text of a file as a tree of values, whatever its syntax, with duplicate keys refused.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::problem::Problem;

/// The syntax of a drill file, told by its extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Syntax {
    /// `.json`, and standard input.
    Json,
    /// `.toml`.
    Toml,
    /// `.yaml` and `.yml`.
    Yaml,
}

/// Parses the text; the problem names the line, or the key where only one is at fault.
pub(super) fn parse(text: &str, syntax: Syntax) -> Result<Value, Problem> {
    let unreadable = |what: &str, error: &dyn fmt::Display| {
        // Parsers end their messages in various ways; ours have no final dot, and one line.
        let message = error.to_string();
        let message = message.lines().next().unwrap_or_default();
        Problem::at("", format!("not {what}: {}", message.trim_end_matches('.')))
    };
    // Some editors put a mark at the start of a file.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match syntax {
        Syntax::Json => {
            let mut reader = serde_json::Deserializer::from_str(text);
            let tree: Tree = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
                if error.inner().is_data() {
                    Problem::at(path_of(error.path()), error.inner().to_string())
                } else {
                    unreadable("JSON", error.inner())
                }
            })?;
            reader.end().map_err(|error| unreadable("JSON", &error))?;
            Ok(tree.0)
        }
        Syntax::Toml => toml::from_str::<Tree>(text)
            .map(|tree| tree.0)
            .map_err(|error| {
                let line = error.span().map(|span| {
                    1 + text
                        .get(..span.start)
                        .unwrap_or_default()
                        .matches('\n')
                        .count()
                });
                let message = error.message().replace('\n', ", ");
                let message = message.trim_end_matches('.');
                match line {
                    Some(line) => Problem::at("", format!("not TOML: line {line}: {message}")),
                    None => Problem::at("", format!("not TOML: {message}")),
                }
            }),
        Syntax::Yaml => serde_saphyr::from_str::<Tree>(text)
            .map(|tree| tree.0)
            .map_err(|error| unreadable("YAML", &error)),
    }
}

/// The path of an error, empty for the root.
pub(super) fn path_of(path: &serde_path_to_error::Path) -> String {
    let text = path.to_string();
    if text == "." { String::new() } else { text }
}

/// A TOML date comes as a map with this one key.
const TOML_DATE: &str = "$__toml_private_datetime";

struct Tree(Value);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree(Value::Bool(value)))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree(value.into()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Tree, E> {
        Number::from_f64(value)
            .map(|number| Tree(Value::Number(number)))
            .ok_or_else(|| E::custom("a number must be finite"))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree(value.into()))
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<Tree, E> {
        Ok(Tree(value.into()))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Tree, E> {
        Ok(Tree(Value::Null))
    }

    fn visit_none<E: de::Error>(self) -> Result<Tree, E> {
        Ok(Tree(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        Tree::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(Tree(value)) = seq.next_element()? {
            list.push(value);
        }
        Ok(Tree(Value::Array(list)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let Tree(value) = map.next_value()?;
            if key == TOML_DATE {
                return Ok(Tree(value));
            }
            if object.contains_key(&key) {
                return Err(de::Error::custom(format!("the key `{key}` is there twice")));
            }
            object.insert(key, value);
        }
        Ok(Tree(Value::Object(object)))
    }
}
