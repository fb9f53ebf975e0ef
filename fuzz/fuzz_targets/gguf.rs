//! Bytes as a GGUF file: what the header claims lies inside of it, and blocks become as many numbers as their shape says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relaxide_runtime::weights::read_gguf_header;

fuzz_target!(|data: &[u8]| {
    let Ok(entries) = read_gguf_header(data) else { return };
    for entry in entries.values() {
        let Some(bytes) = data.get(entry.range.clone()) else { panic!("{entry:?} lies outside") };
        if let Some(numbers) = entry.kind.numbers(bytes) {
            assert_eq!(numbers.len() as i64, entry.shape.iter().product::<i64>());
        }
    }
});
