//! An account of Cosmos DB and its regions, as a client: the judge of what the layers send.

use std::fmt;
use std::future::{Future, pending};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::Full;
use tokio::time::Instant;
use tower::Service;
use tower_geo::{BackgroundSend, Probe};

use crate::support::Body;

pub(crate) const GLOBAL: &str = "acct.documents.azure.com";
pub(crate) const EAST: &str = "acct-eastus.documents.azure.com";
pub(crate) const WEST: &str = "acct-westus.documents.azure.com";
pub(crate) const CENTRAL: &str = "acct-centralus.documents.azure.com";

/// What a host does with a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Act {
    /// Status and sub-status, after so many milliseconds.
    Answer(u16, u32, u64),
    /// As a host whose name is gone: no connection.
    Refuse,
    Reset,
    /// Nothing, ever.
    Hang,
}

pub(crate) const OK: Act = Act::Answer(200, 0, 5);

/// One request that left.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) host: String,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    /// Since the world began.
    pub(crate) at: Duration,
    /// For an account read.
    pub(crate) purpose: Option<&'static str>,
    pub(crate) asks_for_a_new_connection: bool,
}

type Rule = Box<dyn FnMut(&Seen) -> Option<Act> + Send>;

struct State {
    readable: Vec<&'static str>,
    writable: Vec<&'static str>,
    multi_write: bool,
    /// Said instead of all that.
    document: Option<&'static str>,
    rule: Rule,
    sends: Vec<Seen>,
}

/// A clone is the same world.
#[derive(Clone)]
pub(crate) struct World {
    state: Arc<Mutex<State>>,
    began: Instant,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("World")
    }
}

fn host_of(region: &str) -> String {
    let label: String = region.to_lowercase().split_whitespace().collect();
    format!("acct-{label}.documents.azure.com")
}

impl World {
    pub(crate) fn new(
        readable: &[&'static str],
        writable: &[&'static str],
        multi_write: bool,
    ) -> Self {
        Self {
            state: Arc::new(Mutex::new(State {
                readable: readable.to_vec(),
                writable: writable.to_vec(),
                multi_write,
                document: None,
                rule: Box::new(|_| None),
                sends: Vec::new(),
            })),
            began: Instant::now(),
        }
    }

    /// Three regions, of which the first takes the writes.
    pub(crate) fn single() -> Self {
        Self::new(&["East US", "West US", "Central US"], &["East US"], false)
    }

    /// Three regions that all take writes.
    pub(crate) fn multi() -> Self {
        let all = ["East US", "West US", "Central US"];
        Self::new(&all, &all, true)
    }

    /// What hosts do where it is not to answer 200, or with the account document.
    pub(crate) fn rule(&self, rule: impl FnMut(&Seen) -> Option<Act> + Send + 'static) {
        self.state.lock().unwrap().rule = Box::new(rule);
    }

    /// What the account says from now on.
    pub(crate) fn becomes(
        &self,
        readable: &[&'static str],
        writable: &[&'static str],
        multi_write: bool,
    ) {
        let mut state = self.state.lock().unwrap();
        state.readable = readable.to_vec();
        state.writable = writable.to_vec();
        state.multi_write = multi_write;
    }

    /// What the account says from now on, word by word.
    pub(crate) fn document_is(&self, document: &'static str) {
        self.state.lock().unwrap().document = Some(document);
    }

    pub(crate) fn sends(&self) -> Vec<Seen> {
        self.state.lock().unwrap().sends.clone()
    }

    /// The hosts of all that was sent but account reads.
    pub(crate) fn hosts(&self) -> Vec<String> {
        let sends = self.sends();
        let data = sends.into_iter().filter(|seen| seen.purpose.is_none());
        data.map(|seen| seen.host).collect()
    }

    /// The hosts that the account was asked at.
    pub(crate) fn reads(&self) -> Vec<String> {
        let sends = self.sends();
        let reads = sends.into_iter().filter(|seen| seen.purpose.is_some());
        reads.map(|seen| seen.host).collect()
    }

    pub(crate) fn forget(&self) {
        self.state.lock().unwrap().sends.clear();
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    pub(crate) fn client(&self) -> Client {
        Client(self.clone())
    }
}

impl State {
    fn document(&self) -> String {
        if let Some(document) = self.document {
            return document.to_owned();
        }
        let list = |regions: &[&str]| {
            let all = regions.iter().map(|region| {
                let host = host_of(region);
                format!(r#"{{"name":"{region}","databaseAccountEndpoint":"https://{host}:443/"}}"#)
            });
            all.collect::<Vec<_>>().join(",")
        };
        format!(
            r#"{{"readableLocations":[{}],"writableLocations":[{}],"enableMultipleWriteLocations":{}}}"#,
            list(&self.readable),
            list(&self.writable),
            self.multi_write
        )
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Client(World);

impl Service<Request<Body>> for Client {
    type Response = Response<Full<Bytes>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<Full<Bytes>>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let authority = request.uri().authority().unwrap();
        let seen = Seen {
            host: authority.as_str().to_owned(),
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            headers: request.headers().clone(),
            at: self.0.elapsed(),
            purpose: BackgroundSend::of(request.extensions()).map(BackgroundSend::purpose),
            asks_for_a_new_connection: Probe::of(request.extensions()).is_some(),
        };
        let mut state = self.0.state.lock().unwrap();
        state.sends.push(seen.clone());
        let act = (state.rule)(&seen).unwrap_or(OK);
        let is_account_read = seen.path == "/";
        let body = if is_account_read && matches!(act, Act::Answer(200, ..)) {
            state.document()
        } else {
            String::new()
        };
        Box::pin(async move {
            let (status, sub, after) = match act {
                Act::Answer(status, sub, after) => (status, sub, after),
                Act::Refuse => return Err(io::ErrorKind::ConnectionRefused.into()),
                Act::Reset => return Err(io::ErrorKind::ConnectionReset.into()),
                Act::Hang => return pending().await,
            };
            tokio::time::sleep(Duration::from_millis(after)).await;
            let mut response = Response::builder().status(status);
            if sub != 0 {
                response = response.header("x-ms-substatus", sub);
            }
            Ok(response.body(Full::from(body)).unwrap())
        })
    }
}
