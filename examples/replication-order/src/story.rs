//! T0 to T6: what happens, and what is read from the secondary after each step.

use std::error::Error;
use std::fmt::Write as _;
use std::time::SystemTime;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use tower::{Layer as _, Service, ServiceExt as _};
use tower_geo::{GeoLayer, GeoService, LocationMode, Served};

use crate::world::{PRIMARY, World, start, time};

const EMPLOYEE: &str = "/people(PartitionKey='sales',RowKey='employee')";
const ADMINISTRATORS: &str = "/people(PartitionKey='sales',RowKey='administrators')";

/// From one step to the next.
const STEP: i64 = 10;

/// What was read of one entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    /// The value; `None`: there is no such entity.
    pub(crate) value: Option<String>,
    /// What tower-geo says of the answer (F2).
    pub(crate) freshness: &'static str,
}

/// One step, and what is seen after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) step: i64,
    pub(crate) what: &'static str,
    /// The step at which the Last Sync Time stands; before the first, -1.
    pub(crate) last_sync: i64,
    pub(crate) employee: Read,
    pub(crate) administrators: Read,
}

type Failure = Box<dyn Error + Send + Sync>;

/// What happens, in the order of the article: only the primary is written, replication is by hand.
async fn happens<C>(step: i64, world: &World, client: &C) -> Result<&'static str, Failure>
where
    C: Service<Request<Full<Bytes>>> + Clone,
    C::Error: Into<Failure>,
{
    Ok(match step {
        0 => {
            put(client, EMPLOYEE, "inserted").await?;
            "transaction A: the employee is inserted"
        }
        1 => {
            world.replicate(EMPLOYEE);
            world.set_last_sync(STEP);
            "A has reached the secondary"
        }
        2 => {
            put(client, EMPLOYEE, "updated").await?;
            "transaction B: the employee is updated"
        }
        3 => {
            put(client, ADMINISTRATORS, "two").await?;
            "transaction C: the administrators are counted anew"
        }
        4 => {
            world.replicate(ADMINISTRATORS);
            "C has reached the secondary, B has not"
        }
        5 => "a client reads both",
        _ => {
            world.replicate(EMPLOYEE);
            world.set_last_sync(6 * STEP);
            "B has reached the secondary"
        }
    })
}

/// Plays T0 to T6.
pub(crate) async fn play() -> Result<Vec<Row>, Failure> {
    let world = World::default();
    let now = world.clone();
    let table = GeoService::azure_storage(PRIMARY)
        .location_mode(LocationMode::SecondaryOnly)
        .wall_clock(start)
        .build()?;
    let client = GeoLayer::new(table.clone())
        .clone_bodies()
        .layer(world.clone());
    before(&now, &client).await?;
    let mut rows = Vec::new();
    for step in 0..=6 {
        world.set_now(step * STEP);
        let what = happens(step, &world, &client).await?;
        // A program leaves this to `spawn_last_sync`, which asks in the background.
        table.verify(&world).await?;
        rows.push(Row {
            step,
            what,
            last_sync: step_of(table.last_sync().time),
            employee: read(&client, EMPLOYEE).await?,
            administrators: read(&client, ADMINISTRATORS).await?,
        });
    }
    Ok(rows)
}

/// A minute before: there is one administrator, and everybody knows.
async fn before<C>(world: &World, client: &C) -> Result<(), Failure>
where
    C: Service<Request<Full<Bytes>>> + Clone,
    C::Error: Into<Failure>,
{
    world.set_now(-60);
    put(client, ADMINISTRATORS, "one").await?;
    world.replicate(ADMINISTRATORS);
    world.set_last_sync(-STEP);
    Ok(())
}

fn step_of(last_sync: Option<SystemTime>) -> i64 {
    (0..=6)
        .rfind(|step| last_sync.is_some_and(|last_sync| time(step * STEP) <= last_sync))
        .unwrap_or(-1)
}

async fn put<C>(client: &C, path: &str, value: &'static str) -> Result<(), Failure>
where
    C: Service<Request<Full<Bytes>>> + Clone,
    C::Error: Into<Failure>,
{
    let put = Request::put(format!("{PRIMARY}{path}")).body(Full::from(value))?;
    client.clone().oneshot(put).await.map_err(Into::into)?;
    Ok(())
}

async fn read<C, B>(client: &C, path: &str) -> Result<Read, Failure>
where
    C: Service<Request<Full<Bytes>>, Response = http::Response<B>> + Clone,
    C::Error: Into<Failure>,
    B: BodyExt,
    B::Error: Into<Failure>,
{
    let get = Request::get(format!("{PRIMARY}{path}")).body(Full::default())?;
    let answer = client.clone().oneshot(get).await.map_err(Into::into)?;
    let served = Served::of(answer.extensions());
    let freshness = served.and_then(Served::freshness);
    let found = answer.status() == StatusCode::OK;
    let body = answer.into_body().collect().await.map_err(Into::into)?;
    let value = String::from_utf8_lossy(&body.to_bytes()).into_owned();
    Ok(Read {
        value: found.then_some(value),
        freshness: freshness.map_or("of the primary", |freshness| freshness.as_str()),
    })
}

/// The table for people.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    let show = |read: &Read| {
        let value = read.value.as_deref().unwrap_or("none");
        format!("{value} ({})", read.freshness)
    };
    let _ = writeln!(
        text,
        "{:<4} {:<51} {:<15} {:<22} administrators, there",
        "", "", "Last Sync Time", "employee, secondary"
    );
    for row in rows {
        let last_sync = match row.last_sync {
            -1 => "before T0".to_owned(),
            step => format!("T{step}"),
        };
        let _ = writeln!(
            text,
            "T{:<3} {:<51} {last_sync:<15} {:<22} {}",
            row.step,
            row.what,
            show(&row.employee),
            show(&row.administrators),
        );
    }
    text.push_str(
        "\nAt T5 the two do not fit together: there are two administrators, and the employee who \
         became\none is not updated yet. What tells is the Last Sync Time: it still stands at T1, \
         and the count\nis newer than that. At T6 all is there, and nothing is in doubt.\n",
    );
    text
}

#[cfg(test)]
mod tests;
