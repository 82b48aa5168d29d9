use crate::error::BoxError;
use std::{error::Error, fmt};

/// Why a request could not be signed, or a layer that signs could not be built.
///
/// Never shows the key.
#[derive(Debug)]
pub struct SigningError {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Account(&'static str),
    Key(&'static str),
    Host,
    #[cfg(feature = "shared-key")]
    UnknownLength,
    Date,
}

impl SigningError {
    pub(crate) const fn account(problem: &'static str) -> Self {
        Self {
            kind: Kind::Account(problem),
        }
    }

    pub(crate) const fn key(problem: &'static str) -> Self {
        Self {
            kind: Kind::Key(problem),
        }
    }

    pub(crate) const fn host() -> Self {
        Self { kind: Kind::Host }
    }

    #[cfg(feature = "shared-key")]
    pub(crate) const fn unknown_length() -> Self {
        Self {
            kind: Kind::UnknownLength,
        }
    }

    pub(crate) const fn date() -> Self {
        Self { kind: Kind::Date }
    }

    /// Whether the account, the key or a host that the layer was given cannot be right.
    #[must_use]
    pub const fn is_config(&self) -> bool {
        matches!(self.kind, Kind::Account(_) | Kind::Key(_) | Kind::Host)
    }

    /// Of `shared_key`: whether the length of the body, which is signed, is not known: the request has no
    /// `Content-Length` header and its body does not know its exact size. Set the header.
    #[cfg(feature = "shared-key")]
    #[must_use]
    pub const fn is_unknown_length(&self) -> bool {
        matches!(self.kind, Kind::UnknownLength)
    }
}

impl fmt::Display for SigningError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Account(problem) => f.write_str(problem),
            Kind::Key(problem) => write!(f, "account key {problem}"),
            Kind::Host => f.write_str(
                "host to sign for must be a host name alone, without scheme, port and path",
            ),
            #[cfg(feature = "shared-key")]
            Kind::UnknownLength => f.write_str(
                "cannot sign a body of unknown length: set the content-length header, or give the body an exact size",
            ),
            Kind::Date => f.write_str("cannot sign: the wall clock shows a date outside the years 1970 to 9999"),
        }
    }
}

impl Error for SigningError {}

/// The error of a service that signs: the request could not be signed, or the inner service failed.
///
/// `source()` is the inner error itself, so that its kind can be found down the chain.
#[derive(Debug)]
pub struct SigningServiceError {
    cause: Cause,
}

#[derive(Debug)]
enum Cause {
    Sign(SigningError),
    Inner(BoxError),
}

impl SigningServiceError {
    pub(crate) const fn sign(error: SigningError) -> Self {
        Self {
            cause: Cause::Sign(error),
        }
    }

    pub(crate) fn inner(error: impl Into<BoxError>) -> Self {
        Self {
            cause: Cause::Inner(error.into()),
        }
    }

    /// Why the request could not be signed, if that is what failed. Nothing was sent then.
    #[must_use]
    pub const fn sign_error(&self) -> Option<&SigningError> {
        match &self.cause {
            Cause::Sign(error) => Some(error),
            Cause::Inner(_) => None,
        }
    }

    /// The error of the inner service, if that is what failed.
    #[must_use]
    pub fn get_ref(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        match &self.cause {
            Cause::Sign(_) => None,
            Cause::Inner(error) => Some(&**error),
        }
    }

    /// The error of the inner service, to be downcast to its type.
    ///
    /// # Errors
    ///
    /// Why the request could not be signed, if the inner service was never called.
    pub fn into_inner(self) -> Result<BoxError, SigningError> {
        match self.cause {
            Cause::Sign(error) => Err(error),
            Cause::Inner(error) => Ok(error),
        }
    }
}

impl fmt::Display for SigningServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Cause::Sign(_) => f.write_str("the request could not be signed"),
            Cause::Inner(_) => f.write_str("the signed request failed"),
        }
    }
}

impl Error for SigningServiceError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.cause {
            Cause::Sign(error) => Some(error),
            Cause::Inner(error) => Some(&**error),
        }
    }
}
