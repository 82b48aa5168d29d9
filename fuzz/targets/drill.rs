//! Drill files, in each syntax: read, or refused with a message.
#![no_main]

use geodrill::{Syntax, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for syntax in [Syntax::Json, Syntax::Toml, Syntax::Yaml] {
        if let Err(problem) = check(text, syntax) {
            assert!(!problem.to_string().is_empty());
        }
    }
});
