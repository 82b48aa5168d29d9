//! A front before a real server: the network of one region, breakable at run time.
//!
//! Without further settings it forwards bytes and knows nothing of HTTP. It can end TLS, so that
//! production host names work against the emulator; and it can refuse writes as the secondary of a
//! real account does, which the emulator does not (it takes them).
//!
//! ```
//! use tower_geo_testkit::{front::{Front, FrontState, Refuses}, tls::TestCa};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! # let emulator = std::net::SocketAddr::from(([127, 0, 0, 1], 10_001));
//! let ca = TestCa::new()?;
//! let secondary = Front::builder(emulator)
//!     .tls(&ca, ["contoso-secondary.queue.core.windows.net"])?
//!     .refuse_writes(Refuses::QueueWrites)
//!     .start()?;
//! secondary.set(FrontState::Freeze).await?;
//! // …
//! assert_eq!(secondary.refused(), 0);
//! # Ok(())
//! # }
//! ```

use crate::{
    line::{Line, LineState, Wire},
    lock,
    tls::TestCa,
};
use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, Response, StatusCode, Uri, Version,
    header::{CONNECTION, CONTENT_TYPE, TRANSFER_ENCODING},
};
use http_body_util::{Either, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use std::{
    collections::HashMap,
    error::Error,
    fmt, io,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig};

/// What a front does with connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrontState {
    /// Passes everything on.
    Forward,
    /// Does not listen: connecting is refused; present connections are reset.
    Refuse,
    /// Accepts connections and resets them; present ones too.
    Reset,
    /// Accepts connections; not a byte comes or goes, on present ones neither.
    Freeze,
}

impl FrontState {
    const fn line(self) -> LineState {
        match self {
            Self::Forward => LineState::Open,
            Self::Refuse => LineState::Refuse,
            Self::Reset => LineState::Reset,
            Self::Freeze => LineState::Freeze,
        }
    }
}

/// Which requests a front answers by itself with 403 `InsufficientAccountPermissions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refuses {
    /// None; all are counted.
    Nothing,
    /// All but GET, HEAD and OPTIONS: the secondary of blob and table storage.
    Writes,
    /// Those, and `GET /QUEUE/messages` without `peekonly=true`, which dequeues (I2): the secondary of
    /// queue storage.
    QueueWrites,
    /// All: an account whose secondary may not be read (R6).
    Everything,
}

impl Refuses {
    fn refuses(self, method: &Method, uri: &Uri) -> bool {
        let read = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        match self {
            Self::Nothing => false,
            Self::Writes => !read,
            Self::QueueWrites => !read || (*method == Method::GET && dequeues(uri)),
            Self::Everything => true,
        }
    }
}

fn dequeues(uri: &Uri) -> bool {
    let peeks = uri.query().unwrap_or_default().split('&').any(|pair| {
        pair.split_once('=').is_some_and(|(name, value)| {
            name.eq_ignore_ascii_case("peekonly") && value.eq_ignore_ascii_case("true")
        })
    });
    uri.path().trim_end_matches('/').ends_with("/messages") && !peeks
}

/// Sets up a [`Front`]; see [`Front::builder`].
#[derive(Debug)]
pub struct FrontBuilder {
    upstream: SocketAddr,
    tls: Option<Arc<ServerConfig>>,
    refuses: Option<Refuses>,
}

impl FrontBuilder {
    /// Ends TLS here, with a certificate of `ca` for `names`; bytes go on in the clear.
    ///
    /// # Errors
    ///
    /// When a name is not one that a certificate can hold.
    pub fn tls<N: Into<String>>(
        mut self,
        ca: &TestCa,
        names: impl IntoIterator<Item = N>,
    ) -> io::Result<Self> {
        self.tls = Some(ca.server_config(names)?);
        Ok(self)
    }

    /// Reads HTTP/1.1, counts requests, and answers those of `refuses` by itself.
    #[must_use]
    pub fn refuse_writes(mut self, refuses: Refuses) -> Self {
        self.refuses = Some(refuses);
        self
    }

    /// Starts forwarding.
    ///
    /// # Errors
    ///
    /// When loopback has no free port.
    pub fn start(self) -> io::Result<Front> {
        let shared = Arc::new(Shared {
            upstream: Mutex::new(self.upstream),
            acceptor: self.tls.map(TlsAcceptor::from),
            refuses: Mutex::new(self.refuses),
            requests: Mutex::new(HashMap::new()),
            refused: AtomicU64::new(0),
            client: Client::builder(TokioExecutor::new())
                // Never resent in secret, never on a connection that broke while it was idle.
                .pool_max_idle_per_host(0)
                .retry_canceled_requests(false)
                .build_http(),
        });
        let line = {
            let shared = shared.clone();
            Line::open(move |wire| {
                let shared = shared.clone();
                async move {
                    // How a connection ends is the client's to see; the front has nobody to tell.
                    let _ = shared.serve(wire).await;
                }
            })?
        };
        Ok(Front { line, shared })
    }
}

/// A running front; see the [module documentation](self). Dropped, it ends.
#[derive(Debug)]
pub struct Front {
    line: Line,
    shared: Arc<Shared>,
}

impl Front {
    /// A front that will forward to `upstream`.
    #[must_use]
    pub const fn builder(upstream: SocketAddr) -> FrontBuilder {
        FrontBuilder {
            upstream,
            tls: None,
            refuses: None,
        }
    }

    /// Where the front listens.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.line.addr()
    }

    /// Changes what happens to connections; it holds for new and present ones when this returns.
    ///
    /// # Errors
    ///
    /// When the port cannot be listened on again.
    pub async fn set(&self, state: FrontState) -> io::Result<()> {
        self.line.set(state.line()).await
    }

    /// Forwards new connections (with HTTP: new requests) to another server, as after a failover of
    /// the account (R12).
    pub fn set_upstream(&self, upstream: SocketAddr) {
        *lock(&self.shared.upstream) = upstream;
    }

    /// Changes what is refused; for a front that reads HTTP.
    ///
    /// Without [`FrontBuilder::refuse_writes`] it takes effect for new connections only.
    pub fn set_refuses(&self, refuses: Refuses) {
        *lock(&self.shared.refuses) = Some(refuses);
    }

    /// How many connections were accepted, those that were reset or frozen included.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.line.connections()
    }

    /// How many requests with this method arrived; 0 for a front that does not read HTTP.
    #[must_use]
    pub fn requests_by(&self, method: &Method) -> u64 {
        lock(&self.shared.requests)
            .get(method)
            .copied()
            .unwrap_or_default()
    }

    /// How many requests arrived; 0 for a front that does not read HTTP.
    #[must_use]
    pub fn requests(&self) -> u64 {
        lock(&self.shared.requests).values().sum()
    }

    /// How many requests were refused: writes that reached a region that takes none (R1).
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.shared.refused.load(Ordering::Relaxed)
    }
}

struct Shared {
    upstream: Mutex<SocketAddr>,
    acceptor: Option<TlsAcceptor>,
    refuses: Mutex<Option<Refuses>>,
    requests: Mutex<HashMap<Method, u64>>,
    refused: AtomicU64,
    client: Client<HttpConnector, Incoming>,
}

type BoxError = Box<dyn Error + Send + Sync>;

impl Shared {
    async fn serve(self: Arc<Self>, wire: Wire) -> Result<(), BoxError> {
        match self.acceptor.clone() {
            Some(acceptor) => {
                let stream = acceptor.accept(wire).await?;
                self.forward(stream).await
            }
            None => self.forward(wire).await,
        }
    }

    async fn forward<I>(self: Arc<Self>, mut stream: I) -> Result<(), BoxError>
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        if lock(&self.refuses).is_none() {
            let upstream = *lock(&self.upstream);
            let mut upstream = TcpStream::connect(upstream).await?;
            tokio::io::copy_bidirectional(&mut stream, &mut upstream).await?;
            return Ok(());
        }
        let service = service_fn(move |request| self.clone().answer(request));
        http1::Builder::new()
            // The server's spelling of header names goes through, as it does through bytes.
            .preserve_header_case(true)
            .serve_connection(TokioIo::new(stream), service)
            .await?;
        Ok(())
    }

    async fn answer(
        self: Arc<Self>,
        mut request: Request<Incoming>,
    ) -> Result<Response<Either<Incoming, Full<Bytes>>>, BoxError> {
        *lock(&self.requests)
            .entry(request.method().clone())
            .or_default() += 1;
        let refuses = *lock(&self.refuses);
        if refuses.is_some_and(|refuses| refuses.refuses(request.method(), request.uri())) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Ok(refusal());
        }

        let upstream = *lock(&self.upstream);
        let target = request
            .uri()
            .path_and_query()
            .map_or("/", |target| target.as_str());
        let uri = Uri::builder()
            .scheme("http")
            .authority(upstream.to_string())
            .path_and_query(target)
            .build()?;
        *request.uri_mut() = uri;
        *request.version_mut() = Version::HTTP_11;
        // These are about the connection that ends here. `Host` goes through: it names the account.
        request.headers_mut().remove(CONNECTION);
        request.headers_mut().remove(TRANSFER_ENCODING);
        // An error ends the connection without an answer, as it would without HTTP.
        let mut response = self.client.request(request).await?;
        response.headers_mut().remove(CONNECTION);
        response.headers_mut().remove(TRANSFER_ENCODING);
        Ok(response.map(Either::Left))
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("upstream", &self.upstream)
            .field("tls", &self.acceptor.is_some())
            .field("refuses", &self.refuses)
            .finish_non_exhaustive()
    }
}

/// What a real secondary says to a write.
fn refusal<B>() -> Response<Either<B, Full<Bytes>>> {
    const CODE: &str = "InsufficientAccountPermissions";
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>{CODE}</Code>\
         <Message>Write operations are not allowed.</Message></Error>"
    );
    let mut response = Response::new(Either::Right(Full::from(text)));
    *response.status_mut() = StatusCode::FORBIDDEN;
    let headers = response.headers_mut();
    headers.insert("x-ms-error-code", HeaderValue::from_static(CODE));
    headers.insert(
        "x-ms-request-id",
        HeaderValue::from_static("00000000-0000-4000-8000-000000000403"),
    );
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    response
}
