//! Two entities of a table, replicated out of order: what is an answer of the secondary worth?
//!
//! ```text
//! cargo run -p replication-order
//! ```
//!
//! An employee is inserted (transaction A) and updated (B), and the number of administrators is
//! updated with it (C). The secondary gets C before B. The Last Sync Time tells: it stands still
//! until B has arrived, and the number of administrators is newer than it.
//!
//! | question | file |
//! |---|---|
//! | what are the two regions, and what do they say? | `world.rs` |
//! | what happens when, and what is read? | `story.rs` |

mod story;
mod world;

use std::error::Error;
use std::io::Write as _;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let rows = story::play().await?;
    std::io::stdout().write_all(story::table(&rows).as_bytes())?;
    Ok(())
}
