use http::{Extensions, StatusCode};

/// In the extensions of a request that should meet its region over a connection of its own: one that
/// asks whether a region is back whose circuit is open (R12), or that follows a send which found no
/// connection to a region of an account (C8).
///
/// [`FreshConnectionsLayer`](super::FreshConnectionsLayer) makes a connection for such a request; a
/// client of your own may do the same.
///
/// ```
/// # fn needs_a_new_connection<B>(request: &http::Request<B>) -> bool {
/// tower_geo::Probe::of(request.extensions()).is_some()
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// Whether its success lets others in, who then need new connections, too.
    renews: bool,
}

impl Probe {
    /// A send that holds a slot of a circuit which is half open.
    pub(crate) const OF_CIRCUIT: Self = Self { renews: true };
    /// A ping while the circuit is open: it ends the wait for the probe.
    pub(crate) const OF_MONITOR: Self = Self { renews: false };
    /// The send after one that found no connection. Its success is no reason for others to give up
    /// theirs.
    #[cfg(feature = "cosmos")]
    pub(crate) const AFTER_NO_CONNECTION: Self = Self { renews: false };

    /// Takes a look at the extensions of a request.
    #[must_use]
    pub fn of(extensions: &Extensions) -> Option<&Self> {
        extensions.get()
    }

    /// Whether the client that got this answer is to be everybody's from now on.
    pub(super) fn renews(self, status: StatusCode) -> bool {
        let is_well = !status.is_server_error()
            && status != StatusCode::REQUEST_TIMEOUT
            && status != StatusCode::TOO_MANY_REQUESTS;
        self.renews && is_well
    }
}
