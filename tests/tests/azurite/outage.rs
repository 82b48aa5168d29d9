//! Blob, queue and table storage through the loss of a region, end to end: production host names over
//! TLS, signatures that the storage emulator checks, a secondary that refuses writes.

use std::time::Duration;

use http::Method;
use tower_geo::{
    ErrorKind, GateStatus, LocationMode, RegionRef, RequestOptions, SendKind, StorageService,
};
use tower_geo_testkit::Side;
use tower_geo_testkit::front::{FrontState, Refuses};

use crate::account::{
    Ask, Client, Credentials, SERVICES, STREAK, TestAccount, eventually, while_read_only,
};

const JSON: &[(&str, &str)] = &[
    ("content-type", "application/json"),
    ("accept", "application/json;odata=nometadata"),
];
const XML: &[(&str, &str)] = &[("content-type", "application/xml")];
const BLOB: &[(&str, &str)] = &[("x-ms-blob-type", "BlockBlob")];

fn ask<'a>(method: Method, target: &'a str) -> Ask<'a> {
    Ask {
        method,
        target,
        headers: &[],
        body: "",
        options: None,
    }
}

fn get(target: &str) -> Ask<'_> {
    ask(Method::GET, target)
}

/// What each service is asked for: the same story in three dialects.
struct Dialect {
    service: StorageService,
    /// Makes what is read, and the read itself.
    prepare: fn() -> Vec<(u16, Ask<'static>)>,
    read: fn() -> Ask<'static>,
    /// Is in the answer to the read.
    content: &'static str,
    /// A write, and the answer that says that it is stored.
    write: fn() -> (u16, Ask<'static>),
}

const DIALECTS: [Dialect; 3] = [
    Dialect {
        service: StorageService::Blob,
        prepare: || {
            let put = Ask {
                headers: BLOB,
                body: "meow",
                ..ask(Method::PUT, "/photos/my%20cat.jpg")
            };
            vec![
                (201, ask(Method::PUT, "/photos?restype=container")),
                (201, put),
            ]
        },
        read: || get("/photos/my%20cat.jpg"),
        content: "meow",
        write: || {
            let put = Ask {
                headers: BLOB,
                body: "woof",
                ..ask(Method::PUT, "/photos/dog.jpg")
            };
            (201, put)
        },
    },
    Dialect {
        service: StorageService::Queue,
        prepare: || vec![(201, ask(Method::PUT, "/orders")), (201, message())],
        read: || get("/orders/messages?peekonly=true"),
        content: "one coffee",
        write: || (201, message()),
    },
    Dialect {
        service: StorageService::Table,
        prepare: || {
            let table = Ask {
                headers: JSON,
                body: r#"{"TableName":"people"}"#,
                ..ask(Method::POST, "/Tables")
            };
            vec![(201, table), (204, entity())]
        },
        read: || Ask {
            headers: JSON,
            ..get("/people(PartitionKey='sales',RowKey='1')")
        },
        content: "Mia",
        write: || (204, entity()),
    },
];

fn message() -> Ask<'static> {
    Ask {
        headers: XML,
        body: "<QueueMessage><MessageText>one coffee</MessageText></QueueMessage>",
        ..ask(Method::POST, "/orders/messages")
    }
}

fn entity() -> Ask<'static> {
    Ask {
        headers: JSON,
        body: r#"{"PartitionKey":"sales","RowKey":"1","Name":"Mia"}"#,
        ..ask(Method::PUT, "/people(PartitionKey='sales',RowKey='1')")
    }
}

impl Dialect {
    async fn prepare(&self, client: &Client) {
        for (status, request) in (self.prepare)() {
            client.expect(status, request).await;
        }
    }

    /// Reads, and says whether the secondary answered. The read must succeed.
    async fn read(&self, client: &Client) -> bool {
        let answer = client.expect(200, (self.read)()).await;
        assert!(answer.body.contains(self.content), "{answer:?}");
        answer.is_from_copy()
    }

    async fn write(&self, client: &Client) {
        let (status, request) = (self.write)();
        client.expect(status, request).await;
    }
}

/// The whole story of one service: the primary fails in each way, and comes back each time.
async fn outages(dialect: &Dialect, credentials: Credentials) {
    let account = TestAccount::start().await;
    let service = dialect.service;
    let client = account.client(service, credentials);
    let front = |side| account.front(service, side);
    dialect.prepare(&client).await;
    assert!(!dialect.read(&client).await, "the primary is up");
    assert_eq!(front(Side::Secondary).connections(), 0);

    for failure in [FrontState::Reset, FrontState::Freeze, FrontState::Refuse] {
        account.set(service, Side::Primary, failure).await;
        let before = account.traffic(service);

        // The failures that it takes, all at once, so that a black hole costs one time-out. No
        // read fails.
        let reads = (0..STREAK).map(|_| {
            let client = client.clone();
            async move { DIALECTS[index(service)].read(&client).await }
        });
        let reads = reads.map(tokio::spawn).collect::<Vec<_>>();
        for read in reads {
            assert!(read.await.unwrap(), "{failure:?}: the secondary answers");
        }
        // On a machine that stalls, the wait is over by now and a trial is due.
        assert_ne!(
            client.geo.gate().status,
            GateStatus::ReadWrite,
            "{failure:?}"
        );
        let after = account.traffic(service);
        assert_eq!(after[3] - before[3], u64::from(STREAK), "{failure:?}");

        // Now reads go there at once, and writes nowhere.
        let (read, refused, idle) = while_read_only(&client.geo, || async {
            let before = account.traffic(service);
            let read = client.try_send(&(dialect.read)()).await;
            let between = account.traffic(service);
            let refused = client.try_send(&(dialect.write)().1).await;
            let after = account.traffic(service);
            let only_secondary = before[..2] == between[..2] && before[3] + 1 == between[3];
            (read, refused, only_secondary && between == after)
        })
        .await;
        let read = read.unwrap();
        assert!(read.is_from_copy() && read.sends() == 1, "{failure:?}");
        let refused = refused.unwrap_err();
        assert!(
            refused.is_read_only() && refused.was_never_sent(),
            "{refused}"
        );
        assert!(refused.retry_after().is_some());
        assert!(
            idle,
            "{failure:?}: the primary was asked, or a write was sent"
        );

        // Back, and nobody has to do anything but go on.
        account
            .set(service, Side::Primary, FrontState::Forward)
            .await;
        eventually("reads return", || async { !dialect.read(&client).await }).await;
        eventually("writes return", || async {
            let (status, request) = (dialect.write)();
            match client.try_send(&request).await {
                Ok(answer) => answer.status == status,
                Err(error) => {
                    assert!(error.is_read_only(), "{failure:?}: {error}");
                    false
                }
            }
        })
        .await;
        assert_eq!(client.geo.gate().status, GateStatus::ReadWrite);
        dialect.write(&client).await;
    }
    assert_eq!(front(Side::Secondary).refused(), 0, "R1");
}

fn index(service: StorageService) -> usize {
    SERVICES.iter().position(|known| *known == service).unwrap()
}

/// R1, R3, R7, G1, G2, B4, B8.
#[tokio::test]
async fn blobs_survive_outages_of_the_primary() {
    outages(&DIALECTS[0], Credentials::KeyBelow).await;
}

/// R1, R3, R7, G1, G2, B4, B8. One signature is good for both regions (R8).
#[tokio::test]
async fn queues_survive_outages_of_the_primary() {
    outages(&DIALECTS[1], Credentials::KeyAbove).await;
}

/// R1, R3, R7, G1, G2, B4, B8. So is a shared access signature.
#[tokio::test]
async fn tables_survive_outages_of_the_primary() {
    outages(&DIALECTS[2], Credentials::Sas).await;
}

/// R8: Shared Key above and below the stack, and a shared access signature, are good in both regions
/// for all services; the emulator checks them.
#[tokio::test]
async fn every_credential_is_good_in_both_regions() {
    let account = TestAccount::start().await;
    for dialect in &DIALECTS {
        let service = dialect.service;
        let prepared = account.client(service, Credentials::KeyBelow);
        dialect.prepare(&prepared).await;
        for credentials in [
            Credentials::KeyAbove,
            Credentials::KeyBelow,
            Credentials::Sas,
        ] {
            let client = account.client(service, credentials);
            dialect.write(&client).await;
            assert!(!dialect.read(&client).await);

            let copy = RequestOptions::new().location_mode(LocationMode::SecondaryOnly);
            let read = Ask {
                options: Some(copy),
                ..(dialect.read)()
            };
            let answer = client.expect(200, read).await;
            assert!(answer.is_from_copy(), "{credentials:?}");
            assert!(answer.body.contains(dialect.content));

            // Redirected in the middle of an operation.
            account.set(service, Side::Primary, FrontState::Reset).await;
            let answer = client.expect(200, (dialect.read)()).await;
            let served = answer.served.unwrap();
            let kinds: Vec<_> = served
                .trail()
                .sends()
                .iter()
                .map(|send| send.kind)
                .collect();
            assert_eq!(kinds, [SendKind::First, SendKind::FallOver]);
            account
                .set(service, Side::Primary, FrontState::Forward)
                .await;
        }
        assert_eq!(account.front(service, Side::Secondary).refused(), 0);
    }
}

/// I2, R1: taking a message is a write, although it is a GET. In no mode, pinned or not, with the
/// primary up or down, does it reach the secondary.
#[tokio::test]
async fn a_dequeue_is_never_sent_to_the_secondary() {
    let account = TestAccount::start().await;
    let client = account.client(StorageService::Queue, Credentials::KeyBelow);
    let queue = StorageService::Queue;
    let secondary = account.front(queue, Side::Secondary);
    let dialect = &DIALECTS[index(queue)];
    dialect.prepare(&client).await;
    let dequeues = [
        "/orders/messages",
        "/orders/messages?numofmessages=2&visibilitytimeout=1",
        "/orders/messages?peekonly=false",
    ];
    let options = LocationMode::ALL
        .map(|mode| RequestOptions::new().location_mode(mode))
        .into_iter()
        .chain([RequestOptions::new().pin(RegionRef::Primary)])
        .map(Some)
        .chain([None])
        .collect::<Vec<_>>();

    for options in &options {
        for target in dequeues {
            let dequeue = Ask {
                options: options.clone(),
                ..get(target)
            };
            let answer = client.expect(200, dequeue).await;
            assert!(!answer.is_from_copy());
        }
    }
    let pinned = Ask {
        options: Some(RequestOptions::new().pin(RegionRef::Secondary)),
        ..get(dequeues[0])
    };
    let refused = client.try_send(&pinned).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Config, "{refused}");
    assert_eq!(secondary.requests(), 0);

    // There is a message to be taken, or to be peeked at.
    dialect.write(&client).await;
    // First without the help of the gate: the primary fails, and no circuit is open yet. The
    // fate of one that was sent is unknown: a message may be gone.
    account.set(queue, Side::Primary, FrontState::Reset).await;
    for options in &options {
        for target in dequeues {
            let dequeue = Ask {
                options: options.clone(),
                ..get(target)
            };
            let error = client.try_send(&dequeue).await.unwrap_err();
            let told = matches!(
                error.kind(),
                ErrorKind::UnknownOutcome | ErrorKind::Transport | ErrorKind::ReadOnly
            );
            assert!(told, "{error}");
        }
    }
    assert_ne!(client.geo.gate().status, GateStatus::ReadWrite);
    assert_eq!(secondary.requests(), 0);

    // Peeking is a read, and moves.
    assert!(dialect.read(&client).await);
    assert_eq!(secondary.requests(), 1);
    assert_eq!(secondary.refused(), 0);
}

/// I5: the stats of a service are the secondary's to tell, whatever the mode.
#[tokio::test]
async fn stats_are_asked_of_the_secondary_in_every_mode() {
    let account = TestAccount::start().await;
    for service in SERVICES {
        let client = account.client(service, Credentials::KeyBelow);
        for mode in LocationMode::ALL {
            let stats = Ask {
                options: Some(RequestOptions::new().location_mode(mode)),
                ..get("/?restype=service&comp=stats")
            };
            let answer = client.expect(200, stats).await;
            assert!(answer.is_from_copy());
            assert!(answer.body.contains("<Status>live</Status>"), "{answer:?}");
        }
        let [at_primary, _, _, at_secondary] = account.traffic(service);
        assert_eq!(at_primary, 0, "{service}");
        assert_eq!(at_secondary, 4, "{service}");
    }
}

/// R6: an account without read access to its secondary. Reads go on at the primary, and the
/// secondary is not asked again for a while.
#[tokio::test]
async fn a_secondary_that_may_not_be_read_is_set_aside() {
    let account = TestAccount::start().await;
    let blob = StorageService::Blob;
    let dialect = &DIALECTS[index(blob)];
    let client = account.client(blob, Credentials::KeyBelow);
    dialect.prepare(&client).await;
    let secondary = account.front(blob, Side::Secondary);
    secondary.set_refuses(Refuses::Everything);
    client
        .geo
        .operator()
        .set_location_mode(LocationMode::SecondaryThenPrimary)
        .unwrap();

    for _ in 0..3 {
        assert!(!dialect.read(&client).await);
    }
    assert_eq!(secondary.requests(), 1);
    assert_eq!(client.geo.gate().status, GateStatus::ReadWrite);
}

/// B12: services are apart. While blobs have lost their primary, queues go on as before.
#[tokio::test]
async fn the_outage_of_one_service_is_not_that_of_another() {
    let account = TestAccount::start().await;
    let [blob, queue, _] = SERVICES.map(|service| account.client(service, Credentials::Sas));
    let [blobs, queues, _] = &DIALECTS;
    blobs.prepare(&blob).await;
    queues.prepare(&queue).await;
    account
        .set(StorageService::Blob, Side::Primary, FrontState::Refuse)
        .await;
    for _ in 0..STREAK {
        assert!(blobs.read(&blob).await);
    }
    assert_ne!(blob.geo.gate().status, GateStatus::ReadWrite);
    queues.write(&queue).await;
    assert!(!queues.read(&queue).await);
    assert_eq!(queue.geo.gate().status, GateStatus::ReadWrite);
}

/// E3: no error tells a signature, wherever it was.
#[tokio::test]
async fn errors_do_not_tell_signatures() {
    let account = TestAccount::start().await;
    let blob = StorageService::Blob;
    for side in Side::BOTH {
        account.set(blob, side, FrontState::Refuse).await;
    }
    for credentials in [Credentials::KeyAbove, Credentials::Sas] {
        let client = account.client(blob, credentials);
        let error = client.try_send(&get("/photos/cat.jpg")).await.unwrap_err();
        let told = format!("{error} {error:?}");
        for secret in ["sig=", "SharedKey ", "cat.jpg?"] {
            assert!(!told.contains(secret), "{told}");
        }
        assert!(told.contains("blob"), "{told}");
        assert!(error.trail().sends().len() > 1 || error.is_circuit_open());
        assert!(
            error
                .trail()
                .sends()
                .iter()
                .all(|send| send.took < Duration::from_secs(60))
        );
    }
}
