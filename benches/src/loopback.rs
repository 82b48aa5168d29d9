//! hyper on loopback, with the stack and without, in one process.
//!
//! A server on a thread of its own; the client and its callers on another. Rounds of *bare*, *stack*,
//! *floor* and a second *bare* follow each other in changing order, and each round gives three ratios:
//! with the stack against without, with the floor against without, and bare against bare. The last
//! says how much of the others is chance.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

use tower_geo::{GeoService, LocationMode, StorageService};
use tower_layer::Layer;
use tower_service::Service;

use crate::measure::allocations::uncounted;
use crate::measure::clock::{thread_cpu, wall};
use crate::measure::spread::{at, round};
use crate::measure::{Measured, Spread};
use crate::row::{FLOOR, OURS, Row, Work};
use crate::rows::layered;

type Sent = Request<Full<Bytes>>;
type Bare = Client<HttpConnector, Full<Bytes>>;

/// The goal asks for 21 at least.
const ROUNDS: usize = 41;
/// Connections are made, and code is paged in, before anything counts.
const WARM_UP: usize = 2;
const CALLERS: usize = 8;
const CALLS: usize = 3_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

/// One of the rows that are measured together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Side {
    pub(crate) protocol: Protocol,
    pub(crate) under: Under,
}

/// What the client is under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Under {
    Nothing,
    Stack,
    Floor,
}

impl Under {
    const ALL: [Self; 3] = [Self::Nothing, Self::Stack, Self::Floor];
}

/// What only requests over a connection have.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// Requests in a second: the median of the rounds.
    pub(crate) throughput: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    /// CPU time of the client's thread, per request.
    pub(crate) cpu_us: f64,
    /// That of this row against that of a bare client, pair by pair.
    pub(crate) cpu_ratio: Spread,
    pub(crate) pairs: u32,
}

pub(crate) const ROWS: &[Row] = &[
    row(
        "hyper/bare",
        "hyper",
        "GET over HTTP/1.1, 8 callers; `ratio` is bare against bare",
        Protocol::Http1,
        Under::Nothing,
    ),
    row(
        "hyper/stack",
        OURS,
        "the same with all four layers; `ratio` is throughput against hyper/bare",
        Protocol::Http1,
        Under::Stack,
    ),
    row(
        "hyper/stack",
        FLOOR,
        "the same with the floor of stack/request; `ratio` is throughput against hyper/bare",
        Protocol::Http1,
        Under::Floor,
    ),
    row(
        "hyper/bare-http2",
        "hyper",
        "GET over one connection of HTTP/2, 8 callers; `ratio` is bare against bare",
        Protocol::Http2,
        Under::Nothing,
    ),
    row(
        "hyper/stack-http2",
        OURS,
        "the same with all four layers; `ratio` is throughput against hyper/bare-http2",
        Protocol::Http2,
        Under::Stack,
    ),
    row(
        "hyper/stack-http2",
        FLOOR,
        "the same with the floor of stack/request; `ratio` is throughput against hyper/bare-http2",
        Protocol::Http2,
        Under::Floor,
    ),
];

const fn row(
    name: &'static str,
    who: &'static str,
    about: &'static str,
    protocol: Protocol,
    under: Under,
) -> Row {
    Row {
        name,
        who,
        about,
        work: Work::Loopback(Side { protocol, under }),
    }
}

/// The rows of a protocol: bare, with the stack, with the floor.
pub(crate) fn measure(protocol: Protocol) -> Result<[Measured; 3], String> {
    // Threads of their own: the one that calls may be in a runtime already.
    std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut result = Err(String::new());
            uncounted(|| result = on_this_thread(protocol));
            result
        });
        let broken = |_| Err("the client has panicked".to_owned());
        client.join().unwrap_or_else(broken)
    })
}

fn on_this_thread(protocol: Protocol) -> Result<[Measured; 3], String> {
    let server = Server::start(protocol)?;
    let runtime = runtime()?;
    let (a, b) = (client(protocol), client(protocol));
    let primary = format!("http://{}/contoso", server.address);
    let layer = service(&primary)?.layer().clone_bodies();
    let stack = layer.layer(client(protocol));
    let secondary = format!("{primary}-secondary");
    let (_alive, floor) = layered(client(protocol), &primary, &secondary);
    let request = request(&primary)?;
    runtime.block_on(async {
        let mut rounds = Rounds::default();
        for number in 0..WARM_UP + ROUNDS {
            let mut round = Round::default();
            // In changing order, so that a drift favours nobody.
            for place in 0..4 {
                match (number + place) % 4 {
                    0 => round.bare = batch(&a, &request).await?,
                    1 => round.stack = batch(&stack, &request).await?,
                    2 => round.floor = batch(&floor, &request).await?,
                    _ => round.again = batch(&b, &request).await?,
                }
            }
            if number >= WARM_UP {
                rounds.add(round);
            }
        }
        Ok(rounds.found(protocol))
    })
}

/// One batch of each.
#[derive(Default)]
struct Round {
    bare: Batch,
    stack: Batch,
    floor: Batch,
    again: Batch,
}

/// What all rounds have given, in the order of [`Under::ALL`].
#[derive(Default)]
struct Rounds([Figured; 3]);

#[derive(Default)]
struct Figured {
    throughput: Vec<f64>,
    latencies: Vec<f64>,
    cpu: Vec<f64>,
    ratio: Vec<f64>,
    cpu_ratio: Vec<f64>,
}

impl Figured {
    fn add(&mut self, batch: Batch) {
        self.throughput.push(batch.throughput);
        self.cpu.push(batch.cpu_us);
        self.latencies.extend(batch.latencies_us);
    }

    fn compare(&mut self, batch: &Batch, bare: &Batch) {
        self.ratio.push(batch.throughput / bare.throughput);
        self.cpu_ratio.push(batch.cpu_us / bare.cpu_us);
    }

    fn found(mut self, row: &Row) -> Measured {
        self.latencies.sort_by(f64::total_cmp);
        let pairs = u32::try_from(self.ratio.len()).unwrap_or(u32::MAX);
        let spread = |samples, digits| Spread::of(samples).unwrap_or_default().rounded(digits);
        let percentile = |share| round(at(&self.latencies, share).unwrap_or_default(), 1);
        Measured {
            row: row.name.to_owned(),
            who: row.who.to_owned(),
            about: row.about.to_owned(),
            ratio: Some(spread(self.ratio, 3)),
            loopback: Some(Figures {
                throughput: spread(self.throughput, 0).median,
                p50_us: percentile(0.5),
                p99_us: percentile(0.99),
                cpu_us: spread(self.cpu, 2).median,
                cpu_ratio: spread(self.cpu_ratio, 3),
                pairs,
            }),
            ..Measured::default()
        }
    }
}

impl Rounds {
    fn add(&mut self, round: Round) {
        let [bare, stack, floor] = &mut self.0;
        bare.compare(&round.again, &round.bare);
        stack.compare(&round.stack, &round.bare);
        floor.compare(&round.floor, &round.bare);
        bare.add(round.bare);
        bare.add(round.again);
        stack.add(round.stack);
        floor.add(round.floor);
    }

    fn found(self, protocol: Protocol) -> [Measured; 3] {
        let mut figured = self.0.into_iter();
        Under::ALL.map(|under| {
            let side = Side { protocol, under };
            let is_side = |row: &&Row| matches!(row.work, Work::Loopback(is) if is == side);
            match (figured.next(), ROWS.iter().find(is_side)) {
                (Some(figured), Some(row)) => figured.found(row),
                _ => Measured::default(),
            }
        })
    }
}

#[derive(Default)]
struct Batch {
    throughput: f64,
    cpu_us: f64,
    latencies_us: Vec<f64>,
}

/// So many calls by so many callers at once.
async fn batch<S, B>(service: &S, request: &Sent) -> Result<Batch, String>
where
    S: Service<Sent, Response = Response<B>> + Clone,
    S::Error: std::fmt::Debug,
    B: http_body::Body,
    B::Error: std::fmt::Debug,
{
    let (began, before) = (wall(), thread_cpu());
    let callers = (0..CALLERS).map(|_| caller(service.clone(), request, CALLS / CALLERS));
    let done = futures::future::join_all(callers).await;
    let (cpu, took) = (thread_cpu().saturating_sub(before), wall() - began);
    let mut latencies_us = Vec::with_capacity(CALLS);
    for latencies in done {
        latencies_us.extend(latencies?);
    }
    let calls = latencies_us.len() as f64;
    Ok(Batch {
        throughput: calls / took.as_secs_f64(),
        cpu_us: cpu.as_secs_f64() * 1e6 / calls,
        latencies_us,
    })
}

async fn caller<S, B>(mut service: S, request: &Sent, calls: usize) -> Result<Vec<f64>, String>
where
    S: Service<Sent, Response = Response<B>>,
    S::Error: std::fmt::Debug,
    B: http_body::Body,
    B::Error: std::fmt::Debug,
{
    let mut latencies = Vec::with_capacity(calls);
    for _ in 0..calls {
        let began = wall();
        poll_fn(|cx| service.poll_ready(cx)).await.map_err(said)?;
        let answer = service.call(request.clone()).await.map_err(said)?;
        if !answer.status().is_success() {
            return Err(format!("loopback answers {}", answer.status()));
        }
        let mut body = std::pin::pin!(answer.into_body());
        while let Some(frame) = body.frame().await {
            frame.map_err(said)?;
        }
        latencies.push(micros(wall() - began));
    }
    Ok(latencies)
}

fn said(error: impl std::fmt::Debug) -> String {
    format!("a call over loopback fails: {error:?}")
}

fn micros(span: Duration) -> f64 {
    span.as_secs_f64() * 1e6
}

fn client(protocol: Protocol) -> Bare {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    Client::builder(TokioExecutor::new())
        .http2_only(protocol == Protocol::Http2)
        .build(connector)
}

fn service(primary: &str) -> Result<GeoService, String> {
    GeoService::azure_storage(primary)
        .storage_service(StorageService::Blob)
        .location_mode(LocationMode::PrimaryThenSecondary)
        .build()
        .map_err(|error| error.to_string())
}

fn request(primary: &str) -> Result<Sent, String> {
    let mut request = crate::rows::subject::with_headers()();
    *request.body_mut() = Full::default();
    *request.uri_mut() = format!("{primary}/photos/1")
        .parse()
        .map_err(|error: http::uri::InvalidUri| error.to_string())?;
    Ok(request)
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("no runtime: {error}"))
}

/// Answers until it is dropped.
struct Server {
    address: SocketAddr,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    fn start(protocol: Protocol) -> Result<Self, String> {
        let runtime = runtime()?;
        let listener = runtime
            .block_on(TcpListener::bind("127.0.0.1:0"))
            .map_err(|error| format!("no port on loopback: {error}"))?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let thread = std::thread::spawn(move || {
            uncounted(|| {
                let accept = std::pin::pin!(accept(listener, protocol));
                runtime.block_on(futures::future::select(accept, stopped));
            });
        });
        Ok(Self {
            address,
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A server that has panicked has failed the calls already.
            _ = thread.join();
        }
    }
}

async fn accept(listener: TcpListener, protocol: Protocol) {
    while let Ok((stream, _)) = listener.accept().await {
        // Without it an answer may wait for an acknowledgement.
        _ = stream.set_nodelay(true);
        let io = TokioIo::new(stream);
        tokio::spawn(async move {
            // A connection that breaks off has failed its calls, which says enough.
            _ = match protocol {
                Protocol::Http1 => {
                    let service = service_fn(answer);
                    http1::Builder::new().serve_connection(io, service).await
                }
                Protocol::Http2 => {
                    let builder = http2::Builder::new(TokioExecutor::new());
                    builder.serve_connection(io, service_fn(answer)).await
                }
            };
        });
    }
}

async fn answer(_: Request<hyper::body::Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    const BODY: [u8; 1024] = [b'a'; 1024];
    let body = Full::new(Bytes::from_static(&BODY));
    let mut answer = Response::new(body);
    let etag = http::HeaderValue::from_static("\"0x8DB2\"");
    answer.headers_mut().insert(http::header::ETAG, etag);
    Ok(answer)
}
