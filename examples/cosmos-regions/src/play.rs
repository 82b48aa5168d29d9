//! What happens when: an account, a client, and four changes.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::{Instant, sleep_until};
use tower_geo::{BoxError, Event, EventKind};

use crate::account::{Account, Region, Role};
use crate::client::client;
use crate::hosts::Hosts;
use crate::load::{self, End, Journal, Kind, Op, SEEDS, id_of};
use crate::options::{Format, Options};
use crate::report::{Happened, Report};
use crate::story::{self, Moments};

/// A step of the story.
struct Change {
    /// When, in parts of the whole.
    at: f64,
    what: &'static str,
    make: fn(&Hosts),
    moment: fn(&mut Moments) -> &mut Duration,
}

/// The steps, in order of time. A real account takes minutes for what takes seconds here.
const STORY: [Change; 6] = [
    Change {
        at: 0.15,
        what: "WEST US LEAVES: it refuses everything (403/1008), and is still listed",
        make: |hosts| hosts.account().set_role(Region::West, Role::Gone),
        moment: |moments| &mut moments.leaves,
    },
    Change {
        at: 0.30,
        what: "West US is listed no longer",
        make: |hosts| hosts.account().readable = vec![Region::East],
        moment: |moments| &mut moments.has_left,
    },
    Change {
        at: 0.35,
        what: "CENTRAL US JOINS: it is listed, and answers reads",
        make: |hosts| {
            let mut account = hosts.account();
            account.set_role(Region::Central, Role::Reader);
            account.readable = vec![Region::East, Region::Central];
        },
        moment: |moments| &mut moments.joins,
    },
    Change {
        at: 0.55,
        what: "THE WRITER MOVES: both are listed, East US refuses writes (403/3) already",
        make: |hosts| {
            let mut account = hosts.account();
            account.set_role(Region::East, Role::Reader);
            account.set_role(Region::Central, Role::Writer);
            account.writable = vec![Region::Central, Region::East];
            account.readable = vec![Region::Central, Region::East];
        },
        moment: |moments| &mut moments.moves,
    },
    Change {
        at: 0.65,
        what: "Central US is the only writer that is listed",
        make: |hosts| hosts.account().writable = vec![Region::Central],
        moment: |moments| &mut moments.has_moved,
    },
    Change {
        at: 0.75,
        what: "THE WRITER IS LOST: the name of Central US is withdrawn, East US writes",
        make: |hosts| {
            lose(&mut hosts.account());
            hosts.withdraw(Region::Central);
        },
        moment: |moments| &mut moments.lost,
    },
];

fn lose(account: &mut Account) {
    account.set_role(Region::East, Role::Writer);
    account.writable = vec![Region::East];
    account.readable = vec![Region::East];
}

/// Plays the story.
///
/// # Errors
///
/// When it could not be played at all: no free ports.
pub(crate) async fn play(options: &Options) -> Result<Report, BoxError> {
    let hosts = Hosts::start().await?;
    for number in 0..SEEDS {
        hosts.account().seed(&id_of(Kind::Read, number));
    }
    let (tell_event, events) = mpsc::unbounded_channel();
    let listener = move |event: &Event| {
        // Nobody listens any more when the story is over.
        let _ = tell_event.send((Instant::now(), event.clone()));
    };
    let (_service, documents, _reader) = client(hosts.endpoint(), hosts.names(), listener)?;
    let (tell_op, ops) = mpsc::unbounded_channel();
    let journal = Arc::new(Journal::begin(tell_op));
    let load = tokio::spawn(load::run(
        documents,
        hosts.endpoint().to_owned(),
        options.rate,
        options.duration,
        Arc::clone(&journal),
    ));
    let mut stage = Stage {
        began: journal.began(),
        shows: options.format == Format::Text,
        events,
        ops,
        answers: Vec::new(),
        happened: Vec::new(),
    };
    stage.happens(
        Duration::ZERO,
        format!("reading and writing, {} operations a second", options.rate),
    );
    let mut moments = Moments::default();
    for change in STORY {
        let due = stage.began + options.duration.mul_f64(change.at);
        stage.watch_until(due).await;
        let at = stage.began.elapsed();
        *(change.moment)(&mut moments) = at;
        // Told first: what follows from it may be quicker than the line.
        stage.happens(at, change.what.to_owned());
        (change.make)(&hosts);
    }
    stage.watch_until(stage.began + options.duration).await;
    let begun = load.await?;
    stage.hear_the_rest();
    let ops = journal.ops();
    let claims = story::claims(options.duration, begun, &ops, &moments, &hosts.account());
    Ok(Report::new(options, &moments, &ops, claims, stage.happened))
}

/// What was seen so far.
struct Stage {
    began: Instant,
    shows: bool,
    events: UnboundedReceiver<(Instant, Event)>,
    ops: UnboundedReceiver<Op>,
    /// By kind: when the last operation began that a region answered, and which region.
    answers: Vec<(Kind, Duration, Region)>,
    happened: Vec<Happened>,
}

impl Stage {
    async fn watch_until(&mut self, end: Instant) {
        loop {
            tokio::select! {
                biased;
                Some((at, event)) = self.events.recv() => self.hear(at, &event),
                Some(op) = self.ops.recv() => self.see(&op),
                () = sleep_until(end) => return,
            }
        }
    }

    fn hear_the_rest(&mut self) {
        while let Ok((at, event)) = self.events.try_recv() {
            self.hear(at, &event);
        }
        while let Ok(op) = self.ops.try_recv() {
            self.see(&op);
        }
    }

    fn hear(&mut self, at: Instant, event: &Event) {
        let what = match event.kind {
            EventKind::Breaker {
                region,
                circuit,
                from,
                to,
                why,
                ..
            } => {
                let name = event.region_name(region);
                format!("circuit of {circuit} of {name}: {from} → {to} ({why})")
            }
            EventKind::Gate { to, why, .. } => format!("gate: {to} ({why})"),
            // Further sends are told by what their operations come to.
            _ => return,
        };
        self.happens(at.saturating_duration_since(self.began), what);
    }

    /// Tells when another region answers than before.
    fn see(&mut self, op: &Op) {
        let region = match &op.end {
            End::Done(region) => *region,
            End::Unknown => {
                let what = "a write was cut off, and nobody knows whether it was applied";
                return self.happens(op.ended(), what.to_owned());
            }
            End::Failed { why } => {
                let what = format!("one of the {} failed: {why}", op.kind);
                return self.happens(op.ended(), what);
            }
        };
        let known = self.answers.iter_mut().find(|(kind, ..)| *kind == op.kind);
        let told = match known {
            // One that began earlier and took longer says nothing about now.
            Some((_, at, _)) if *at > op.at => return,
            Some((_, at, before)) => {
                let told = format!(
                    "{} are answered by {region}, no longer by {before}",
                    op.kind
                );
                let is_other = *before != region;
                (*at, *before) = (op.at, region);
                is_other.then_some(told)
            }
            None => {
                self.answers.push((op.kind, op.at, region));
                Some(format!("{} are answered by {region}", op.kind))
            }
        };
        if let Some(told) = told {
            self.happens(op.ended(), told);
        }
    }

    fn happens(&mut self, at: Duration, what: String) {
        if self.shows {
            crate::print(&format!("{:>8.3} s  {what}", at.as_secs_f64()));
        }
        self.happened.push(Happened::new(at, what));
    }
}
