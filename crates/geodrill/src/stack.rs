//! The layers of `tower-geo`, built from a drill: the only place here that knows their API.

use std::error::Error as _;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body::Body;
use http_body_util::{Either, Empty};
use tower_geo::body::{BodyPolicy, Buffering, ReplayBody, Upload};
use tower_geo::circuit_breaker::CircuitBreaker;
use tower_geo::geo_redirect::GeoRedirect;
use tower_geo::policy::azure_storage::AccountEndpoint;
use tower_geo::read_only_gate::ReadOnlyGate;
use tower_geo::resume::{Resume, Resuming};
use tower_geo::{
    BackgroundSend, BackgroundTask, BackoffMode, BreakerSettings, CircuitBreakerLayer,
    ClassifyFault, ConfigError, Ending, EventKind, GateMode, GeoRedirectLayer, GeoService,
    GeoStack, GroupHandle, LastSyncSettings, LocationMode, MonitorSettings, OpenJitter, RateRule,
    ReadOnlyGateLayer, RegionRef, Replay, ResumeLayer, RetrySettings, Served, SlowRule,
    StorageService, Trail,
};
use tower_layer::Layer;
use tower_service::Service;

use crate::format::{
    self, Act, Breaker, Deed, Drill, Fault, Jitter, Mode, RequestOptions, Retry, RetryMode,
    Secondary, ServiceKind,
};
use crate::problem::Problem;
use crate::random::{Purpose, Stream};
use crate::stage::{self, EventRecord, SendKind, Stage};
use crate::transport::{Home, RequestBody, Told, Transport, WireFault};

/// A service as it is shown: its name, and its regions in order.
#[derive(Clone, Debug)]
pub(crate) struct Info {
    pub(crate) name: String,
    pub(crate) regions: Vec<String>,
    /// The writer's base, to which paths of requests are relative.
    pub(crate) base: Uri,
}

/// The body of an answer, whatever the layers make of it.
pub(crate) type Answered = Pin<Box<dyn Body<Data = Bytes, Error = tower_geo::Error> + Send>>;

/// An answer that was handed over.
pub(crate) struct Head {
    pub(crate) response: Response<Answered>,
    /// The region whose answer this is, where the layers say so (R10).
    pub(crate) region: Option<usize>,
    /// What the trail says of each send, where there is one (E1).
    pub(crate) trail: Vec<Told>,
    pub(crate) after_ambiguous: bool,
    pub(crate) freshness: Option<&'static str>,
}

/// An error that was handed over.
pub(crate) struct Refusal {
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    pub(crate) trail: Vec<Told>,
}

/// Every service of a drill, with its stack.
pub(crate) struct Services {
    info: Vec<Info>,
    services: Vec<GeoService>,
    stacks: Vec<Stack>,
    /// Monitors and polls, for as long as the drill is played.
    _background: Vec<BackgroundTask>,
}

/// The layers over the wire.
#[derive(Clone)]
enum Stack {
    /// All four.
    Full(GeoStack<Transport, DrillBodies>),
    /// All four, and the rest of a body that breaks off is fetched (R9).
    Resumed(Resume<GeoStack<Transport, DrillBodies>, WholeBodies>),
    /// Without retrying: the redirect falls over by itself, and waits for nothing.
    Once(ReadOnlyGate<GeoRedirect<CircuitBreaker<Transport>, DrillBodies>>),
}

impl Services {
    /// Builds the services; needs the runtime, whose clock they read.
    pub(crate) fn build(drill: &Drill, stage: &Arc<Stage>) -> Result<Self, Problem> {
        let groups = groups(&drill.services);
        let mut built = Self {
            info: Vec::new(),
            services: Vec::new(),
            stacks: Vec::new(),
            _background: Vec::new(),
        };
        for (index, service) in drill.services.iter().enumerate() {
            let group = groups.iter().find(|(members, _)| members.contains(&index));
            let group = group.map(|(_, group)| group.clone());
            let geo = geo_service(drill, index, group, stage)
                .map_err(|error| config_problem(service, &error))?;
            built.info.push(info(&service.name, &geo)?);
            let transport = Transport::new(
                Arc::clone(stage),
                index,
                {
                    let geo = geo.clone();
                    Arc::new(move |uri| geo.regions().region_of(uri).map(|region| region.index()))
                },
                told_on,
                home(drill, &geo),
            );
            let tasks = spawn_background(service, &geo, &transport)?;
            built._background.extend(tasks);
            let bodies = DrillBodies::new(service.retry.as_ref());
            built.stacks.push(match &service.retry {
                None => {
                    let inner = CircuitBreakerLayer::new(geo.clone()).layer(transport);
                    let redirect = GeoRedirectLayer::new(geo.clone()).body_policy(bodies);
                    Stack::Once(ReadOnlyGateLayer::new(geo.clone()).layer(redirect.layer(inner)))
                }
                Some(retry) => {
                    let full = geo.layer().body_policy(bodies).layer(transport);
                    if retry.resume {
                        let resume = ResumeLayer::new(geo.clone()).body_policy(WholeBodies);
                        Stack::Resumed(resume.layer(full))
                    } else {
                        Stack::Full(full)
                    }
                }
            });
            built.services.push(geo);
        }
        Ok(built)
    }

    pub(crate) fn info(&self) -> &[Info] {
        &self.info
    }

    /// Calls a service as its user would.
    pub(crate) fn call(
        &self,
        service: usize,
        mut request: Request<RequestBody>,
        options: &RequestOptions,
    ) -> Pin<Box<dyn Future<Output = Result<Head, Refusal>> + Send>> {
        if *options != RequestOptions::default() {
            request.extensions_mut().insert(request_options(options));
        }
        let geo = self.services[service].clone();
        match self.stacks[service].clone() {
            Stack::Full(stack) => Box::pin(call(stack, request, geo)),
            Stack::Resumed(stack) => Box::pin(call(stack, request, geo)),
            Stack::Once(stack) => Box::pin(call(stack, request, geo)),
        }
    }

    /// Does what an operator does by hand.
    pub(crate) fn act(&self, act: &Act) -> Result<(), String> {
        let operator = self.services[act.service].operator();
        let region = |name: &Option<String>| name.as_deref().map_or(RegionRef::Primary, named);
        match &act.deed {
            Deed::ReadOnly => operator.read_only(),
            Deed::ReadWrite => operator.read_write(),
            Deed::EndMaintenance => operator.end_maintenance(),
            Deed::Maintenance => return told(operator.begin_maintenance()),
            Deed::ForceOpen(name) => return told(operator.force_open(&region(name))),
            Deed::ForceClosed(name) => return told(operator.force_closed(&region(name))),
            Deed::Automatic(name) => return told(operator.automatic(&region(name))),
            Deed::Reset(name) => return told(operator.reset(&region(name))),
            Deed::LocationMode(mode) => {
                return told(operator.set_location_mode(location_mode(*mode)));
            }
        }
        Ok(())
    }
}

/// What the layers say on a request of their own: what it is for, or that it fetches a rest.
fn told_on(extensions: &http::Extensions) -> Told {
    let told = Told::default();
    if let Some(send) = BackgroundSend::of(extensions) {
        return Told {
            kind: Some(SendKind::First),
            purpose: Some(send.purpose()),
            ..told
        };
    }
    Told {
        kind: Resuming::of(extensions).map(|_| SendKind::Resume),
        ..told
    }
}

/// The store that holds what the service writes, if its writer's host has one.
fn home(drill: &Drill, geo: &GeoService) -> Option<Home> {
    let regions = geo.regions();
    let writer = regions.writer();
    let host = regions.get(writer)?.endpoint().authority();
    Some(Home {
        store: drill.stores.get_index_of(host)?,
        writer: writer.index(),
        path_style: regions.is_path_style(),
    })
}

/// Starts what asks by itself: monitor and polls go over the wire as they are, since nothing here
/// is signed.
fn spawn_background(
    service: &format::Service,
    geo: &GeoService,
    transport: &Transport,
) -> Result<Vec<BackgroundTask>, Problem> {
    let problem = |key: &str, error: &ConfigError| {
        let of_key = match error.setting() {
            setting @ ("method" | "path" | "every" | "timeout") => format!("{key}.{setting}"),
            _ => key.to_owned(),
        };
        Problem::at(format!("services.{}.{of_key}", service.name), reason(error))
    };
    let mut tasks = Vec::new();
    if let Some(monitor) = &service.monitor {
        let mut settings = MonitorSettings::new(&monitor.path)
            .method(monitor.method.clone())
            .every(monitor.pace.every)
            .timeout(monitor.timeout);
        if monitor.pace.exact {
            settings = settings.jitter(0.0);
        }
        let started = geo.spawn_monitor::<_, Empty<Bytes>, _>(&settings, transport.clone());
        tasks.push(started.map_err(|error| problem("monitor", &error))?);
    }
    if let Some(pace) = service.last_sync {
        let mut settings = LastSyncSettings::new().every(pace.every);
        if pace.exact {
            settings = settings.jitter(0.0);
        }
        let started = geo.spawn_last_sync::<_, Empty<Bytes>, _>(&settings, transport.clone());
        tasks.push(started.map_err(|error| problem("last_sync", &error))?);
    }
    Ok(tasks)
}

fn told(result: Result<(), ConfigError>) -> Result<(), String> {
    result.map_err(|error| error.to_string())
}

/// The services that share, each group with its members (B12).
fn groups(services: &[format::Service]) -> Vec<(Vec<usize>, GroupHandle)> {
    let root = |mut index: usize| {
        // That a chain ends was checked when the file was read.
        while let Some(next) = services.get(index).and_then(|service| service.shares_with) {
            index = next;
        }
        index
    };
    let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
    for index in 0..services.len() {
        let root = root(index);
        match groups.iter_mut().find(|(other, _)| *other == root) {
            Some((_, members)) => members.push(index),
            None => groups.push((root, vec![index])),
        }
    }
    let now = tokio::time::Instant::now().into_std();
    groups
        .into_iter()
        .filter(|(_, members)| members.len() > 1)
        .map(|(_, members)| (members, GroupHandle::new(now)))
        .collect()
}

fn geo_service(
    drill: &Drill,
    index: usize,
    group: Option<GroupHandle>,
    stage: &Arc<Stage>,
) -> Result<GeoService, ConfigError> {
    let service = &drill.services[index];
    let mut builder = match &service.kind {
        ServiceKind::AzureStorage {
            endpoint,
            secondary,
        } => {
            let url = endpoint.to_string();
            let known = AccountEndpoint::parse(&url)
                .ok()
                .and_then(|known| known.service());
            // A custom domain, or an address: the name in the drill may say what it is.
            let kind = known.unwrap_or_else(|| kind_by_name(&service.name));
            let builder = GeoService::azure_storage(url).storage_service(kind);
            match secondary {
                Secondary::Derive => builder,
                Secondary::At(url) => builder.secondary(url.to_string()),
                Secondary::None => builder.no_secondary(),
            }
        }
        ServiceKind::Static { regions } => regions.iter().fold(
            GeoService::static_copies(&service.name),
            |builder, region| {
                let url = region.endpoint.to_string();
                builder.region_that_writes(&region.name, url, region.writable)
            },
        ),
    };
    if let Some(group) = group {
        builder = builder.group(group);
    }
    let draws = Mutex::new(Stream::new(drill.seed, Purpose::Service(index)));
    let (start, clock) = (drill.start, Arc::clone(stage));
    let listening = Arc::clone(stage);
    builder
        .named(&service.name)
        .location_mode(location_mode(service.mode))
        .retry(
            service
                .retry
                .as_ref()
                .map_or_else(RetrySettings::new, retry),
        )
        .breaker(service.breaker.as_ref().map(breaker))
        .gate(if service.read_only_while_open {
            GateMode::WhileOpen
        } else {
            GateMode::Manual
        })
        .max_staleness(service.max_staleness)
        .read_your_writes(service.read_your_writes)
        .classify_faults(Arc::new(WireFaults))
        .wall_clock(move || start + Duration::from_millis(clock.now_ms()))
        .random(move || draws.lock().unwrap_or_else(PoisonError::into_inner).unit())
        .listener(Arc::new(move |event: &tower_geo::Event| {
            if let Some((region, event)) = record(event.kind) {
                listening.event(EventRecord {
                    at_ms: listening.now_ms(),
                    service: index,
                    region,
                    event,
                });
            }
        }))
        // Everything is on one thread.
        .threads(1)
        .build()
}

/// The storage service that a name of a drill means; blobs where it means none.
fn kind_by_name(name: &str) -> StorageService {
    match name {
        "queue" => StorageService::Queue,
        "table" => StorageService::Table,
        "dfs" => StorageService::Dfs,
        "web" => StorageService::Web,
        "file" => StorageService::File,
        _ => StorageService::Blob,
    }
}

fn info(name: &str, geo: &GeoService) -> Result<Info, Problem> {
    let regions = geo.regions();
    let writer = regions.get(regions.writer());
    let base = writer.and_then(|writer| {
        Uri::builder()
            .scheme(writer.endpoint().scheme())
            .authority(writer.endpoint().authority())
            // Paths in drills are whole, the account of path style included.
            .path_and_query("/")
            .build()
            .ok()
    });
    Ok(Info {
        name: name.to_owned(),
        regions: regions
            .iter()
            .map(|(_, region)| region.name().to_owned())
            .collect(),
        base: base.ok_or_else(|| Problem::at(format!("services.{name}"), "has no writer"))?,
    })
}

/// What is wrong with a setting, at the key of the drill that stands for it.
fn config_problem(service: &format::Service, error: &ConfigError) -> Problem {
    let setting = error.setting();
    let path = format!("services.{}", service.name);
    let key = match setting {
        "location_mode" | "endpoint" | "secondary" => setting.to_owned(),
        // Of a storage service only the second region is written down as such.
        "region" | "regions" => match service.kind {
            ServiceKind::AzureStorage { .. } => "secondary".to_owned(),
            ServiceKind::Static { .. } => "regions".to_owned(),
        },
        "name" => return Problem::at(path, reason(error)),
        "hedge" => "hedge.after".to_owned(),
        "max_retries" | "delay" | "max_delay" | "attempt_timeout" | "deadline" | "budget"
        | "body_idle" => format!("retry.{setting}"),
        "max_staleness" => setting.to_owned(),
        _ => format!("breaker.{setting}"),
    };
    Problem::at(format!("{path}.{key}"), reason(error))
}

/// The message without the setting, which the path names.
fn reason(error: &ConfigError) -> String {
    let whole = error.to_string();
    let start = format!("`{}`: ", error.setting());
    whole.strip_prefix(&start).unwrap_or(&whole).to_owned()
}

const fn location_mode(mode: Mode) -> LocationMode {
    match mode {
        Mode::PrimaryOnly => LocationMode::PrimaryOnly,
        Mode::PrimaryThenSecondary => LocationMode::PrimaryThenSecondary,
        Mode::SecondaryOnly => LocationMode::SecondaryOnly,
        Mode::SecondaryThenPrimary => LocationMode::SecondaryThenPrimary,
    }
}

/// A region as a drill names it: also a secondary that could not be derived has its name.
fn named(name: &str) -> RegionRef {
    match name {
        "primary" => RegionRef::Primary,
        "secondary" => RegionRef::Secondary,
        name => RegionRef::Named(name.to_owned()),
    }
}

fn request_options(options: &RequestOptions) -> tower_geo::RequestOptions {
    let mut built = tower_geo::RequestOptions::new();
    if let Some(mode) = options.mode {
        built = built.location_mode(location_mode(mode));
    }
    if let Some(pin) = &options.pin {
        built = built.pin(named(pin));
    }
    if options.replayable {
        built = built.replayable();
    }
    built
}

fn retry(retry: &Retry) -> RetrySettings {
    RetrySettings::new()
        .mode(match retry.mode {
            RetryMode::Exponential => BackoffMode::Exponential,
            RetryMode::Fixed => BackoffMode::Fixed,
        })
        .max_retries(retry.max_retries)
        .delay(retry.delay)
        .max_delay(retry.max_delay)
        .jitter(match retry.jitter {
            Jitter::None => tower_geo::Jitter::None,
            Jitter::Equal => tower_geo::Jitter::Equal,
            Jitter::Full => tower_geo::Jitter::Full,
        })
        .attempt_timeout(retry.attempt_timeout)
        .deadline(retry.deadline)
        .budget(retry.budget)
        .replay(if retry.replay_all {
            Replay::All
        } else {
            Replay::Harmless
        })
        .body_idle(retry.body_idle)
        .hedge(retry.hedge)
}

fn breaker(breaker: &Breaker) -> BreakerSettings {
    let rule = |rate: format::Rate| RateRule::new(rate.threshold, rate.window, rate.minimum);
    BreakerSettings::new()
        .streak(breaker.streak)
        .rate(breaker.rate.map(rule))
        .slow(
            breaker
                .slow
                .map(|slow| SlowRule::new(slow.after, rule(slow.rate))),
        )
        .open_for(breaker.open_for)
        .max_open_for(breaker.max_open_for)
        .open_for_calls(breaker.open_for_calls)
        .suspect_after(breaker.suspect_after)
        .jitter(match breaker.jitter {
            Jitter::None => OpenJitter::None,
            Jitter::Equal | Jitter::Full => OpenJitter::Equal,
        })
        .probes(breaker.probes)
        .probe_deadline(breaker.probe_deadline)
        .close_after(breaker.close_after)
        .ramp(breaker.ramp.clone())
        .ramp_step(breaker.ramp_step)
}

/// An event of the layers as it is kept; one that this version does not know is left out.
fn record(event: EventKind) -> Option<(Option<usize>, stage::Event)> {
    match event {
        EventKind::Breaker {
            region,
            circuit,
            from,
            to,
            why,
            ..
        } => Some((
            Some(region.index()),
            stage::Event::Breaker {
                circuit: circuit.as_str(),
                from: from.as_str(),
                to: to.as_str(),
                why: why.as_str(),
            },
        )),
        EventKind::Gate { to, why, .. } => Some((
            None,
            stage::Event::Gate {
                to: to.as_str(),
                why: why.as_str(),
            },
        )),
        EventKind::Secondary { region, to, .. } => Some((
            Some(region.index()),
            stage::Event::Secondary { to: to.as_str() },
        )),
        _ => None,
    }
}

/// One call through a stack, as its user makes it: wait until it is ready, call, wait.
async fn call<S, B>(
    mut stack: S,
    request: Request<RequestBody>,
    geo: GeoService,
) -> Result<Head, Refusal>
where
    S: Service<Request<RequestBody>, Response = Response<B>, Error = tower_geo::Error>,
    B: Body<Data = Bytes, Error = tower_geo::Error> + Send + 'static,
{
    let answered = match poll_fn(|cx| stack.poll_ready(cx)).await {
        Ok(()) => stack.call(request).await,
        Err(error) => Err(error),
    };
    match answered {
        Ok(response) => {
            let served = Served::of(response.extensions());
            Ok(Head {
                region: served
                    .and_then(|served| geo.regions().by_name(served.region_name()))
                    .map(|region| region.index()),
                trail: served
                    .map(|served| trail(served.trail()))
                    .unwrap_or_default(),
                after_ambiguous: served.is_some_and(Served::is_after_ambiguous),
                freshness: served
                    .and_then(Served::freshness)
                    .map(|freshness| freshness.as_str()),
                response: response.map(|body| Box::pin(body) as Answered),
            })
        }
        Err(error) => Err(Refusal {
            kind: error.kind().as_str(),
            message: whole_message(&error),
            trail: trail(error.trail()),
        }),
    }
}

/// An error and its causes, in one line.
fn whole_message(error: &tower_geo::Error) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        message.push_str(": ");
        message.push_str(&cause.to_string());
        source = cause.source();
    }
    message
}

fn trail(trail: &Trail) -> Vec<Told> {
    trail
        .sends()
        .iter()
        .map(|send| Told {
            kind: match send.kind {
                tower_geo::SendKind::First => Some(SendKind::First),
                tower_geo::SendKind::FallOver => Some(SendKind::FallOver),
                tower_geo::SendKind::Retry => Some(SendKind::Retry),
                tower_geo::SendKind::Hedge => Some(SendKind::Hedge),
                _ => None,
            },
            probe: send.probe,
            outrun: send.ending == Ending::Dropped,
            purpose: None,
        })
        .collect()
}

/// What the faults of the scripted wire mean.
#[derive(Debug)]
struct WireFaults;

impl ClassifyFault for WireFaults {
    fn classify(&self, error: &(dyn std::error::Error + 'static)) -> tower_geo::Fault {
        let mut causes = std::iter::successors(Some(error), |&cause| cause.source());
        let fault = causes
            .find_map(|cause| cause.downcast_ref::<WireFault>())
            .and_then(WireFault::fault);
        match fault {
            Some(Fault::Connect) => tower_geo::Fault::Connect,
            Some(Fault::Dns) => tower_geo::Fault::Dns,
            Some(Fault::Tls) => tower_geo::Fault::Tls,
            // A hang has no error, and nothing else has faults here.
            Some(Fault::Reset | Fault::Hang) | None => tower_geo::Fault::Reset,
        }
    }
}

/// Whole bodies are cloned; streams are kept up to a cap while they are sent, which is 0 unless
/// the drill says otherwise.
#[derive(Clone, Copy, Debug)]
struct DrillBodies(Buffering);

impl DrillBodies {
    fn new(retry: Option<&Retry>) -> Self {
        let cap = retry.and_then(|retry| retry.buffer).unwrap_or(0);
        Self(Buffering::up_to(usize::try_from(cap).unwrap_or(usize::MAX)))
    }
}

/// Whole bodies are cloned, streams are sent once.
#[derive(Clone, Copy, Debug)]
struct WholeBodies;

impl BodyPolicy<RequestBody> for WholeBodies {
    type Body = RequestBody;

    fn prepare(&self, body: RequestBody) -> RequestBody {
        body
    }

    fn keep(&self, body: &RequestBody) -> Option<RequestBody> {
        body.try_clone()
    }

    fn is_whole(&self, _kept: &RequestBody) -> bool {
        true
    }
}

impl BodyPolicy<RequestBody> for DrillBodies {
    type Body = Either<RequestBody, ReplayBody<RequestBody>>;

    fn prepare(&self, body: RequestBody) -> Self::Body {
        match body.try_clone() {
            Some(_) => Either::Left(body),
            None => Either::Right(self.0.prepare(body)),
        }
    }

    fn keep(&self, body: &Self::Body) -> Option<Self::Body> {
        match body {
            Either::Left(whole) => whole.try_clone().map(Either::Left),
            Either::Right(stream) => {
                BodyPolicy::<RequestBody>::keep(&self.0, stream).map(Either::Right)
            }
        }
    }

    fn is_whole(&self, kept: &Self::Body) -> bool {
        match kept {
            Either::Left(_) => true,
            Either::Right(stream) => BodyPolicy::<RequestBody>::is_whole(&self.0, stream),
        }
    }

    fn upload(&self, kept: &Self::Body) -> Upload {
        match kept {
            Either::Left(_) => Upload::Unwatched,
            Either::Right(stream) => BodyPolicy::<RequestBody>::upload(&self.0, stream),
        }
    }
}
