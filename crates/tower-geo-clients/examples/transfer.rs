//! 1 GiB up and 1 GiB down through each client, and how much memory that takes.
//!
//! ```text
//! cargo run --release -p tower-geo-clients --all-features --example transfer
//! cargo run --release -p tower-geo-clients --all-features --example transfer -- 64   # MiB
//! ```
//!
//! Each client runs with the stack and without, each in a process of its own, so that its peak is its
//! own, against a server in this one that throws uploads away and makes downloads up. The peak is that
//! of resident memory, as Linux tells it; `0` where it is not told. A process that has not transferred
//! anything is shown first.

#![expect(clippy::print_stdout, reason = "prints its figures")]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use azure_core::http::{
    Body as SdkBody, ClientOptions as SdkOptions, HttpClient, RetryOptions, Transport, Url,
};
use azure_core::stream::SeekableStream;
use azure_storage_blob::{BlobClient, BlobClientOptions};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::ReqwestConnector;
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStoreExt, WriteMultipart};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tower::ServiceExt;
use tower_geo::{Account, BoxError, LocationMode, StorageService};
use tower_geo_clients::azure_core::transport;
use tower_geo_clients::object_store::LayeredConnector;
use tower_geo_clients::reqwest::GeoClient;
use tower_layer::Layer;

const CLIENTS: [&str; 5] = [
    "nothing",
    "object_store",
    "azure_storage_blob",
    "reqwest",
    "hyper",
];
const WITH: &str = "with";
const MIB: u64 = 1 << 20;

/// Bodies here are made of pieces of 64 KiB, each allocated, as those of a file would be.
const CHUNK: usize = 1 << 16;

fn chunks(mut left: u64) -> impl Iterator<Item = Bytes> {
    std::iter::from_fn(move || {
        let take = usize::try_from(left).unwrap_or(usize::MAX).min(CHUNK);
        left -= u64::try_from(take).unwrap_or(left);
        (take > 0).then(|| Bytes::from(vec![0x5a; take]))
    })
}

// The server.

async fn answer(
    request: Request<Incoming>,
    size: u64,
) -> Result<Response<UnsyncBoxBody<Bytes, Infallible>>, BoxError> {
    let (head, mut body) = request.into_parts();
    while let Some(frame) = body.frame().await {
        drop(frame?);
    }
    let mut response = Response::builder()
        .header("etag", "\"1\"")
        .header("last-modified", "Tue, 01 Jul 2025 00:00:00 GMT")
        .header("x-ms-request-id", "1");
    let mut length = 0;
    if head.method == Method::GET {
        let (from, to) = range(&head.headers, size).unwrap_or((0, size - 1));
        length = to - from + 1;
        if length < size {
            response = response
                .status(StatusCode::PARTIAL_CONTENT)
                .header("content-range", format!("bytes {from}-{to}/{size}"));
        }
    } else {
        response = response.status(StatusCode::CREATED);
    }
    let frames = chunks(length).map(|chunk| Ok(Frame::data(chunk)));
    let body = StreamBody::new(futures::stream::iter(frames));
    Ok(response
        .header("content-length", length)
        .body(BodyExt::boxed_unsync(body))?)
}

fn range(headers: &HeaderMap, size: u64) -> Option<(u64, u64)> {
    let range = headers.get("x-ms-range").or_else(|| headers.get("range"))?;
    let (from, to) = range
        .to_str()
        .ok()?
        .strip_prefix("bytes=")?
        .split_once('-')?;
    Some((
        from.parse().ok()?,
        to.parse().unwrap_or(u64::MAX).min(size - 1),
    ))
}

async fn serve(size: u64) -> Result<SocketAddr, BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let addr = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = hyper::service::service_fn(move |request| answer(request, size));
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service);
            // How it ends is the client's to see.
            tokio::spawn(async move { drop(connection.await) });
        }
    });
    Ok(addr)
}

// The clients.

async fn object_store(
    account: Option<&Account>,
    endpoint: &str,
    size: u64,
) -> Result<(), BoxError> {
    let mut store = MicrosoftAzureBuilder::new()
        .with_account("contoso")
        .with_access_key("c2VjcmV0")
        .with_container_name("photos")
        .with_endpoint(endpoint.to_owned())
        .with_client_options(ClientOptions::new().with_allow_http(true));
    if let Some(account) = account {
        let layers = account.blob().layer().clone_bodies();
        let connector = LayeredConnector::new(ReqwestConnector::default(), layers);
        store = store.with_http_connector(connector);
    }
    let store = store.build()?;
    let path = Path::from("big");
    let mut upload = WriteMultipart::new(store.put_multipart(&path).await?);
    for chunk in chunks(size) {
        upload.wait_for_capacity(4).await?;
        upload.put(chunk);
    }
    upload.finish().await?;
    let stream = store.get(&path).await?.into_stream();
    count(stream.map_err(BoxError::from), size).await
}

async fn azure_storage_blob(
    account: Option<&Account>,
    endpoint: &str,
    size: u64,
) -> Result<(), BoxError> {
    let http: Arc<dyn HttpClient> = Arc::new(reqwest::Client::builder().no_proxy().build()?);
    let client_options = SdkOptions {
        transport: Some(match account {
            Some(account) => transport(&account.blob(), http),
            None => Transport::new(http),
        }),
        retry: RetryOptions::none(),
        ..SdkOptions::default()
    };
    let options = BlobClientOptions {
        client_options,
        ..BlobClientOptions::default()
    };
    let url: Url = format!("{endpoint}/photos/big").parse()?;
    let blob = BlobClient::new(url, None, Some(options))?;
    let stream: Box<dyn SeekableStream> = Box::new(Zeroes { size, left: size });
    blob.upload(SdkBody::from(stream).into(), None).await?;
    let download = blob.download(None).await?;
    count(download.body.map_err(BoxError::from), size).await
}

async fn with_reqwest(
    account: Option<&Account>,
    endpoint: &str,
    size: u64,
) -> Result<(), BoxError> {
    let http = reqwest::Client::builder().no_proxy().build()?;
    let send = async |request| -> Result<reqwest::Response, BoxError> {
        match account {
            Some(account) => {
                let geo = GeoClient::new(http.clone(), &account.blob());
                Ok(geo.execute(request).await?)
            }
            None => Ok(http.execute(request).await?),
        }
    };
    let url = format!("{endpoint}/photos/big");
    let stream = futures::stream::iter(chunks(size).map(Ok::<_, Infallible>));
    let put = http
        .put(&url)
        .header("x-ms-blob-type", "BlockBlob")
        .header("content-length", size)
        .body(reqwest::Body::wrap_stream(stream));
    send(put.build()?).await?;
    let response = send(http.get(&url).build()?).await?;
    count(response.bytes_stream().map_err(BoxError::from), size).await
}

/// hyper's client has no adapter: it is a tower service.
async fn with_hyper(account: Option<&Account>, endpoint: &str, size: u64) -> Result<(), BoxError> {
    type Body = UnsyncBoxBody<Bytes, Infallible>;
    let client: Client<HttpConnector, Body> = Client::builder(TokioExecutor::new()).build_http();
    let send = async |request: Request<Body>| match account {
        Some(account) => {
            let stack = account.blob().layer().layer(client.clone());
            let response = stack.oneshot(request).await?;
            let body = response.map(|body| body.map_err(BoxError::from).boxed_unsync());
            Ok::<_, BoxError>(body)
        }
        None => {
            let response = client.clone().oneshot(request).await?;
            Ok(response.map(|body| body.map_err(BoxError::from).boxed_unsync()))
        }
    };
    let url = format!("{endpoint}/photos/big");
    let frames = chunks(size).map(|chunk| Ok(Frame::data(chunk)));
    let put = Request::put(&url)
        .header("x-ms-blob-type", "BlockBlob")
        .header("content-length", size)
        .body(StreamBody::new(futures::stream::iter(frames)).boxed_unsync())?;
    send(put).await?;
    let response = send(Request::get(&url).body(Body::default())?).await?;
    count(response.into_body().into_data_stream(), size).await
}

async fn count(
    mut stream: impl futures::Stream<Item = Result<Bytes, BoxError>> + Unpin,
    size: u64,
) -> Result<(), BoxError> {
    let mut got = 0;
    while let Some(chunk) = stream.next().await {
        got += u64::try_from(chunk?.len())?;
    }
    if got == size {
        Ok(())
    } else {
        Err(format!("{got} bytes came, not {size}").into())
    }
}

/// A stream of the SDK that is never in memory.
#[derive(Clone, Debug)]
struct Zeroes {
    size: u64,
    left: u64,
}

impl futures::AsyncRead for Zeroes {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<std::io::Result<usize>> {
        let take = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        if let Some(buffer) = buffer.get_mut(..take) {
            buffer.fill(0);
        }
        self.left -= u64::try_from(take).unwrap_or(self.left);
        Poll::Ready(Ok(take))
    }
}

#[async_trait]
impl SeekableStream for Zeroes {
    async fn reset(&mut self) -> azure_core::Result<()> {
        self.left = self.size;
        Ok(())
    }

    fn len(&self) -> Option<u64> {
        Some(self.size)
    }
}

/// The peak of resident memory of this process, in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
    kib.unwrap_or(0_u64) / 1024
}

async fn child(client: &str, stack: &str, endpoint: &str, size: u64) -> Result<(), BoxError> {
    // reqwest has no provider of its own here, and wants one even for plain HTTP.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let secondary = format!("{endpoint}-secondary");
    let mut account = Account::endpoints();
    for service in [
        StorageService::Blob,
        StorageService::Queue,
        StorageService::Table,
    ] {
        account = account.endpoint_pair(service, endpoint, secondary.as_str());
    }
    let account = account
        .location_mode(LocationMode::PrimaryThenSecondary)
        .build()?;
    let account = (stack == WITH).then_some(&account);
    let started = Instant::now();
    match client {
        "object_store" => object_store(account, endpoint, size).await?,
        "azure_storage_blob" => azure_storage_blob(account, endpoint, size).await?,
        "reqwest" => with_reqwest(account, endpoint, size).await?,
        "hyper" => with_hyper(account, endpoint, size).await?,
        _ => {}
    }
    println!(
        "{client:<20}{stack:<8}{:>8} MiB{:>10.1?}",
        peak(),
        started.elapsed()
    );
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [client, stack, endpoint, size] = args.as_slice() {
        return child(client, stack, endpoint, size.parse()?).await;
    }
    let mib: u64 = match args.first() {
        Some(mib) => mib.parse()?,
        // Unoptimised it is only a test of the example.
        None if cfg!(debug_assertions) => 32,
        None => 1024,
    };
    let size = mib.max(1) * MIB;
    let endpoint = format!("http://{}/contoso", serve(size).await?);
    println!(
        "{mib} MiB up, and as much down\n\n{:<20}{:<8}{:>12}{:>10}",
        "", "stack", "peak", "time"
    );
    for client in CLIENTS {
        for stack in ["without", WITH] {
            let status = tokio::process::Command::new(std::env::current_exe()?)
                .args([client, stack, &endpoint, &size.to_string()])
                .stdin(Stdio::null())
                .status()
                .await?;
            if !status.success() {
                return Err(format!("{client} has failed").into());
            }
        }
    }
    Ok(())
}
