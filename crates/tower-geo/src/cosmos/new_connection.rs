//! What a send to a region of an account carries besides (C8, C12).

use http::{Extensions, Request};
use tower_geo_policy::cosmos::ALLOW_TENTATIVE_WRITES;

/// In the extensions of a send that should have a connection of its own, because the send before
/// it found none (C8).
///
/// A pool that keeps no connection to a region makes a new one anyway; a client that picks among
/// several, or caches names, can look at this.
///
/// ```
/// # fn pick<B>(request: &http::Request<B>) -> &'static str {
/// if tower_geo::cosmos::NewConnection::is_asked_by(request.extensions()) {
///     "fresh"
/// } else {
///     "pooled"
/// }
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewConnection;

impl NewConnection {
    /// Takes a look at the extensions of a request.
    #[must_use]
    pub fn is_asked_by(extensions: &Extensions) -> bool {
        extensions.get::<Self>().is_some()
    }
}

/// Gets a request ready that is about to leave. The copy that is kept of it stays as it is.
pub(crate) fn prepare<B>(request: &mut Request<B>, tentative: bool, new_connection: bool) {
    if tentative {
        let (name, value) = ALLOW_TENTATIVE_WRITES;
        request.headers_mut().insert(name, value);
    }
    if new_connection {
        request.extensions_mut().insert(NewConnection);
    }
}
