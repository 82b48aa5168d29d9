//! The task that reads the account (C3, F7).

use http::{Method, Request, Response, Uri};
use http_body::Body;
use tower_geo_policy::config_error::ConfigError;
use tower_geo_policy::cosmos::{AccountRead, AfterAnswer, ReadEnd, ReadStep};
use tower_service::Service;

use super::shared::{Reading, Shared};
use crate::background::{self, BackgroundTask, NoAnswer};
use crate::error::{BoxError, Error};
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
        // Before the look, so that an end between the two is not missed.
        let next_end = reading.shared().next_end();
        match account.read_step(state.tick(runtime::now())) {
            ReadStep::Begin => {
                let mut read = account.begin_read();
                let mut why = Why::new(reading.shared());
                let end = loop {
                    if let AfterAnswer::Over(end) = ask(state, &mut read, &client, &mut why).await {
                        break end;
                    }
                };
                if end == ReadEnd::Taken {
                    reading.shared().set_unread(None);
                    account.tell(state, state.tick(runtime::now()));
                }
                tell_end(state, reading.shared(), end);
                reading.shared().tell_end();
            }
            ReadStep::Wait(until) => {
                let until = state.instant(until).into();
                // Whether it was time or a wish, what is due now is looked at anew.
                let _ = tokio::time::timeout_at(until, reading.shared().asked()).await;
            }
            // Another reader of this account is at work.
            _ => next_end.await,
        }
    }
}

/// Tells why a read gives no document.
struct Why<'a> {
    shared: &'a Shared,
    is_known: bool,
}

impl<'a> Why<'a> {
    const fn new(shared: &'a Shared) -> Self {
        Self {
            shared,
            is_known: false,
        }
    }

    /// The first cause counts: it is that of the account's own host, the others are guesses.
    fn is(&mut self, cause: BoxError) {
        if !std::mem::replace(&mut self.is_known, true) {
            self.shared.set_unread(Some(cause.into()));
        }
    }
}

async fn ask<C, B, RB>(
    state: &State,
    read: &mut AccountRead<'_>,
    client: &C,
    why: &mut Why<'_>,
) -> AfterAnswer
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
    let uri = match uri {
        Ok(uri) => uri,
        Err(error) => {
            why.is(error.into());
            return read.failed(now(), draw());
        }
    };
    let request = background::request::<B>(state, "account", &Method::GET, &uri);
    let answer = background::exchange(client, request, DOCUMENT, read.limit(), || ()).await;
    match answer {
        Ok(answer) if answer.broken => {
            why.is("the answer broke off".into());
            read.failed(now(), draw())
        }
        Ok(answer) if answer.body.len() > DOCUMENT => {
            why.is("the answer is too long for an account document".into());
            read.failed(now(), draw())
        }
        Ok(answer) => {
            let after = read.answered(answer.head.status, &answer.body, now(), draw());
            if let Some(error) = read.error() {
                why.is(error.clone().into());
            }
            after
        }
        Err(NoAnswer::TimedOut | NoAnswer::NotReady(None)) => {
            why.is("no answer in time".into());
            read.timed_out(now(), draw())
        }
        Err(NoAnswer::Panicked) => {
            tracing::warn!(
                service = state.name(),
                "the client of the account reader panicked"
            );
            why.is("the client panicked".into());
            read.failed(now(), draw())
        }
        Err(NoAnswer::Failed(error) | NoAnswer::NotReady(Some(error))) => {
            // Ours says what the program did wrong, if that is what it is.
            why.is(Error::of_client(state, error).into_cause());
            read.failed(now(), draw())
        }
    }
}

fn tell_end(state: &State, shared: &Shared, end: ReadEnd) {
    let unread = shared.unread();
    match end {
        ReadEnd::Taken => tracing::debug!(service = state.name(), "the account was read"),
        ReadEnd::Refused(status) => tracing::warn!(
            service = state.name(),
            status = status.as_u16(),
            "the account refuses to be read: check the signer of the reader's client"
        ),
        _ if !shared.account.topology().is_known() => tracing::warn!(
            service = state.name(),
            ?unread,
            "the account could not be read, so its regions are not known"
        ),
        _ => tracing::debug!(
            service = state.name(),
            ?unread,
            "the account could not be read; what is known of it goes on to hold"
        ),
    }
}
