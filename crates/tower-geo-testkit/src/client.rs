//! A hyper client to which every host name is on loopback.

use crate::{
    lock,
    tls::{TestCa, client_config},
};
use bytes::Buf;
use http_body::Body;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{
        Client,
        connect::{HttpConnector, dns::Name},
    },
    rt::{TokioExecutor, TokioTimer},
};
use std::{
    collections::HashMap,
    future::{Ready, ready},
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};
use tower_service::Service;

/// The client that [`ClientBuilder::build`] makes: a `tower_service::Service` over `http::Request<B>`.
pub type TestClient<B> = Client<HttpsConnector<HttpConnector<Names>>, B>;

/// Host names and where they are: the resolver of a [`TestClient`].
///
/// Clones share their names, so a test can move a name while clients hold it (R12). A name that is
/// not here does not exist: the client gets a DNS error, and nothing outside is ever asked.
///
/// The port of the address counts when the URI names none, so production URLs work unmodified.
#[derive(Clone, Debug, Default)]
pub struct Names(Arc<Mutex<HashMap<String, SocketAddr>>>);

impl Names {
    /// No names.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Points `name` to `addr`, from now on.
    pub fn point(&self, name: &str, addr: SocketAddr) {
        lock(&self.0).insert(name.to_ascii_lowercase(), addr);
    }

    /// Makes `name` unknown, from now on.
    pub fn remove(&self, name: &str) {
        lock(&self.0).remove(&name.to_ascii_lowercase());
    }
}

impl Service<Name> for Names {
    type Response = std::iter::Once<SocketAddr>;
    type Error = io::Error;
    type Future = Ready<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let known = lock(&self.0)
            .get(&name.as_str().to_ascii_lowercase())
            .copied();
        ready(known.map(std::iter::once).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                format!("no such host name: {name}"),
            )
        }))
    }
}

/// Builds a [`TestClient`].
///
/// | setting | default |
/// |---|---|
/// | names | none: only IP addresses can be reached |
/// | trusted authority | none: TLS fails |
/// | connect time-out | 1 s |
/// | connections kept between requests | none, so that each send opens its own and none is resent in secret |
///
/// ```
/// # use bytes::Bytes;
/// use tower_geo_testkit::{client::{ClientBuilder, TestClient}, tls::TestCa};
///
/// # fn main() -> std::io::Result<()> {
/// let ca = TestCa::new()?;
/// let client: TestClient<http_body_util::Full<Bytes>> = ClientBuilder::new()
///     .resolve("contoso.blob.core.windows.net", ([127, 0, 0, 1], 10_443).into())
///     .trust(&ca)?
///     .build()?;
/// # drop(client);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ClientBuilder {
    names: Names,
    tls: Option<tokio_rustls::rustls::ClientConfig>,
    connect_timeout: Duration,
    keep_alive: Option<Duration>,
}

impl Default for ClientBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl ClientBuilder {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self {
            names: Names::new(),
            tls: None,
            connect_timeout: Duration::from_secs(1),
            keep_alive: None,
        }
    }

    /// Resolves `name` to `addr`.
    #[must_use]
    pub fn resolve(self, name: &str, addr: SocketAddr) -> Self {
        self.names.point(name, addr);
        self
    }

    /// Resolves by `names`, in place of all that [`resolve`](Self::resolve) has said.
    #[must_use]
    pub fn names(mut self, names: Names) -> Self {
        self.names = names;
        self
    }

    /// Trusts the certificates of `ca`, and no others.
    ///
    /// # Errors
    ///
    /// See [`TestCa::client_config`].
    pub fn trust(mut self, ca: &TestCa) -> io::Result<Self> {
        self.tls = Some(ca.client_config()?);
        Ok(self)
    }

    /// Gives up connecting after `timeout`.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Keeps connections for reuse, each for `idle` after its last request.
    #[must_use]
    pub fn keep_alive(mut self, idle: Duration) -> Self {
        self.keep_alive = Some(idle);
        self
    }

    /// The client.
    ///
    /// # Errors
    ///
    /// Not in practice: an empty TLS configuration is always valid.
    pub fn build<B>(self) -> io::Result<TestClient<B>>
    where
        B: Body + Send,
        B::Data: Send + Buf,
    {
        let mut http = HttpConnector::new_with_resolver(self.names);
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(Some(self.connect_timeout));
        let tls = match self.tls {
            Some(tls) => tls,
            None => client_config(None)?,
        };
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);

        let mut builder = Client::builder(TokioExecutor::new());
        builder.pool_timer(TokioTimer::new());
        match self.keep_alive {
            Some(idle) => builder.pool_idle_timeout(idle),
            // A connection that is not kept cannot turn out to be dead, which hyper would answer
            // by sending again on a new one, unseen by the layers under test.
            None => builder
                .pool_max_idle_per_host(0)
                .retry_canceled_requests(false),
        };
        Ok(builder.build(https))
    }
}
