//! A fleet: how many clients, what they ask for, what the regions can do, what goes wrong.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime;
use tokio::task::JoinSet;
use tower_geo::{BoxError, RetrySettings};

use crate::client::Client;
use crate::log::Log;
use crate::outage::Outage;
use crate::random::{Purpose, stream};
use crate::region::{Capacity, Region, Side};
use crate::wire::World;

/// The product's own, by default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Retrying {
    /// How long one send may take.
    pub(crate) attempt_timeout: Option<Duration>,
    pub(crate) max_retries: Option<u32>,
    /// After how long a second region is asked.
    pub(crate) hedge: Option<Duration>,
}

impl Retrying {
    pub(crate) fn apply(&self, settings: RetrySettings) -> RetrySettings {
        let mut settings = settings.hedge(self.hedge);
        if let Some(timeout) = self.attempt_timeout {
            settings = settings.attempt_timeout(timeout);
        }
        if let Some(retries) = self.max_retries {
            settings = settings.max_retries(retries);
        }
        settings
    }
}

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Fleet {
    pub(crate) seed: u64,
    pub(crate) outage: Outage,
    pub(crate) clients: u32,
    /// Operations per second of each client.
    pub(crate) rate: f64,
    /// The share of them that writes.
    pub(crate) writes: f64,
    /// Whether each client waits for an answer before it asks for more.
    pub(crate) one_at_a_time: bool,
    /// How long a caller waits; `None`: as long as it takes.
    pub(crate) patience: Option<Duration>,
    pub(crate) retry: Retrying,
    /// Without circuits and without a budget: what is left is falling over, and repeating.
    pub(crate) bare: bool,
    /// What the regions can do, in multiples of what the fleet asks for.
    pub(crate) primary_capacity: f64,
    pub(crate) secondary_capacity: f64,
    /// How long the last one in a full queue waits.
    pub(crate) queue: Duration,
    /// How long all is well at first.
    pub(crate) before: Duration,
    /// How long the outage lasts.
    pub(crate) length: Duration,
    /// How long it goes on after the outage.
    pub(crate) after: Duration,
}

impl Fleet {
    /// Twenty clients with ten operations per second each, a tenth of them writes, that meet an
    /// outage of a minute and a half; both regions can do twice as much.
    pub(crate) const fn new(outage: Outage) -> Self {
        Self {
            seed: 0,
            outage,
            clients: 20,
            rate: 10.0,
            writes: 0.1,
            one_at_a_time: false,
            patience: None,
            retry: Retrying {
                attempt_timeout: None,
                max_retries: None,
                hedge: None,
            },
            bare: false,
            primary_capacity: 2.0,
            secondary_capacity: 2.0,
            queue: Duration::from_secs(2),
            before: Duration::from_secs(20),
            length: Duration::from_secs(92),
            after: Duration::from_secs(150),
        }
    }

    /// A run of the gallery: what is special about each outage, beyond what goes wrong.
    pub(crate) fn of_gallery(outage: Outage) -> Self {
        let mut fleet = Self::new(outage);
        match outage {
            Outage::BlackHole => fleet.patience = Some(Duration::from_secs(2)),
            Outage::OnlyWrites => fleet.writes = 1.0,
            Outage::RecoveryStampede => {
                fleet.clients *= 4;
                fleet.primary_capacity = 1.25;
            }
            _ => {}
        }
        fleet
    }

    /// Operations per second of all clients.
    pub(crate) fn load(&self) -> f64 {
        f64::from(self.clients) * self.rate
    }

    /// When the outage ends.
    pub(crate) fn until(&self) -> Duration {
        self.before + self.length
    }

    /// When clients ask for nothing more.
    pub(crate) fn end(&self) -> Duration {
        self.until() + self.after
    }

    /// Plays it.
    ///
    /// # Errors
    ///
    /// When the settings make no sense, or there is no runtime to be had.
    pub(crate) fn play(&self) -> Result<Log, BoxError> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()?;
        runtime.block_on(self.live())
    }

    async fn live(&self) -> Result<Log, BoxError> {
        let spells = self.outage.spells(self.before, self.until());
        let region = |side, times: f64, index| {
            let capacity = Capacity {
                per_second: self.load() * times,
                queue: self.queue,
            };
            let random = stream(self.seed, Purpose::Region(index));
            Region::new(side, capacity, &spells, random)
        };
        let world = Arc::new(World::new(
            region(Side::Primary, self.primary_capacity, 0),
            region(Side::Secondary, self.secondary_capacity, 1),
        ));
        let mut clients = JoinSet::new();
        for number in 0..self.clients {
            let client = Client::new(number, self, &world)?;
            clients.spawn(client.run(self.clone()));
        }
        while let Some(ended) = clients.join_next().await {
            ended?;
        }
        let log = std::mem::take(&mut *world.log());
        Ok(log)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever finds something here can find it again.
    #[test]
    fn a_run_can_be_repeated() {
        let mut fleet = Fleet::new(Outage::HardDown);
        fleet.clients = 5;
        fleet.length = Duration::from_secs(20);
        fleet.after = Duration::from_secs(60);
        let play = |fleet: &Fleet| {
            let log = fleet.play().unwrap();
            let sends: Vec<_> = log
                .sends
                .iter()
                .map(|send| (send.at, send.client, send.side, send.failed))
                .collect();
            (sends, log.operations.len(), log.turns.len())
        };
        let first = play(&fleet);
        assert_eq!(first, play(&fleet));
        fleet.seed = 1;
        assert_ne!(first, play(&fleet));
    }
}
