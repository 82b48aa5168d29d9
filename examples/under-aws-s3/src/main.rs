//! The AWS SDK through the loss of its region, against an S3 server that checks signatures.
//!
//! ```text
//! cargo run -p under-aws-s3
//! ```

use std::io::Write as _;
use std::time::Duration;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::{Config, Credentials, Region};
use tower_geo::{BoxError, BreakerSettings, GeoService, RetrySettings};
use tower_geo_clients::geo_error;
use tower_geo_testkit::client::ClientBuilder;
use tower_geo_testkit::front::{Front, FrontState};
use under_aws_s3::SdkBody;
use under_aws_s3::server::{ACCESS_KEY, SECRET_KEY, Server};

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let server = Server::start().await?;
    // The region, which can be lost.
    let region = Front::builder(server.addr()).start()?;
    let endpoint = format!("http://{}", region.addr());

    let open_for = Duration::from_millis(500);
    let photos = GeoService::static_copies("photos")
        .region("frankfurt", endpoint.as_str())
        .retry(RetrySettings::new().delay(Duration::from_millis(10)))
        .breaker(BreakerSettings::new().streak(2).open_for(open_for))
        .build()?;
    let transport = ClientBuilder::new().build::<SdkBody>()?;
    let config = Config::builder()
        .http_client(under_aws_s3::http_client(&photos, transport))
        .retry_config(RetryConfig::disabled())
        .endpoint_url(endpoint)
        .force_path_style(true)
        .region(Region::new("eu-central-1"))
        .credentials_provider(Credentials::new(
            ACCESS_KEY, SECRET_KEY, None, None, "example",
        ));
    let client = Client::from_conf(config.build());
    let put = async |body: &'static [u8]| {
        let put = client.put_object().bucket("photos").key("cat");
        put.body(SdkBody::from(body).into()).send().await
    };

    let mut out = std::io::stdout();
    client.create_bucket().bucket("photos").send().await?;
    put(b"meow").await?;
    let cat = client.get_object().bucket("photos").key("cat").send();
    let cat = cat.await?.body.collect().await?.to_vec();
    writeln!(
        out,
        "the region is up: cat says {}",
        String::from_utf8_lossy(&cat)
    )?;

    region.set(FrontState::Refuse).await?;
    for _ in 0..3 {
        if let Err(error) = put(b"woof").await {
            let why = geo_error(&error).ok_or("not an error of the stack")?;
            writeln!(out, "the region is down: {why}")?;
        }
    }

    region.set(FrontState::Forward).await?;
    while put(b"purr").await.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    writeln!(out, "the region is back: cat was written again")?;
    Ok(())
}
