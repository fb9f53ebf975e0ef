//! Decisions that were found, as the file that a compilation reads ([`Overrides`]), by kernel and target.

use std::path::Path;

use relaxide_tir::schedule::{Override, Overrides};
use serde_json::{Value, json};

use crate::Error;

/// The decisions in a file.
#[derive(Clone, Debug, Default)]
pub struct Database {
    /// As they stand in the file.
    entries: Vec<Value>,
}

impl Database {
    /// What a file says; nothing where there is no file.
    pub fn read(path: &Path) -> Result<Database, Error> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Database::default()),
            Err(source) => return Err(Error::Io { context: format!("cannot read {}", path.display()), source }),
        };
        // What a compilation would refuse is refused here.
        Overrides::from_json(&text)?;
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        Ok(Database { entries: value["schedule"].as_array().cloned().unwrap_or_default() })
    }

    /// The kernels for a target that there are decisions for; those that say no target are for every one.
    pub fn kernels(&self, target: &str) -> Vec<String> {
        let own = self.entries.iter().filter(|entry| is_for(entry, target));
        own.filter_map(|entry| entry["kernel"].as_str().map(str::to_string)).collect()
    }

    /// The decisions for a kernel.
    pub fn of_kernel(&self, kernel: &str, target: &str) -> Vec<Override> {
        let own = self.entries.iter().find(|entry| entry["kernel"] == kernel && is_for(entry, target));
        let text = json!({ "schedule": own.into_iter().collect::<Vec<_>>() }).to_string();
        // The whole was read before.
        Overrides::from_json(&text).map(|read| read.of_kernel(kernel).to_vec()).unwrap_or_default()
    }

    /// Takes decisions in the place of those that there were; with none, forgets them.
    pub fn set(&mut self, kernel: &str, target: &str, decisions: &[Override], times: Option<(f64, f64)>) {
        self.entries.retain(|entry| !(entry["kernel"] == kernel && is_for(entry, target)));
        if decisions.is_empty() {
            return;
        }
        let parameter = |(name, value): &(String, i64)| json!({ "name": name, "value": value });
        let piece = |piece: &Override| {
            let parameters: Vec<Value> = piece.values.iter().map(parameter).collect();
            json!({ "stage": piece.stage, "rule": piece.rule, "parameters": parameters })
        };
        let pieces: Vec<Value> = decisions.iter().map(piece).collect();
        let mut entry = json!({ "kernel": kernel, "target": target, "pieces": pieces });
        if let Some((before, after)) = times {
            entry["microseconds"] = json!({ "before": round(before * 1e6), "after": round(after * 1e6) });
        }
        self.entries.push(entry);
    }

    /// Writes the file, whole or not at all.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let text = format!("{:#}\n", json!({ "schedule": self.entries }));
        let failed = |source| Error::Io { context: format!("cannot write {}", path.display()), source };
        relaxide_runtime::file::write_whole(path, 0o644, |out| out.write_all(text.as_bytes())).map_err(failed)
    }
}

fn is_for(entry: &Value, target: &str) -> bool {
    entry["target"].is_null() || entry["target"] == target
}

fn round(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}
