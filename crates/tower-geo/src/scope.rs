//! Which of our layers is at work on this thread, while it calls or polls what is below it.
//!
//! A healthy request carries nothing of ours (E2), so the layers learn from here what they cannot
//! read off the request: whether a layer above drives the operation (DESIGN 1), whether they stand
//! in the wrong order (E4), and that a send was given up because its time was over (T10).

use std::cell::Cell;

use http::Uri;

use crate::error::Error;
use crate::known::Known;
use crate::runtime::{SERVICE_ALIGN, State, service_id};

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

/// What a layer left for those below it, in one word: the service as [`service_id`], which ends in
/// zeros, and in their place the rank of the layer and what follows.
#[derive(Clone, Copy)]
struct Scope(usize);

impl Scope {
    /// No service.
    const NONE: Self = Self(0);
    const RANK: usize = 0b111;
    /// Whether a layer above drives the operation.
    const DRIVEN: usize = 1 << 3;
    /// Whether the request is to one of this service's regions, as far as the layer has looked.
    const OWNS: usize = 1 << 4;
    /// Sends are dropped because their time was over. If neither this nor the next holds: because
    /// the caller has left.
    const TIMED_OUT: usize = 1 << 5;
    /// Sends are dropped because a hedge has won (H4).
    const OUTRUN: usize = 1 << 6;
    /// All of the above.
    const REST: usize = SERVICE_ALIGN - 1;

    /// What was left, if it is of this service.
    #[inline]
    const fn of(self, service: usize) -> Option<usize> {
        let rest = self.0 ^ service;
        if rest <= Self::REST { Some(rest) } else { None }
    }

    #[inline]
    fn has(self, service: usize, what: usize) -> bool {
        self.of(service).is_some_and(|rest| rest & what != 0)
    }

    const fn rank(self) -> Rank {
        match self.0 & Self::RANK {
            0 => Rank::Resume,
            1 => Rank::Gate,
            2 => Rank::Retry,
            3 => Rank::Redirect,
            _ => Rank::Breaker,
        }
    }
}

thread_local! {
    static SCOPE: Cell<Scope> = const { Cell::new(Scope::NONE) };
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
    enter_with(service, rank, 0)
}

/// The same with a request that is known to be to one of the service's own regions.
#[inline]
pub(crate) fn enter_own(service: usize, rank: Rank) -> Guard {
    enter_with(service, rank, Scope::OWNS)
}

#[inline]
fn enter_with(service: usize, rank: Rank, owns: usize) -> Guard {
    let before = SCOPE.get();
    let handed_down = before.of(service).unwrap_or(0) & (Scope::DRIVEN | Scope::OWNS);
    let driven = match rank {
        Rank::Retry | Rank::Redirect => Scope::DRIVEN,
        Rank::Resume | Rank::Gate | Rank::Breaker => 0,
    };
    SCOPE.set(Scope(service | rank as usize | driven | owns | handed_down));
    Guard(before)
}

/// The scope that a layer has found above it, to be restored by [`step_out`].
pub(crate) struct Above(Scope);

/// Enters the scope of a layer that stands, in its right place, below a driver of the same service;
/// none, and nothing is entered, if it does not.
///
/// In no need of a [`Guard`], which would keep what is called from being built where it is to be:
/// should it panic, the guard of the driver restores what was there before both.
#[inline]
pub(crate) fn step_in(service: usize, rank: Rank) -> Option<Above> {
    let before = SCOPE.get();
    let rest = before.of(service)?;
    if rest & Scope::RANK >= rank as usize || rest & Scope::DRIVEN == 0 {
        return None;
    }
    let handed_down = rest & (Scope::DRIVEN | Scope::OWNS);
    SCOPE.set(Scope(service | rank as usize | handed_down));
    Some(Above(before))
}

/// Leaves the scope that [`step_in`] has entered.
#[inline]
pub(crate) fn step_out(above: Above) {
    SCOPE.set(above.0);
}

/// What is dropped in this scope is dropped because its time was over.
pub(crate) fn enter_time_out(service: usize) -> Guard {
    enter_drop(service, Scope::TIMED_OUT)
}

/// What is dropped in this scope has lost against a hedge (H4).
pub(crate) fn enter_outrun(state: &State) -> Guard {
    enter_drop(service_id(state), Scope::OUTRUN)
}

fn enter_drop(service: usize, why: usize) -> Guard {
    let before = SCOPE.get();
    let kept = before.0 & (Scope::RANK | Scope::DRIVEN | Scope::OWNS);
    SCOPE.set(Scope(service | kept | why));
    Guard(before)
}

/// Whether the drop that is under way is of a send of this service that a hedge has outrun.
pub(crate) fn is_outrun(service: usize) -> bool {
    SCOPE.get().has(service, Scope::OUTRUN)
}

/// Whether a layer above drives the operation of this service.
#[inline]
pub(crate) fn is_driven(service: usize) -> bool {
    SCOPE.get().has(service, Scope::DRIVEN)
}

/// Whether the drop that is under way is a time-out of a driver of this service.
pub(crate) fn is_time_out(service: usize) -> bool {
    SCOPE.get().has(service, Scope::TIMED_OUT)
}

/// The layer of ours that stands above although it belongs below, or is there twice.
#[inline]
pub(crate) fn misplaced_above(service: usize, rank: Rank) -> Option<Rank> {
    let scope = SCOPE.get();
    let rest = scope.of(service)?;
    (rest & Scope::RANK >= rank as usize).then(|| scope.rank())
}

/// Whether there is nothing to say against where a layer stands; [`mistake`] looks closer.
#[inline]
pub(crate) fn is_in_place(service: usize, rank: Rank) -> bool {
    let scope = SCOPE.get();
    match scope.of(service) {
        Some(rest) => rest & Scope::RANK < rank as usize,
        None => scope.0 & Scope::OWNS == 0,
    }
}

/// Why a layer must not stand where it does, if so (E4): another one of ours above belongs below,
/// is there twice, or is of another service that has the same host.
#[inline]
pub(crate) fn mistake(state: &State, rank: Rank, uri: &Uri) -> Option<Error> {
    if is_in_place(service_id(state), rank) {
        None
    } else {
        look_closer(state, rank, uri)
    }
}

#[cold]
fn look_closer(state: &State, rank: Rank, uri: &Uri) -> Option<Error> {
    let scope = SCOPE.get();
    match scope.of(service_id(state)) {
        Some(_) => Some(misplaced(state, rank, scope.rank())),
        None => of_two_services(state, rank, scope.rank(), uri),
    }
}

/// A stack for several services has a request pass through the layers of those that it is not for
/// (I8). Only when two take it for theirs do the layers not belong together.
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

    const A: usize = SERVICE_ALIGN;
    const B: usize = 2 * SERVICE_ALIGN;

    #[test]
    fn a_scope_ends_with_its_guard() {
        assert!(!is_driven(A));
        {
            let _retry = enter(A, Rank::Retry);
            assert!(is_driven(A));
            assert!(!is_driven(B), "another service is not meant");
            let _redirect = enter(A, Rank::Redirect);
            let _breaker = enter(A, Rank::Breaker);
            assert!(is_driven(A));
            assert_eq!(misplaced_above(A, Rank::Retry), Some(Rank::Breaker));
        }
        assert!(!is_driven(A));
        assert_eq!(misplaced_above(A, Rank::Gate), None);
    }

    #[test]
    fn ownership_is_handed_down_within_a_service_only() {
        let _retry = enter_own(A, Rank::Retry);
        let _redirect = enter(A, Rank::Redirect);
        assert!(SCOPE.get().has(A, Scope::OWNS));
        let _other = enter(B, Rank::Retry);
        assert!(!SCOPE.get().has(A, Scope::OWNS));
        assert!(!SCOPE.get().has(B, Scope::OWNS));
    }

    /// E4: only below a driver of the same service, and only in the right place.
    #[test]
    fn a_layer_steps_in_below_its_driver_only() {
        assert!(step_in(A, Rank::Redirect).is_none());
        let _retry = enter_own(A, Rank::Retry);
        assert!(step_in(A, Rank::Retry).is_none());
        assert!(step_in(B, Rank::Redirect).is_none());
        let above = step_in(A, Rank::Redirect).unwrap();
        assert!(is_driven(A));
        assert!(SCOPE.get().has(A, Scope::OWNS));
        assert_eq!(misplaced_above(A, Rank::Retry), Some(Rank::Redirect));
        step_out(above);
        assert_eq!(misplaced_above(A, Rank::Gate), Some(Rank::Retry));
        assert!(is_in_place(A, Rank::Redirect));
    }

    #[test]
    fn a_time_out_is_of_one_service() {
        let _over = enter_time_out(A);
        assert!(is_time_out(A));
        assert!(!is_time_out(B));
    }
}
