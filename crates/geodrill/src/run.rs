//! Plays a drill: every request at its instant, against the real layers, in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{Request, Uri};
use http_body::Body as _;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout_at};
use tower_geo_policy::cosmos::RequestKind;

use crate::account::Accounts;
use crate::clock::{self, Idle};
use crate::format::{self, Act, Drill, Expect, ServiceKind};
use crate::judge::Judge;
use crate::problem::Problem;
use crate::script::Script;
use crate::stack::{self, Head, Info, Services};
use crate::stage::{OperationRecord, Outcome, Reply, Seen, Sends, Stage, Ticket};
use crate::store::Store;
use crate::transport::RequestBody;

/// A call that has no end by itself (a service that never answers, and no time-out) is dropped
/// after this long.
const PATIENCE: Duration = Duration::from_secs(24 * 3_600);

/// How a drill is to be played.
pub(crate) struct Options<'a> {
    /// Keep every operation, not only counters.
    pub(crate) keep: bool,
    /// Told now and then how many operations have begun.
    pub(crate) progress: &'a (dyn Fn(u64) + Sync),
}

/// What came of a drill.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) name: String,
    pub(crate) seed: u64,
    pub(crate) services: Vec<Info>,
    pub(crate) requests: Vec<format::Request>,
    pub(crate) expect: Vec<Expect>,
    pub(crate) seen: Seen,
    /// The instant of the last thing that happened.
    pub(crate) end_ms: u64,
}

impl Report {
    /// The regions of a service that are worth a place: those of a Cosmos account, and what else
    /// something was sent to.
    pub(crate) fn shown(&self, service: usize) -> Vec<usize> {
        let Some(info) = self.services.get(service) else {
            return Vec::new();
        };
        let sends = self.seen.sends.get(service);
        let sent = |region: &usize| {
            sends
                .and_then(|sends| sends.get(*region))
                .is_some_and(|n| *n > 0)
        };
        (0..info.regions.len())
            .filter(|region| *region < info.listed || sent(region))
            .collect()
    }

    /// When the account of a service was asked, and whether it answered with a document.
    pub(crate) fn account_reads(&self, service: usize) -> Vec<(u64, bool)> {
        let background = self.seen.background.iter();
        let mut reads: Vec<(u64, bool)> = background
            .filter(|(of, purpose, _)| *of == service && *purpose == stack::ACCOUNT_READ)
            .flat_map(|(.., sends)| sends.lock().list.clone())
            .map(|send| {
                (
                    send.at_ms,
                    matches!(send.reply, Some(Reply::Status { code: 200, .. })),
                )
            })
            .collect();
        reads.sort_unstable();
        reads
    }

    /// The name in one line, as people read it.
    pub(crate) fn title(&self) -> String {
        let words = self.name.split(char::is_control);
        let title = words
            .map(str::trim)
            .filter(|words| !words.is_empty())
            .collect::<Vec<_>>()
            .join(" ");
        if title.is_empty() {
            "a drill without a name".to_owned()
        } else {
            title
        }
    }
}

/// Plays a drill to its end.
pub(crate) fn play(mut drill: Drill, options: &Options<'_>) -> Result<Report, Problem> {
    let (runtime, idle) =
        clock::runtime().map_err(|error| Problem::at("", format!("no runtime: {error}")))?;
    let script = Script::new(&mut drill);
    let stores = drill.stores.values();
    let stores = stores.map(|lag| Store::new(*lag, drill.start)).collect();
    let accounts = std::mem::take(&mut drill.accounts);
    let accounts = Accounts::new(accounts, |host| scheme_of(&drill, host));
    let unasked = unasked(&drill);
    let (stage, services, end_ms) = runtime.block_on(async {
        let stage = Arc::new(Stage::new(
            script,
            accounts,
            stores,
            drill.services.len(),
            options.keep,
        ));
        unasked.into_iter().for_each(|warning| stage.warn(warning));
        let services = Arc::new(Services::build(&drill, &stage)?);
        let driver = Driver::new(&mut drill, Arc::clone(&stage), Arc::clone(&services), idle);
        let end_ms = driver.spawn(options.progress).await?;
        Ok::<_, Problem>((stage, services, end_ms))
    })?;
    // Whatever still waits (background work of the layers) ends here, and says so in its record.
    drop(runtime);
    for (index, host) in stage.script().unmatched() {
        let warning = format!("rules[{index}] (host {host}) never matched anything");
        stage.seen().warnings.push(warning);
    }
    for host in stage.script().unused_hosts() {
        let warning = format!("hosts.{host}: nothing was ever sent there");
        stage.seen().warnings.push(warning);
    }
    for (host, store) in drill.stores.keys().zip(stage.stores().iter()) {
        if !store.is_used() {
            let warning = format!("stores.{host}: nothing was ever asked of it");
            stage.seen().warnings.push(warning);
        }
    }
    for account in stage.accounts().unused() {
        let warning = format!("accounts.{account}: nobody read it");
        stage.seen().warnings.push(warning);
    }
    for warning in services.puzzles(&drill) {
        stage.warn(warning);
    }
    let services = services.known();
    let seen = stage.take_seen();
    Ok(Report {
        name: drill.name,
        seed: drill.seed,
        services,
        requests: drill.requests,
        expect: drill.expect,
        seen,
        end_ms,
    })
}

/// The scheme in which a service of the drill speaks to a host.
fn scheme_of(drill: &Drill, host: &str) -> Option<String> {
    let mut endpoints = drill
        .services
        .iter()
        .filter_map(|service| match &service.kind {
            ServiceKind::Cosmos { endpoint, .. } => Some(endpoint),
            _ => None,
        });
    let used = endpoints.find(|endpoint| endpoint.authority() == host)?;
    Some(used.scheme().to_owned())
}

/// Settings that wait for something that nothing in the drill asks for.
fn unasked(drill: &Drill) -> Vec<String> {
    let services = drill.services.iter();
    services
        .filter(|service| service.max_staleness.is_some() && service.last_sync.is_none())
        .map(|service| {
            format!(
                "services.{}.max_staleness: without last_sync the age of the copy is never known, \
                 so every answer of it is too old",
                service.name
            )
        })
        .collect()
}

/// What a request is made from, each time it is due.
struct Template {
    index: usize,
    service: usize,
    parts: http::request::Parts,
    body: bytes::Bytes,
    streaming: bool,
    options: format::RequestOptions,
    /// Only of a service whose reads and writes may go to different regions.
    is_write: bool,
    show: Arc<[http::HeaderName]>,
    cancel_after: Option<Duration>,
}

/// When which request is due next: the instant, its place in the file, the repetition.
type Due = Reverse<(u64, usize, u64)>;

struct Driver {
    stage: Arc<Stage>,
    services: Arc<Services>,
    idle: Idle,
    templates: Vec<Arc<Template>>,
    /// The interval and the end of a series, by request.
    series: Vec<Option<(u64, u64)>>,
    due: BinaryHeap<Due>,
    /// In order of their instants; those of one instant in file order.
    acts: std::vec::IntoIter<Act>,
    open: Arc<Open>,
}

/// Operations that have not ended.
#[derive(Debug, Default)]
struct Open {
    count: AtomicU64,
    none_left: Notify,
}

impl Driver {
    fn new(drill: &mut Drill, stage: Arc<Stage>, services: Arc<Services>, idle: Idle) -> Self {
        let templates = drill
            .requests
            .iter()
            .enumerate()
            .map(|(index, request)| Arc::new(template(index, request, services.info())))
            .collect();
        let mut acts = std::mem::take(&mut drill.operator);
        acts.sort_by_key(|act| act.at);
        Self {
            stage,
            services,
            idle,
            templates,
            series: drill
                .requests
                .iter()
                .map(|request| request.every.map(|(every, until)| (every.0, until.0)))
                .collect(),
            due: drill
                .requests
                .iter()
                .enumerate()
                .map(|(index, request)| Reverse((request.at.0, index, 0)))
                .collect(),
            acts: acts.into_iter(),
            open: Arc::default(),
        }
    }

    /// Runs on the runtime as a task, because only tasks are told of idleness; gives the last
    /// instant.
    async fn spawn(mut self, progress: &(dyn Fn(u64) + Sync)) -> Result<u64, Problem> {
        let (told, mut begun) = watch::channel(0_u64);
        let driver = tokio::spawn(async move {
            self.drive(&told).await;
            self.stage.now_ms()
        });
        while begun.changed().await.is_ok() {
            progress(*begun.borrow_and_update());
        }
        driver
            .await
            .map_err(|error| Problem::at("", format!("the drill broke off: {error}")))
    }

    /// At one instant: operator, timers, requests in file order.
    async fn drive(&mut self, told: &watch::Sender<u64>) {
        let mut begun = 0_u64;
        while let Some(at_ms) = self.next() {
            self.act(at_ms).await;
            // Nothing to wait for where only an operator had something to do.
            if self.due.peek().is_none_or(|Reverse(due)| due.0 != at_ms) {
                continue;
            }
            sleep_until(self.instant(at_ms)).await;
            self.idle.reached().await;
            while let Some(Reverse((at, index, repetition))) = self.due.peek().copied() {
                if at != at_ms {
                    break;
                }
                self.due.pop();
                self.begin(index, repetition, at);
                begun += 1;
                if begun.is_multiple_of(8_192) {
                    told.send_replace(begun);
                }
            }
        }
        loop {
            // Armed before the count is read, so that no end is missed.
            let none_left = self.open.none_left.notified();
            if self.open.count.load(Ordering::Relaxed) == 0 {
                break;
            }
            none_left.await;
        }
    }

    /// The next instant at which an operator or a caller does something.
    fn next(&self) -> Option<u64> {
        let act = self.acts.as_slice().first().map(|act| act.at.0);
        let due = self.due.peek().map(|Reverse(due)| due.0);
        match (act, due) {
            (Some(act), Some(due)) => Some(act.min(due)),
            (act, due) => act.or(due),
        }
    }

    fn instant(&self, at_ms: u64) -> Instant {
        self.stage.start() + Duration::from_millis(at_ms)
    }

    /// What operators do at this instant, before any timer of it fires.
    async fn act(&mut self, at_ms: u64) {
        let here = |act: Option<&Act>| act.is_some_and(|act| act.at.0 == at_ms);
        if !here(self.acts.as_slice().first()) {
            return;
        }
        if let Some(before) = at_ms.checked_sub(1)
            && self.stage.now_ms() < at_ms
        {
            sleep_until(self.instant(before)).await;
            self.idle.reached().await;
            clock::step();
        }
        while here(self.acts.as_slice().first()) {
            if let Some(act) = self.acts.next()
                && let Err(message) = self.services.act(&act)
            {
                let name = &self.services.info()[act.service].name;
                let warning = format!("operator at {} on {name}: {message}", act.at);
                self.stage.warn(warning);
            }
        }
    }

    /// Starts an operation, and sees to it that the next one of its series is due.
    fn begin(&mut self, index: usize, repetition: u64, at_ms: u64) {
        let template = Arc::clone(&self.templates[index]);
        let series = self.series[index];
        if let Some((every, until)) = series {
            let next = at_ms + every;
            if next < until {
                self.due.push(Reverse((next, index, repetition + 1)));
            }
        }
        let place = self.stage.begun();
        self.open.count.fetch_add(1, Ordering::Relaxed);
        let stage = Arc::clone(&self.stage);
        let services = Arc::clone(&self.services);
        let open = Arc::clone(&self.open);
        tokio::spawn(async move {
            let service = template.service;
            let record = operation(&stage, &services, &template, series.map(|_| repetition)).await;
            stage.ended(place, service, template.is_write, record);
            if open.count.fetch_sub(1, Ordering::Relaxed) == 1 {
                open.none_left.notify_one();
            }
        });
    }
}

/// The parts of a request that are the same each time.
fn template(index: usize, request: &format::Request, services: &[Info]) -> Template {
    let uri = request.absolute.clone().unwrap_or_else(|| {
        let mut parts = services[request.service].base.clone().into_parts();
        parts.path_and_query = request.path.parse().ok();
        // Both halves were checked when the file was read.
        Uri::from_parts(parts).unwrap_or_default()
    });
    let (mut parts, ()) = Request::new(()).into_parts();
    parts.method = request.method.clone();
    parts.uri = uri;
    for (name, value) in &request.headers {
        parts.headers.append(name.clone(), value.clone());
    }
    let info = &services[request.service];
    let kind = RequestKind::of(&parts.method, &parts.uri, &parts.headers);
    Template {
        is_write: info.is_cosmos && kind.intent().is_write(),
        index,
        service: request.service,
        parts,
        body: request.body.clone(),
        streaming: request.streaming,
        options: request.options.clone(),
        show: request.show.clone().into(),
        cancel_after: request.cancel_after,
    }
}

/// One call from its start to the end of the answer's body.
async fn operation(
    stage: &Stage,
    services: &Services,
    template: &Template,
    repetition: Option<u64>,
) -> OperationRecord {
    let at = Instant::now();
    let sends = Arc::new(Sends::new(Arc::clone(&template.show)));
    let mut parts = template.parts.clone();
    parts.extensions.insert(Ticket(Arc::clone(&sends)));
    let body = RequestBody::new(template.body.clone(), template.streaming);
    let request = Request::from_parts(parts, body);
    let mut call = services.call(template.service, request, &template.options);

    let leaves = at + template.cancel_after.unwrap_or(PATIENCE);
    let head = timeout_at(leaves, &mut call).await;
    let mut done_ms = stage.now_ms();
    if head.is_err() {
        sends.lock().caller_leaves = true;
        if template.cancel_after.is_none() {
            stage.warn(format!(
                "requests[{}] had no end after {} hours, and was dropped",
                template.index,
                PATIENCE.as_secs() / 3_600
            ));
        }
    }
    drop(call);
    let mut freshness = None;
    let outcome = match head {
        Err(_) => Outcome::Cancelled,
        Ok(Err(refusal)) => {
            sends.lock().tell(&refusal.trail);
            Outcome::Error {
                kind: refusal.kind,
                message: refusal.message,
            }
        }
        Ok(Ok(head)) => {
            sends.lock().tell(&head.trail);
            freshness = head.freshness;
            let info = &services.info()[template.service];
            let answer = read(stage, head, info.judge, &sends, leaves).await;
            if matches!(answer, Outcome::Cancelled) {
                done_ms = stage.now_ms();
            }
            answer
        }
    };
    OperationRecord {
        request: template.index,
        repetition,
        at_ms: stage.ms(at),
        done_ms,
        sends,
        outcome,
        freshness,
    }
}

/// Reads an answer to the end of its body, or until the caller leaves.
async fn read(stage: &Stage, head: Head, judge: Judge, sends: &Sends, leaves: Instant) -> Outcome {
    let status = head.response.status().as_u16();
    let good = judge(head.response.status(), head.response.headers());
    // Of the head: a resume may go on with the body from elsewhere.
    let region = head.region.or_else(|| sends.lock().last_region());
    let mut body = head.response.into_body();
    let mut text = Vec::new();
    let mut body_error = None;
    loop {
        // Most bodies are empty, and over before anything is asked of the clock.
        if body.is_end_stream() {
            break;
        }
        match timeout_at(leaves, poll_fn(|cx| body.as_mut().poll_frame(cx))).await {
            Err(_) => {
                sends.lock().caller_leaves = true;
                return Outcome::Cancelled;
            }
            Ok(None) => break,
            Ok(Some(Ok(frame))) => {
                if stage.keeps() {
                    text.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
                }
            }
            Ok(Some(Err(_))) => {
                // Dropping the body settles how it ended, unless an error of it already did.
                drop(body);
                body_error = Some(sends.lock().how_the_body_ended());
                break;
            }
        }
    }
    Outcome::Answer {
        status,
        good,
        region,
        body: String::from_utf8_lossy(&text).into_owned(),
        body_error,
        after_ambiguous: head.after_ambiguous,
    }
}
