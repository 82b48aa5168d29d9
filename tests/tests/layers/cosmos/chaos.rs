//! Whatever regions and account do: where data goes (R1, C4), and that nothing is lost (B7, C3).

use std::time::Duration;

use proptest::prelude::*;
use tower_geo::Circuit;

use super::*;

/// What the account may say: readable and writable regions.
const DOCUMENTS: [(&[&str], &[&str], bool); 5] = [
    (&["East US", "West US", "Central US"], &["East US"], false),
    (&["West US", "East US"], &["West US"], false),
    (&["East US", "Central US"], &["East US"], false),
    (
        &["East US", "West US", "Central US"],
        &["East US", "West US", "Central US"],
        true,
    ),
    (&["West US", "Central US"], &["West US", "Central US"], true),
];

const HOSTS: [&str; 4] = [GLOBAL, EAST, WEST, CENTRAL];

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => Just(OK),
        1 => Just(Act::Refuse),
        1 => Just(Act::Reset),
        1 => Just(Act::Hang),
        1 => prop::sample::select(vec![
            (500, 0), (503, 0), (408, 0), (410, 1022), (429, 0), (449, 0), (403, 3), (403, 1008),
            (404, 1002), (404, 0), (401, 0),
        ]).prop_map(|(status, sub)| Act::Answer(status, sub, 20)),
    ]
}

/// So long a host does one thing.
const EPOCH: Duration = Duration::from_secs(20);
const EPOCHS: usize = 15;

#[derive(Clone, Debug)]
struct Call {
    at: u64,
    is_write: bool,
    is_hub_only: bool,
    leaves_after: Option<u64>,
}

fn call() -> impl Strategy<Value = Call> {
    let millis = 0..u64::try_from(EPOCH.as_millis()).unwrap() * 15;
    (
        millis,
        any::<bool>(),
        prop::bool::weighted(0.2),
        prop::option::of(1_u64..8_000),
    )
        .prop_map(|(at, is_write, is_hub_only, leaves_after)| Call {
            at,
            is_write,
            is_hub_only,
            leaves_after,
        })
}

fn is_writer_in(document: usize, host: &str) -> bool {
    let named = |region: &&str| match *region {
        "East US" => host == EAST,
        "West US" => host == WEST,
        _ => host == CENTRAL,
    };
    DOCUMENTS[document].1.iter().any(named)
}

async fn play(acts: Vec<Vec<Act>>, documents: Vec<usize>, calls: Vec<Call>, hedges: bool) {
    let retry = if hedges {
        retry().hedge(ms(300))
    } else {
        retry()
    };
    let builder = account()
        .retry(retry.attempt_timeout(secs(3)).deadline(secs(40)))
        .breaker(breaker())
        .refresh(secs(60));
    let says = |document: usize| DOCUMENTS[document];
    let (readable, writable, multi) = says(documents[0]);
    let rig = Rig::of(World::new(readable, writable, multi), builder);
    rig.world.rule(move |seen| {
        let epoch = usize::try_from(seen.at.as_secs() / EPOCH.as_secs()).unwrap();
        let host = HOSTS.iter().position(|host| *host == seen.host)?;
        // The account is the account's, whatever a region does with data.
        let of_account = seen.path == "/" && host != 0;
        if of_account {
            None
        } else {
            acts.get(epoch)?.get(host).copied()
        }
    });
    let stack = rig.service.layer().clone_bodies().layer(rig.world.client());
    let started: Vec<_> = calls
        .into_iter()
        .map(|call| {
            let stack = stack.clone();
            tokio::spawn(async move {
                tokio::time::sleep(ms(call.at)).await;
                let request = match (call.is_write, call.is_hub_only) {
                    (false, _) => read(),
                    (true, false) => write(),
                    (true, true) => request(Method::POST, GLOBAL, "/dbs/shop/colls"),
                };
                let answer = stack.oneshot(request);
                match call.leaves_after {
                    Some(after) => drop(tokio::time::timeout(ms(after), answer).await),
                    None => drop(answer.await),
                }
            })
        })
        .collect();
    for (nth, &document) in documents.iter().enumerate() {
        if nth > 0 {
            tokio::time::sleep(secs(100)).await;
        }
        let (readable, writable, multi) = says(document);
        rig.world.becomes(readable, writable, multi);
    }
    for call in started {
        call.await.unwrap();
    }
    for seen in rig
        .world
        .sends()
        .iter()
        .filter(|seen| seen.purpose.is_none())
    {
        assert_ne!(seen.host, GLOBAL, "C4: {seen:?}");
        let may_write = documents.iter().any(|&it| is_writer_in(it, &seen.host));
        assert!(seen.method == Method::GET || may_write, "R1: {seen:?}");
    }
    // All is well again, and every mark, wait and period is over: nothing has stayed behind.
    rig.world.rule(|_| None);
    tokio::time::sleep(secs(1_200)).await;
    rig.world.forget();
    for _ in 0..4 {
        assert!(
            told(&rig.call(read()).await).starts_with("200 "),
            "{:?}",
            rig.service.cosmos()
        );
        assert!(
            told(&rig.call(write()).await).starts_with("200 "),
            "{:?}",
            rig.service.gate()
        );
        tokio::time::sleep(secs(1)).await;
    }
    let last = *documents.last().unwrap();
    let is_listed = |name: &str| DOCUMENTS[last].0.contains(&name);
    let best = if is_listed("West US") { WEST } else { EAST };
    let reads = rig.world.sends();
    let mut reads = reads
        .iter()
        .filter(|s| s.purpose.is_none() && s.method == Method::GET);
    assert!(
        reads.all(|seen| seen.host == best),
        "C13: back at the preferred region"
    );
    for region in rig.service.cosmos().unwrap().regions() {
        assert!(!region.is_marked(Circuit::Reads) && !region.is_marked(Circuit::Writes));
        let named = tower_geo::RegionRef::Named(region.name().to_owned());
        let (level, capacity) = rig.service.budget(&named).unwrap();
        assert!(level <= capacity);
    }
    rig.service.operator().writes_drained().await;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// R1, C4: no write reaches a region that the account never listed as a writer, and no data the
    /// global host. B7, C3, C13: afterwards everything works as if nothing had been.
    #[test]
    fn no_outage_leads_astray_or_leaves_traces(
        acts in prop::collection::vec(prop::collection::vec(act(), 4..=4), EPOCHS..=EPOCHS),
        documents in prop::collection::vec(0..DOCUMENTS.len(), 1..4),
        calls in prop::collection::vec(call(), 1..60),
        hedges in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(play(acts, documents, calls, hedges));
    }
}
