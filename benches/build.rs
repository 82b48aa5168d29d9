//! Notes which compiler it was: instruction counts are those of a compiler.

use std::process::Command;

fn main() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = Command::new(rustc).arg("--version").output();
    let version = said
        .ok()
        .and_then(|said| String::from_utf8(said.stdout).ok())
        .and_then(|said| said.split_whitespace().nth(1).map(str::to_owned))
        .unwrap_or_else(|| "unknown".to_owned());
    let target = std::env::var("TARGET").unwrap_or_else(|_| "unknown".to_owned());
    let mut out = std::io::stdout();
    let lines = format!(
        "cargo::rerun-if-changed=build.rs\n\
         cargo::rustc-env=BENCHES_RUSTC={version}\n\
         cargo::rustc-env=BENCHES_TARGET={target}\n"
    );
    // Should this fail, the crate does not build, which says enough.
    let _ = std::io::Write::write_all(&mut out, lines.as_bytes());
}
