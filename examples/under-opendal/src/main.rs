//! OpenDAL through the loss of a region, on real HTTP.
//!
//! ```text
//! cargo run -p under-opendal
//! ```

use std::io::Write as _;
use std::time::Duration;

use opendal::services::Azblob;
use opendal::{HttpTransporter, Operator};
use tower::Layer;
use tower_geo::{
    BoxError, BreakerSettings, GeoService, LocationMode, RetrySettings, StorageService,
};
use tower_geo_clients::geo_error;
use tower_geo_testkit::Side;
use tower_geo_testkit::client::ClientBuilder;
use tower_geo_testkit::store::TwoRegionStore;
use under_opendal::{BufferBody, GeoTransport};

fn service(store: &TwoRegionStore) -> Result<GeoService, tower_geo::ConfigError> {
    let [primary, secondary] = Side::BOTH.map(|side| store.endpoint(side));
    let open_for = Duration::from_millis(500);
    GeoService::azure_storage(primary)
        .storage_service(StorageService::Blob)
        .secondary(secondary)
        .location_mode(LocationMode::PrimaryThenSecondary)
        .retry(RetrySettings::new().delay(Duration::from_millis(10)))
        .breaker(BreakerSettings::new().streak(3).open_for(open_for))
        .build()
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let store = TwoRegionStore::builder()
        .path_style("contoso")
        .start()
        .await?;
    store.create_container("photos");
    let stack = service(&store)?.layer().clone_bodies();
    let stack = stack.layer(ClientBuilder::new().build::<BufferBody>()?);
    let azblob = Azblob::default()
        .endpoint(&store.endpoint(Side::Primary))
        .account_name("contoso")
        .account_key("c2VjcmV0")
        .container("photos");
    let photos = Operator::new(azblob)?;
    let context = photos.base_context();
    let context = context.with_http_transport(HttpTransporter::new(GeoTransport::new(stack)));
    let photos = photos.with_context(context);

    let mut out = std::io::stdout();
    photos.write("cat", "meow").await?;
    writeln!(out, "both regions are up: cat was written")?;

    store.take_down(Side::Primary).await?;
    for _ in 0..3 {
        let cat = photos.read("cat").await?.to_vec();
        let cat = String::from_utf8_lossy(&cat).into_owned();
        writeln!(
            out,
            "the primary is down: cat says {cat}, from the secondary"
        )?;
    }
    if let Err(error) = photos.write("cat", "woof").await {
        let why = geo_error(&error).ok_or("not an error of the stack")?;
        writeln!(out, "a write is refused at once: {why}")?;
    }

    store.bring_back(Side::Primary).await?;
    while photos.write("cat", "purr").await.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    writeln!(out, "the primary is back: cat was written again")?;
    Ok(())
}
