//! How a client is made: the part that an application would copy.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tower::ServiceBuilder;
use tower_geo::body::CloneBodies;
use tower_geo::fresh_connections::FreshConnections;
use tower_geo::shared_key::{SharedKey, SharedKeyLayer};
use tower_geo::{
    Account, BoxError, BreakerSettings, FreshConnectionsLayer, GeoStack, HyperClients, Listener,
    LocationMode, RetrySettings,
};

/// A hyper client under all four layers, signing each send, and probing over new connections.
pub(crate) type Blobs = GeoStack<SharedKey<Renewed>, CloneBodies>;
type Renewed = FreshConnections<Client<HttpConnector, Full<Bytes>>, HyperClients<HttpConnector>>;

/// A client of blob storage that survives the loss of the primary region.
pub(crate) fn client(
    connection_string: &str,
    signer: SharedKeyLayer,
    listener: impl Listener,
) -> Result<(Account, Blobs), BoxError> {
    let account = Account::from_connection_string(connection_string)
        .location_mode(LocationMode::PrimaryThenSecondary)
        .breaker(quick_breaker())
        .retry(quick_retry())
        .each(|service| service.listener(Arc::new(listener)))
        .build()?;
    let clients = hyper_clients();
    let blobs = ServiceBuilder::new()
        .layer(account.blob().layer().clone_bodies())
        .layer(signer)
        // After a failover of the account old connections would still lead to the region that its
        // name has left: probes make new ones, and none grows older than this.
        .layer(FreshConnectionsLayer::new(clients.clone()).max_age(Duration::from_secs(600)))
        .service(clients.client());
    Ok((account, blobs))
}

/// Plain clients. Without a time-out for connecting, a region whose network is gone would hold
/// every attempt for minutes.
fn hyper_clients() -> HyperClients<HttpConnector> {
    let mut connector = HttpConnector::new();
    connector.set_connect_timeout(Some(Duration::from_millis(500)));
    connector.set_nodelay(true);
    let mut builder = Client::builder(TokioExecutor::new());
    builder
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(Duration::from_secs(5));
    HyperClients::new(builder, connector)
}

/// Circuits that show in seconds what takes minutes with the defaults, which suit production.
fn quick_breaker() -> BreakerSettings {
    BreakerSettings::new()
        // At 50 operations a second five failures in a row are a tenth of a second.
        .streak(5)
        // Several tries fall into the outage; the last may be this long after its end.
        .open_for(Duration::from_millis(500))
        .max_open_for(Duration::from_secs(1))
        .probe_deadline(Duration::from_secs(1))
        // The share of reads that returns first, then the next, each for half a second.
        .ramp([0.1, 0.5])
        .ramp_step(Duration::from_millis(500))
}

/// A black hole costs each of the first sends this time-out; callers here wait 5 s at most.
fn quick_retry() -> RetrySettings {
    RetrySettings::new()
        .attempt_timeout(Duration::from_secs(1))
        .delay(Duration::from_millis(100))
        .deadline(Duration::from_secs(5))
}
