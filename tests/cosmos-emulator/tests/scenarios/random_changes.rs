//! An account that changes without rest, by chance: what must hold whatever happens (R1, C4, C5).

use std::time::Duration;

use fastrand::Rng;

use crate::app::App;
use crate::peer::{CENTRAL, EAST, Peer, WEST};

const REGIONS: [&str; 3] = [WEST, EAST, CENTRAL];
const STEPS: usize = 120;

/// What the account goes through.
#[derive(Clone, Copy, Default)]
struct Account {
    hub: usize,
    /// Two writers are listed.
    is_failing_over: bool,
    drained: Option<usize>,
}

/// One change of the account that is possible now.
fn change(account: &mut Account, peer: &Peer, random: &mut Rng) {
    let control = peer.control();
    let region = random.usize(0..REGIONS.len());
    match random.u8(0..4) {
        0 if region != account.hub && account.drained != Some(region) => {
            control.complete_failover();
            control.begin_failover(REGIONS[region]).unwrap();
            account.hub = region;
            account.is_failing_over = true;
        }
        1 if account.is_failing_over => {
            control.complete_failover();
            account.is_failing_over = false;
        }
        2 if region != account.hub && !account.is_failing_over && account.drained.is_none() => {
            control.begin_region_removal(REGIONS[region]).unwrap();
            account.drained = Some(region);
        }
        3 => {
            if let Some(drained) = account.drained.take() {
                control.cancel_region_removal(REGIONS[drained]).unwrap();
            }
        }
        _ => {}
    }
}

/// R1, C4, C5: no write is lost or applied twice, no operation makes more than three sends, and
/// nothing but reads of the account goes to the global host.
async fn holds_for(seed: u64) {
    let mut random = Rng::with_seed(seed);
    let peer = Peer::single(&REGIONS).await;
    let (app, _reader) = App::with(&peer, |settings| {
        settings
            .preferred([CENTRAL, EAST])
            .mark_for(Duration::from_millis(random.u64(1..100)))
    });
    let mut account = Account::default();
    let mut written = vec![];
    for step in 0..STEPS {
        if random.u8(0..3) == 0 {
            change(&mut account, &peer, &mut random);
        }
        peer.take();
        if written.is_empty() || random.bool() {
            let id = format!("{step:03}");
            let created = app.create(&id).await.unwrap();
            assert_eq!(created.status, 201, "seed {seed}, step {step}");
            written.push(id);
        } else {
            let id = &written[random.usize(0..written.len())];
            let read = app.read(id).await.unwrap();
            assert_eq!(read.status, 200, "seed {seed}, step {step}");
        }
        let sends = peer.take().data;
        assert!(sends.len() <= 3, "seed {seed}, step {step}: {sends:?}");
        let strangers = sends.iter().any(|send| send.contains("global"));
        assert!(!strangers, "seed {seed}, step {step}: {sends:?}");
    }
    assert_eq!(peer.stored(REGIONS[account.hub]).await, written);
}

#[tokio::test]
async fn no_write_is_lost_or_doubled_while_the_account_changes() {
    for seed in 0..10 {
        holds_for(seed).await;
    }
}
