//! R9 over real HTTP: large downloads that are cut in both regions.

use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use http::Request;
use http_body_util::{BodyExt, Empty};
use tower::{Service, ServiceBuilder, ServiceExt};
use tower_geo::fault::{Answer, FaultKind, FaultLayer, Rule};
use tower_geo::{
    Error, ErrorKind, GeoService, LocationMode, ResumeLayer, RetrySettings, StorageService,
};
use tower_geo_testkit::Side;
use tower_geo_testkit::client::{ClientBuilder, TestClient};
use tower_geo_testkit::store::{RegionState, TwoRegionStore};

use crate::support::{ms, secs};

const MIB: u64 = 1 << 20;

/// No two bytes that are near each other, or as far apart as the parts of a body, agree by more than
/// chance.
fn film(bytes: u64) -> Bytes {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut film = Vec::with_capacity(usize::try_from(bytes).unwrap());
    while (film.len() as u64) < bytes {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        film.extend_from_slice(&state.to_le_bytes());
    }
    film.into()
}

/// A store that holds a film, and its service with waits that do not slow a test down.
async fn cinema(film: Bytes) -> (TwoRegionStore, GeoService) {
    let store = TwoRegionStore::builder()
        .path_style("films")
        .start()
        .await
        .unwrap();
    store.seed("a", "b", film);
    let service = GeoService::azure_storage(store.endpoint(Side::Primary))
        .storage_service(StorageService::Blob)
        .secondary(store.endpoint(Side::Secondary))
        .location_mode(LocationMode::PrimaryThenSecondary)
        .retry(RetrySettings::new().delay(ms(1)).max_delay(ms(2)))
        .build()
        .unwrap();
    (store, service)
}

type RequestBody = Empty<Bytes>;

fn client() -> TestClient<RequestBody> {
    ClientBuilder::new().keep_alive(secs(5)).build().unwrap()
}

fn get(store: &TwoRegionStore) -> Request<RequestBody> {
    let url = format!("{}/a/b", store.endpoint(Side::Primary));
    Request::get(url).body(RequestBody::new()).unwrap()
}

/// What a download gave: how many bytes, all of them compared, and how it ended.
struct Download {
    bytes: u64,
    resumes: u32,
    error: Option<Error>,
    took: Duration,
}

/// Reads a download; each byte must be that of the film.
async fn download<C>(
    client: C,
    service: &GeoService,
    request: Request<RequestBody>,
    film: &Bytes,
) -> Download
where
    C: Service<Request<RequestBody>, Response = http::Response<Body>> + Clone,
    C::Error: Into<tower_geo::BoxError>,
{
    #[expect(clippy::disallowed_methods, reason = "this is about real time")]
    let began = Instant::now();
    let stack = ServiceBuilder::new()
        .layer(ResumeLayer::new(service.clone()))
        .layer(service.layer())
        .service(client);
    let response = stack.oneshot(request).await.unwrap();
    let mut body = Box::pin(response.into_body());
    let (mut bytes, mut error) = (0_usize, None);
    while let Some(frame) = body.frame().await {
        match frame {
            Err(broke) => error = Some(broke),
            Ok(frame) => {
                let data = frame.into_data().unwrap();
                let wanted = &film[bytes..bytes + data.remaining()];
                assert!(data == wanted, "other bytes after {bytes}");
                bytes += data.remaining();
            }
        }
    }
    Download {
        bytes: bytes as u64,
        resumes: body.resumes(),
        error,
        #[expect(clippy::disallowed_methods, reason = "this is about real time")]
        took: began.elapsed(),
    }
}

type Body = tower_geo::fault::FaultBody<hyper::body::Incoming>;

/// Cuts a download five times: three times in the primary, twice in the secondary, each after so
/// many 64ths of it.
fn scissors(store: &TwoRegionStore, size: u64) -> FaultLayer {
    let at = |side| store.addr(side).to_string();
    let cut = |sixty_fourths: u64| Answer::real().cut_after(size / 64 * sixty_fourths);
    let unreachable = || Answer::fault(FaultKind::Connect);
    let primary = Rule::host(at(Side::Primary))
        .answer(cut(9))
        .answer(unreachable())
        .answer(cut(8))
        .answer(unreachable())
        .answer(cut(7))
        .answer(Answer::real());
    let secondary = Rule::host(at(Side::Secondary))
        .answer(cut(10))
        .answer(cut(11))
        .answer(Answer::real());
    let faults = FaultLayer::builder()
        .rule(primary)
        .rule(secondary)
        .build()
        .unwrap();
    faults.switch().enable();
    faults
}

async fn five_cuts(size: u64) -> (Download, Download) {
    let film = film(size);
    let (store, service) = cinema(film.clone()).await;
    let faults = scissors(&store, size);
    let client = ServiceBuilder::new()
        .layer(faults.clone())
        .service(client());
    let cut = download(client.clone(), &service, get(&store), &film).await;
    assert!(cut.error.is_none(), "{:?}", cut.error);
    assert_eq!((cut.bytes, cut.resumes), (size, 5));
    assert_eq!(store.requests(Side::Primary), 4);
    assert_eq!(store.requests(Side::Secondary), 2);
    assert_eq!(store.writes_at_secondary(), 0);
    faults.switch().disable();
    let whole = download(client, &service, get(&store), &film).await;
    assert_eq!((whole.bytes, whole.resumes), (size, 0));
    (cut, whole)
}

/// R9: cut five times across both regions, a download is whole, byte by byte.
#[tokio::test]
async fn a_download_that_is_cut_in_both_regions_is_whole() {
    five_cuts(64 * MIB).await;
}

/// R9, with figures: `cargo test --release -p tower-geo-tests --test layers -- --ignored --nocapture one_gib`.
#[tokio::test]
#[ignore = "takes seconds and 2 GiB of memory; prints figures"]
async fn one_gib_that_is_cut_five_times_is_whole() {
    let (cut, whole) = five_cuts(1_024 * MIB).await;
    println!(
        "1 GiB cut five times, {} resumes: {:.2?}; not cut: {:.2?}",
        cut.resumes, cut.took, whole.took
    );
}

/// R9: what breaks off because the server breaks it off is resumed as well.
#[tokio::test]
async fn a_connection_that_the_server_breaks_is_resumed() {
    let film = film(4 * MIB);
    let (store, service) = cinema(film.clone()).await;
    store
        .set(Side::Primary, RegionState::CutBody(1_000_000))
        .await
        .unwrap();
    let client = ServiceBuilder::new()
        .layer(FaultLayer::builder().build().unwrap())
        .service(client());
    let cut = download(client, &service, get(&store), &film).await;
    // 4 MiB in pieces of 1,000,000 bytes: each resume is cut again, and each gives something.
    assert!(cut.error.is_none(), "{:?}", cut.error);
    assert_eq!((cut.bytes, cut.resumes), (4 * MIB, 4));
}

/// R9: a film that is replaced while it is read ends with an error, behind bytes of the old one.
#[tokio::test]
async fn a_film_that_is_replaced_is_not_mixed() {
    let old = film(4 * MIB);
    let (store, service) = cinema(old.clone()).await;
    let faults = FaultLayer::builder()
        .rule(Rule::host("*").answer_times(1, Answer::real().cut_after(MIB)))
        .build()
        .unwrap();
    faults.switch().enable();
    let client = ServiceBuilder::new().layer(faults).service(client());
    // As soon as it has begun: what the stack asks for next is of another version, in both regions.
    let request = get(&store);
    let store = std::sync::Arc::new(store);
    let replaced = client.map_response(move |response: http::Response<Body>| {
        store.seed("a", "b", vec![b'x'; 4 << 20]);
        response
    });
    let cut = download(replaced, &service, request, &old).await;
    assert_eq!(cut.bytes, MIB);
    assert_eq!(cut.error.unwrap().kind(), ErrorKind::VersionChanged);
}
