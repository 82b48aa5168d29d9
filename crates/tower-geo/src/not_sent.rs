//! What a client says when the program is to blame and nothing has left.

use std::error::Error as StdError;
use std::fmt;

use crate::error::BoxError;

/// Nothing was sent, because the request cannot be sent: a fault of the program, found below the
/// stack.
///
/// A layer between the stack and its client that has to give up before anything leaves (a signer
/// without a key, say) wraps its error in this. The operation then ends at once with
/// [`ErrorKind::Config`](crate::ErrorKind::Config), whose
/// [`was_never_sent`](crate::Error::was_never_sent) says true. Nothing is sent again, and no
/// region is held responsible. Anything else would look like an answer that got lost.
///
/// Not for what may go better the next time, such as a token that could not be fetched.
///
/// The message of the cause is shown in the error of the stack; no secret belongs there.
///
/// ```
/// use std::error::Error;
/// use tower_geo::NotSent;
///
/// let error = NotSent::new("the body has no length, and the signature covers it");
/// assert_eq!(error.to_string(), "the request was not sent");
/// assert!(error.source().is_some());
/// ```
#[derive(Debug)]
pub struct NotSent {
    cause: BoxError,
}

impl NotSent {
    /// Nothing was sent, for this reason.
    #[must_use]
    pub fn new(cause: impl Into<BoxError>) -> Self {
        Self {
            cause: cause.into(),
        }
    }
}

impl fmt::Display for NotSent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request was not sent")
    }
}

impl StdError for NotSent {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.cause)
    }
}

#[cfg(test)]
mod tests;
