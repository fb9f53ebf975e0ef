//! The chores behind `cargo xtask`, as a library, so that tests can run them.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

pub mod licences;
pub mod tidy;

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}
