//! Does the order of the layers matter, and does a wrong one say so (E4)?

use std::future::{Ready, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};

use http::{Request, Response};
use tower::{Layer, Service, ServiceExt};
use tower_geo::{
    Account, BoxError, Error, ErrorKind, ReadOnlyGateLayer, ResumeLayer, RetryLayer, Served,
};
use tower_geo_testkit::strict::{Reply, Script, ScriptBody};

use crate::stacks::{Boxed, FOREIGN, Part, stack};
use crate::support::*;

const OURS: [(Part, &str); 5] = [
    (Part::Gate, "ReadOnlyGateLayer"),
    (Part::Retry, "RetryLayer"),
    (Part::Redirect, "GeoRedirectLayer"),
    (Part::Follow, "GeoRedirectLayer"),
    (Part::Breaker, "CircuitBreakerLayer"),
];

async fn config_error(stack: Boxed, name: &str) -> String {
    for request in [get(), put()] {
        let error = stack.clone().oneshot(request).await.expect_err(name);
        let ours = error
            .downcast::<Error>()
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(ours.kind(), ErrorKind::Config, "{name}: {ours}");
        assert!(ours.was_never_sent(), "{name}");
        if name.contains("Gate") {
            return ours.to_string();
        }
    }
    let error = stack.oneshot(get()).await.expect_err(name);
    error.to_string()
}

/// E4: every wrong order, and every layer that is there twice, ends the first call with an error
/// that names the layers; nothing is sent.
#[tokio::test(start_paused = true)]
async fn a_wrong_order_ends_at_the_first_call_and_names_the_layers() {
    let script = healthy();
    for (outer_rank, (outer, outer_name)) in OURS.iter().enumerate() {
        for (inner_rank, (inner, inner_name)) in OURS.iter().enumerate() {
            if outer_rank < inner_rank && outer_name != inner_name {
                continue;
            }
            let service = service();
            // What only follows says first that there is no retry, if there is none.
            let _retry = RetryLayer::new(service.clone());
            let wrong = stack(&service, &[*outer, *inner], script.service());
            let name = format!("{outer_name} over {inner_name}");
            let message = config_error(wrong, &name).await;
            assert!(message.contains(outer_name), "{name}: {message}");
            assert!(message.contains(inner_name), "{name}: {message}");
        }
    }
    assert_eq!(script.hosts(), Vec::<String>::new());
}

/// E4: the same with a right layer, or a foreign one, between the two.
#[tokio::test(start_paused = true)]
async fn a_wrong_order_is_found_through_layers_in_between() {
    let script = healthy();
    use Part::{Breaker, Follow, Gate, Limit, MapRequest, Redirect, Retry, Timeout};
    for parts in [
        &[Breaker, MapRequest, Retry][..],
        &[Retry, Limit, Gate],
        &[Redirect, Timeout, Retry],
        &[Gate, Retry, Gate],
        &[Retry, Follow, Breaker, Retry],
        &[Gate, Breaker, Limit, Redirect],
        &[Gate, Retry, Follow, Breaker, Gate],
    ] {
        let wrong = stack(&service(), parts, script.service());
        let message = config_error(wrong, &format!("{parts:?}")).await;
        assert!(message.contains("Layer"), "{parts:?}: {message}");
    }
    assert_eq!(script.hosts(), Vec::<String>::new());
}

fn right_orders() -> Vec<Vec<Part>> {
    let ours = [Part::Gate, Part::Retry, Part::Follow, Part::Breaker];
    let mut orders = vec![ours.to_vec()];
    for foreign in FOREIGN {
        for place in 0..=ours.len() {
            let mut order = ours.to_vec();
            order.insert(place, foreign);
            orders.push(order);
        }
        // The same one between all of them.
        let mut order = vec![foreign];
        order.extend(ours.iter().flat_map(|part| [*part, foreign]));
        orders.push(order);
    }
    orders
}

/// E4: with foreign layers between ours, an operation is the same: where it goes, when, how often,
/// and what is told.
#[tokio::test(start_paused = true)]
async fn foreign_layers_between_ours_change_nothing() {
    for parts in right_orders() {
        let script = Script::new()
            .on(
                P,
                http::Method::GET,
                [Reply::status(503), Reply::ok("primary")],
            )
            .on(
                P,
                http::Method::PUT,
                [Reply::status(500), Reply::status(201)],
            )
            .any_method(S, [Reply::status(503)]);
        let service = service();
        let stack = stack(&service, &parts, script.service());
        let begun = tokio::time::Instant::now();

        let answer = stack.clone().oneshot(get()).await;
        let answer = answer.unwrap_or_else(|error| panic!("{parts:?}: {error}"));
        assert_eq!(answer.status(), 200, "{parts:?}");
        assert_eq!(script.hosts(), [P, S, P], "{parts:?}");
        assert_eq!(begun.elapsed(), secs(1), "{parts:?}");
        let served = Served::of(answer.extensions()).unwrap();
        assert_eq!(served.trail().sends().len(), 3, "{parts:?}");

        script.clear_sends();
        let answer = stack.oneshot(put()).await;
        let answer = answer.unwrap_or_else(|error| panic!("{parts:?}: {error}"));
        assert_eq!(answer.status(), 201, "{parts:?}");
        assert_eq!(script.hosts(), [P, P], "{parts:?}");
        assert_eq!(begun.elapsed(), secs(2), "{parts:?}");
    }
}

/// E4, R7, G2: an open circuit means the same through foreign layers.
#[tokio::test(start_paused = true)]
async fn an_open_circuit_is_seen_through_foreign_layers() {
    for parts in right_orders() {
        let script = primary_down();
        let service = service();
        let stack = stack(&service, &parts, script.service());
        for _ in 0..3 {
            stack.clone().oneshot(get()).await.unwrap();
        }
        script.clear_sends();
        assert_eq!(
            stack.clone().oneshot(get()).await.unwrap().status(),
            200,
            "{parts:?}"
        );
        let refused = stack.clone().oneshot(put()).await.unwrap_err();
        assert!(
            refused.downcast_ref::<Error>().unwrap().is_read_only(),
            "{parts:?}"
        );
        assert_eq!(script.hosts(), [S], "{parts:?}");
        tokio::time::sleep(secs(30)).await;
        script.replace(P, [Reply::ok("primary")]);
        assert_eq!(
            stack.oneshot(put()).await.unwrap().status(),
            200,
            "{parts:?}: the trial"
        );
    }
}

/// E4: layers of two services that have the same host share nothing, so a stack of both would never
/// fall over. The first call says so, and nothing is sent.
#[tokio::test(start_paused = true)]
async fn layers_of_two_services_with_one_host_are_a_mistake() {
    let script = healthy();
    // A gate, and a redirect that only follows, do not look at a request when they pass it on.
    let looking = [OURS[1], OURS[2], OURS[4]];
    for (outer, outer_name) in looking {
        for (inner, inner_name) in &OURS[1..] {
            let (one, other) = (service(), service());
            let below = stack(&other, &[*inner], script.service());
            // What only follows needs a retry, wherever it is.
            let _retries = [&one, &other].map(|service| RetryLayer::new(service.clone()));
            let wrong = stack(&one, &[outer, Part::MapRequest], below);
            let name = format!("{outer_name} over {inner_name}");
            let message = config_error(wrong, &name).await;
            assert!(message.contains("another GeoService"), "{name}: {message}");
            assert!(message.contains(outer_name), "{name}: {message}");
            assert!(message.contains(inner_name), "{name}: {message}");
        }
    }
    assert_eq!(script.hosts(), Vec::<String>::new());
}

/// E4, I8: stacks of two services, one in the other: each cares for its own requests only.
#[tokio::test(start_paused = true)]
async fn nested_stacks_of_two_services_do_not_disturb_each_other() {
    const QUEUE: &str = "contoso.queue.core.windows.net";
    const QUEUE_COPY: &str = "contoso-secondary.queue.core.windows.net";
    let script = primary_down()
        .any_method(
            QUEUE,
            [Reply::status(503), Reply::status(500), Reply::ok("queue")],
        )
        .any_method(QUEUE_COPY, [Reply::status(503)]);
    let account = Account::azure_storage("contoso")
        .location_mode(tower_geo::LocationMode::PrimaryThenSecondary)
        .retry(retry())
        .breaker(breaker())
        .build()
        .unwrap();
    let inner = account
        .queue()
        .layer()
        .clone_bodies()
        .layer(script.service());
    let both = account.blob().layer().clone_bodies().layer(inner);
    for _ in 0..3 {
        let answer = both.clone().oneshot(get()).await.unwrap();
        assert_eq!(
            Served::of(answer.extensions()).unwrap().region_name(),
            "secondary"
        );
    }
    assert!(
        both.clone()
            .oneshot(put())
            .await
            .unwrap_err()
            .is_read_only()
    );
    script.clear_sends();
    let peek = request(http::Method::GET, QUEUE, "/orders");
    let answer = both.clone().oneshot(peek).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(
        script.hosts(),
        [QUEUE, QUEUE_COPY, QUEUE, QUEUE_COPY, QUEUE]
    );
    assert_eq!(
        account.blob().gate().status,
        tower_geo::GateStatus::ReadOnly
    );
    assert_eq!(
        account.queue().gate().status,
        tower_geo::GateStatus::ReadWrite
    );
}

/// E4: a gate above a layer that resumes is found although it leaves nothing around a call.
#[tokio::test(start_paused = true)]
async fn a_gate_above_a_layer_that_resumes_says_so_at_the_first_call() {
    let (service, script) = (service(), healthy());
    let resume = ResumeLayer::new(service.clone()).clone_bodies();
    let below = resume.layer(script.service());
    let wrong = ReadOnlyGateLayer::new(service).layer(below);
    let error = wrong.oneshot(get()).await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    let message = error.to_string();
    assert!(
        message.contains("ReadOnlyGateLayer stands above ResumeLayer"),
        "{message}"
    );
    assert_eq!(script.hosts(), Vec::<String>::new());
}

/// E4, B7: a client that panics while it is called leaves nothing on the thread that would make the
/// order of the next call seem wrong.
#[tokio::test(start_paused = true)]
async fn a_client_that_panics_when_called_leaves_the_next_call_alone() {
    let (service, script) = (service(), healthy());
    let broken = tower::service_fn(|_: Request<Body>| -> Ready<Result<_, BoxError>> {
        if true {
            panic!("the client has a fault");
        }
        ready(Ok(Response::new(ScriptBody::new(""))))
    });
    let mut stack = service.layer().clone_bodies().layer(broken);
    for request in [get(), put()] {
        stack.ready().await.unwrap();
        let call = AssertUnwindSafe(|| drop(stack.call(request)));
        assert!(catch_unwind(call).is_err());
        let sound = service.layer().clone_bodies().layer(script.service());
        assert_eq!(sound.oneshot(get()).await.unwrap().status(), 200);
    }
    assert_eq!(script.hosts(), [P, P]);
}
