//! F1, in paused time.

use std::time::SystemTime;

use http::header::DATE;
use tower_geo_policy::breaker::Circuit;
use tower_geo_policy::freshness::ReplicationStatus;
use tower_geo_policy::operation::RegionRef;

use super::*;
use crate::Account;
use crate::test_wire::{Act, RequestBody, ResponseBody, Wire, stats, status};

const TEN: &str = "Mon, 01 Jun 2026 10:00:00 GMT";

fn time(date: &str) -> SystemTime {
    httpdate::parse_http_date(date).unwrap()
}

fn blob() -> GeoService {
    GeoService::azure_storage("https://contoso.blob.core.windows.net")
        .threads(1)
        .build()
        .unwrap()
}

fn exact() -> LastSyncSettings {
    LastSyncSettings::new().jitter(0.0)
}

fn spawn(service: &GeoService, settings: &LastSyncSettings, wire: &Wire) -> BackgroundTask {
    service
        .spawn_last_sync::<_, RequestBody, ResponseBody>(settings, wire.clone())
        .unwrap()
}

async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// F1 and F3: the value, and the copy's own clock carried on by ours.
#[tokio::test(start_paused = true)]
async fn a_poll_tells_the_time_at_start_and_at_the_interval() {
    let wire = Wire::new(|_| {
        let mut response = stats("live", TEN);
        let date = http::HeaderValue::from_static("Mon, 01 Jun 2026 10:04:00 GMT");
        response.headers_mut().insert(DATE, date);
        Act::Answer(response)
    });
    let service = blob();
    assert_eq!(service.last_sync().time, None);
    let polls = spawn(&service, &exact(), &wire);
    settle().await;
    let known = service.last_sync();
    assert_eq!(known.time, Some(time(TEN)));
    assert_eq!(known.status, Some(ReplicationStatus::Live));
    tokio::time::sleep(Duration::from_secs(20)).await;
    let age = Duration::from_millis(20_001);
    assert_eq!(service.last_sync().age, Some(age));
    assert_eq!(
        service.last_sync().behind,
        Some(Duration::from_secs(240) + age)
    );
    tokio::time::sleep(Duration::from_secs(45)).await;
    assert_eq!(wire.seconds(), [0, 30, 60]);
    let uri = "https://contoso-secondary.blob.core.windows.net/?restype=service&comp=stats";
    assert!(
        wire.seen()
            .iter()
            .all(|seen| seen.uri == uri && seen.purpose == "last-sync")
    );
    polls.stop();
}

/// F1: a poll that fails leaves value and age, whatever the failure; polls do not count.
#[tokio::test(start_paused = true)]
async fn a_poll_that_fails_leaves_value_and_age() {
    let wire = Wire::new(|before| match before {
        0 => Act::Answer(stats("live", TEN)),
        1 => Act::Answer(status(503)),
        2 => Act::Hang,
        3 => Act::Panic,
        4 => Act::Fail("no".into()),
        5 => Act::Answer(stats("lively", TEN)),
        6 => Act::Answer(status(204)),
        _ => Act::Answer(stats("bootstrap", "")),
    });
    let service = blob();
    let _polls = spawn(&service, &exact(), &wire);
    tokio::time::sleep(Duration::from_secs(185)).await;
    let known = service.last_sync();
    assert_eq!(known.time, Some(time(TEN)));
    assert_eq!(known.failed_polls, 6);
    assert_eq!(known.age, Some(Duration::from_secs(185)));
    let circuit = service.circuit(&RegionRef::Secondary, Circuit::Reads);
    assert_eq!(circuit.unwrap().streak, 0);
    // F1: bootstrap is an answer, and makes the time unknown.
    tokio::time::sleep(Duration::from_secs(30)).await;
    let known = service.last_sync();
    assert_eq!((known.time, known.failed_polls), (None, 0));
    assert_eq!(known.status, Some(ReplicationStatus::Bootstrap));
}

/// F1: whoever watches is told of every answer, and of failures.
#[tokio::test(start_paused = true)]
async fn a_watcher_is_told() {
    let wire = Wire::new(|before| match before {
        0 => Act::Answer(stats("live", TEN)),
        _ => Act::Answer(status(500)),
    });
    let service = blob();
    let mut watch = service.watch_last_sync();
    let _polls = spawn(&service, &exact(), &wire);
    assert_eq!(watch.changed().await.time, Some(time(TEN)));
    assert_eq!(watch.changed().await.failed_polls, 1);
    assert_eq!(watch.get().time, Some(time(TEN)));
}

/// F1: `dfs` and `web` take blob's; the services of an account that hold blobs know it together.
#[tokio::test(start_paused = true)]
async fn dfs_takes_the_time_of_blob() {
    let wire = Wire::new(|_| Act::Answer(stats("live", TEN)));
    let account = Account::azure_storage("contoso").build().unwrap();
    let dfs = account.service(StorageService::Dfs).unwrap();
    let _polls = spawn(&dfs, &exact(), &wire);
    settle().await;
    let uri = "https://contoso-secondary.blob.core.windows.net/?restype=service&comp=stats";
    assert_eq!(wire.seen()[0].uri, uri);
    assert_eq!(account.blob().last_sync().time, Some(time(TEN)));
    assert_eq!(
        account.queue().last_sync().time,
        None,
        "queues have a time of their own"
    );
}

/// F1: who cannot be asked is a configuration error.
#[tokio::test(start_paused = true)]
async fn who_cannot_be_asked_is_an_error() {
    let wire = Wire::new(|_| Act::Hang);
    let build = |url: &str| GeoService::azure_storage(url);
    let file = build("https://contoso.file.core.windows.net")
        .build()
        .unwrap();
    let alone = build("https://contoso.blob.core.windows.net")
        .no_secondary()
        .build()
        .unwrap();
    let custom = build("https://data.contoso.test").secondary("https://data2.contoso.test");
    let custom = custom.storage_service(StorageService::Dfs).build().unwrap();
    let shop = GeoService::static_copies("shop").region("eu", "https://eu.test");
    let shop = shop.region("us", "https://us.test").build().unwrap();
    for (service, settings, setting) in [
        (&file, exact(), "last_sync"),
        (&alone, exact(), "location_mode"),
        (&custom, exact(), "last_sync"),
        (&shop, exact(), "last_sync"),
        (&custom, exact().endpoint("ftp://x"), "endpoint"),
        (&custom, exact().every(Duration::ZERO), "every"),
    ] {
        let refused =
            service.spawn_last_sync::<_, RequestBody, ResponseBody>(&settings, wire.clone());
        assert_eq!(refused.unwrap_err().setting(), setting);
    }
    drop(spawn(
        &custom,
        &exact().endpoint("https://blobs2.contoso.test"),
        &wire,
    ));
}
