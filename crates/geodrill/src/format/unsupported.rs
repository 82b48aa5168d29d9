//! The keys whose rules are not built yet, in one table. Whoever builds a rule takes its row out.

use super::maybe::Maybe;
use super::raw::{self, Provider, WritesWhileReadOnly};
use crate::problem::Problem;

/// How to find a key of a service, or of the file, that asks for something not built.
///
/// The rows are asked from the top; the first that is in use names the problem.
pub(super) fn check(drill: &raw::Drill) -> Result<(), Problem> {
    for row in WHOLE_FILE {
        if (row.used)(drill) {
            return Err(not_yet(row.key.to_owned()));
        }
    }
    for (name, service) in &drill.services {
        for row in OF_A_SERVICE {
            if (row.used)(service) {
                return Err(not_yet(format!("services.{name}.{}", row.key)));
            }
        }
    }
    for (index, request) in drill.requests.iter().enumerate() {
        if request.excluded.is_on() {
            return Err(not_yet(format!("requests[{index}].excluded")));
        }
    }
    Ok(())
}

fn not_yet(path: String) -> Problem {
    Problem::at(path, "not supported yet")
}

struct Row<T> {
    key: &'static str,
    used: fn(&T) -> bool,
}

const WHOLE_FILE: &[Row<raw::Drill>] = &[Row {
    key: "accounts",
    used: |drill| matches!(&drill.accounts, Maybe::On(accounts) if !accounts.is_empty()),
}];

const OF_A_SERVICE: &[Row<raw::Service>] = &[
    Row {
        key: "provider",
        used: |service| service.provider == Provider::Cosmos,
    },
    Row {
        key: "writes_while_read_only",
        used: |service| service.writes_while_read_only == Some(WritesWhileReadOnly::Defer),
    },
];
