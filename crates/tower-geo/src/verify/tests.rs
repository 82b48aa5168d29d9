//! F6.

use super::*;
use crate::faults::ClassifyFault;
use crate::test_wire::{Act, RequestBody, Wire, stats, status};

async fn verified(answer: fn() -> Act) -> Verified {
    #[derive(Debug)]
    struct NoSuchName;
    impl ClassifyFault for NoSuchName {
        fn classify(&self, _: &(dyn std::error::Error + 'static)) -> Fault {
            Fault::Dns
        }
    }
    let service = GeoService::azure_storage("https://contoso.blob.core.windows.net")
        .classify_faults(std::sync::Arc::new(NoSuchName))
        .build()
        .unwrap();
    let wire = Wire::new(move |_| answer());
    let verified = service.verify::<_, RequestBody, _>(&wire).await.unwrap();
    assert_eq!(wire.seen()[0].purpose, "verify");
    let readable = matches!(verified, Verified::Readable(_));
    assert_eq!(service.last_sync().time.is_some(), readable);
    assert!(
        service.state_ref().is_calm(),
        "nothing is set aside by asking"
    );
    verified
}

fn not_enabled() -> Act {
    let mut response = status(403);
    let code = http::HeaderValue::from_static("InsufficientAccountPermissions");
    response.headers_mut().insert("x-ms-error-code", code);
    Act::Answer(response)
}

#[tokio::test(start_paused = true)]
async fn asking_once_tells_whether_the_secondary_can_be_read() {
    let readable = || Act::Answer(stats("live", "Mon, 01 Jun 2026 10:00:00 GMT"));
    assert!(verified(readable).await.is_readable());
    assert_eq!(verified(not_enabled).await, Verified::NotEnabled);
    assert_eq!(
        verified(|| Act::Fail("no name".into())).await,
        Verified::NoSuchHost
    );
}

#[tokio::test(start_paused = true)]
async fn anything_else_is_told_as_it_is() {
    for (answer, wanted) in [
        (
            (|| Act::Answer(status(401))) as fn() -> Act,
            "it answered 401",
        ),
        (
            || Act::Answer(status(200)),
            "its answer is not what a storage service says",
        ),
        (|| Act::Hang, "no answer in time"),
        (|| Act::Panic, "the client panicked"),
    ] {
        let told = verified(answer).await;
        assert_eq!(told, Verified::Other(wanted.to_owned()));
        assert!(told.to_string().ends_with(wanted));
    }
}
