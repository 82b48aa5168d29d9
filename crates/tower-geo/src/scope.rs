//! Which of our layers is at work on this thread, while it calls or polls what is below it.
//!
//! A healthy request carries nothing of ours (E2), so the layers learn from here what they cannot
//! read off the request: whether a layer above drives the operation (DESIGN 1), whether they stand
//! in the wrong order (E4), and that a send was given up because its time was over (T10).

use std::cell::Cell;

use http::Uri;

use crate::error::Error;
use crate::known::Known;
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
    /// The service, as [`service_id`]; 0 is none.
    service: usize,
    rank: Rank,
    driven: bool,
    /// Whether the request is to one of this service's regions, as far as the layer has looked.
    owns: bool,
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
        Cell::new(Scope {
            service: 0,
            rank: Rank::Gate,
            driven: false,
            owns: false,
            dropped: Dropped::Left,
        })
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
    enter_with(service, rank, false)
}

/// The same with a request that is known to be to one of the service's own regions.
#[inline]
pub(crate) fn enter_own(service: usize, rank: Rank) -> Guard {
    enter_with(service, rank, true)
}

#[inline]
fn enter_with(service: usize, rank: Rank, owns: bool) -> Guard {
    let before = SCOPE.get();
    let is_same = before.service == service;
    SCOPE.set(Scope {
        service,
        rank,
        driven: (is_same && before.driven) || matches!(rank, Rank::Retry | Rank::Redirect),
        owns: owns || (is_same && before.owns),
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

/// Why a layer must not stand where it does, if so (E4): another one of ours above belongs below,
/// is there twice, or is of another service that has the same host.
#[inline]
pub(crate) fn mistake(state: &State, rank: Rank, uri: &Uri) -> Option<Error> {
    let scope = SCOPE.get();
    if scope.service == service_id(state) {
        (scope.rank >= rank).then(|| misplaced(state, rank, scope.rank))
    } else if scope.owns {
        of_two_services(state, rank, scope.rank, uri)
    } else {
        None
    }
}

/// A stack for several services has a request pass through the layers of those that it is not for
/// (I8). Only when two take it for theirs do the layers not belong together.
#[cold]
fn of_two_services(state: &State, rank: Rank, above: Rank, uri: &Uri) -> Option<Error> {
    Known::now(state).regions(state).region_of(uri)?;
    let (layer, above) = (rank.layer_name(), above.layer_name());
    Some(Error::config(
        state,
        format!(
            "{above} above is of another GeoService than {layer}, and both have the host of the \
             request; they share no state, so make all layers of a stack from clones of one \
             GeoService"
        ),
    ))
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
    fn ownership_is_handed_down_within_a_service_only() {
        let _retry = enter_own(7, Rank::Retry);
        let _redirect = enter(7, Rank::Redirect);
        assert!(SCOPE.get().owns);
        let _other = enter(8, Rank::Retry);
        assert!(!SCOPE.get().owns);
    }

    #[test]
    fn a_time_out_is_of_one_service() {
        let _over = enter_time_out(3);
        assert!(is_time_out(3));
        assert!(!is_time_out(4));
    }
}
