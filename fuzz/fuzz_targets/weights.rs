//! Bytes as a safetensors file: what the header claims lies inside of it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relaxide_runtime::weights::read_header;

fuzz_target!(|data: &[u8]| {
    let Ok(header) = read_header(data) else { return };
    let mut ends = 0;
    for (_, entry) in header.iter() {
        assert!(data.get(entry.range.clone()).is_some());
        ends += entry.range.len();
    }
    assert!(ends <= data.len());
});
