//! What holds whatever the account says, the regions do and the caller asks for: R1, C4, C6 to C9,
//! C11. The judge is the list of sends.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

const REGIONS: [&str; 4] = [EAST, WEST, CENTRAL, "Japan East"];

fn replies() -> impl Strategy<Value = Reply> {
    prop_oneof![
        Just(answer(200)),
        Just(answer(404)),
        Just(answer(500)),
        Just(answer(503)),
        Just(answer(408)),
        Just(answer(449)),
        Just(sub(403, 3)),
        Just(sub(403, 1008)),
        Just(sub(404, 1002)),
        Just(sub(410, 1022)),
        Just(throttled(3200, 100)),
        Just(throttled(3092, 100)),
        Just(fault(Fault::Connect)),
        Just(fault(Fault::Reset)),
        Just(silence()),
    ]
}

/// Which regions are readable and which take writes; the first of a rotation of all is the hub.
fn accounts() -> impl Strategy<Value = (Vec<&'static str>, Vec<&'static str>, bool)> {
    (0..4_usize, 1..=4_usize, 1..=4_usize, any::<bool>()).prop_map(
        |(turn, readable, writers, multi)| {
            let mut all = REGIONS;
            all.rotate_left(turn);
            let writers = writers.min(readable);
            (all[..readable].to_vec(), all[..writers].to_vec(), multi)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_send_breaks_a_rule(
        first in accounts(),
        second in accounts(),
        preferred in proptest::sample::subsequence(REGIONS.to_vec(), 0..=4),
        excluded in proptest::sample::subsequence(REGIONS.to_vec(), 0..=2),
        opt_in in any::<bool>(),
        replayable in any::<bool>(),
        kinds in proptest::collection::vec(0..4_u8, 1..8),
        world in proptest::collection::vec(replies(), 40),
    ) {
        let settings = AccountSettings::new()
            .preferred(&preferred)
            .excluded(&excluded)
            .multi_write(opt_in);
        let mut bench = Bench::new(settings, &first.0, &first.1, first.2);
        bench.settings = bench.settings.clone().attempt_timeout(Duration::from_secs(2));
        bench.changes(4_000, &second.0, &second.1, second.2);
        let mut replies = world.iter().copied().cycle();
        for (kind, time) in kinds.into_iter().zip((2_000..).step_by(100_000)) {
            let kind = match kind {
                0 => RequestKind::Read,
                1 => RequestKind::DocumentWrite,
                2 => RequestKind::Procedure,
                _ => RequestKind::OtherWrite,
            };
            bench.at(time.max(ms(bench.now)));
            let mut operation = begin(kind);
            if replayable {
                operation.set_options(&RequestOptions::new().replayable());
            }
            let mut given: Vec<(String, Reply)> = Vec::new();
            let ran = bench.run(operation, |region| {
                let reply = replies.next().unwrap();
                given.push((region.to_owned(), reply));
                reply
            });
            let is_write = kind != RequestKind::Read;
            let mut transient: HashMap<&str, u32> = HashMap::new();
            for (index, (region, reply)) in given.iter().enumerate() {
                // C4.
                prop_assert_ne!(region.as_str(), "global");
                // R1: some document of this account listed it as a writer. (The bench checks
                // that the destination is one of the topology of this send.)
                let listed = |account: &(Vec<&str>, Vec<&str>, bool)| account.1.contains(&region.as_str());
                prop_assert!(!is_write || listed(&first) || listed(&second), "{:?}", given);
                // C11.
                if !is_write {
                    prop_assert!(!excluded.contains(&region.as_str()));
                }
                // C7, I7: a write is not sent again after an answer that leaves it open.
                let last = index + 1 == given.len();
                let told = format!("{reply:?}");
                let open = told.contains("Silence") || told.contains("Reset")
                    || told.contains("status: 500") || told.contains("status: 408")
                    || told.contains("status: 410");
                if is_write && open && (!replayable || kind != RequestKind::DocumentWrite) {
                    prop_assert!(last, "{:?}", given);
                }
                if open || told.contains("status: 503") || told.contains("sub: 1002") {
                    *transient.entry(region).or_default() += 1;
                }
            }
            // C6, C7: no region that failed is asked again.
            prop_assert!(transient.values().all(|&times| times == 1), "{:?}", given);
            // C5, C8, C9: bounded, and over within the deadline.
            prop_assert!(given.len() < 60);
            prop_assert!(ran.done <= ms(bench.now));
            if let Some(first) = ran.sends.first() {
                prop_assert!(ran.done - first.at <= 62_000);
            }
        }
    }
}
