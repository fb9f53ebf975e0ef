//! Bytes as an executable: reading, listing, verifying and writing them back must end, without a panic.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use relaxide_vm::{Executable, verify};

fuzz_target!(|data: &[u8]| {
    let Ok(executable) = Executable::from_bytes(data) else { return };
    let _ = executable.as_text();
    let _ = executable.as_python();
    let _ = executable.stats();
    if let Ok(bytes) = executable.to_bytes() {
        assert!(Executable::from_bytes(&bytes).is_ok(), "what was written is readable");
    }
    let _ = verify(Arc::new(executable));
});
