//! Whether a result is what the drill expects: pointers into it, and what must be there.

use serde::Serialize;
use serde_json::{Value, json};

use crate::format::{Expect, Wish};

/// One wish of an `expect`, and whether it came true.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Checked {
    pub(crate) ok: bool,
    pub(crate) at: String,
    pub(crate) wanted: Value,
    pub(crate) got: Value,
    /// Whether the pointer led to anything; `got` is null where it did not.
    #[serde(skip)]
    pub(crate) there: bool,
}

impl Checked {
    /// What came, for people.
    pub(crate) fn got(&self) -> String {
        if self.there {
            self.got.to_string()
        } else {
            "nothing there".to_owned()
        }
    }
}

/// Whether a wish can look at single operations or background sends, so that they must be kept.
pub(crate) fn looks_at_operations(expect: &[Expect]) -> bool {
    expect.iter().any(|expect| {
        let first = expect.at.split('/').nth(1);
        !matches!(
            first,
            Some("summary" | "events" | "warnings" | "name" | "seed")
        )
    })
}

/// The steps of a JSON pointer.
pub(crate) fn steps(pointer: &str) -> Vec<String> {
    pointer
        .split('/')
        .skip(1)
        .map(|token| token.replace("~1", "/").replace("~0", "~"))
        .collect()
}

/// Adds what the steps lead to from a value.
pub(crate) fn follow(value: &Value, steps: &[String], out: &mut Vec<Value>) {
    match steps.split_first() {
        None => out.push(value.clone()),
        Some((step, rest)) => {
            for child in children(value, step) {
                follow(child, rest, out);
            }
        }
    }
}

/// Checks every wish against what its pointer led to, in the order of `expect`.
pub(crate) fn check(expect: &[Expect], found: Vec<Vec<Value>>) -> Vec<Checked> {
    expect
        .iter()
        .zip(found)
        .flat_map(|(expect, found)| {
            let found = Found::new(&expect.at, found);
            expect.wishes.iter().map(move |wish| Checked {
                ok: found.grants(wish),
                at: expect.at.clone(),
                wanted: wanted(wish),
                got: found.clone().into_value(),
                there: !matches!(found, Found::Nothing),
            })
        })
        .collect()
}

fn wanted(wish: &Wish) -> Value {
    match wish {
        Wish::Is(value) => value.clone(),
        Wish::IsNot(value) => json!({ "is_not": value }),
        Wish::AtLeast(bound) => json!({ "at_least": number(*bound) }),
        Wish::AtMost(bound) => json!({ "at_most": number(*bound) }),
        Wish::Contains(value) => json!({ "contains": value }),
        Wish::Absent => json!({ "absent": true }),
    }
}

/// Whole numbers are written as such.
fn number(bound: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "checked to be the same")]
    let whole = bound as i64;
    #[expect(
        clippy::cast_precision_loss,
        clippy::float_cmp,
        reason = "exact or not whole"
    )]
    if whole as f64 == bound {
        json!(whole)
    } else {
        json!(bound)
    }
}

/// What a pointer leads to.
#[derive(Clone, Debug)]
enum Found {
    Nothing,
    One(Value),
    /// With a `*` in the pointer: what is there of each element; elements without it are left
    /// out.
    Each(Vec<Value>),
}

impl Found {
    fn new(pointer: &str, found: Vec<Value>) -> Self {
        if pointer.split('/').skip(1).any(|token| token == "*") {
            return Self::Each(found);
        }
        found.into_iter().next().map_or(Self::Nothing, Self::One)
    }

    fn grants(&self, wish: &Wish) -> bool {
        match wish {
            Wish::Is(wanted) => self.is(wanted),
            Wish::IsNot(unwanted) => !self.is(unwanted),
            Wish::AtLeast(bound) => self.all_numbers(|number| number >= *bound),
            Wish::AtMost(bound) => self.all_numbers(|number| number <= *bound),
            Wish::Contains(part) => match self {
                Self::Nothing => false,
                Self::One(Value::String(text)) => {
                    part.as_str().is_some_and(|part| text.contains(part))
                }
                Self::One(Value::Array(list)) => list.iter().any(|value| same(value, part)),
                Self::One(Value::Object(map)) => {
                    part.as_str().is_some_and(|key| map.contains_key(key))
                }
                Self::One(_) => false,
                Self::Each(list) => list.iter().any(|value| same(value, part)),
            },
            Wish::Absent => match self {
                Self::Nothing => true,
                Self::One(_) => false,
                Self::Each(list) => list.is_empty(),
            },
        }
    }

    fn is(&self, wanted: &Value) -> bool {
        match self {
            Self::Nothing => false,
            Self::One(value) => same(value, wanted),
            Self::Each(list) => wanted.as_array().is_some_and(|wanted| {
                wanted.len() == list.len()
                    && list
                        .iter()
                        .zip(wanted)
                        .all(|(value, wanted)| same(value, wanted))
            }),
        }
    }

    /// Something that is not there, or no number, is neither large nor small.
    fn all_numbers(&self, holds: impl Fn(f64) -> bool) -> bool {
        let holds = |value: &Value| value.as_f64().is_some_and(&holds);
        match self {
            Self::Nothing => false,
            Self::One(value) => holds(value),
            Self::Each(list) => list.iter().all(holds),
        }
    }

    fn into_value(self) -> Value {
        match self {
            Self::Nothing => Value::Null,
            Self::One(value) => value,
            Self::Each(list) => list.into_iter().collect(),
        }
    }
}

fn children<'a>(value: &'a Value, token: &str) -> Vec<&'a Value> {
    match value {
        Value::Array(list) if token == "*" => list.iter().collect(),
        Value::Object(map) if token == "*" => map.values().collect(),
        Value::Array(list) => token
            .parse::<usize>()
            .ok()
            .and_then(|index| list.get(index))
            .into_iter()
            .collect(),
        Value::Object(map) => map.get(token).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Equal, with numbers compared as numbers: 1 is 1.0.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => left == right,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expect: &[Expect], result: &Value) -> Vec<Checked> {
        let found = expect.iter().map(|expect| {
            let mut found = Vec::new();
            follow(result, &steps(&expect.at), &mut found);
            found
        });
        super::check(expect, found.collect())
    }

    fn holds(result: &Value, at: &str, wish: Wish) -> bool {
        let expect = Expect {
            at: at.to_owned(),
            wishes: vec![wish],
        };
        check(&[expect], result)[0].ok
    }

    #[test]
    fn pointers_with_a_star_collect_what_is_there() {
        let result = json!({"events": [{"to": "open", "circuit": "reads"}, {"to": "read-only"}],
                            "a/b": {"~": 1}});
        let is = |at: &str, value| holds(&result, at, Wish::Is(value));
        assert!(is("/events/*/to", json!(["open", "read-only"])));
        assert!(is("/events/*/circuit", json!(["reads"])));
        assert!(is("/events/0/to", json!("open")));
        assert!(is("/a~1b/~0", json!(1.0)));
        assert!(!is("/events/2/to", json!(null)));
        assert!(is("/nothing/*", json!([])));
        assert!(is("", result.clone()));
    }

    #[test]
    fn every_wish_can_fail_and_hold() {
        let result = json!({"n": 5, "s": "abc", "list": [1, 2]});
        for (at, wish, wanted) in [
            ("/n", Wish::AtLeast(5.0), true),
            ("/n", Wish::AtLeast(5.5), false),
            ("/n", Wish::AtMost(5.0), true),
            ("/n", Wish::AtMost(4.0), false),
            ("/none", Wish::AtMost(4.0), false),
            ("/s", Wish::AtMost(4.0), false),
            ("/list/*", Wish::AtMost(2.0), true),
            ("/list/*", Wish::AtMost(1.0), false),
            ("/s", Wish::Contains(json!("b")), true),
            ("/s", Wish::Contains(json!("x")), false),
            ("/list", Wish::Contains(json!(2)), true),
            ("/list/*", Wish::Contains(json!(3)), false),
            ("/n", Wish::Contains(json!(5)), false),
            ("/none", Wish::Absent, true),
            ("/n", Wish::Absent, false),
            ("/n", Wish::IsNot(json!(6)), true),
            ("/n", Wish::IsNot(json!(5)), false),
        ] {
            assert_eq!(holds(&result, at, wish.clone()), wanted, "{at} {wish:?}");
        }
    }

    #[test]
    fn a_failure_shows_what_was_wanted_and_what_came() {
        let expect = [Expect {
            at: "/n".to_owned(),
            wishes: vec![Wish::AtMost(4.0), Wish::Is(json!(6))],
        }];
        let checked = check(&expect, &json!({"n": 5}));
        assert_eq!(checked[0].wanted, json!({"at_most": 4}));
        assert_eq!(checked[1].wanted, json!(6));
        assert!(
            checked
                .iter()
                .all(|checked| !checked.ok && checked.got == json!(5))
        );
    }

    #[test]
    fn a_pointer_to_nothing_is_told_from_a_null() {
        let got = |at: &str| {
            let expect = Expect {
                at: at.to_owned(),
                wishes: vec![Wish::Is(json!(1))],
            };
            check(&[expect], &json!({"n": null, "list": []}))[0].got()
        };
        assert_eq!(got("/n"), "null");
        assert_eq!(got("/m"), "nothing there");
        assert_eq!(got("/list/*"), "[]");
    }

    #[test]
    fn only_wishes_about_sums_need_no_operations() {
        let at = |at: &str| {
            looks_at_operations(&[Expect {
                at: at.to_owned(),
                wishes: vec![Wish::Absent],
            }])
        };
        assert!(!at("/summary/failed") && !at("/events/0/to") && !at("/warnings"));
        assert!(at("/operations/0") && at("/background/0/host") && at("/*/x") && at(""));
    }
}
