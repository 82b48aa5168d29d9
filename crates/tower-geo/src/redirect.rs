//! Changes where a request goes: its authority and its `Host`, nothing else (R8).

use http::Request;
use http::header::HOST;
use tower_geo_policy::region::Destination;

use crate::error::Error;
use crate::known::Known;
use crate::runtime::State;

/// Directs a request to a destination, which only the proof that it is a read, or a region that
/// takes writes, can give (R1).
pub(crate) fn redirect<B>(
    state: &State,
    known: &Known,
    destination: Destination,
    request: &mut Request<B>,
) -> Result<(), Error> {
    let directed = known.regions(state).direct(destination, request.uri());
    let (uri, host) = directed.map_err(|error| Error::config(state, error.to_string()))?;
    *request.uri_mut() = uri;
    // A client adds `Host` only where it is absent, and sends a stale one as it is.
    if request.headers().contains_key(HOST) {
        request.headers_mut().insert(HOST, host);
    }
    Ok(())
}
