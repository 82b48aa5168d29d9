//! How a request to an account begins (I8, C4, C11, R10).

use std::sync::Arc;

use http::{Method, Request};
use tower_geo_policy::cosmos::RequestKind;
use tower_geo_policy::cosmos::operation::{Context, Operation};
use tower_geo_policy::operation::{Reach, RequestOptions};
use tower_geo_policy::region::RegionId;

use super::shared::Shared;
use crate::background::BackgroundSend;
use crate::driver::{Decider, Start, note_repeat};
use crate::error::Error;
use crate::handoff::Handoff;
use crate::runtime::{self, State};

/// Looks at a request for a service that has an account.
pub(crate) fn start<B>(
    state: &State,
    shared: &Arc<Shared>,
    reach: Reach,
    request: &mut Request<B>,
) -> Start {
    let account = &shared.account;
    let topology = account.topology();
    let Some(home) = topology.regions().region_of(request.uri()) else {
        if request.uri().authority().is_none() {
            return Start::Refuse(Error::config(state, RELATIVE));
        }
        return Start::Pass;
    };
    let kind = RequestKind::of(request.method(), request.uri(), request.headers());
    if kind.intent().is_neutral() || BackgroundSend::is_of(request.extensions(), state) {
        return Start::Pass;
    }
    // C4: without a redirect below it would go to the global host.
    let is_for_any = home == RegionId::FIRST && account.settings().get_discovery();
    if reach == Reach::Home && is_for_any {
        return Start::Refuse(Error::config(state, NO_REDIRECT));
    }
    let mut operation = Operation::new(kind, home, reach);
    if !request.extensions().is_empty() {
        if let Some(options) = request.extensions().get::<RequestOptions>() {
            let now = state.tick(runtime::now());
            let pin = options.get_pin();
            let leads_away =
                pin.is_some_and(|pin| topology.region(pin, account.marks(), now) != Some(home));
            if reach == Reach::Home && leads_away {
                return Start::Refuse(Error::config(state, crate::driver::PIN_WITHOUT_REDIRECT));
            }
            operation.set_options(options);
        }
        let handoff = Handoff::take(request.extensions_mut(), state);
        if let Some(slot) = handoff.and_then(|handoff| handoff.take_slot()) {
            operation.set_slot(slot);
        }
    }
    if request.method() == Method::DELETE {
        operation.set_is_delete();
    }
    if !state.extra().failed_ids.is_empty() && note_repeat(state, request) {
        operation.set_repeats_a_failure();
    }
    let context = Context::new(runtime::context(state), account);
    let home = operation.go_home(&context);
    Start::Drive {
        operation: Decider::of_account(operation, shared),
        home,
    }
}

const RELATIVE: &str =
    "the request has a relative URI; use an absolute one that names the account's host";

const NO_REDIRECT: &str = "the request names the account's own host, which gets no data once the \
    regions are known, and there is no GeoRedirectLayer below RetryLayer to direct it to a region; \
    add one, or build the account with `discovery(false)`";
