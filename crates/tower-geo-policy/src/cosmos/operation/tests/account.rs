//! Waiting for the first topology: C3; which topology holds: C3, C13.

use http::StatusCode;

use super::*;

/// C3: operations wait for the first topology.
#[test]
fn the_first_operation_waits_for_the_account() {
    let mut bench = Bench::single(&[WEST]);
    bench.read_takes = Duration::from_millis(40);
    let ran = bench.run(begin(RequestKind::Read), well);
    ran.answered(&[WEST], 200);
    assert_eq!(ran.times(), [1_040]);
    assert_eq!(bench.reads.len(), 1);
}

/// C3: 401 and 403 end it, without asking another host; the next operation reads again.
#[test]
fn a_refused_account_read_ends_the_operation() {
    for status in [401, 403] {
        let mut bench = Bench::single(&[WEST]);
        bench.account_says(500, status, b"{}");
        let ran = bench.run(begin(RequestKind::Read), well);
        let code = StatusCode::from_u16(status).unwrap();
        assert_eq!(ran.end, End::Misfit(Misfit::AccountRefused(code)));
        assert_eq!(bench.reads.len(), 1);
        bench.changes(1_500, &[EAST, WEST], &[EAST], false);
        bench.read(2_000, well).answered(&[WEST], 200);
        assert_eq!(bench.reads.len(), 2);
    }
}

/// C3: if the global host does not answer at start, the preferred regional hosts are tried, in
/// order; if none answers: *transport*.
#[test]
fn preferred_hosts_are_asked_when_the_global_one_is_silent() {
    let mut bench = Bench::single(&[WEST, "Japan East", EAST]);
    let host = |label: &str| format!("{label}.documents.azure.com");
    bench.deaf = vec![host("acct"), host("acct-westus"), host("acct-japaneast")];
    let ran = bench.run(begin(RequestKind::DocumentWrite), well);
    ran.answered(&[EAST], 200);
    let asked: Vec<_> = bench.reads.iter().map(|(_, host)| host.clone()).collect();
    assert_eq!(
        asked,
        ["acct", "acct-westus", "acct-japaneast", "acct-eastus"].map(host)
    );
    let mut bench = Bench::single(&[WEST]);
    bench.deaf = vec![host("acct"), host("acct-westus")];
    bench
        .run(begin(RequestKind::Read), well)
        .failed(&[], Failure::Transport);
}

/// C3: later reads ask the given host only, and a failed one keeps the topology.
#[test]
fn later_reads_ask_the_given_host_only() {
    let mut bench = Bench::single(&[WEST]);
    bench.read(1_000, well).answered(&[WEST], 200);
    bench.deaf = vec!["acct.documents.azure.com".to_owned()];
    bench.changes(2_000, &[EAST], &[EAST], false);
    bench.read(700_000, well).answered(&[WEST], 200);
    assert!(
        bench
            .reads
            .iter()
            .all(|(_, host)| host == "acct.documents.azure.com")
    );
    bench.deaf.clear();
    bench.read(1_000_000, well).answered(&[EAST], 200);
}

/// C3: the wait for the first topology ends at the deadline.
#[test]
fn the_deadline_ends_the_wait_for_the_account() {
    let mut bench = Bench::single(&[WEST]);
    bench.settings = bench.settings.clone().deadline(Duration::from_secs(2));
    assert_eq!(
        bench.account.read_step(bench.now),
        ReadStep::Begin,
        "and it hangs"
    );
    let mut operation = begin(RequestKind::Read);
    let finish = bench.next_send(&mut operation).unwrap_err();
    assert_eq!(finish, Finish::Failure(Failure::Transport));
    assert_eq!(ms(bench.now), 3_000);
}

/// C1, C3, C13: a preferred region that joins is taken up, one that leaves is left, and one that
/// returns is used again, under the same number.
#[test]
fn regions_come_and_go_and_return() {
    let settings = AccountSettings::new().preferred([CENTRAL, WEST]);
    let mut bench = Bench::new(settings, &[EAST, WEST], &[EAST], false);
    bench.read(2_000, well).answered(&[WEST], 200);
    bench.changes(10_000, &[EAST, WEST, CENTRAL], &[EAST], false);
    bench.read(20_000, well).answered(&[WEST], 200);
    bench.read(320_000, well).answered(&[CENTRAL], 200);
    let number = |bench: &Bench| {
        let topology = bench.account.topology();
        topology.listed_by_name(&RegionName::new(CENTRAL))
    };
    let before = number(&bench);
    bench.changes(330_000, &[EAST, WEST], &[EAST], false);
    bench.read(700_000, well).answered(&[WEST], 200);
    assert_eq!(number(&bench), None);
    bench.changes(710_000, &[EAST, WEST, CENTRAL], &[EAST], false);
    bench.read(1_300_000, well).answered(&[CENTRAL], 200);
    assert_eq!(number(&bench), before);
}

/// C3: an operation keeps its topology; only an account read that it waits for replaces it.
#[test]
fn an_operation_keeps_its_topology() {
    let mut bench = Bench::single(&[WEST]);
    bench.at(290_000);
    let mut operation = begin(RequestKind::Read);
    bench.send(&mut operation);
    bench.changes(295_000, &[EAST], &[EAST], false);
    bench.at(310_000);
    assert_eq!(bench.account.topology().readable().len(), 1);
    bench.answer(&mut operation, 503, 0);
    assert_eq!(bench.send(&mut operation).region, EAST);
    bench.answer(&mut operation, 503, 0);
    assert_eq!(bench.send(&mut operation).region, CENTRAL);
}

/// C4: no send goes to the global host once a topology is known, whatever fails.
#[test]
fn data_never_goes_to_the_global_host() {
    for reply in [
        answer(503),
        sub(403, 1008),
        fault(Fault::Connect),
        sub(404, 1002),
    ] {
        for kind in [
            RequestKind::Read,
            RequestKind::DocumentWrite,
            RequestKind::OtherWrite,
        ] {
            for mut bench in [Bench::single(&[WEST]), Bench::multi(&[WEST])] {
                let ran = bench.run(begin(kind), |_| reply);
                assert!(!ran.sends.is_empty());
                assert!(!ran.regions().contains(&"global"), "{reply:?} {kind:?}");
            }
        }
    }
}

/// C3: a document that takes requests off TLS is not taken.
#[test]
fn a_document_without_tls_is_refused() {
    let given = Endpoint::parse("http://acct.documents.test:8081").unwrap();
    let document = super::super::super::vectors::document_of(&[EAST], &[EAST], false);
    let mut bench = Bench::build(given, AccountSettings::new(), &document, None);
    bench
        .run(begin(RequestKind::Read), well)
        .failed(&[], Failure::Transport);
}

/// C7: a read that is asked for wakes the task that makes it, and only then.
#[test]
fn asking_wakes_the_reader() {
    use std::sync::atomic::{AtomicU32, Ordering};
    let bench = Bench::single(&[]);
    let woken = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&woken);
    bench.account.set_on_ask(move || {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    bench.account.ask(Cause::Circuit, at(0));
    bench.account.ask(Cause::Circuit, at(0));
    drop(bench.account.begin_read());
    assert_eq!(woken.load(Ordering::Relaxed), 3);
}
