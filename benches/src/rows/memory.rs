//! What a service holds, and whether that grows.

use super::breaker::root;
use super::layers::service;
use super::subject::{Client, calls, with_headers};
use crate::measure::memory::{Held, growth, of};
use crate::row::{OURS, Row};
use tower_layer::Layer;

pub(super) const ROWS: &[Row] = &[
    Row::memory(
        "memory/service",
        OURS,
        "the shared state of a service: one region, one stripe",
        || of(|| root(1, 1)),
    ),
    Row::memory(
        "memory/region",
        OURS,
        "what a region costs beyond that, with one stripe",
        || each(4, of(|| root(5, 1)).bytes - of(|| root(1, 1)).bytes),
    ),
    Row::memory(
        "memory/stripe",
        OURS,
        "what a stripe (a thread) costs beyond that, with one region",
        || each(8, of(|| root(1, 16)).bytes - of(|| root(1, 8)).bytes),
    ),
    Row::memory(
        "memory/region-and-stripe",
        OURS,
        "what each region keeps for each stripe: the part that grows with both",
        || {
            let grows = |regions| of(|| root(regions, 16)).bytes - of(|| root(regions, 8)).bytes;
            each(4 * 8, grows(5) - grows(1))
        },
    ),
    Row::memory(
        "memory/geo-service",
        OURS,
        "a GeoService as the stack uses it: two regions, two stripes",
        || of(service),
    ),
    Row::memory(
        "memory/growth",
        OURS,
        "how much more is held after 10,000,000 calls of stack/request",
        || {
            let mut call = calls(
                service().layer().clone_bodies().layer(Client),
                with_headers(),
            );
            (0..1_000).for_each(|_| call());
            growth(|| (0..10_000_000).for_each(|_| call()))
        },
    ),
];

fn each(of_so_many: i64, bytes: i64) -> Held {
    Held {
        allocations: None,
        bytes: bytes / of_so_many,
    }
}
