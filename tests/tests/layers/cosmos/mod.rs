//! An account of Cosmos DB under the layers: C1 to C15. Whole outages are in the drills.

mod account;
mod chaos;
mod outages;
mod told;
mod writes;

mod world;

use http::{Method, Request, Response};
use http_body_util::Full;
use tower::{Layer, ServiceExt};
use tower_geo::cosmos::CosmosBuilder;
use tower_geo::{Account, BackgroundTask, Error, ErrorKind, GeoService, Served};

pub(crate) use self::world::{Act, CENTRAL, EAST, GLOBAL, OK, Seen, WEST, World};
use crate::support::*;

fn account() -> CosmosBuilder {
    Account::cosmos(format!("https://{GLOBAL}"))
        .preferred(["West US", "East US"])
        .refresh_jitter(std::time::Duration::ZERO)
        .retry(retry())
        .breaker(breaker().streak(10))
        .random(|| 0.5)
        .wall_clock(noon)
        .threads(1)
}

fn read() -> Request<Body> {
    request(Method::GET, GLOBAL, "/dbs/shop/colls/orders/docs/1")
}

fn write() -> Request<Body> {
    let mut write = request(Method::POST, GLOBAL, "/dbs/shop/colls/orders/docs");
    *write.body_mut() = Body::from(r#"{"id":"1"}"#);
    write
}

/// The answer, its status, and the name of the region that gave it.
pub(crate) fn told<B>(answer: &Result<Response<B>, Error>) -> String {
    match answer {
        Ok(response) => {
            let region = Served::of(response.extensions()).map_or("-", Served::region_name);
            format!("{} {region}", response.status().as_u16())
        }
        Err(error) => error.kind().as_str().to_owned(),
    }
}

type Answer = Result<Response<tower_geo::body::SettleBody<Full<bytes::Bytes>>>, Error>;

/// A service whose account is read, and the world that it is in.
struct Rig {
    world: World,
    service: GeoService,
    reader: Option<BackgroundTask>,
}

impl Rig {
    fn of(world: World, builder: CosmosBuilder) -> Self {
        let service = builder.build().unwrap();
        let reader = service.spawn_account_reader(world.client()).unwrap();
        Self {
            world,
            service,
            reader: Some(reader),
        }
    }

    fn new(world: World) -> Self {
        Self::of(world, account())
    }

    async fn call(&self, request: Request<Body>) -> Answer {
        let stack = self.service.layer().clone_bodies();
        stack.layer(self.world.client()).oneshot(request).await
    }
}
