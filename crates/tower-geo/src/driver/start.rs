//! How a request begins: untouched, on the healthy path, or with a decision.

use http::{HeaderName, HeaderValue, Method, Request};
use tower_geo_policy::budget;
use tower_geo_policy::intent::Intent;
use tower_geo_policy::operation::{Misfit, Operation, Reach, RequestOptions};
use tower_geo_policy::read_floor::Key;
use tower_geo_policy::region::{LocationMode, RegionId};

use super::decider::Decider;
use crate::background::BackgroundSend;
use crate::body::BodyPolicy;
use crate::error::Error;
use crate::handoff::Handoff;
use crate::runtime::{self, State, service_id};
use crate::scope::{self, Rank};

/// How a request begins.
pub(crate) enum Start {
    /// Not this service's, or neutral: passed on as it is (I3, I8).
    Pass,
    /// Driven by this operation; `home` says that the first send goes out as it is.
    Drive { operation: Decider, home: bool },
    /// Refused.
    Refuse(Error),
}

/// What there is to say of an operation on the healthy path, whose first send goes out as it is.
#[derive(Clone, Copy)]
pub(crate) struct Opening {
    pub(super) intent: Intent,
    pub(super) home: RegionId,
    pub(super) mode: LocationMode,
}

impl Opening {
    /// The opening of a request on the healthy path, for the layer of that rank. None if there is
    /// more to say: then [`start`] looks.
    #[inline(always)]
    pub(crate) fn of<B>(state: &State, rank: Rank, request: &Request<B>) -> Option<Self> {
        let runtime = state.extra();
        #[cfg(feature = "cosmos")]
        if runtime.cosmos.is_some() {
            return None;
        }
        let is_usual = scope::is_in_place(service_id(state), rank)
            && request.extensions().is_empty()
            && request.method() != Method::DELETE
            && runtime.copies.floor.is_none()
            && runtime.failed_ids.is_empty();
        if !is_usual {
            return None;
        }
        let home = state.regions().region_of(request.uri())?;
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        let intent = state.provider().intent(method, uri, headers).intent;
        let mode = state.mode();
        let is_at_home =
            !intent.is_neutral() && Operation::begins_at_home(state, intent, home, mode);
        is_at_home.then_some(Self { intent, home, mode })
    }
}

/// Looks at a request for the layer of that rank.
pub(crate) fn start<B>(state: &State, rank: Rank, reach: Reach, request: &mut Request<B>) -> Start {
    if let Some(mistake) = scope::mistake(state, rank, request.uri()) {
        return Start::Refuse(mistake);
    }
    #[cfg(feature = "cosmos")]
    if let Some(shared) = &state.extra().cosmos {
        return crate::cosmos::start(state, shared, reach, request);
    }
    let regions = state.regions();
    let Some(home) = regions.region_of(request.uri()) else {
        if request.uri().authority().is_none() {
            return Start::Refuse(Error::config(
                state,
                "the request has a relative URI; use an absolute one that names the primary's host",
            ));
        }
        return Start::Pass;
    };
    let intent = state
        .provider()
        .intent(request.method(), request.uri(), request.headers())
        .intent;
    if intent.is_neutral() {
        return Start::Pass;
    }
    // I3: what only the writer answers is not redirected; naming a copy is the caller's own choice.
    let only_for_writer = intent.is_read() && !intent.is_redirectable() && !intent.is_for_copy();
    if only_for_writer && home != regions.writer() {
        return Start::Pass;
    }
    // R10: naming a copy is a pin, which no other pin lifts: without a redirect below, the write
    // would go where it says (R1).
    if intent.is_write() && regions.write_target(home).is_none() {
        return Start::Refuse(Error::misfit(state, Misfit::WriteToCopy));
    }
    // G4: maintenance overrides the mode of the service.
    let mode = if state.in_maintenance() {
        LocationMode::SecondaryOnly
    } else {
        state.mode()
    };
    let mut operation = Operation::new(intent, home, reach, mode);
    if !request.extensions().is_empty() {
        if let Some(options) = request.extensions().get::<RequestOptions>() {
            if let Err(misfit) = operation.set_options(options, regions) {
                return Start::Refuse(Error::misfit(state, misfit));
            }
            let pin = options.get_pin().and_then(|pin| pin.region(regions));
            if reach == Reach::Home && pin.is_some_and(|pin| pin != home) {
                return Start::Refuse(Error::config(state, PIN_WITHOUT_REDIRECT));
            }
        }
        if BackgroundSend::is_of(request.extensions(), state) {
            return Start::Pass;
        }
        let handoff = Handoff::take(request.extensions_mut(), state);
        if let Some(slot) = handoff.and_then(|handoff| handoff.take_slot()) {
            operation.set_slot(slot);
        }
    }
    if request.method() == Method::DELETE {
        operation.set_is_delete();
    }
    if state.extra().copies.floor.is_some() {
        operation.set_key(key_of(state, intent, request));
    }
    if !state.extra().failed_ids.is_empty() && note_repeat(state, request) {
        operation.set_repeats_a_failure();
    }
    let home = operation.go_home(&runtime::context(state));
    Start::Drive {
        operation: Decider::Plain(operation),
        home,
    }
}

/// R10: the answer would be of another region than the one that the caller insists on.
pub(crate) const PIN_WITHOUT_REDIRECT: &str = "the request is pinned to another region than the one that it \
    names, and there is no GeoRedirectLayer below RetryLayer to send it there";

/// F5: what the request reads or writes.
fn key_of<B>(state: &State, intent: Intent, request: &Request<B>) -> Key {
    let (method, uri) = (request.method(), request.uri());
    if intent.is_write() && state.provider().writes_many(method, uri, request.headers()) {
        return Key::MANY;
    }
    let path = uri.path();
    let below_account = path
        .strip_prefix('/')
        .and_then(|path| path.find('/').and_then(|at| path.get(at..)));
    let path = match below_account {
        Some(below) if state.regions().is_path_style() => below,
        _ => path,
    };
    Key::of_path(state.provider().object_path(path))
}

/// T8: whether a client above us repeats what has just been given up.
pub(crate) fn note_repeat<B>(state: &State, request: &Request<B>) -> bool {
    let runtime = state.extra();
    let now = state.tick(runtime::now());
    let repeated =
        request_id(request).is_some_and(|id| runtime.failed_ids.contains(id.as_bytes(), now));
    if repeated && runtime.first_warning_of_repeats() {
        tracing::warn!(
            service = state.name(),
            price = budget::RETURN,
            "a client above this stack repeats operations that have just failed here: nested \
             retries multiply; turn that client's own retries off"
        );
    }
    repeated
}

static CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-client-request-id");

/// The id by which a repeat of this request is known (T8).
pub(super) fn request_id<B>(request: &Request<B>) -> Option<&HeaderValue> {
    request.headers().get(&CLIENT_REQUEST_ID)
}

/// The copy that is kept of a request whose first send goes out as it is.
#[inline]
pub(super) fn keep_for_later<P, B>(
    reach: Reach,
    policy: &P,
    may_follow: bool,
    request: &Request<P::Body>,
) -> Option<Request<P::Body>>
where
    P: BodyPolicy<B>,
{
    let watches_uploads = reach != Reach::OnceEach && policy.watches_uploads();
    if may_follow || watches_uploads {
        policy.keep_request(request)
    } else {
        None
    }
}
