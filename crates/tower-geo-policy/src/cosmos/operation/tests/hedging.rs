//! A second region beside the first: H1 to H3, C11, C15.

use super::*;
use crate::operation::Fate;

/// A read of an account with three regions, one of which writes, whose first send is under way.
fn begun(settings: AccountSettings, hedge: u64) -> (Bench, Operation) {
    let settings = settings.preferred([WEST]);
    let mut bench = Bench::new(settings, &[EAST, WEST, CENTRAL], &[EAST], false);
    bench.settings = bench.settings.clone().hedge(Duration::from_millis(hedge));
    bench.at(60_000);
    let mut operation = begin(RequestKind::Read);
    assert_eq!(bench.send(&mut operation).region, WEST);
    (bench, operation)
}

const DELIVERED: Fate = Fate::Deliver { told: true };

/// H1: the next region in order, once, after the wait; it costs five tokens.
#[test]
fn a_read_is_hedged_once() {
    let (mut bench, mut operation) = begun(AccountSettings::new(), 100);
    assert_eq!(operation.hedge_at(&bench.settings), Some(at(60_100)));
    bench.at(60_100);
    assert_eq!(bench.hedge(&mut operation).as_deref(), Some(EAST));
    assert_eq!(
        (operation.kind(), operation.attempt()),
        (SendKind::Hedge, 2)
    );
    assert_eq!(bench.budgets[operation.region().index()].level(), 495);
    assert!(operation.is_hedging());
    assert_eq!(operation.hedge_at(&bench.settings), None);
    bench.at(60_130);
    assert_eq!(bench.fate_of(&mut operation, 200, 0), DELIVERED);
    operation.give_other_up(bench.now);
    let trail = operation.take_trail();
    let kinds: Vec<_> = trail.sends().iter().map(|send| send.kind).collect();
    assert_eq!(kinds, [SendKind::First, SendKind::Hedge]);
}

/// H2, C15: what is no final answer waits for the other; 404/1002, 403/1008, 410/1022 and 449 are
/// none, 401 and 404/0 are.
#[test]
fn a_fast_failure_does_not_win() {
    for (status, sub, wins) in [
        (404, 1002, false),
        (403, 1008, false),
        (410, 1022, false),
        (449, 0, false),
        (429, 0, false),
        (503, 0, false),
        (401, 0, true),
        (403, 0, true),
        (404, 0, true),
        (412, 0, true),
    ] {
        let (bench, mut operation) = begun(AccountSettings::new(), 100);
        assert!(bench.hedge(&mut operation).is_some());
        let fate = bench.fate_of(&mut operation, status, sub);
        assert_eq!(fate == DELIVERED, wins, "{status}/{sub}");
        if !wins {
            operation.wait_for_other();
            assert_eq!(operation.kind(), SendKind::First);
            assert_eq!(bench.fate_of(&mut operation, 200, 0), DELIVERED);
        }
    }
}

/// C6, H2: the writer lacks the session, too; that is final once the other region was heard.
#[test]
fn the_writer_decides_also_as_a_hedge() {
    let (bench, mut operation) = begun(AccountSettings::new(), 100);
    assert_eq!(bench.hedge(&mut operation).as_deref(), Some(EAST));
    assert_eq!(bench.fate_of(&mut operation, 404, 1002), Fate::Hold);
    operation.wait_for_other();
    assert_eq!(bench.fate_of(&mut operation, 404, 1002), DELIVERED);
}

/// H1: when both have failed it goes on as without a hedge.
#[test]
fn after_both_have_failed_comes_the_next_region() {
    let (mut bench, mut operation) = begun(AccountSettings::new(), 100);
    assert_eq!(bench.hedge(&mut operation).as_deref(), Some(EAST));
    operation.speak_of_hedge(false);
    assert_eq!(bench.fate_of(&mut operation, 503, 0), Fate::Hold);
    operation.wait_for_other();
    assert_eq!(bench.fate_of(&mut operation, 503, 0), Fate::Hold);
    assert_eq!(bench.send(&mut operation).region, CENTRAL);
}

/// C11, H3, C15: not to an excluded region, nor with a poor bucket, nor where the account forbids
/// it; H1: no write.
#[test]
fn not_every_read_is_hedged() {
    let (bench, mut operation) = begun(AccountSettings::new().excluded([EAST]), 100);
    assert_eq!(bench.hedge(&mut operation).as_deref(), Some(CENTRAL));

    let (bench, mut operation) = begun(AccountSettings::new(), 100);
    for bucket in &bench.budgets {
        assert!(bucket.try_pay(251));
    }
    assert_eq!(bench.hedge(&mut operation), None);

    let (bench, mut operation) = begun(AccountSettings::new(), 100);
    operation.set_excluded([EAST, CENTRAL]);
    assert_eq!(bench.hedge(&mut operation), None);

    let mut bench = Bench::single(&[]);
    bench.settings = bench.settings.clone().hedge(Duration::from_millis(100));
    let mut write = begin(RequestKind::DocumentWrite);
    bench.send(&mut write);
    assert_eq!(write.hedge_at(&bench.settings), None);
}

/// C15: the account's switch is honoured.
#[test]
fn an_account_may_forbid_hedging() {
    let body = br#"{
        "readableLocations": [
            {"name": "East US", "databaseAccountEndpoint": "https://acct-eastus.documents.azure.com"},
            {"name": "West US", "databaseAccountEndpoint": "https://acct-westus.documents.azure.com"}],
        "writableLocations": [
            {"name": "East US", "databaseAccountEndpoint": "https://acct-eastus.documents.azure.com"}],
        "disableCrossRegionalHedging": true}"#;
    let mut bench = Bench::of_document(AccountSettings::new(), body);
    bench.settings = bench.settings.clone().hedge(Duration::from_millis(100));
    let mut operation = begin(RequestKind::Read);
    bench.send(&mut operation);
    assert_eq!(operation.hedge_at(&bench.settings), None);
}
