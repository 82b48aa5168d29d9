//! What `object_store` is told about an error of the stack: whether it may repeat the request.

use std::error::Error as StdError;
use std::io;

use ::object_store::client::{HttpError, HttpErrorKind};
use tower_geo::NotSent;

use crate::chain::{Meaning, find, never_connected, was_not_built};

/// Gives an error of the stack the kind that makes `object_store` do the right thing. The error
/// stays in the chain of sources.
pub(super) fn to_http_error(error: Box<dyn StdError + Send + Sync>) -> HttpError {
    HttpError::new_boxed(kind_of(&*error), error)
}

fn kind_of(error: &(dyn StdError + 'static)) -> HttpErrorKind {
    match Meaning::of(error) {
        Meaning::Final => HttpErrorKind::Unknown,
        // The stack would have sent it again, had it kept the body; `object_store` has it.
        Meaning::NeedsBody => HttpErrorKind::Interrupted,
        Meaning::NotSent => HttpErrorKind::Connect,
        Meaning::TimedOut => HttpErrorKind::Timeout,
        Meaning::Broken => match find::<HttpError>(error).map(HttpError::kind) {
            // The client below knows that repeating is useless.
            Some(kind @ (HttpErrorKind::Unknown | HttpErrorKind::Decode)) => kind,
            // Not `Request`, which `object_store` takes for "not sent" and repeats for every
            // write: its own client says so of a connection that was closed before the answer.
            _ => HttpErrorKind::Interrupted,
        },
    }
}

/// What the layers are told about an error of `object_store`'s client.
pub(super) fn from_http_error(error: HttpError) -> Box<dyn StdError + Send + Sync> {
    match error.kind() {
        HttpErrorKind::Connect => never_connected(error),
        // A time-out of that client's is of a private type. The layers look for an `io::Error`.
        HttpErrorKind::Timeout => Box::new(io::Error::new(io::ErrorKind::TimedOut, error)),
        // `http` without `allow_http`, say: no region is to blame.
        _ if was_not_built(&error) => Box::new(NotSent::new(error)),
        _ => Box::new(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(kind: HttpErrorKind, cause: io::ErrorKind) -> HttpErrorKind {
        let theirs = HttpError::new(kind, io::Error::from(cause));
        to_http_error(from_http_error(theirs)).kind()
    }

    #[test]
    fn what_no_layer_of_ours_has_decided_is_repeated_as_without_us() {
        use HttpErrorKind::{Connect, Decode, Interrupted, Request, Timeout, Unknown};
        use io::ErrorKind::{ConnectionRefused, ConnectionReset, InvalidData, Other};

        assert_eq!(kind(Connect, ConnectionRefused), Connect);
        assert_eq!(kind(Connect, Other), Connect);
        assert_eq!(kind(Timeout, Other), Timeout);
        assert_eq!(kind(Interrupted, ConnectionReset), Interrupted);
        assert_eq!(kind(Decode, InvalidData), Decode);
        assert_eq!(kind(Unknown, Other), Unknown);
        assert_eq!(
            kind(Request, ConnectionReset),
            Interrupted,
            "it may have been processed"
        );
    }

    #[test]
    fn the_error_of_the_client_below_stays_in_the_chain() {
        let theirs = HttpError::new(HttpErrorKind::Timeout, io::Error::other("slow"));
        let error = to_http_error(from_http_error(theirs));
        let source = error.source().unwrap();
        assert_eq!(
            find::<HttpError>(source).unwrap().kind(),
            HttpErrorKind::Timeout
        );
    }
}
