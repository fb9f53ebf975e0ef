//! Programs of PyTorch: archives, and their descriptions alone. Whatever the bytes are, they are imported or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relaxide_torch::{Archive, ImportOptions, Weights, import, parse};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(archive) = Archive::from_bytes(bytes) {
        let _ = import(&archive.program, &archive.weights, &ImportOptions::default());
    }
    if let Ok(program) = parse(bytes) {
        let _ = import(&program, &Weights::new(), &ImportOptions::default());
    }
});
