//! One instance of an application: its own service, its own stack, and what it asks for.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use fastrand::Rng;
use http::{HeaderValue, Method, Request};
use http_body_util::Full;
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};
use tower::{Layer as _, ServiceExt as _};
use tower_geo::body::CloneBodies;
use tower_geo::{
    BoxError, BreakerSettings, Error, Event, EventKind, GeoService, GeoStack, LocationMode,
    RegionId, RetrySettings, Served, Trail,
};

use crate::fleet::Fleet;
use crate::log::{End, Operation, Turn};
use crate::random::{Purpose, stream};
use crate::region::Side;
use crate::wire::{NEW, Wire, World};

/// So many of the objects that are read were written a moment ago.
const READS_OF_NEW: f64 = 0.05;

/// A client that knows nothing of the others.
pub(crate) struct Client {
    number: u32,
    stack: GeoStack<Wire, CloneBodies>,
    world: Arc<World>,
    random: Rng,
    read_old: Request<Full<Bytes>>,
    read_new: Request<Full<Bytes>>,
    write: Request<Full<Bytes>>,
}

impl Client {
    /// A client with the product's own settings, but for what the fleet says otherwise.
    ///
    /// # Errors
    ///
    /// When the settings make no sense.
    pub(crate) fn new(number: u32, fleet: &Fleet, world: &Arc<World>) -> Result<Self, BoxError> {
        let chance = Mutex::new(stream(fleet.seed, Purpose::Layers(number)));
        let judge = Arc::clone(world);
        let mut retry = fleet.retry.apply(RetrySettings::new());
        if fleet.bare {
            retry = retry.budget(None);
        }
        let breaker = (!fleet.bare).then(BreakerSettings::new);
        let service = GeoService::azure_storage(format!("https://{}", Side::Primary.host()))
            .location_mode(LocationMode::PrimaryThenSecondary)
            .retry(retry)
            .breaker(breaker)
            .random(move || chance.lock().unwrap_or_else(PoisonError::into_inner).f64())
            // Nothing here carries a date.
            .wall_clock(|| SystemTime::UNIX_EPOCH)
            .threads(1)
            .listener(Arc::new(move |event: &Event| note(&judge, number, event)))
            .build()?;
        let request = |method, path: &str, body: &'static str| {
            Request::builder()
                .method(method)
                .uri(format!("https://{}{path}", Side::Primary.host()))
                .body(Full::from(body))
        };
        let mut write = request(Method::PUT, "/orders/1", "{}")?;
        let kind = HeaderValue::from_static("BlockBlob");
        write.headers_mut().insert("x-ms-blob-type", kind);
        Ok(Self {
            number,
            stack: service
                .layer()
                .clone_bodies()
                .layer(Wire::new(number, Arc::clone(world))),
            world: Arc::clone(world),
            random: stream(fleet.seed, Purpose::Arrivals(number)),
            read_old: request(Method::GET, "/orders/1", "")?,
            read_new: request(Method::GET, &format!("{NEW}1"), "")?,
            write,
        })
    }

    /// Asks at a steady rate, whatever becomes of it, until `fleet` is done; ends when all calls
    /// have.
    ///
    /// Time is cut into slots, and each operation begins at a random moment of its own: the load
    /// is smooth over seconds, so that peaks are the doing of somebody else.
    pub(crate) async fn run(mut self, fleet: Fleet) {
        let slot = Duration::from_secs_f64(1.0 / fleet.rate);
        let mut under_way = JoinSet::new();
        let mut next = Duration::ZERO;
        while next < fleet.end() {
            let offset = if fleet.one_at_a_time {
                0.0
            } else {
                self.random.f64()
            };
            sleep_until(self.world.instant(next + slot.mul_f64(offset))).await;
            let is_write = self.random.f64() < fleet.writes;
            let wants_new = self.random.f64() < READS_OF_NEW;
            let request = match (is_write, wants_new) {
                (true, _) => &self.write,
                (false, true) => &self.read_new,
                (false, false) => &self.read_old,
            };
            let call = Call {
                client: self.number,
                stack: self.stack.clone(),
                world: Arc::clone(&self.world),
                request: request.clone(),
                is_write,
            };
            if fleet.one_at_a_time {
                call.make(fleet.patience).await;
                next = (next + slot).max(self.world.now());
            } else {
                under_way.spawn(call.make(fleet.patience));
                while under_way.try_join_next().is_some() {}
                next += slot;
            }
        }
        while under_way.join_next().await.is_some() {}
    }
}

/// One call into the stack.
struct Call {
    client: u32,
    stack: GeoStack<Wire, CloneBodies>,
    world: Arc<World>,
    request: Request<Full<Bytes>>,
    is_write: bool,
}

impl Call {
    /// Makes it, waits for the answer at most so long, and notes what came of it.
    async fn make(self, patience: Option<Duration>) {
        let at = self.world.now();
        let answer = self.stack.oneshot(self.request);
        let answer = match patience {
            Some(patience) => timeout(patience, answer).await.ok(),
            None => Some(answer.await),
        };
        let (end, first) = match &answer {
            None => (End::Left, None),
            Some(Ok(response)) => {
                let end = if response.status().is_success() {
                    End::Good
                } else {
                    End::BadAnswer
                };
                let trail = Served::of(response.extensions()).map(Served::trail);
                (end, trail.and_then(first_of))
            }
            Some(Err(error)) => (told(error), first_of(error.trail())),
        };
        self.world.log().operations.push(Operation {
            at,
            client: self.client,
            is_write: self.is_write,
            first: first.unwrap_or(Side::Primary),
            end,
        });
    }
}

fn told(error: &Error) -> End {
    if error.is_read_only() || error.is_circuit_open() {
        End::Refused
    } else {
        End::Failed
    }
}

fn first_of(trail: &Trail) -> Option<Side> {
    trail.sends().first().map(|send| side_of(send.region))
}

fn side_of(region: RegionId) -> Side {
    if region == RegionId::FIRST {
        Side::Primary
    } else {
        Side::Secondary
    }
}

fn note(world: &World, client: u32, event: &Event) {
    if let EventKind::Breaker {
        region,
        circuit,
        to,
        ..
    } = event.kind
        && side_of(region) == Side::Primary
    {
        let at = world.now();
        world.log().turns.push(Turn {
            at,
            client,
            circuit,
            to,
        });
    }
}
