//! Runs the command the way a user does.

#![allow(dead_code, reason = "not every test program needs all of it")]

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Runs `geodrill` with these arguments.
pub(crate) fn geodrill<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    Command::new(env!("CARGO_BIN_EXE_geodrill"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Runs `geodrill run -` with a drill on standard input.
pub(crate) fn run_stdin(drill: &[u8], arguments: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_geodrill"))
        .args(["run", "-"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(drill).unwrap();
    child.wait_with_output().unwrap()
}

/// Files of a folder with one of the extensions, in the order of their names.
pub(crate) fn files(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let extension = path.extension().and_then(OsStr::to_str);
            extension.is_some_and(|extension| extensions.contains(&extension))
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{}", folder.display());
    files
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
