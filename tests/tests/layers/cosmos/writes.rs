//! Where writes go, and when they are sent again: C2, C5, C7, C8, C12, I7, V1.

use super::*;

const TENTATIVE: &str = "x-ms-cosmos-allow-tentative-writes";

/// C2, C12: a write to another region than the hub says that it is tentative. The copy that is sent
/// to the hub afterwards does not.
#[tokio::test(start_paused = true)]
async fn tentative_writes_say_so() {
    let rig = Rig::new(World::multi());
    assert_eq!(told(&rig.call(write()).await), "200 West US");
    rig.world
        .rule(|seen| (seen.host == WEST).then_some(Act::Answer(503, 0, 5)));
    assert_eq!(told(&rig.call(write()).await), "200 East US");
    let tentative: Vec<_> = rig
        .world
        .sends()
        .iter()
        .filter(|seen| seen.purpose.is_none())
        .map(|seen| seen.headers.contains_key(TENTATIVE))
        .collect();
    assert_eq!(tentative, [true, true, false]);
    // What is not of documents belongs to the hub.
    let create = request(Method::POST, GLOBAL, "/dbs/shop/colls");
    assert_eq!(told(&rig.call(create).await), "200 East US");
    let rig = Rig::new(World::single());
    assert_eq!(told(&rig.call(write()).await), "200 East US");
    assert!(
        rig.world
            .sends()
            .iter()
            .all(|seen| !seen.headers.contains_key(TENTATIVE))
    );
}

/// C5: after a failover the old writer refuses; the write goes to the new one, and so do all later
/// ones at once.
#[tokio::test(start_paused = true)]
async fn a_write_follows_a_failover() {
    let rig = Rig::new(World::single());
    assert_eq!(told(&rig.call(write()).await), "200 East US");
    rig.world
        .becomes(&["West US", "East US"], &["West US"], false);
    rig.world.rule(|seen| {
        (seen.host == EAST && seen.method == Method::POST).then_some(Act::Answer(403, 3, 5))
    });
    rig.world.forget();
    assert_eq!(told(&rig.call(write()).await), "200 West US");
    assert_eq!(rig.world.hosts(), [EAST, WEST]);
    assert_eq!(rig.world.reads(), [GLOBAL]);
    rig.world.forget();
    assert_eq!(told(&rig.call(write()).await), "200 West US");
    assert_eq!(rig.world.hosts(), [WEST]);
    // The gate follows the new writer (G1).
    let west = tower_geo::RegionRef::Named("West US".into());
    rig.service.operator().force_open(&west).unwrap();
    assert_eq!(told(&rig.call(write()).await), "read-only");
}

/// C7, V1: a single-write account's writes are not sent again when they may have been applied.
#[tokio::test(start_paused = true)]
async fn a_write_that_may_have_been_applied_is_not_sent_again() {
    for (act, word) in [
        (Act::Reset, "unknown-outcome"),
        (Act::Hang, "unknown-outcome"),
        (Act::Answer(503, 0, 5), "503 East US"),
        (Act::Answer(500, 0, 5), "500 East US"),
    ] {
        let rig = Rig::new(World::single());
        assert_eq!(told(&rig.call(read()).await), "200 West US");
        rig.world
            .rule(move |seen| (seen.host == EAST).then_some(act));
        rig.world.forget();
        assert_eq!(told(&rig.call(write()).await), word, "{act:?}");
        assert_eq!(rig.world.hosts(), [EAST], "{act:?}");
    }
}

/// I7: a stored procedure is sent once unless it surely did not run.
#[tokio::test(start_paused = true)]
async fn a_stored_procedure_runs_once() {
    let rig = Rig::new(World::multi());
    let run = || request(Method::POST, GLOBAL, "/dbs/shop/colls/orders/sprocs/sweep");
    assert_eq!(told(&rig.call(run()).await), "200 West US");
    rig.world
        .rule(|seen| (seen.host == WEST).then_some(Act::Answer(503, 0, 5)));
    rig.world.forget();
    assert_eq!(told(&rig.call(run()).await), "503 West US");
    rig.world
        .rule(|seen| (seen.host == WEST).then_some(Act::Refuse));
    assert_eq!(told(&rig.call(run()).await), "200 East US");
    assert_eq!(rig.world.hosts(), [WEST, WEST, WEST, EAST]);
}

/// I7: a query in a POST is a read.
#[tokio::test(start_paused = true)]
async fn a_query_is_read_where_reads_go() {
    let rig = Rig::new(World::single());
    let mut query = write();
    query
        .headers_mut()
        .insert("x-ms-documentdb-isquery", "True".parse().unwrap());
    assert_eq!(told(&rig.call(query).await), "200 West US");
}

/// C8: the writer cannot be reached and the account still has it: the write waits for the read of
/// the account, then ends, and nothing was sent.
#[tokio::test(start_paused = true)]
async fn a_write_without_another_writer_ends() {
    let rig = Rig::new(World::single());
    assert_eq!(told(&rig.call(read()).await), "200 West US");
    rig.world
        .rule(|seen| (seen.host == EAST).then_some(Act::Refuse));
    rig.world.forget();
    let error = rig.call(write()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport);
    assert!(error.was_never_sent());
    assert!(rig.world.hosts().iter().all(|host| host == EAST));
    assert_eq!(rig.world.reads(), [GLOBAL]);
    assert!(error.to_string().contains("East US"), "{error}");
}

/// R1: whatever happens, no write reaches a region that takes none.
#[tokio::test(start_paused = true)]
async fn no_write_reaches_a_reader() {
    let rig = Rig::new(World::single());
    for act in [
        Act::Refuse,
        Act::Reset,
        Act::Answer(403, 1008, 5),
        Act::Answer(429, 0, 5),
        OK,
    ] {
        rig.world
            .rule(move |seen: &Seen| (seen.host == EAST).then_some(act));
        let _ = rig.call(write()).await;
    }
    let by_name = request(Method::POST, WEST, "/dbs/shop/colls/orders/docs");
    assert_eq!(told(&rig.call(by_name).await), "config");
    assert!(rig.world.hosts().iter().all(|host| host == EAST));
}
