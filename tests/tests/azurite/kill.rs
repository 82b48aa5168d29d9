//! Two emulators, one for each region, and the one of the primary is killed: a real outage.

use std::fs;
use std::path::{Path, PathBuf};

use http::Method;
use tower_geo::{Account, ErrorKind, GateStatus, StorageService};
use tower_geo_testkit::Side;
use tower_geo_testkit::azurite::{Azurite, AzuriteOptions};
use tower_geo_testkit::client::ClientBuilder;

use crate::account::{
    Ask, Client, Credentials, SERVICES, STREAK, eventually, host, quick, while_read_only,
};

/// A folder that goes when the test does.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tower-geo-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed stays in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The base URL of blob storage in a region, under its production host name.
fn blob_url(side: Side, emulator: &Azurite) -> String {
    let name = host(StorageService::Blob, side);
    format!("http://{name}:{}", emulator.blob_addr().port())
}

fn put(target: &str) -> Ask<'_> {
    Ask {
        method: Method::PUT,
        target,
        headers: &[("x-ms-blob-type", "BlockBlob")],
        body: "meow",
        options: None,
    }
}

fn get(target: &str) -> Ask<'_> {
    Ask {
        method: Method::GET,
        target,
        headers: &[],
        body: "",
        options: None,
    }
}

/// A client of an account whose regions are these two.
fn client(primary: &Azurite, secondary: &Azurite) -> Client {
    let both = [(Side::Primary, primary), (Side::Secondary, secondary)];
    let mut http = ClientBuilder::new();
    for (side, emulator) in both {
        http = http.resolve(&host(StorageService::Blob, side), emulator.blob_addr());
    }
    let [first, second] = both.map(|(side, emulator)| blob_url(side, emulator));
    let mut builder = Account::endpoints();
    for service in SERVICES {
        let [primary, secondary] = match service {
            StorageService::Blob => [first.clone(), second.clone()],
            other => Side::BOTH.map(|side| crate::account::url(other, side)),
        };
        builder = builder.endpoint_pair(service, primary, secondary);
    }
    let geo = quick(builder).unwrap().blob();
    let http = http.build().unwrap();
    Client::new(
        http,
        geo,
        &first,
        StorageService::Blob,
        Credentials::KeyBelow,
    )
}

/// R3, R7, G2, B4: the process of the primary is killed with SIGKILL and started again. Reads go on,
/// writes are refused at once, and all returns.
#[tokio::test]
async fn a_killed_primary_costs_no_read() {
    let folders = Side::BOTH.map(|side| Folder::new(&format!("kill-{side:?}")));
    let [at_primary, at_secondary] = &folders;
    let options = |folder: &Folder| AzuriteOptions::new().location(&folder.0);
    let start = async |folder| Azurite::start(options(folder)).await.unwrap();

    // The secondary gets a copy of what the primary has saved, ETags and dates included.
    let mut primary = start(at_primary).await;
    let alone = client(&primary, &primary);
    let container = "/photos?restype=container";
    alone.expect(201, put(container)).await;
    alone.expect(201, put("/photos/cat.jpg")).await;
    primary.terminate().await.unwrap();
    copy(&at_primary.0, &at_secondary.0);
    primary.restart().await.unwrap();
    let secondary = start(at_secondary).await;

    let client = client(&primary, &secondary);
    let healthy = client.expect(200, get("/photos/cat.jpg")).await;
    assert!(!healthy.is_from_copy());

    primary.kill().await.unwrap();
    for _ in 0..STREAK {
        let answer = client.expect(200, get("/photos/cat.jpg")).await;
        assert!(answer.is_from_copy());
        assert_eq!(answer.body, "meow");
        assert_eq!(answer.headers["etag"], healthy.headers["etag"]);
    }
    assert_ne!(client.geo.gate().status, GateStatus::ReadWrite);
    let (read, refused) = while_read_only(&client.geo, || async {
        let read = client.try_send(&get("/photos/cat.jpg")).await;
        (read, client.try_send(&put("/photos/dog.jpg")).await)
    })
    .await;
    assert_eq!(read.unwrap().sends(), 1, "nobody asks the dead");
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::ReadOnly);

    primary.restart().await.unwrap();
    eventually("reads return", || async {
        let answer = client.expect(200, get("/photos/cat.jpg")).await;
        !answer.is_from_copy()
    })
    .await;
    eventually("writes return", || async {
        match client.try_send(&put("/photos/dog.jpg")).await {
            Ok(answer) => answer.status == 201,
            Err(error) => {
                assert!(error.is_read_only(), "{error}");
                false
            }
        }
    })
    .await;
    let stored = client.expect(200, get("/photos/dog.jpg")).await;
    assert!(!stored.is_from_copy());
    assert_eq!(client.geo.gate().status, GateStatus::ReadWrite);
}
