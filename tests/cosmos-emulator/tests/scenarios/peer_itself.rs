//! The peer answers as the service does, without our stack in front.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tower::{Layer, ServiceExt};
use tower_geo::cosmos_key::CosmosKeyLayer;

use crate::peer::{KEY, Peer, Reach};

const WEST: &str = "http://contoso-westus.documents.test";
const EAST: &str = "http://contoso-eastus.documents.test";

async fn ask(
    peer: &Peer,
    key: &str,
    request: Request<Full<Bytes>>,
) -> Result<Response<Value>, String> {
    let connector = HttpConnector::new_with_resolver(peer.names());
    let client = Client::builder(TokioExecutor::new()).build(connector);
    let signer = CosmosKeyLayer::new(peer.endpoint(), key).unwrap();
    let answer = signer.layer(client).oneshot(request).await;
    let (head, body) = answer.map_err(|error| format!("{error:?}"))?.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Ok(Response::from_parts(head, body))
}

fn get(url: &str) -> Request<Full<Bytes>> {
    Request::get(url)
        .header("x-ms-documentdb-partitionkey", r#"["a"]"#)
        .body(Full::default())
        .unwrap()
}

fn create(region: &str) -> Request<Full<Bytes>> {
    Request::post(format!("{region}/dbs/shop/colls/orders/docs"))
        .header("x-ms-documentdb-partitionkey", r#"["a"]"#)
        .header("content-type", "application/json")
        .body(Full::from(r#"{"id":"1","pk":"a"}"#))
        .unwrap()
}

#[tokio::test]
async fn the_account_document_lists_regions_by_their_hosts() {
    let peer = Peer::single(&["West US", "East US"]).await;
    let answer = ask(&peer, KEY, get(&peer.endpoint())).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let document = answer.body();
    let writers = document["writableLocations"].as_array().unwrap();
    assert_eq!(writers.len(), 1);
    assert_eq!(writers[0]["name"], "West US");
    let readers = document["readableLocations"].as_array().unwrap();
    assert_eq!(readers[1]["databaseAccountEndpoint"], format!("{EAST}/"));
    assert_eq!(document["enableMultipleWriteLocations"], false);
    assert_eq!(peer.take().account, ["GET global 200"]);
}

#[tokio::test]
async fn the_hub_takes_writes_and_the_others_refuse_them() {
    let peer = Peer::single(&["West US", "East US"]).await;
    let refused = ask(&peer, KEY, create(EAST)).await.unwrap();
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    assert_eq!(refused.headers()["x-ms-substatus"], "3");
    let created = ask(&peer, KEY, create(WEST)).await.unwrap();
    assert_eq!(created.status(), StatusCode::CREATED);
    assert!(created.headers().contains_key("x-ms-session-token"));
    let read = get(&format!("{EAST}/dbs/shop/colls/orders/docs/1"));
    assert_eq!(ask(&peer, KEY, read).await.unwrap().body()["id"], "1");
    assert_eq!(
        peer.take().data,
        ["POST East US 403/3", "POST West US 201", "GET East US 200"]
    );
}

#[tokio::test]
async fn another_key_is_refused() {
    let peer = Peer::single(&["West US"]).await;
    let answer = ask(&peer, "YW5vdGhlciBrZXk=", create(WEST)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
    let answer = ask(&peer, KEY, create(WEST)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::CREATED);
}

#[tokio::test]
async fn a_host_can_refuse_connections_or_have_no_name() {
    let peer = Peer::single(&["West US"]).await;
    peer.reach("West US", Reach::Refuses);
    let error = ask(&peer, KEY, create(WEST)).await.unwrap_err();
    assert!(error.contains("ConnectionRefused"), "{error}");
    peer.reach("West US", Reach::HasNoName);
    let error = ask(&peer, KEY, create(WEST)).await.unwrap_err();
    assert!(error.contains("dns error"), "{error}");
    peer.reach("West US", Reach::Listens);
    assert!(ask(&peer, KEY, create(WEST)).await.is_ok());
}
