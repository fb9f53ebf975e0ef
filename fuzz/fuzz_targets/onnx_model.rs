//! Bytes as an ONNX model.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relaxide_onnx::{ImportOptions, Model, import};

fuzz_target!(|data: &[u8]| {
    if let Ok(model) = Model::from_bytes(data.to_vec()) {
        let _ = import(&model, &ImportOptions::default());
    }
});
