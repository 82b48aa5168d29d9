use std::fmt;

use http_body::Body;
use hyper_util::client::legacy::connect::Connect;
use hyper_util::client::legacy::{Builder, Client};

use super::layer::MakeClient;

/// Makes clients of hyper-util, each with a pool of its own. Feature `hyper-util`.
///
/// ```
/// use std::time::Duration;
///
/// use bytes::Bytes;
/// use http_body_util::Full;
/// use hyper_util::client::legacy::Client;
/// use hyper_util::client::legacy::connect::HttpConnector;
/// use hyper_util::rt::{TokioExecutor, TokioTimer};
/// use tower::ServiceBuilder;
/// use tower_geo::{Account, FreshConnectionsLayer, HyperClients};
///
/// let mut builder = Client::builder(TokioExecutor::new());
/// builder
///     .pool_timer(TokioTimer::new()) // without one nothing idle is ever dropped
///     .pool_idle_timeout(Duration::from_secs(30))
///     .retry_canceled_requests(false); // one send is one send
/// let clients = HyperClients::new(builder, HttpConnector::new()); // or one with TLS
///
/// let account = Account::azure_storage("contoso").build()?;
/// let blob = ServiceBuilder::new()
///     .layer(account.blob().layer().clone_bodies())
///     .layer(FreshConnectionsLayer::new(clients.clone()).max_age(Duration::from_secs(600)))
///     .service(clients.client::<Full<Bytes>>());
/// # Ok::<(), tower_geo::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct HyperClients<C> {
    builder: Builder,
    connector: C,
}

impl<C> HyperClients<C> {
    /// Clients with the settings of this builder, each over a clone of this connector. A connector
    /// that keeps connections of its own would share them; those of hyper-util and hyper-rustls keep
    /// none.
    #[must_use]
    pub const fn new(builder: Builder, connector: C) -> Self {
        Self { builder, connector }
    }

    /// A client that has no connections yet.
    #[must_use]
    pub fn client<B>(&self) -> Client<C, B>
    where
        C: Connect + Clone,
        B: Body + Send,
        B::Data: Send,
    {
        self.builder.build(self.connector.clone())
    }
}

impl<C> fmt::Debug for HyperClients<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HyperClients")
            .field("builder", &self.builder)
            .finish_non_exhaustive()
    }
}

impl<C, B> MakeClient<Client<C, B>> for HyperClients<C>
where
    C: Connect + Clone,
    B: Body + Send,
    B::Data: Send,
{
    fn make_client(&self) -> Client<C, B> {
        self.client()
    }
}
