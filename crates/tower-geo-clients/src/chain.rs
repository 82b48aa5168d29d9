//! What is in the chain of an error, and what that means to a client above the stack.

use std::error::Error as StdError;
use std::io;

use tower_geo::ErrorKind;
#[cfg(any(feature = "object-store", feature = "azure-core"))]
use tower_geo::{ClassifyFault, Fault, StandardFaults};

/// Finds the error of our stack in what a client reports: the outermost one in its chain of
/// sources, or `None` if nothing of ours is in it.
///
/// An answer of the service (404, 503, …) is no error of the stack; the clients report it
/// themselves.
#[must_use]
pub fn geo_error<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a tower_geo::Error> {
    find(error)
}

/// Whether the stack has ended the operation: refused it, or given it up. A client that repeats it
/// all the same multiplies sends (T8).
///
/// The adapters here act on it by themselves. It is for an adapter of your own, which has to tell
/// its client whether an error may be repeated. False where a layer has only passed an error on
/// (one of another host, say, or a body that has broken off), where there is no error of ours, and
/// for a write that ended only because its body could be sent once: whoever has the body may send
/// it again.
///
/// ```
/// use tower_geo::BoxError;
/// use tower_geo_clients::is_final;
///
/// # enum TheirKind { Fatal, Transient }
/// fn kind_for_the_client(error: &BoxError) -> TheirKind {
///     if is_final(&**error) { TheirKind::Fatal } else { TheirKind::Transient }
/// }
/// ```
#[must_use]
pub fn is_final(error: &(dyn StdError + 'static)) -> bool {
    geo_error(error).is_some_and(|ours| match ours.kind() {
        ErrorKind::NotReplayable => false,
        // A layer that only passes errors on (the gate, the breaker, all of them for a host that
        // is not ours) has sent nothing by itself and decided nothing, and so has a body that
        // stalls: there is no trail.
        ErrorKind::Transport => !ours.trail().sends().is_empty(),
        _ => true,
    })
}

/// The first error of that type in a chain.
pub(crate) fn find<'a, E: StdError + 'static>(
    error: &'a (dyn StdError + 'static),
) -> Option<&'a E> {
    std::iter::successors(Some(error), |&cause| next(cause)).find_map(|cause| cause.downcast_ref())
}

fn next<'a>(cause: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    // `io::Error` gives the source of what it wraps as its own source, so the wrapped error
    // itself has to be asked for.
    cause
        .downcast_ref::<io::Error>()
        .and_then(|wrapper| wrapper.get_ref())
        .map(|inner| inner as &(dyn StdError + 'static))
        .or_else(|| cause.source())
}

/// What an error of a stack means to the client above it.
#[cfg(any(feature = "object-store", feature = "azure-core"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The stack has ended the operation: repeating it is not the client's business.
    Final,
    /// The body could be sent only once, and nothing has been applied for sure that must not be
    /// applied twice: whoever has the body may send it again.
    NeedsBody,
    /// Passed on: no connection was made.
    NotSent,
    /// Passed on: no answer, or no more of the body, in time.
    TimedOut,
    /// Passed on: the connection broke.
    Broken,
}

#[cfg(any(feature = "object-store", feature = "azure-core"))]
impl Meaning {
    pub(crate) fn of(error: &(dyn StdError + 'static)) -> Self {
        if is_final(error) {
            return Self::Final;
        }
        if let Some(ours) = geo_error(error) {
            if ours.kind() == ErrorKind::NotReplayable {
                return Self::NeedsBody;
            }
            if ours.is_timeout() {
                return Self::TimedOut;
            }
        }
        match StandardFaults::default().classify(error) {
            Fault::Connect | Fault::Dns | Fault::Tls | Fault::RefusedStream => Self::NotSent,
            Fault::TimedOut | Fault::BodyStalled => Self::TimedOut,
            _ => Self::Broken,
        }
    }
}

/// Whether reqwest, below another client, could not even build the request. Not by its type: this
/// crate may be built without it.
#[cfg(any(feature = "object-store", feature = "azure-core"))]
pub(crate) fn was_not_built(error: &(dyn StdError + 'static)) -> bool {
    std::iter::successors(Some(error), |&cause| next(cause))
        .any(|cause| cause.to_string().starts_with("builder error"))
}

/// The error of a client that says that it could not connect, in a form that the layers know: an
/// `io::Error` that says so, unless there is one in its chain.
#[cfg(any(feature = "object-store", feature = "azure-core"))]
pub(crate) fn never_connected(error: impl StdError + Send + Sync + 'static) -> tower_geo::BoxError {
    if Meaning::of(&error) == Meaning::NotSent {
        Box::new(error)
    } else {
        Box::new(io::Error::new(io::ErrorKind::ConnectionRefused, error))
    }
}
