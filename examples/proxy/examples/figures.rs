//! What the proxy costs: time for each request, and memory for large bodies.
//!
//! ```text
//! cargo run --release -p geo-proxy --example figures
//! cargo run --release -p geo-proxy --example figures -- 64   # MiB up and down
//! ```
//!
//! Client and server are in this process, the proxy in one of its own, all on loopback. The server
//! throws uploads away and makes downloads up. The same client asks it directly, through a proxy that
//! only forwards, and through ours, in turn, so that a busy machine slows all alike; the fastest
//! quarter is shown. Then as much as asked for goes up and down through ours in one request each, and the peak
//! of its resident memory is shown, as Linux tells it; `0` where it is not told.

#![expect(clippy::print_stdout, reason = "prints its figures")]

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use futures::StreamExt;
use geo_proxy::router;
use http::header::CONTENT_LENGTH;
use http::{Method, StatusCode, Uri};
use http_body_util::BodyExt;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::time::Instant;
use tower_geo::{BoxError, GeoService, LocationMode, StorageService};

const MIB: u64 = 1 << 20;
const SMALL: u64 = 4096;
const ROUNDS: usize = 41;
const REQUESTS: u32 = 100;

/// Bodies here are made of pieces of 64 KiB, each allocated, as those of a file would be.
const CHUNK: usize = 1 << 16;

fn stream(mut left: u64) -> Body {
    let chunks = std::iter::from_fn(move || {
        let take = usize::try_from(left).unwrap_or(usize::MAX).min(CHUNK);
        left -= u64::try_from(take).unwrap_or(left);
        (take > 0).then(|| Ok::<_, BoxError>(Bytes::from(vec![0x5a; take])))
    });
    Body::from_stream(futures::stream::iter(chunks))
}

/// Reads a body to its end and says how long it was.
async fn drain(
    body: impl http_body::Body<Data = Bytes, Error: Into<BoxError>>,
) -> Result<u64, BoxError> {
    let mut pieces = std::pin::pin!(body.into_data_stream());
    let mut length = 0;
    while let Some(piece) = pieces.next().await {
        length += u64::try_from(piece.map_err(Into::into)?.len())?;
    }
    Ok(length)
}

async fn listen(app: Router) -> Result<SocketAddr, BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let addr = listener.local_addr()?;
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(addr)
}

// The server: `/contoso/photos/LENGTH`.

async fn answer(request: Request) -> Response {
    let length = request.uri().path().rsplit('/').next();
    let length = length.and_then(|length| length.parse().ok()).unwrap_or(0);
    let is_get = request.method() == Method::GET;
    if drain(request.into_body()).await.is_err() {
        return StatusCode::BAD_REQUEST.into_response();
    }
    if is_get {
        ([(CONTENT_LENGTH, length)], stream(length)).into_response()
    } else {
        StatusCode::CREATED.into_response()
    }
}

// The proxies.

type Forwarding = (Client<HttpConnector, Body>, SocketAddr);

/// As the program has it: what is small leaves at once.
fn client<B>() -> Client<HttpConnector, B>
where
    B: http_body::Body<Data: Send> + Send,
{
    let mut http = HttpConnector::new();
    http.set_nodelay(true);
    Client::builder(TokioExecutor::new()).build(http)
}

/// What any proxy has to do at least.
async fn forward(State((client, server)): State<Forwarding>, mut request: Request) -> Response {
    let uri = Uri::builder()
        .scheme("http")
        .authority(server.to_string())
        .path_and_query(request.uri().path());
    let Ok(uri) = uri.build() else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    *request.uri_mut() = uri;
    request.headers_mut().remove(http::header::HOST);
    match client.request(request).await {
        Ok(response) => response.map(Body::new),
        Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    }
}

/// Serves until the parent ends it.
async fn proxy(kind: &str, server: SocketAddr) -> Result<(), BoxError> {
    let app = if kind == "forwards" {
        Router::new()
            .fallback(forward)
            .with_state((client(), server))
    } else {
        let service = GeoService::azure_storage(format!("http://{server}/contoso"))
            .storage_service(StorageService::Blob)
            .secondary(format!("http://{server}/contoso-secondary"))
            .location_mode(LocationMode::PrimaryThenSecondary)
            .build()?;
        router(&service, 1 << 20, client())
    };
    println!("{}", listen(app).await?);
    std::future::pending().await
}

async fn start(kind: &str, server: SocketAddr) -> Result<(Child, SocketAddr), BoxError> {
    let mut proxy = Command::new(std::env::current_exe()?)
        .args([kind, &server.to_string()])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let output = proxy.stdout.take().ok_or("the proxy has no output")?;
    let line = BufReader::new(output).lines().next_line().await?;
    let addr = line.ok_or("the proxy has not started")?.parse()?;
    Ok((proxy, addr))
}

/// The peak of resident memory of a process, in MiB.
fn peak(process: Option<u32>) -> u64 {
    let path = format!("/proc/{}/status", process.unwrap_or_default());
    let status = std::fs::read_to_string(path).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
    kib.unwrap_or(0_u64) / 1024
}

// The client.

struct Asking {
    client: Client<HttpConnector, Body>,
    addr: SocketAddr,
}

impl Asking {
    fn new(addr: SocketAddr) -> Self {
        // One of its own for each, so that each has its own connection.
        Self {
            client: client(),
            addr,
        }
    }

    async fn get(&self, length: u64) -> Result<(), BoxError> {
        let uri = format!("http://{}/contoso/photos/{length}", self.addr).parse()?;
        let response = self.client.get(uri).await?;
        let got = drain(response.into_body()).await?;
        if got == length {
            Ok(())
        } else {
            Err(format!("{got} bytes came, not {length}").into())
        }
    }

    async fn put(&self, length: u64) -> Result<(), BoxError> {
        let request = Request::put(format!("http://{}/contoso/photos/0", self.addr))
            .header("x-ms-blob-type", "BlockBlob")
            .header(CONTENT_LENGTH, length)
            .body(stream(length))?;
        let response = self.client.request(request).await?;
        if response.status() == StatusCode::CREATED {
            Ok(())
        } else {
            Err(format!("the upload ended with {}", response.status()).into())
        }
    }

    /// One request after the other; the time for each.
    async fn time(&self, is_get: bool) -> Result<Duration, BoxError> {
        let started = Instant::now();
        for _ in 0..REQUESTS {
            if is_get {
                self.get(SMALL).await?;
            } else {
                self.put(SMALL).await?;
            }
        }
        Ok(started.elapsed() / REQUESTS)
    }
}

async fn compare(ways: &[Asking; 3], is_get: bool) -> Result<[Duration; 3], BoxError> {
    let mut rounds: [Vec<Duration>; 3] = Default::default();
    for _ in 0..ROUNDS {
        for (way, times) in ways.iter().zip(&mut rounds) {
            times.push(way.time(is_get).await?);
        }
    }
    Ok(rounds.map(|mut times| {
        times.sort_unstable();
        times.get(ROUNDS / 4).copied().unwrap_or_default()
    }))
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [kind, server] = args.as_slice() {
        return proxy(kind, server.parse()?).await;
    }
    let mib: u64 = match args.first() {
        Some(mib) => mib.parse()?,
        // Unoptimised it is only a test of the example.
        None if cfg!(debug_assertions) => 32,
        None => 1024,
    };
    let server = listen(Router::new().fallback(answer)).await?;
    let (_forwards, forwarding) = start("forwards", server).await?;
    let (ours, proxied) = start("ours", server).await?;

    println!("{SMALL} bytes, one request at a time, for each\n");
    println!(
        "{:<6}{:>12}{:>22}{:>12}",
        "", "direct", "proxy that forwards", "geo-proxy"
    );
    let ways = [server, forwarding, proxied].map(Asking::new);
    for (name, is_get) in [("get", true), ("put", false)] {
        let [direct, forwards, geo] = compare(&ways, is_get).await?;
        println!("{name:<6}{direct:>12.1?}{forwards:>22.1?}{geo:>12.1?}");
    }

    let before = peak(ours.id());
    println!("\n{mib} MiB through geo-proxy, whose peak was {before} MiB before\n");
    let size = mib.max(1) * MIB;
    for (name, is_get) in [("up", false), ("down", true)] {
        let started = Instant::now();
        if is_get {
            ways[2].get(size).await?;
        } else {
            ways[2].put(size).await?;
        }
        println!(
            "{name:<6}{:>10.1?}, peak {} MiB",
            started.elapsed(),
            peak(ours.id())
        );
    }
    Ok(())
}
