//! This side of the wire: an application with the stack above a signer above hyper's client.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use tower::ServiceExt;
use tower::util::BoxCloneSyncService;
use tower_geo::cosmos::{CosmosAccount, CosmosBuilder};
use tower_geo::cosmos_key::{CosmosKey, CosmosKeyLayer};
use tower_geo::policy::trail::{Send, Trail};
use tower_geo::{
    Account, BackgroundTask, Circuit, Ending, Error, GeoService, RegionId, RequestOptions, Served,
};
use tower_layer::Layer;

use crate::peer::{KEY, Names, PATIENCE, Peer, until};

pub(crate) type Body = Full<Bytes>;
type Signed = CosmosKey<Client<HttpConnector<Names>, Body>>;

/// An application.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) service: GeoService,
    endpoint: String,
    stack: BoxCloneSyncService<Request<Body>, Answer, Error>,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The session, to be sent along to read one's own writes.
    pub(crate) token: Option<String>,
    /// The region that answered, and every send with what it ended with.
    pub(crate) trail: Vec<String>,
}

/// A client that signs. It makes a new connection for each request: to a region whose name
/// changes hands, none may be kept (R12).
pub(crate) fn signed_client(peer: &Peer, key: &str) -> Signed {
    let connector = HttpConnector::new_with_resolver(peer.names());
    let client = Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(0)
        .build(connector);
    let signer = CosmosKeyLayer::new(peer.endpoint(), key).unwrap();
    signer.layer(client)
}

impl App {
    /// An application that prefers these regions, and a task that reads the account for it.
    pub(crate) fn preferring(peer: &Peer, regions: &[&str]) -> (Self, BackgroundTask) {
        Self::with(peer, |account| account.preferred(regions))
    }

    /// An application and a task that reads the account for it.
    pub(crate) fn with(
        peer: &Peer,
        configure: impl FnOnce(CosmosBuilder) -> CosmosBuilder,
    ) -> (Self, BackgroundTask) {
        let app = Self::without_reader(peer, configure);
        let reader = app.service.spawn_account_reader(signed_client(peer, KEY));
        (app, reader.unwrap())
    }

    /// An application for which nobody reads the account.
    pub(crate) fn without_reader(
        peer: &Peer,
        configure: impl FnOnce(CosmosBuilder) -> CosmosBuilder,
    ) -> Self {
        let account = configure(Account::cosmos(peer.endpoint()));
        let service = account.build().unwrap();
        let stack = service
            .layer()
            .clone_bodies()
            .layer(signed_client(peer, KEY));
        let stack = stack.then(move |answer| async move { read_to_end(answer?).await });
        Self {
            service,
            endpoint: peer.endpoint(),
            stack: BoxCloneSyncService::new(stack),
        }
    }

    /// Has the account read, and waits for the end of that.
    pub(crate) async fn refresh(&self) {
        let before = self.account().reads();
        self.account().refresh();
        assert!(until(PATIENCE, || self.account().reads() > before).await);
    }

    /// Whether the account is known to have this region.
    pub(crate) fn has_region(&self, name: &str) -> bool {
        let regions = self.account().regions();
        regions.iter().any(|region| region.name() == name)
    }

    /// Whether a region is left for last (C10).
    pub(crate) fn is_marked(&self, name: &str, circuit: Circuit) -> bool {
        let regions = self.account().regions();
        let region = regions.iter().find(|region| region.name() == name);
        region.is_some_and(|region| region.is_marked(circuit))
    }

    fn account(&self) -> CosmosAccount {
        self.service.cosmos().unwrap()
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Result<Answer, Error> {
        self.stack.clone().oneshot(request).await
    }

    /// Creates a document of customer `a`.
    pub(crate) async fn create(&self, id: &str) -> Result<Answer, Error> {
        self.send(self.creation(id, RequestOptions::new())).await
    }

    pub(crate) fn creation(&self, id: &str, options: RequestOptions) -> Request<Body> {
        let document = serde_json::json!({"id": id, "pk": "a"}).to_string();
        Request::post(format!("{}/dbs/shop/colls/orders/docs", self.endpoint))
            .header("content-type", "application/json")
            .header("x-ms-documentdb-partitionkey", r#"["a"]"#)
            .extension(options)
            .body(Body::from(document))
            .unwrap()
    }

    /// Creates a container.
    pub(crate) async fn create_container(&self, id: &str) -> Result<Answer, Error> {
        let container = serde_json::json!({
            "id": id,
            "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        });
        let request = Request::post(format!("{}/dbs/shop/colls", self.endpoint))
            .header("content-type", "application/json")
            .body(Body::from(container.to_string()));
        self.send(request.unwrap()).await
    }

    /// Reads a document of customer `a`.
    pub(crate) async fn read(&self, id: &str) -> Result<Answer, Error> {
        self.send(self.reading(id, None)).await
    }

    /// Reads a document that must be as new as the session.
    pub(crate) async fn read_own(&self, id: &str, token: Option<&str>) -> Result<Answer, Error> {
        self.send(self.reading(id, token)).await
    }

    pub(crate) fn reading(&self, id: &str, token: Option<&str>) -> Request<Body> {
        let mut request =
            Request::get(format!("{}/dbs/shop/colls/orders/docs/{id}", self.endpoint))
                .header("x-ms-documentdb-partitionkey", r#"["a"]"#);
        if let Some(token) = token {
            request = request.header("x-ms-session-token", token);
        }
        request.body(Body::default()).unwrap()
    }
}

async fn read_to_end<B>(answer: Response<B>) -> Result<Answer, Error>
where
    B: http_body::Body<Error = Error>,
{
    let (head, body) = answer.into_parts();
    body.collect().await?;
    let served = Served::of(&head.extensions);
    let token = head.headers.get("x-ms-session-token");
    Ok(Answer {
        status: head.status.as_u16(),
        token: token.map(|token| token.to_str().unwrap().to_owned()),
        trail: served.map_or_else(Vec::new, |served| {
            trail_text(served.trail(), |region| served.name_of(region))
        }),
    })
}

/// `REGION ENDING` of every send.
pub(crate) fn trail_text<'a>(trail: &Trail, name_of: impl Fn(RegionId) -> &'a str) -> Vec<String> {
    let text = |send: &Send| match send.ending {
        Ending::Answer(status) => format!("{} {}", name_of(send.region), status.as_u16()),
        Ending::Fault(fault) => format!("{} {}", name_of(send.region), fault.as_str()),
        _ => format!("{} dropped", name_of(send.region)),
    };
    trail.sends().iter().map(text).collect()
}
