//! The layers of `tower-geo`, built from a drill: the only place here that knows their API.

mod bodies;
mod cosmos;
mod settings;

use std::error::Error as _;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body::Body;
use http_body_util::Empty;
use tower_geo::circuit_breaker::CircuitBreaker;
use tower_geo::geo_redirect::GeoRedirect;
use tower_geo::policy::azure_storage::AccountEndpoint;
use tower_geo::read_only_gate::ReadOnlyGate;
use tower_geo::resume::{Resume, Resuming};
use tower_geo::{
    Account, BackgroundSend, BackgroundTask, CircuitBreakerLayer, ClassifyFault, ConfigError,
    Ending, EventKind, GateMode, GeoRedirectLayer, GeoService, GeoStack, GroupHandle,
    LastSyncSettings, MonitorSettings, ReadOnlyGateLayer, RegionId, RegionRef, ResumeLayer,
    RetrySettings, Served, StorageService, Trail,
};
use tower_layer::Layer;
use tower_service::Service;

use self::bodies::{DrillBodies, WholeBodies};
use self::cosmos::{names_of_account, region_of};
use self::settings::{breaker, location_mode, named, request_options, retry};
use crate::format::{self, Act, Deed, Drill, Fault, RequestOptions, Secondary, ServiceKind};
use crate::judge::{self, Judge};
use crate::names::Names;
use crate::problem::Problem;
use crate::random::{Purpose, Stream};
use crate::stage::{self, EventRecord, SendKind, Stage};
use crate::transport::{Home, RequestBody, Told, Transport, WireFault};

/// The purpose of account reads (C3), in the words of the layers.
pub(crate) const ACCOUNT_READ: &str = "account";

/// A service as it is shown: its name, and its regions in order.
#[derive(Clone, Debug)]
pub(crate) struct Info {
    pub(crate) name: String,
    pub(crate) regions: Vec<String>,
    /// So many of them, from the first, are shown whether or not anything was sent there.
    pub(crate) listed: usize,
    /// Reads and writes may go to different regions, and regions come and go.
    pub(crate) is_cosmos: bool,
    /// Which of its answers are good.
    pub(crate) judge: Judge,
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
    names: Vec<Arc<Names>>,
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
            names: Vec::new(),
            services: Vec::new(),
            stacks: Vec::new(),
            _background: Vec::new(),
        };
        for (index, service) in drill.services.iter().enumerate() {
            let group = groups.iter().find(|(members, _)| members.contains(&index));
            let group = group.map(|(_, group)| group.clone());
            let account = names_of_account(service, stage);
            let geo = geo_service(drill, index, group, account.clone(), stage)
                .map_err(|error| config_problem(service, &error))?;
            let known = account.unwrap_or_else(|| {
                let regions = geo.regions().iter();
                let names = regions.map(|(_, region)| region.name().to_owned());
                Arc::new(Names::fixed(names.collect()))
            });
            built.info.push(info(service, &geo, &known)?);
            built.names.push(Arc::clone(&known));
            let transport = Transport::new(
                Arc::clone(stage),
                index,
                region_of(&geo, &known, stage),
                told_on,
                judge_of(service),
                home(drill, service, &geo),
            );
            let reader = cosmos::spawn_reader(service, &geo, &transport)?;
            built._background.extend(reader);
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

    /// What is known of the services from the start; the account of a Cosmos service is not.
    pub(crate) fn info(&self) -> &[Info] {
        &self.info
    }

    /// What the account of a service may not be expected to do, as warnings.
    pub(crate) fn puzzles(&self, drill: &Drill) -> Vec<String> {
        let services = drill.services.iter().zip(&self.services);
        services
            .zip(&self.names)
            .flat_map(|((service, geo), names)| cosmos::puzzles(service, geo, names))
            .collect()
    }

    /// What is known of them at the end.
    pub(crate) fn known(&self) -> Vec<Info> {
        let named = self.info.iter().zip(&self.names);
        named
            .map(|(info, names)| Info {
                regions: names.all(),
                ..info.clone()
            })
            .collect()
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
        let names = Arc::clone(&self.names[service]);
        match self.stacks[service].clone() {
            Stack::Full(stack) => Box::pin(call(stack, request, names)),
            Stack::Resumed(stack) => Box::pin(call(stack, request, names)),
            Stack::Once(stack) => Box::pin(call(stack, request, names)),
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
            is_no_traffic: send.purpose() == ACCOUNT_READ,
            ..told
        };
    }
    Told {
        kind: Resuming::of(extensions).map(|_| SendKind::Resume),
        ..told
    }
}

/// The store that holds what the service writes, if its writer's host has one.
fn home(drill: &Drill, service: &format::Service, geo: &GeoService) -> Option<Home> {
    if service.is_cosmos() {
        return None;
    }
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
    account: Option<Arc<Names>>,
    stage: &Arc<Stage>,
) -> Result<GeoService, ConfigError> {
    let service = &drill.services[index];
    let draws = Mutex::new(Stream::new(drill.seed, Purpose::Service(index)));
    let (start, clock) = (drill.start, Arc::clone(stage));
    let listening = Arc::clone(stage);
    let listener = move |event: &tower_geo::Event| {
        if let Some((region, kind)) = record(event.kind) {
            listening.event(EventRecord {
                at_ms: listening.now_ms(),
                service: index,
                region: region.and_then(|region| match &account {
                    None => Some(region.index()),
                    Some(names) => names.number(event.region_name(region)),
                }),
                event: kind,
            });
        }
    };
    // What every kind of service has; a Cosmos account has a builder of its own.
    macro_rules! build {
        ($builder:expr) => {{
            let mut builder = $builder;
            if let Some(group) = group {
                builder = builder.group(group);
            }
            builder
                .named(&service.name)
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
                .classify_faults(Arc::new(WireFaults))
                .wall_clock(move || start + Duration::from_millis(clock.now_ms()))
                .random(move || draws.lock().unwrap_or_else(PoisonError::into_inner).unit())
                .listener(Arc::new(listener))
                // Everything is on one thread.
                .threads(1)
                .build()
        }};
    }
    let builder = match &service.kind {
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
        ServiceKind::Cosmos { endpoint, settings } => {
            let builder = Account::cosmos(endpoint.to_string());
            return build!(builder.account(cosmos::settings(settings)));
        }
    };
    build!(
        builder
            .location_mode(location_mode(service.mode))
            .max_staleness(service.max_staleness)
            .read_your_writes(service.read_your_writes)
    )
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

fn judge_of(service: &format::Service) -> Judge {
    if service.is_cosmos() {
        judge::of_cosmos
    } else {
        judge::by_status
    }
}

fn info(service: &format::Service, geo: &GeoService, names: &Names) -> Result<Info, Problem> {
    let name = &service.name;
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
        name: name.clone(),
        listed: names.all().len(),
        regions: names.all(),
        is_cosmos: service.is_cosmos(),
        judge: judge_of(service),
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
            ServiceKind::Cosmos { .. } => "endpoint".to_owned(),
        },
        "preferred" | "excluded" | "refresh" | "mark_for" => setting.to_owned(),
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

/// An event of the layers as it is kept; one that this version does not know is left out.
fn record(event: EventKind) -> Option<(Option<RegionId>, stage::Event)> {
    match event {
        EventKind::Breaker {
            region,
            circuit,
            from,
            to,
            why,
            ..
        } => Some((
            Some(region),
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
        EventKind::Secondary { region, to, .. } => {
            Some((Some(region), stage::Event::Secondary { to: to.as_str() }))
        }
        _ => None,
    }
}

/// One call through a stack, as its user makes it: wait until it is ready, call, wait.
async fn call<S, B>(
    mut stack: S,
    request: Request<RequestBody>,
    names: Arc<Names>,
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
                region: served.and_then(|served| names.number(served.region_name())),
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
            ..Told::default()
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
