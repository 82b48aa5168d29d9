//! The task that reads the account (C3, F7).

use http::{Method, Request, Response, Uri};
use http_body::Body;
use tower_geo_policy::config_error::ConfigError;
use tower_geo_policy::cosmos::{AccountRead, AfterAnswer, ReadEnd, ReadStep};
use tower_service::Service;

use super::shared::Reading;
use crate::background::{self, BackgroundTask, NoAnswer};
use crate::error::BoxError;
use crate::runtime::{self, State};
use crate::service_handle::GeoService;

/// What is read of an account document: one of 16 regions has some 4 KiB.
const DOCUMENT: usize = 256 * 1024;

impl GeoService {
    /// Reads the account document at once, then every
    /// [`refresh`](super::CosmosBuilder::refresh), and whenever an operation needs to know more
    /// (C3, C5, C7, C8). Feature `cosmos`.
    ///
    /// With discovery on, operations wait for the first document, so the first thing to do with a
    /// new service is to spawn this. One read is under way at a time, whoever wants it, and no
    /// operation ever makes one itself: a caller that leaves takes nothing along.
    ///
    /// `client` has to sign its requests, as one does that has a
    /// [signer](super#signing) right above the bare client. It gets `GET /` for the account's own
    /// host without any header. It may be the client that operations use, or a stack of ours above
    /// it. One that panics is cloned anew for the next read.
    ///
    /// When the task ends, operations that wait for the account end at once, and the regions stay
    /// as they were known last.
    ///
    /// # Errors
    ///
    /// When the service is no account of Cosmos DB, its discovery is off, or there is no tokio
    /// runtime.
    pub fn spawn_account_reader<C, B, RB>(&self, client: C) -> Result<BackgroundTask, ConfigError>
    where
        C: Service<Request<B>, Response = Response<RB>> + Clone + Send + Sync + 'static,
        C::Future: Send,
        C::Error: Into<BoxError>,
        B: Default + Send + 'static,
        RB: Body + Send + 'static,
        RB::Data: Send,
    {
        let refusal = |message: &str| ConfigError::new("account_reader", message.to_owned());
        let Some(shared) = &self.state_ref().extra().cosmos else {
            return Err(refusal("is for accounts of Cosmos DB"));
        };
        if !shared.account.settings().get_discovery() {
            return Err(refusal(
                "has nothing to do: discovery is off, so that only the given host is used",
            ));
        }
        let reading = shared.reads();
        BackgroundTask::spawn("account_reader", run(self.clone(), reading, client))
    }
}

async fn run<C, B, RB>(service: GeoService, reading: Reading, client: C)
where
    C: Service<Request<B>, Response = Response<RB>> + Clone,
    C::Error: Into<BoxError>,
    B: Default,
    RB: Body,
{
    let state = service.state_ref();
    let account = &reading.shared().account;
    loop {
        match account.read_step(state.tick(runtime::now())) {
            ReadStep::Begin => {
                let mut read = account.begin_read();
                let end = loop {
                    if let AfterAnswer::Over(end) = ask(state, &mut read, &client).await {
                        break end;
                    }
                };
                if end == ReadEnd::Taken {
                    account.tell(state, state.tick(runtime::now()));
                }
                tell_end(state, &read, end);
                reading.shared().tell_end();
            }
            ReadStep::Wait(until) => {
                let until = state.instant(until).into();
                // Whether it was time or a wish, what is due now is looked at anew.
                let _ = tokio::time::timeout_at(until, reading.shared().asked()).await;
            }
            // Another reader of this account is at work.
            _ => reading.shared().next_end().await,
        }
    }
}

async fn ask<C, B, RB>(state: &State, read: &mut AccountRead<'_>, client: &C) -> AfterAnswer
where
    C: Service<Request<B>, Response = Response<RB>> + Clone,
    C::Error: Into<BoxError>,
    B: Default,
    RB: Body,
{
    let (now, draw) = (|| state.tick(runtime::now()), || (state.extra().random)());
    let uri = Uri::builder()
        .scheme(read.host().scheme())
        .authority(read.host().authority())
        .path_and_query("/")
        .build();
    let Ok(uri) = uri else {
        return read.failed(now(), draw());
    };
    let request = background::request::<B>(state, "account", &Method::GET, &uri);
    let answer = background::exchange(client, request, DOCUMENT, read.limit(), || ()).await;
    match answer {
        Ok(answer) if answer.broken || answer.body.len() > DOCUMENT => read.failed(now(), draw()),
        Ok(answer) => read.answered(answer.head.status, &answer.body, now(), draw()),
        Err(NoAnswer::TimedOut | NoAnswer::NotReady(None)) => read.timed_out(now(), draw()),
        Err(NoAnswer::Panicked) => {
            tracing::warn!(
                service = state.name(),
                "the client of the account reader panicked"
            );
            read.failed(now(), draw())
        }
        Err(NoAnswer::Failed(_) | NoAnswer::NotReady(Some(_))) => read.failed(now(), draw()),
    }
}

fn tell_end(state: &State, read: &AccountRead<'_>, end: ReadEnd) {
    match end {
        ReadEnd::Taken => tracing::debug!(service = state.name(), "the account was read"),
        ReadEnd::Refused(status) => tracing::warn!(
            service = state.name(),
            status = status.as_u16(),
            "the account refuses to be read: check the signer of the reader's client"
        ),
        _ => tracing::debug!(
            service = state.name(),
            error = read.error().map(tracing::field::display),
            "the account could not be read; what is known of it goes on to hold"
        ),
    }
}
