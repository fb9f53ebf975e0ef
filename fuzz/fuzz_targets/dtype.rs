//! Text as an element type, a device and a target; what parses prints to text that parses to the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relaxide_ffi::{DataType, Device};

fuzz_target!(|text: &str| {
    if let Ok(dtype) = text.parse::<DataType>() {
        assert_eq!(dtype.to_string().parse::<DataType>().ok(), Some(dtype));
    }
    if let Ok(device) = text.parse::<Device>() {
        assert_eq!(device.to_string().parse::<Device>().ok(), Some(device));
    }
});
