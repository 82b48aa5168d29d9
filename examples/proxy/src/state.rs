//! What `/-/geo` shows.

use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use serde_json::{Map, Value, json};
use tower_geo::{Circuit, GeoService, RegionRef};

pub(crate) fn response(service: &GeoService) -> Response {
    let gate = service.gate();
    let regions: Vec<Value> = service
        .regions()
        .iter()
        .map(|(_, region)| {
            let region_ref = RegionRef::Named(region.name().to_owned());
            let circuits: Map<String, Value> = Circuit::BOTH
                .into_iter()
                .filter_map(|circuit| {
                    let state = service.circuit(&region_ref, circuit).ok()?;
                    let shown = json!({
                        "phase": state.phase.as_str(),
                        "forced": state.forced,
                        "streak": state.streak,
                    });
                    Some((circuit.as_str().to_owned(), shown))
                })
                .collect();
            json!({
                "name": region.name(),
                "endpoint": region.endpoint().to_string(),
                "takes_writes": region.is_writable(),
                "circuits": circuits,
                "tokens": service.budget(&region_ref).map(|(left, _)| left),
            })
        })
        .collect();
    let state = json!({
        "service": service.name(),
        "location_mode": service.location_mode().to_string(),
        "writes": gate.status.as_str(),
        "why": gate.why.map(|why| why.as_str()),
        "regions": regions,
    });
    ([(CONTENT_TYPE, "application/json")], state.to_string()).into_response()
}
