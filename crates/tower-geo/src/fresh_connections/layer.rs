use std::fmt;
use std::time::Duration;

use tower_layer::Layer;

use super::FreshConnections;

/// Makes clients that have no connections yet. Every `Fn() -> S` does.
pub trait MakeClient<S> {
    /// A client like the others, which shares no connection with them.
    fn make_client(&self) -> S;
}

impl<S, F: Fn() -> S> MakeClient<S> for F {
    fn make_client(&self) -> S {
        self()
    }
}

/// Probes over new connections, and nobody keeps those from before an outage. See the
/// [module](super).
///
/// | setting | default | |
/// |---|---|---|
/// | `max_age` | none | at this age the client is replaced, trouble or not |
#[derive(Clone)]
pub struct FreshConnectionsLayer<F> {
    make: F,
    max_age: Option<Duration>,
}

impl<F> FreshConnectionsLayer<F> {
    /// `make` gives a client like the one below, without connections: a [`MakeClient`], as every
    /// closure is that returns one.
    #[must_use]
    pub const fn new(make: F) -> Self {
        Self {
            make,
            max_age: None,
        }
    }

    /// Replaces the client, and so all of its connections, when it is this old; minutes rather than
    /// seconds, since each time all connections are made anew. No limit by default.
    ///
    /// Each request looks at the clock then. Nothing happens while there are no requests: idle
    /// connections are for the client's own time-out.
    #[must_use]
    pub const fn max_age(mut self, age: Duration) -> Self {
        self.max_age = Some(age);
        self
    }
}

impl<F> fmt::Debug for FreshConnectionsLayer<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FreshConnectionsLayer")
            .field("max_age", &self.max_age)
            .finish_non_exhaustive()
    }
}

impl<S, F> Layer<S> for FreshConnectionsLayer<F>
where
    S: Clone,
    F: MakeClient<S> + Clone,
{
    type Service = FreshConnections<S, F>;

    fn layer(&self, inner: S) -> Self::Service {
        FreshConnections::new(inner, self.make.clone(), self.max_age)
    }
}
