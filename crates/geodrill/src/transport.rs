//! The wire: a service that answers by the script, in virtual time, and writes down every send.

use std::convert::Infallible;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http::header::HOST;
use http::{HeaderMap, HeaderName, Method, Request, Response, Uri};
use http_body::{Body, Frame, SizeHint};
use tower_geo::fault::Sent;
use tower_service::Service;

use crate::format::{Answer, BodyEnd, Fault, What};
use crate::judge::Judge;
use crate::stage::{Reply, SendKind, SendRecord, Sends, Stage, Ticket};
use crate::store::Asked;

/// Which region of a service a request goes to; told by the layers, which know the endpoints.
pub(crate) type RegionOf = Arc<dyn Fn(&Uri) -> Option<usize> + Send + Sync>;

/// What the layers say about a send through its request: why it is made, whether it is a probe,
/// and what for where it belongs to no operation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    pub(crate) kind: Option<SendKind>,
    pub(crate) probe: bool,
    /// Given up because another send had won, not because its time was over.
    pub(crate) outrun: bool,
    pub(crate) purpose: Option<&'static str>,
    /// It is asked for no data, so it is no traffic of its region.
    pub(crate) is_no_traffic: bool,
}

/// Reads [`Told`] off a request.
pub(crate) type Teller = fn(&http::Extensions) -> Told;

/// The innermost service of one stack.
#[derive(Clone)]
pub(crate) struct Transport {
    stage: Arc<Stage>,
    service: usize,
    region_of: RegionOf,
    teller: Teller,
    judge: Judge,
    home: Option<Home>,
}

/// The store that holds what a service writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Home {
    /// Which of the drill's stores.
    pub(crate) store: usize,
    /// The region that takes the writes; all others are the copy.
    pub(crate) writer: usize,
    /// Whether the first segment of a path is the account.
    pub(crate) path_style: bool,
}

/// A send to a store.
struct Visit {
    store: usize,
    asked: Asked,
    /// Whether the answer is the store's own, not a rule's.
    answers: bool,
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport")
            .field("service", &self.service)
            .finish_non_exhaustive()
    }
}

impl Transport {
    pub(crate) fn new(
        stage: Arc<Stage>,
        service: usize,
        region_of: RegionOf,
        teller: Teller,
        judge: Judge,
        home: Option<Home>,
    ) -> Self {
        Self {
            stage,
            service,
            region_of,
            teller,
            judge,
            home,
        }
    }

    /// What a store has to do for a send, where the region that it goes to has one.
    fn visit<B>(
        &self,
        request: &Request<B>,
        region: Option<usize>,
        answers: bool,
    ) -> Option<Visit> {
        let (home, region) = (self.home?, region?);
        let path = request.uri().path();
        let below_account = path.strip_prefix('/').and_then(|path| path.find('/'));
        let path = match below_account {
            Some(at) if home.path_style => path.get(at + 1..).unwrap_or("/"),
            None if home.path_style => "/",
            _ => path,
        };
        Some(Visit {
            store: home.store,
            asked: Asked {
                of_copy: region != home.writer,
                method: request.method().clone(),
                path: path.to_owned(),
                query: request.uri().query().unwrap_or("").to_owned(),
                headers: request.headers().clone(),
            },
            answers,
        })
    }

    /// The answer where no rule has one: a host is as slow as the drill says, and the account
    /// document is part of what it has.
    fn answer_of_host(&self, method: &Method, sent: &Sent<'_>, at: Duration) -> Arc<Answer> {
        let of_host = self.stage.script().answer_of_host(sent.host());
        let mut accounts = self.stage.accounts();
        match accounts.answer(sent.host(), method, sent.path(), at) {
            Some(document) => Arc::new(Answer {
                latency: of_host.latency,
                ..document
            }),
            None => of_host,
        }
    }

    /// Writes the send down and takes its answer from the script.
    fn begin<B>(&self, request: &Request<B>) -> (Arc<Answer>, Option<Visit>, Line) {
        let uri = request.uri();
        let at_ms = self.stage.now_ms();
        let at = Duration::from_millis(at_ms);
        let sent = Sent::new(at, request.method(), uri, request.headers());
        let of_rule = self.stage.script().answer_of_rule(&sent);
        let told = (self.teller)(request.extensions());
        let region = (self.region_of)(uri);
        let visit = match &of_rule {
            None => self.visit(request, region, true),
            Some(answer) if answer.applied => self.visit(request, region, false),
            Some(_) => None,
        };
        let answer = of_rule.unwrap_or_else(|| self.answer_of_host(request.method(), &sent, at));
        let traffic_of = region.filter(|_| !told.is_no_traffic);
        self.stage.sent(self.service, traffic_of);
        let sends = match request.extensions().get::<Ticket>() {
            Some(ticket) => Arc::clone(&ticket.0),
            None => {
                let sends = Arc::new(Sends::default());
                let purpose = told.purpose.unwrap_or("unknown");
                let background = (self.service, purpose, Arc::clone(&sends));
                self.stage.seen().background.push(background);
                sends
            }
        };
        let index = {
            let mut ongoing = sends.lock();
            let headers = shown(&ongoing.show, request, sent.host());
            let keep = self.stage.keeps();
            ongoing.list.push(SendRecord {
                at_ms,
                kind: told.kind,
                probe: told.probe,
                region,
                path: if keep {
                    sent.path().to_owned()
                } else {
                    String::new()
                },
                host: if keep {
                    sent.host().to_owned()
                } else {
                    String::new()
                },
                reply: None,
                took_ms: 0,
                headers,
            });
            ongoing.list.len() - 1
        };
        let line = Line {
            stage: Arc::clone(&self.stage),
            service: self.service,
            traffic_of,
            at_ms,
            sends,
            index,
            judge: self.judge,
            reply: None,
        };
        (answer, visit, line)
    }
}

/// The request headers that are to be reported. A client fills in `Host` where it is missing.
fn shown<B>(show: &[HeaderName], request: &Request<B>, host: &str) -> Vec<(HeaderName, String)> {
    show.iter()
        .filter_map(|name| {
            let value = match request.headers().get(name) {
                Some(value) => String::from_utf8_lossy(value.as_bytes()).into_owned(),
                None if *name == HOST => host.to_owned(),
                None => return None,
            };
            Some((name.clone(), value))
        })
        .collect()
}

impl<B> Service<Request<B>> for Transport
where
    B: Body + Send + 'static,
    B::Data: Send,
{
    type Response = Response<ResponseBody>;
    type Error = WireFault;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, WireFault>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), WireFault>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (answer, visit, line) = self.begin(&request);
        Box::pin(exchange(request, answer, visit, line))
    }
}

async fn exchange<B: Body>(
    request: Request<B>,
    mut answer: Arc<Answer>,
    visit: Option<Visit>,
    mut line: Line,
) -> Result<Response<ResponseBody>, WireFault> {
    // No connection, so no byte of the body is taken: it can be sent again whatever it is (T6).
    let connected = !matches!(
        answer.what,
        What::Fault(Fault::Connect | Fault::Dns | Fault::Tls)
    );
    let taken = if connected {
        read(request.into_body(), visit.is_some()).await
    } else {
        Some(Bytes::new())
    };
    let body_broke = taken.is_none();
    if let (Some(visit), Some(body)) = (visit, taken) {
        let at = Duration::from_millis(line.stage.now_ms());
        let mut stores = line.stage.stores();
        let stored = stores.get_mut(visit.store);
        let stored = stored.map(|store| store.serve(&visit.asked, body, at));
        if let Some(stored) = stored.filter(|_| visit.answers) {
            let latency = answer.latency;
            answer = Arc::new(Answer { latency, ..stored });
        }
    }
    if !answer.latency.is_zero() {
        tokio::time::sleep(answer.latency).await;
    }
    match &answer.what {
        What::Fault(Fault::Hang) => std::future::pending().await,
        What::Fault(fault) => {
            line.settle(Reply::Fault(*fault));
            Err(WireFault(Cause::Fault(*fault)))
        }
        // A client resets the connection when the body it sends breaks off.
        What::Response { .. } if body_broke => {
            line.settle(Reply::Fault(Fault::Reset));
            Err(WireFault(Cause::Fault(Fault::Reset)))
        }
        What::Response {
            status,
            headers,
            body,
            end,
        } => {
            let mut map = HeaderMap::with_capacity(headers.len());
            for (name, value) in headers {
                map.append(name.clone(), value.clone());
            }
            line.settle(Reply::Status {
                code: status.as_u16(),
                good: (line.judge)(*status, &map),
            });
            let mut response = Response::new(ResponseBody {
                data: Some(body.clone()).filter(|body| !body.is_empty()),
                left: body.len(),
                end: *end,
                ended: false,
                line,
            });
            *response.status_mut() = *status;
            *response.headers_mut() = map;
            Ok(response)
        }
    }
}

/// Reads a request body to its end, and keeps it where somebody wants it; `None` if it broke off.
async fn read<B: Body>(body: B, keep: bool) -> Option<Bytes> {
    let mut body = pin!(body);
    let mut kept = BytesMut::new();
    loop {
        match poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            None => return Some(kept.freeze()),
            Some(Ok(frame)) => {
                if let (true, Ok(data)) = (keep, frame.into_data()) {
                    kept.put(data);
                }
            }
            Some(Err(_)) => return None,
        }
    }
}

/// One send on its way; when it is dropped before its end, that is its end.
struct Line {
    stage: Arc<Stage>,
    service: usize,
    /// The region whose traffic it is.
    traffic_of: Option<usize>,
    at_ms: u64,
    sends: Arc<Sends>,
    index: usize,
    judge: Judge,
    reply: Option<Reply>,
}

impl Line {
    fn settle(&mut self, reply: Reply) {
        let before = self.reply.replace(reply);
        if let Some(record) = self.sends.lock().list.get_mut(self.index) {
            // The time is that of the head: what a body did later is told by the reply.
            if before.is_none() {
                record.took_ms = self.stage.now_ms().saturating_sub(self.at_ms);
            }
            record.reply = Some(reply);
        }
        self.stage
            .replied(self.service, self.traffic_of, self.at_ms, reply, before);
    }

    fn caller_leaves(&self) -> bool {
        self.sends.lock().caller_leaves
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.reply.is_none() {
            // Only two can drop a send: its caller, or a time-out of the layers.
            self.settle(if self.caller_leaves() {
                Reply::Cancelled
            } else {
                Reply::Timeout
            });
        }
    }
}

/// A response body that may break off, or stall.
pub(crate) struct ResponseBody {
    data: Option<Bytes>,
    /// Bytes that a whole body would still give.
    left: usize,
    end: BodyEnd,
    ended: bool,
    line: Line,
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody")
            .field("left", &self.left)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = WireFault;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, WireFault>>> {
        let this = self.get_mut();
        if let Some(mut data) = this.data.take() {
            if let BodyEnd::CutAfter(count) | BodyEnd::StallAfter(count) = this.end {
                data.truncate(count);
            }
            if !data.is_empty() {
                this.left -= data.len();
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
        }
        match this.end {
            BodyEnd::Whole => Poll::Ready(None),
            BodyEnd::CutAfter(_) if this.ended => Poll::Ready(None),
            BodyEnd::CutAfter(_) => {
                this.ended = true;
                this.line.settle(Reply::Cut);
                Poll::Ready(Some(Err(WireFault(Cause::Cut))))
            }
            // Nobody wakes the reader: only a time-out, or its own end, ends this.
            BodyEnd::StallAfter(_) => {
                this.ended = true;
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_none() && (self.end == BodyEnd::Whole || self.ended && !self.stalls())
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}

impl ResponseBody {
    const fn stalls(&self) -> bool {
        matches!(self.end, BodyEnd::StallAfter(_))
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        if self.ended && self.stalls() {
            self.line.settle(if self.line.caller_leaves() {
                Reply::Cancelled
            } else {
                Reply::Stall
            });
        }
    }
}

/// A send, or a body, that failed.
#[derive(Debug)]
pub(crate) struct WireFault(Cause);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Fault(Fault),
    Cut,
}

impl WireFault {
    /// The fault of a send; `None` for a body that broke off.
    pub(crate) const fn fault(&self) -> Option<Fault> {
        match self.0 {
            Cause::Fault(fault) => Some(fault),
            Cause::Cut => None,
        }
    }
}

impl fmt::Display for WireFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Cause::Fault(Fault::Connect) => "connection refused",
            Cause::Fault(Fault::Dns) => "host name not found",
            Cause::Fault(Fault::Tls) => "TLS handshake failed",
            Cause::Fault(Fault::Reset) => "connection reset",
            Cause::Fault(Fault::Hang) => "no answer",
            Cause::Cut => "the body broke off",
        })
    }
}

impl std::error::Error for WireFault {}

/// A request body: whole ones can be sent again, streams only once.
#[derive(Debug)]
pub(crate) struct RequestBody {
    data: Bytes,
    streaming: bool,
}

impl RequestBody {
    pub(crate) const fn new(data: Bytes, streaming: bool) -> Self {
        Self { data, streaming }
    }

    /// The same body again, unless it is a stream.
    pub(crate) fn try_clone(&self) -> Option<Self> {
        (!self.streaming).then(|| Self {
            data: self.data.clone(),
            streaming: false,
        })
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        // A stream comes in pieces, so that a cap can fall between them.
        const PIECE: usize = 1_024;
        if self.data.is_empty() {
            return Poll::Ready(None);
        }
        let piece = if self.streaming {
            self.data.len().min(PIECE)
        } else {
            self.data.len()
        };
        Poll::Ready(Some(Ok(Frame::data(self.data.split_to(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        // The length of a stream is not known before its end is read.
        self.data.is_empty() && !self.streaming
    }

    fn size_hint(&self) -> SizeHint {
        if self.streaming {
            SizeHint::default()
        } else {
            SizeHint::with_exact(self.data.len() as u64)
        }
    }
}

#[cfg(test)]
mod tests;
