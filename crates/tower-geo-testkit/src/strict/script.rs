use crate::lock;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use std::{
    collections::{HashMap, VecDeque},
    error::Error,
    fmt,
    future::{Future, pending},
    io,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::Instant;
use tower_service::Service;

/// A transport that answers by a script and keeps the minutes: the judge of what a stack sends.
///
/// For each host and method there is a list of replies, used up one by one; the last one is repeated.
/// Replies for [`any_method`](Self::any_method) serve the methods that have no list of their own. A
/// request that the script does not know fails with an `io::Error` of kind `Unsupported`.
///
/// Time is tokio's, so tests pause it.
///
/// ```
/// use http::{Method, Request};
/// use tower_geo_testkit::strict::{Reply, Script};
/// use tower_service::Service;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let script = Script::new()
///     .on("contoso.blob.core.windows.net", Method::GET, [Reply::status(503), Reply::ok("meow")])
///     .any_method("contoso-secondary.blob.core.windows.net", [Reply::refused()]);
/// let mut service = script.service();
///
/// let get = || Request::get("https://contoso.blob.core.windows.net/photos/cat").body(String::new()).unwrap();
/// assert_eq!(service.call(get()).await?.status(), 503);
/// assert_eq!(service.call(get()).await?.status(), 200);
/// assert_eq!(script.sends().len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Script(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    replies: HashMap<(String, Option<Method>), VecDeque<Reply>>,
    sends: Vec<Sent>,
    last_id: u64,
}

/// One request that left for the wire.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Sent {
    /// The host of the URI, and the port if it names one.
    pub authority: String,
    /// The method.
    pub method: Method,
    /// Path and query.
    pub target: String,
    /// All headers, `Host` too if the layers have set it.
    pub headers: HeaderMap,
    /// When it was sent, by tokio's clock.
    pub at: Instant,
    /// The body, once it was taken to its end.
    pub body: Option<Bytes>,
    id: u64,
}

/// What becomes of one send.
#[derive(Clone, Debug)]
pub struct Reply {
    outcome: Outcome,
    delay: Duration,
}

#[derive(Clone, Debug)]
enum Outcome {
    Answer {
        status: StatusCode,
        headers: HeaderMap,
        body: ScriptBody,
    },
    Error(io::ErrorKind),
    Hang,
}

impl Reply {
    /// An answer with this status and an empty body. A number that is no status becomes 500.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self {
            outcome: Outcome::Answer {
                status: StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
                headers: HeaderMap::new(),
                body: ScriptBody::new(Bytes::new()),
            },
            delay: Duration::ZERO,
        }
    }

    /// 200 with this body.
    #[must_use]
    pub fn ok(body: impl Into<Bytes>) -> Self {
        Self::status(200).body(body)
    }

    /// No connection: `io::ErrorKind::ConnectionRefused`, and the body is not touched.
    #[must_use]
    pub const fn refused() -> Self {
        Self::error(io::ErrorKind::ConnectionRefused)
    }

    /// Sent, then `io::ErrorKind::ConnectionReset`.
    #[must_use]
    pub const fn reset() -> Self {
        Self::error(io::ErrorKind::ConnectionReset)
    }

    /// Any other fault. Kinds other than `ConnectionRefused` come after the body was taken.
    #[must_use]
    pub const fn error(kind: io::ErrorKind) -> Self {
        Self {
            outcome: Outcome::Error(kind),
            delay: Duration::ZERO,
        }
    }

    /// Sent, then nothing, ever.
    #[must_use]
    pub const fn hang() -> Self {
        Self {
            outcome: Outcome::Hang,
            delay: Duration::ZERO,
        }
    }

    /// Adds a header to an answer. A name or value that HTTP does not allow is left out.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let (Outcome::Answer { headers, .. }, Ok(name), Ok(value)) = (
            &mut self.outcome,
            name.parse::<HeaderName>(),
            value.parse::<HeaderValue>(),
        ) {
            headers.append(name, value);
        }
        self
    }

    /// Gives an answer this body.
    #[must_use]
    pub fn body(mut self, content: impl Into<Bytes>) -> Self {
        if let Outcome::Answer { body, .. } = &mut self.outcome {
            *body = ScriptBody::new(content.into());
        }
        self
    }

    /// Lets the body of an answer break off after `bytes`, with `io::ErrorKind::UnexpectedEof`.
    #[must_use]
    pub fn cut_body_after(self, bytes: usize) -> Self {
        self.end_body(bytes, End::Cut)
    }

    /// Lets the body of an answer stop coming after `bytes`.
    #[must_use]
    pub fn stall_body_after(self, bytes: usize) -> Self {
        self.end_body(bytes, End::Stall)
    }

    /// Waits before the outcome.
    #[must_use]
    pub const fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    fn end_body(mut self, bytes: usize, end: End) -> Self {
        if let Outcome::Answer { body, .. } = &mut self.outcome {
            body.rest.truncate(bytes);
            body.end = end;
        }
        self
    }
}

impl Script {
    /// A script that knows no request.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends replies for requests with this method to this host (with its port, if URIs name one).
    #[must_use]
    pub fn on(
        self,
        authority: &str,
        method: Method,
        replies: impl IntoIterator<Item = Reply>,
    ) -> Self {
        self.push(authority, Some(method), replies);
        self
    }

    /// Appends replies for requests to this host whose method has no list of its own.
    #[must_use]
    pub fn any_method(self, authority: &str, replies: impl IntoIterator<Item = Reply>) -> Self {
        self.push(authority, None, replies);
        self
    }

    /// From now on this host replies so, to every method: an outage, or its end.
    pub fn replace(&self, authority: &str, replies: impl IntoIterator<Item = Reply>) {
        lock(&self.0)
            .replies
            .retain(|(host, _), _| !host.eq_ignore_ascii_case(authority));
        self.push(authority, None, replies);
    }

    /// Every send so far, in order.
    #[must_use]
    pub fn sends(&self) -> Vec<Sent> {
        lock(&self.0).sends.clone()
    }

    /// The hosts of the sends so far, in order.
    #[must_use]
    pub fn hosts(&self) -> Vec<String> {
        let state = lock(&self.0);
        state
            .sends
            .iter()
            .map(|send| send.authority.clone())
            .collect()
    }

    /// Forgets the sends so far.
    pub fn clear_sends(&self) {
        // Sends that still take their body find their place gone, and leave it at that.
        lock(&self.0).sends.clear();
    }

    /// A service that replies by this script. All services of a script share its lists.
    #[must_use]
    pub fn service(&self) -> ScriptService {
        ScriptService(self.clone())
    }

    fn push(
        &self,
        authority: &str,
        method: Option<Method>,
        replies: impl IntoIterator<Item = Reply>,
    ) {
        lock(&self.0)
            .replies
            .entry((authority.to_ascii_lowercase(), method))
            .or_default()
            .extend(replies);
    }

    /// Notes a send; returns its number and the reply to it.
    fn take(&self, mut send: Sent) -> (u64, Option<Reply>) {
        let mut key = (
            send.authority.to_ascii_lowercase(),
            Some(send.method.clone()),
        );
        let mut state = lock(&self.0);
        state.last_id += 1;
        let id = state.last_id;
        send.id = id;
        state.sends.push(send);
        if !state.replies.contains_key(&key) {
            key.1 = None;
        }
        let reply = state.replies.get_mut(&key).and_then(|list| {
            if list.len() > 1 {
                list.pop_front()
            } else {
                list.front().cloned()
            }
        });
        (id, reply)
    }

    fn note_body(&self, id: u64, body: Bytes) {
        let mut state = lock(&self.0);
        if let Some(send) = state.sends.iter_mut().find(|send| send.id == id) {
            send.body = Some(body);
        }
    }
}

/// The service of a [`Script`]. Always ready; put [`PanicsUnready`](super::PanicsUnready) around it to
/// check readiness too.
#[derive(Clone, Debug)]
pub struct ScriptService(Script);

impl<B> Service<Request<B>> for ScriptService
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Response = Response<ScriptBody>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (head, body) = request.into_parts();
        let authority = head
            .uri
            .authority()
            .map_or("", |authority| authority.as_str());
        let target = head
            .uri
            .path_and_query()
            .map_or("/", |target| target.as_str());
        let unknown = format!("the script has no reply to {} {authority}", head.method);
        let (id, reply) = self.0.take(Sent {
            authority: authority.to_owned(),
            method: head.method,
            target: target.to_owned(),
            headers: head.headers,
            at: Instant::now(),
            body: None,
            id: 0,
        });
        let script = self.0.clone();
        Box::pin(async move {
            let Some(reply) = reply else {
                return Err(io::Error::new(io::ErrorKind::Unsupported, unknown));
            };
            let connects = !matches!(
                reply.outcome,
                Outcome::Error(io::ErrorKind::ConnectionRefused)
            );
            if connects {
                let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
                script.note_body(id, body);
            }
            if !reply.delay.is_zero() {
                tokio::time::sleep(reply.delay).await;
            }
            match reply.outcome {
                Outcome::Answer {
                    status,
                    headers,
                    body,
                } => {
                    let mut response = Response::new(body);
                    *response.status_mut() = status;
                    *response.headers_mut() = headers;
                    Ok(response)
                }
                Outcome::Error(kind) => Err(kind.into()),
                Outcome::Hang => pending().await,
            }
        })
    }
}

/// The body of a scripted answer.
#[derive(Clone)]
pub struct ScriptBody {
    rest: Bytes,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Whole,
    Cut,
    Stall,
}

impl ScriptBody {
    /// A body that comes whole, in one piece.
    #[must_use]
    pub fn new(content: impl Into<Bytes>) -> Self {
        Self {
            rest: content.into(),
            end: End::Whole,
        }
    }
}

impl Body for ScriptBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if !self.rest.is_empty() {
            let data = std::mem::take(&mut self.rest);
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        match self.end {
            End::Whole => Poll::Ready(None),
            End::Cut => Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into()))),
            // Nothing will ever wake the caller but its own time-out.
            End::Stall => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.end == End::Whole
    }

    fn size_hint(&self) -> SizeHint {
        match self.end {
            End::Whole => SizeHint::with_exact(self.rest.len() as u64),
            End::Cut | End::Stall => SizeHint::default(),
        }
    }
}

impl fmt::Debug for ScriptBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptBody")
            .field("bytes", &self.rest.len())
            .field("end", &self.end)
            .finish()
    }
}
