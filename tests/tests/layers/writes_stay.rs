//! Does any write ever reach a region that takes none (R1)? Random stacks, requests, faults and
//! operators; the transport is the judge, with an opinion of its own of what a write is.

use std::sync::Arc;

use http::Method;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use tower::ServiceExt;
use tower_geo::{
    Advice, Advised, GeoService, GeoServiceBuilder, LocationMode, Planned, RegionId, Replay,
    RequestOptions, Trail,
};
use tower_geo_testkit::strict::{Reply, Script, Sent};

use crate::stacks::{FOREIGN, Part, stack};
use crate::support::*;

const QP: &str = "contoso.queue.core.windows.net";
const QS: &str = "contoso-secondary.queue.core.windows.net";

/// Advice that always wants the secondary (T9: it cannot break R1).
#[derive(Debug)]
struct ToTheSecondary;

impl Advice for ToTheSecondary {
    fn advise(&self, _: &Trail, _: &Planned) -> Advised {
        Advised::To(RegionId::new(1))
    }
}

#[derive(Clone, Copy, Debug)]
enum Fate {
    Status(u16),
    Told(u16),
    Reset,
    Refused,
    Hang,
    Cut,
}

impl Fate {
    fn reply(self) -> Reply {
        match self {
            Self::Status(status) => Reply::status(status).after(ms(3)),
            Self::Told(seconds) => Reply::status(503).header("retry-after", &seconds.to_string()),
            Self::Reset => Reply::reset(),
            Self::Refused => Reply::refused(),
            Self::Hang => Reply::hang(),
            Self::Cut => Reply::ok("content").cut_body_after(2),
        }
    }
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        4 => select(vec![200, 201, 404, 412, 403, 401, 409, 500, 503, 503, 429]).prop_map(Fate::Status),
        1 => (0..40_u16).prop_map(Fate::Told),
        1 => Just(Fate::Reset),
        1 => Just(Fate::Refused),
        1 => Just(Fate::Hang),
        1 => Just(Fate::Cut),
    ]
}

#[derive(Clone, Debug)]
struct Call {
    method: Method,
    target: &'static str,
    names_copy: bool,
    mode: Option<LocationMode>,
    pin: Option<bool>,
    replayable: bool,
    harmless: bool,
}

fn call() -> impl Strategy<Value = Call> {
    let methods = [
        "GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "MERGE", "FROB", "OPTIONS",
    ];
    let targets = vec![
        "/orders/messages",
        "/orders/messages?peekonly=true",
        "/orders/messages?PeekOnly=TRUE&numofmessages=3",
        "/orders/messages?peekonly=false",
        "/orders/messages?peekonly=true&peekonly=false",
        "/orders/%6dessages",
        "/orders/messages/",
        "/photos/cat",
        "/photos/cat?comp=query",
        "/photos/cat?comp=appendblock",
        "/photos/cat?comp=lease",
        "/?restype=service&comp=stats",
        "/?restype=service&comp=userdelegationkey",
        "/",
    ];
    let mode = proptest::option::weighted(0.3, select(LocationMode::ALL.to_vec()));
    (
        select(methods.to_vec()),
        select(targets),
        prop::bool::weighted(0.15),
        mode,
        proptest::option::weighted(0.2, any::<bool>()),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(
            |(method, target, names_copy, mode, pin, replayable, harmless)| Call {
                method: Method::from_bytes(method.as_bytes()).unwrap(),
                target,
                names_copy,
                mode,
                pin,
                replayable,
                harmless,
            },
        )
}

#[derive(Clone, Copy, Debug)]
enum Switch {
    ReadOnly,
    ReadWrite,
    BeginMaintenance,
    EndMaintenance,
    ForceOpen(bool),
    ForceClosed(bool),
    Automatic(bool),
    Reset(bool),
    Mode(LocationMode),
}

impl Switch {
    fn turn(self, service: &GeoService) {
        let operator = service.operator();
        let region = |secondary| if secondary { &SECONDARY } else { &PRIMARY };
        match self {
            Self::ReadOnly => operator.read_only(),
            Self::ReadWrite => operator.read_write(),
            Self::BeginMaintenance => operator.begin_maintenance().unwrap(),
            Self::EndMaintenance => operator.end_maintenance(),
            Self::ForceOpen(at) => operator.force_open(region(at)).unwrap(),
            Self::ForceClosed(at) => operator.force_closed(region(at)).unwrap(),
            Self::Automatic(at) => operator.automatic(region(at)).unwrap(),
            Self::Reset(at) => operator.reset(region(at)).unwrap(),
            Self::Mode(mode) => operator.set_location_mode(mode).unwrap(),
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Calls(Vec<Call>),
    Switch(Switch),
    Time(u16),
}

fn step() -> impl Strategy<Value = Step> {
    let switch = prop_oneof![
        Just(Switch::ReadOnly),
        Just(Switch::ReadWrite),
        Just(Switch::BeginMaintenance),
        Just(Switch::EndMaintenance),
        any::<bool>().prop_map(Switch::ForceOpen),
        any::<bool>().prop_map(Switch::ForceClosed),
        any::<bool>().prop_map(Switch::Automatic),
        any::<bool>().prop_map(Switch::Reset),
        select(LocationMode::ALL.to_vec()).prop_map(Switch::Mode),
    ];
    prop_oneof![
        4 => vec(call(), 1..4).prop_map(Step::Calls),
        1 => switch.prop_map(Step::Switch),
        1 => (0..100_u16).prop_map(Step::Time),
    ]
}

/// Some of our layers in a legal order, with foreign ones around them.
fn parts() -> impl Strategy<Value = Vec<Part>> {
    let ours = subsequence(
        vec![Part::Gate, Part::Retry, Part::Redirect, Part::Breaker],
        0..=4,
    );
    let between = vec(proptest::option::weighted(0.3, select(FOREIGN.to_vec())), 5);
    (ours, any::<bool>(), between).prop_map(|(ours, follow, between)| {
        let mut between = between.into_iter();
        let mut parts: Vec<_> = between.next().flatten().into_iter().collect();
        for part in ours {
            let part = if part == Part::Redirect && follow {
                Part::Follow
            } else {
                part
            };
            parts.push(part);
            parts.extend(between.next().flatten());
        }
        parts
    })
}

#[derive(Clone, Debug)]
struct World {
    parts: Vec<Part>,
    queue: bool,
    mode: LocationMode,
    replay_all: bool,
    advice: bool,
    at_primary: Vec<Fate>,
    at_secondary: Vec<Fate>,
    steps: Vec<Step>,
}

fn world() -> impl Strategy<Value = World> {
    (
        parts(),
        any::<bool>(),
        select(LocationMode::ALL.to_vec()),
        any::<bool>(),
        any::<bool>(),
        vec(fate(), 1..12),
        vec(fate(), 1..12),
        vec(step(), 1..12),
    )
        .prop_map(
            |(parts, queue, mode, replay_all, advice, at_primary, at_secondary, steps)| World {
                parts,
                queue,
                mode,
                replay_all,
                advice,
                at_primary,
                at_secondary,
                steps,
            },
        )
}

fn configured(world: &World) -> GeoServiceBuilder {
    let host = if world.queue { QP } else { P };
    let mut settings = retry().attempt_timeout(secs(4));
    if world.replay_all {
        settings = settings.replay(Replay::All);
    }
    let builder = GeoService::azure_storage(format!("https://{host}"))
        .location_mode(world.mode)
        .retry(settings)
        .breaker(breaker())
        .threads(1);
    if world.advice {
        builder.advice(Arc::new(ToTheSecondary))
    } else {
        builder
    }
}

/// What the judge takes for a write, by the tables of the service and not by ours.
fn is_write(queue: bool, sent: &Sent) -> bool {
    let (path, query) = sent.target.split_once('?').unwrap_or((&sent.target, ""));
    let dequeues = queue
        && path
            .trim_end_matches('/')
            .replace("%6d", "m")
            .ends_with("/messages")
        && !query
            .split('&')
            .any(|pair| pair.eq_ignore_ascii_case("peekonly=true"));
    let contradicts = queue && query.contains("peekonly=true&peekonly=false");
    match sent.method.as_str() {
        "GET" => dequeues || contradicts,
        "HEAD" | "OPTIONS" => false,
        // I3: a query is a read, and a delegation key is neither.
        "POST" if !queue => {
            !query.contains("comp=query") && !query.contains("comp=userdelegationkey")
        }
        _ => true,
    }
}

async fn play(world: World) -> Vec<Sent> {
    let (primary, secondary) = if world.queue { (QP, QS) } else { (P, S) };
    let script = Script::new()
        .any_method(primary, world.at_primary.iter().map(|fate| fate.reply()))
        .any_method(
            secondary,
            world.at_secondary.iter().map(|fate| fate.reply()),
        );
    let service = configured(&world).build().unwrap();
    let stack = stack(&service, &world.parts, script.service());
    // A write that names the secondary itself is the caller's own doing where no layer of ours
    // looks at where requests go.
    let routes = world
        .parts
        .iter()
        .any(|part| matches!(part, Part::Retry | Part::Redirect | Part::Breaker));
    for step in world.steps {
        match step {
            Step::Switch(switch) => switch.turn(&service),
            Step::Time(seconds) => tokio::time::sleep(secs(seconds.into())).await,
            Step::Calls(calls) => {
                let calls: Vec<_> = calls
                    .into_iter()
                    .map(|call| {
                        let host = if call.names_copy && routes {
                            secondary
                        } else {
                            primary
                        };
                        let mut request = request(call.method, host, call.target);
                        let mut options = RequestOptions::new();
                        if let Some(mode) = call.mode {
                            options = options.location_mode(mode);
                        }
                        if let Some(secondary) = call.pin {
                            options = options.pin(if secondary { SECONDARY } else { PRIMARY });
                        }
                        if call.replayable {
                            options = options.replayable();
                        }
                        if options != RequestOptions::new() {
                            request.extensions_mut().insert(options);
                        }
                        if call.harmless {
                            let any = "*".parse().unwrap();
                            request.headers_mut().insert("if-none-match", any);
                        }
                        tokio::spawn(tokio::time::timeout(
                            secs(100),
                            stack.clone().oneshot(request),
                        ))
                    })
                    .collect();
                for call in calls {
                    let _ = call.await.unwrap();
                }
            }
        }
    }
    script.sends()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 512,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// R1, I2, T9: whatever the stack, the mode, the pins, the advice, the faults and the
    /// operator, no write reaches a region that takes none.
    #[test]
    fn no_write_ever_reaches_a_region_that_takes_none(world in world()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let queue = world.queue;
        for sent in runtime.block_on(play(world)) {
            let takes_writes = sent.authority == P || sent.authority == QP;
            prop_assert!(
                takes_writes || !is_write(queue, &sent),
                "{} {} at {}", sent.method, sent.target, sent.authority
            );
        }
    }
}

/// I2: the messages of a queue are never taken from the secondary, in no mode.
#[tokio::test(start_paused = true)]
async fn messages_are_never_taken_from_the_secondary() {
    for mode in LocationMode::ALL {
        let script = Script::new()
            .any_method(QP, [Reply::status(503)])
            .any_method(QS, [Reply::ok("<QueueMessagesList/>")]);
        let service = GeoService::azure_storage(format!("https://{QP}"))
            .location_mode(mode)
            .retry(retry())
            .breaker(breaker())
            .build()
            .unwrap();
        let stack = tower::Layer::layer(&service.layer().clone_bodies(), script.service());
        for _ in 0..5 {
            let dequeue = request(Method::GET, QP, "/orders/messages?numofmessages=1");
            let _ = stack.clone().oneshot(dequeue).await;
        }
        assert!(
            !script.hosts().contains(&QS.to_owned()),
            "{mode}: {:?}",
            script.hosts()
        );
        let peek = request(Method::GET, QP, "/orders/messages?peekonly=true");
        if mode != LocationMode::PrimaryOnly {
            assert_eq!(stack.oneshot(peek).await.unwrap().status(), 200, "{mode}");
            assert_eq!(script.hosts().last().unwrap(), QS, "{mode}");
        }
    }
}
