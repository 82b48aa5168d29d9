//! What happens when: two regions, a client, an outage, a return.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::task::JoinHandle;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until};
use tower_geo::{
    Account, BoxError, Circuit, CircuitPhase, Event, EventKind, GateStatus, GeoService, RegionRef,
};

use crate::client::client;
use crate::load::{Application, Journal};
use crate::options::Options;
use crate::report::{Counts, Happened, Moments, Report};
use crate::screen::Screen;
use crate::story;
use crate::world::{Arrived, World};

/// What the service told, and when.
type Told = (Instant, Event);

/// Plays the story.
///
/// # Errors
///
/// When it could not be played at all: no free ports, no emulator.
pub(crate) async fn play(options: &Options) -> Result<Report, BoxError> {
    let world = World::start(options.azurite).await?;
    let (tell, told) = mpsc::unbounded_channel();
    let listener = move |event: &Event| {
        // Nobody listens any more when the story is over.
        let _ = tell.send((Instant::now(), event.clone()));
    };
    let (account, blobs) = client(&world.connection_string(), World::signer()?, listener)?;
    let application = Application::new(blobs, &world.base_url());
    application.prepare().await?;
    world.lag();

    let journal = Arc::new(Journal::begin());
    let load = application.clone();
    let load = load.run(options.rate, options.duration, Arc::clone(&journal));
    let load = tokio::spawn(load);
    let mut stage = Stage::new(options, &world, &account, &journal, told);
    stage.run().await?;
    let begun = stage.last_answers(load).await?;
    stage.screen.finish();

    let arrived = world.arrived();
    let books = story::audit(&application, &journal).await;
    Ok(stage.report(begun, arrived, books))
}

/// Where the story is played, and what was seen so far.
struct Stage<'a> {
    options: &'a Options,
    world: &'a World,
    service: GeoService,
    journal: &'a Journal,
    told: UnboundedReceiver<Told>,
    screen: Screen,
    beat: Interval,
    moments: Moments,
    happened: Vec<Happened>,
    /// How many operations were counted for the progress line, and the counts.
    seen: usize,
    shown: Counts,
}

impl<'a> Stage<'a> {
    fn new(
        options: &'a Options,
        world: &'a World,
        account: &Account,
        journal: &'a Journal,
        told: UnboundedReceiver<Told>,
    ) -> Self {
        let screen = Screen::new(options);
        let mut beat = interval(screen.beat());
        beat.set_missed_tick_behavior(MissedTickBehavior::Skip);
        // The first beat would come at once, when there is nothing to show.
        beat.reset();
        Self {
            options,
            world,
            service: account.blob(),
            journal,
            told,
            screen,
            beat,
            moments: Moments::default(),
            happened: Vec::new(),
            seen: 0,
            shown: Counts::default(),
        }
    }

    /// From the first operation to the last one that is begun.
    async fn run(&mut self) -> Result<(), BoxError> {
        let began = self.journal.began();
        self.happens(
            Duration::ZERO,
            format!(
                "reading and writing, {} operations a second ({})",
                self.options.rate,
                self.world.name()
            ),
        );
        self.watch_until(began + self.options.goes_away_at()).await;
        let at = began.elapsed();
        self.moments.gone = at;
        self.world.take_away(self.options.failure).await?;
        self.happens(
            at,
            format!("THE PRIMARY IS GONE: {}", self.options.failure.told()),
        );
        self.watch_until(began + self.options.comes_back_at()).await;
        self.world.bring_back().await?;
        let at = began.elapsed();
        self.moments.back = at;
        self.happens(at, "THE PRIMARY IS BACK".to_owned());
        self.watch_until(began + self.options.duration).await;
        Ok(())
    }

    /// Waits for the operations that are under way; each ends by its deadline.
    async fn last_answers(&mut self, mut load: JoinHandle<u64>) -> Result<u64, BoxError> {
        let begun = loop {
            tokio::select! {
                Some(told) = self.told.recv() => self.hear(&told),
                begun = &mut load => break begun?,
            }
        };
        while let Ok(told) = self.told.try_recv() {
            self.hear(&told);
        }
        self.show_progress();
        Ok(begun)
    }

    async fn watch_until(&mut self, end: Instant) {
        loop {
            tokio::select! {
                biased;
                Some(told) = self.told.recv() => self.hear(&told),
                () = sleep_until(end) => return,
                _ = self.beat.tick() => self.show_progress(),
            }
        }
    }

    fn show_progress(&mut self) {
        let recent = {
            let ops = self.journal.ops();
            let recent = Counts::of(ops.get(self.seen..).unwrap_or_default());
            self.seen = ops.len();
            recent
        };
        self.shown.add(&recent);
        let at = self.journal.began().elapsed();
        self.screen.progress(at, &self.shown, &recent);
    }

    /// Writes down what the service told.
    fn hear(&mut self, (at, event): &Told) {
        // Data Lake is the same data and shares the circuits, so it has events of its own.
        if &*event.service != self.service.name() {
            return;
        }
        let at = at.saturating_duration_since(self.journal.began());
        let what = match event.kind {
            EventKind::Breaker {
                region,
                circuit,
                from,
                to,
                why,
                ..
            } => {
                if region == self.service.regions().writer() {
                    self.moments.circuit_turned(at, circuit, to);
                }
                let regions = self.service.regions();
                let name = regions.get(region).map_or("?", |region| region.name());
                format!("circuit of {circuit} of the {name}: {from} → {to} ({why})")
            }
            EventKind::Gate { to, why, .. } => {
                self.moments.gate_turned(at, to);
                format!("gate: {to} ({why})")
            }
            ref other => format!("{other:?}"),
        };
        self.happens(at, what);
    }

    fn happens(&mut self, at: Duration, what: String) {
        self.screen.event(at, &what);
        self.happened.push(Happened::new(at, what));
    }

    fn report(self, begun: u64, arrived: Arrived, books: story::Books) -> Report {
        let is_closed = |circuit| {
            self.service
                .circuit(&RegionRef::Primary, circuit)
                .is_ok_and(|state| state.phase == CircuitPhase::Closed && state.ramp.is_none())
        };
        let all_closed = [Circuit::Reads, Circuit::Writes].into_iter().all(is_closed);
        let standing = story::Standing {
            begun,
            arrived,
            books,
            all_closed,
            takes_writes: self.service.gate().status == GateStatus::ReadWrite,
        };
        Report::new(
            self.options,
            self.world.name(),
            self.moments,
            self.happened,
            &self.journal.ops(),
            &standing,
        )
    }
}
