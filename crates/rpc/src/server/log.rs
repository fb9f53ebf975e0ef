//! The audit log: one line of JSON for each thing that is worth knowing later.

use std::fs::File;
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

/// Seconds since 1970.
pub(crate) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// Writes a line: who, what, and of what.
pub(crate) fn line(file: &File, user: &str, what: &str, name: &str) {
    let mut text = json!({ "time": now(), "user": user, "what": what, "name": name }).to_string();
    text.push('\n');
    // One write, so that lines of several processes do not mix. Where it fails there is no other place to say so.
    let mut file: &File = file;
    let _ = file.write_all(text.as_bytes());
}
