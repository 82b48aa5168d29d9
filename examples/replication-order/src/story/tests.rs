//! F4: the T0 to T6 table, step by step.

use super::*;

fn read(value: Option<&str>, freshness: &'static str) -> Read {
    Read {
        value: value.map(str::to_owned),
        freshness,
    }
}

/// F4: what is read from the secondary after each step, and what it is worth.
#[tokio::test]
async fn the_count_overtakes_the_employee_and_the_last_sync_time_tells() {
    let rows = play().await.unwrap();
    let steps: Vec<_> = rows.iter().map(|row| row.step).collect();
    assert_eq!(steps, [0, 1, 2, 3, 4, 5, 6]);
    let [t0, t1, t2, t3, t4, t5, t6] = rows.try_into().unwrap();
    let one = read(Some("one"), "consistent");
    let inserted = read(Some("inserted"), "consistent");
    let two_in_doubt = read(Some("two"), "possibly-inconsistent");

    // T0: A is in the primary only. What is not there has no time.
    assert_eq!(t0.last_sync, -1);
    assert_eq!(t0.employee, read(None, "unknown"));
    assert_eq!(t0.administrators, one);

    // T1: A has been replicated, and the Last Sync Time says so.
    assert_eq!(t1.last_sync, 1);
    assert_eq!((&t1.employee, &t1.administrators), (&inserted, &one));

    // T2 and T3: B and C are in the primary; nothing has changed in the secondary.
    for row in [t2, t3] {
        assert_eq!(row.last_sync, 1);
        assert_eq!((&row.employee, &row.administrators), (&inserted, &one));
    }

    // T4: C overtakes B. The Last Sync Time stands, because B is not there.
    assert_eq!(t4.last_sync, 1);
    assert_eq!(t4.administrators, two_in_doubt);

    // T5: the employee is old and nothing shows it; the count is newer than the Last Sync Time.
    assert_eq!(t5.last_sync, 1);
    assert_eq!(
        (&t5.employee, &t5.administrators),
        (&inserted, &two_in_doubt)
    );

    // T6: B has arrived. All transactions up to C are there.
    assert_eq!(t6.last_sync, 6);
    assert_eq!(t6.employee, read(Some("updated"), "consistent"));
    assert_eq!(t6.administrators, read(Some("two"), "consistent"));
}

#[tokio::test]
async fn the_table_shows_every_step() {
    let text = table(&play().await.unwrap());
    for step in 0..=6 {
        assert!(
            text.lines()
                .any(|line| line.starts_with(&format!("T{step} "))),
            "{text}"
        );
    }
    assert!(text.contains("two (possibly-inconsistent)"), "{text}");
    assert!(text.lines().all(|line| line.len() <= 140), "{text}");
}
