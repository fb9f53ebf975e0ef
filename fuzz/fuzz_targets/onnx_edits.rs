//! Models with control flow, functions and sequences, edited as the bytes say. The first byte chooses the model.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use prost::Message;
use relaxide_onnx::proto::ModelProto;
use relaxide_onnx::{ImportOptions, Model, import};

#[path = "../../crates/onnx/tests/edits/mod.rs"]
mod edits;

static SEEDS: LazyLock<Vec<ModelProto>> =
    LazyLock::new(|| edits::SEEDS.iter().filter_map(|bytes| ModelProto::decode(*bytes).ok()).collect());

fuzz_target!(|data: &[u8]| {
    let Some((first, script)) = data.split_first() else { return };
    let seed = &SEEDS[usize::from(*first) % SEEDS.len()];
    let bytes = edits::edited(seed, script).encode_to_vec();
    if let Ok(model) = Model::from_bytes(bytes) {
        let _ = import(&model, &ImportOptions::default());
    }
});
