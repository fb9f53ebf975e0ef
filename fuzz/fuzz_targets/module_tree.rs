//! Bytes as the module tree inside a library.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relaxide_runtime::library::blob;

fuzz_target!(|data: &[u8]| {
    let Ok(nodes) = blob::decode(data) else { return };
    let bytes = blob::encode(&nodes);
    assert_eq!(blob::decode(&bytes[8..]).map(|n| n.len()), Ok(nodes.len()), "what was written is readable");
});
