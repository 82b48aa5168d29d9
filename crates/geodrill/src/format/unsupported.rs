//! The keys whose rules are not built yet, in one table. Whoever builds a rule takes its row out.

use super::raw::{self, WritesWhileReadOnly};
use crate::problem::Problem;

/// Refuses a drill that asks for something that is not built.
///
/// The rows are asked from the top; the first that is in use names the problem.
pub(super) fn check(drill: &raw::Drill) -> Result<(), Problem> {
    for (name, service) in &drill.services {
        for row in OF_A_SERVICE {
            if (row.used)(service) {
                let path = format!("services.{name}.{}", row.key);
                return Err(Problem::at(path, "not supported yet"));
            }
        }
    }
    Ok(())
}

/// How to find a key of a service that asks for something not built.
struct Row {
    key: &'static str,
    used: fn(&raw::Service) -> bool,
}

const OF_A_SERVICE: &[Row] = &[Row {
    key: "writes_while_read_only",
    used: |service| service.writes_while_read_only == Some(WritesWhileReadOnly::Defer),
}];
