//! How a client is made: the part that an application would copy.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tower::ServiceBuilder;
use tower_geo::body::CloneBodies;
use tower_geo::cosmos_key::{CosmosKey, CosmosKeyLayer};
use tower_geo::{Account, BackgroundTask, BoxError, GeoService, GeoStack, Listener, RetrySettings};

use crate::hosts::Names;

/// How often the account is read when nothing happens.
pub(crate) const REFRESH: Duration = Duration::from_secs(1);
/// The most that chance adds to it.
pub(crate) const REFRESH_JITTER: Duration = Duration::from_millis(100);

/// A hyper client, whose names are those of the example.
type Http = Client<HttpConnector<Names>, Full<Bytes>>;

/// The same under all four layers, signing each send.
pub(crate) type Documents = GeoStack<CosmosKey<Http>, CloneBodies>;

/// The account's key, as the portal shows it: a secret of the application. (This one says "a key".)
const KEY: &str = "YSBrZXk=";

/// A client of an account that follows its regions.
///
/// The task that reads the account stops when it is dropped.
pub(crate) fn client(
    endpoint: &str,
    names: Names,
    listener: impl Listener,
) -> Result<(GeoService, Documents, BackgroundTask), BoxError> {
    let service = Account::cosmos(endpoint)
        // Central is not there yet. That is no mistake: it is used as soon as it is.
        .preferred(["Central US", "West US", "East US"])
        .refresh(REFRESH)
        .refresh_jitter(REFRESH_JITTER)
        .retry(RetrySettings::new().attempt_timeout(Duration::from_secs(1)))
        .listener(Arc::new(listener))
        .build()?;
    // Below the layers, so that each send is signed as it leaves.
    let signed = ServiceBuilder::new()
        .layer(CosmosKeyLayer::new(endpoint, KEY)?)
        .service(http(names));
    // Account reads are signed like any other request.
    let reader = service.spawn_account_reader(signed.clone())?;
    let documents = ServiceBuilder::new()
        .layer(service.layer().clone_bodies())
        .service(signed);
    Ok((service, documents, reader))
}

/// A plain client. Without a time-out for connecting, a region whose network is gone would hold
/// every attempt for minutes.
fn http(names: Names) -> Http {
    let mut connector = HttpConnector::new_with_resolver(names);
    connector.set_connect_timeout(Some(Duration::from_millis(500)));
    connector.set_nodelay(true);
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(Duration::from_secs(5))
        .build(connector)
}
