//! What the SDK is told about an error of the stack: whether it may try again.

use std::error::Error as StdError;

use ::azure_core::Error;
use ::azure_core::error::ErrorKind;
use tower_geo::NotSent;

use crate::chain::{Meaning, find, never_connected, was_not_built};

/// Gives an error of the stack the kind that makes the SDK do the right thing. The error stays in
/// the chain of sources.
pub(super) fn to_sdk_error(error: Box<dyn StdError + Send + Sync>) -> Error {
    let kind = match Meaning::of(&*error) {
        Meaning::Final => ErrorKind::Other,
        Meaning::NotSent => ErrorKind::Connection,
        // The SDK rewinds a stream before it tries again.
        Meaning::NeedsBody | Meaning::TimedOut => ErrorKind::Io,
        Meaning::Broken => match find::<Error>(&*error).map(Error::kind) {
            None | Some(ErrorKind::Io | ErrorKind::Connection) => ErrorKind::Io,
            // The transport below knows that trying again is useless.
            Some(_) => ErrorKind::Other,
        },
    };
    Error::with_error(kind, error, "the request was not answered")
}

/// What the layers are told about an error of a transport of the SDK.
pub(super) fn from_sdk_error(error: Error) -> Box<dyn StdError + Send + Sync> {
    match error.kind() {
        ErrorKind::Connection => never_connected(error),
        _ if was_not_built(&error) => Box::new(NotSent::new(error)),
        _ => Box::new(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn what_no_layer_of_ours_has_decided_is_tried_again_as_without_us() {
        let kind = |kind: ErrorKind, cause: io::ErrorKind| {
            let theirs = Error::new(kind, io::Error::from(cause));
            to_sdk_error(from_sdk_error(theirs)).kind().clone()
        };
        use ErrorKind::{Connection, DataConversion, Io, Other};
        assert_eq!(kind(Connection, io::ErrorKind::Other), Connection);
        assert_eq!(
            kind(Connection, io::ErrorKind::ConnectionRefused),
            Connection
        );
        assert_eq!(kind(Io, io::ErrorKind::ConnectionReset), Io);
        assert_eq!(kind(Io, io::ErrorKind::TimedOut), Io);
        assert_eq!(kind(DataConversion, io::ErrorKind::Other), Other);
        assert_eq!(kind(Other, io::ErrorKind::Other), Other);
    }
}
