//! Which of our layers is at work on this thread, while it calls or polls what is below it.
//!
//! A healthy request carries nothing of ours (E2), so the layers learn from here what they cannot
//! read off the request: whether a layer above drives the operation (DESIGN 1), whether they stand
//! in the wrong order (E4), and that a send was given up because its time was over (T10).

use std::cell::Cell;

use crate::error::Error;
use crate::runtime::{State, service_id};

/// Our layers, from the outermost to the innermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    Resume,
    Gate,
    Retry,
    Redirect,
    Breaker,
}

impl Rank {
    pub(crate) const fn layer_name(self) -> &'static str {
        match self {
            Self::Resume => "ResumeLayer",
            Self::Gate => "ReadOnlyGateLayer",
            Self::Retry => "RetryLayer",
            Self::Redirect => "GeoRedirectLayer",
            Self::Breaker => "CircuitBreakerLayer",
        }
    }
}

#[derive(Clone, Copy)]
struct Scope {
    /// The service, as [`ServiceState::id`](tower_geo_policy::service_state::ServiceState::id); 0 is none.
    service: usize,
    rank: Rank,
    driven: bool,
    dropped: Dropped,
}

/// Why sends are dropped in a scope.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dropped {
    /// The caller has left.
    Left,
    /// Its time was over.
    TimedOut,
    /// A hedge has won (H4).
    Outrun,
}

thread_local! {
    static SCOPE: Cell<Scope> = const {
        Cell::new(Scope { service: 0, rank: Rank::Gate, driven: false, dropped: Dropped::Left })
    };
}

/// Restores the scope that was there before.
#[must_use]
pub(crate) struct Guard(Scope);

impl Drop for Guard {
    #[inline]
    fn drop(&mut self) {
        SCOPE.set(self.0);
    }
}

/// A layer of that rank calls or polls what is below it.
#[inline]
pub(crate) fn enter(service: usize, rank: Rank) -> Guard {
    let before = SCOPE.get();
    let driven_above = before.service == service && before.driven;
    SCOPE.set(Scope {
        service,
        rank,
        driven: driven_above || matches!(rank, Rank::Retry | Rank::Redirect),
        dropped: Dropped::Left,
    });
    Guard(before)
}

/// What is dropped in this scope is dropped because its time was over.
pub(crate) fn enter_time_out(service: usize) -> Guard {
    enter_drop(service, Dropped::TimedOut)
}

/// What is dropped in this scope has lost against a hedge (H4).
pub(crate) fn enter_outrun(state: &State) -> Guard {
    enter_drop(service_id(state), Dropped::Outrun)
}

fn enter_drop(service: usize, dropped: Dropped) -> Guard {
    let before = SCOPE.get();
    SCOPE.set(Scope {
        service,
        dropped,
        ..before
    });
    Guard(before)
}

/// Whether the drop that is under way is of a send of this service that a hedge has outrun.
pub(crate) fn is_outrun(service: usize) -> bool {
    let scope = SCOPE.get();
    scope.service == service && scope.dropped == Dropped::Outrun
}

/// Whether a layer above drives the operation of this service.
#[inline]
pub(crate) fn is_driven(service: usize) -> bool {
    let scope = SCOPE.get();
    scope.service == service && scope.driven
}

/// Whether the drop that is under way is a time-out of a driver of this service.
pub(crate) fn is_time_out(service: usize) -> bool {
    let scope = SCOPE.get();
    scope.service == service && scope.dropped == Dropped::TimedOut
}

/// The layer of ours that stands above although it belongs below, or is there twice.
#[inline]
pub(crate) fn misplaced_above(service: usize, rank: Rank) -> Option<Rank> {
    let scope = SCOPE.get();
    (scope.service == service && scope.rank >= rank).then_some(scope.rank)
}

/// The error of a layer that stands in the wrong place (E4).
pub(crate) fn misplaced(state: &State, rank: Rank, above: Rank) -> Error {
    let (layer, above) = (rank.layer_name(), above.layer_name());
    let message = if layer == above {
        format!("{layer} is in the stack twice for this service; remove one")
    } else {
        format!(
            "{above} stands above {layer}; from the outside in the order is ResumeLayer, \
             ReadOnlyGateLayer, RetryLayer, GeoRedirectLayer, CircuitBreakerLayer"
        )
    };
    Error::config(state, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_ends_with_its_guard() {
        assert!(!is_driven(7));
        {
            let _retry = enter(7, Rank::Retry);
            assert!(is_driven(7));
            assert!(!is_driven(8), "another service is not meant");
            let _redirect = enter(7, Rank::Redirect);
            let _breaker = enter(7, Rank::Breaker);
            assert!(is_driven(7));
            assert_eq!(misplaced_above(7, Rank::Retry), Some(Rank::Breaker));
        }
        assert!(!is_driven(7));
        assert_eq!(misplaced_above(7, Rank::Gate), None);
    }

    #[test]
    fn a_time_out_is_of_one_service() {
        let _over = enter_time_out(3);
        assert!(is_time_out(3));
        assert!(!is_time_out(4));
    }
}
