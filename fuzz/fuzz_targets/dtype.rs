//! Text as an element type, a device and a target; what parses prints to text that parses to the same.
//! Handles are left out: all print as `handle`, whatever their width.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relaxide_ffi::{DataType, Device};

fuzz_target!(|text: &str| {
    if let Some(dtype) = text.parse::<DataType>().ok().filter(|dtype| !dtype.is_handle()) {
        assert_eq!(dtype.to_string().parse::<DataType>().ok(), Some(dtype));
    }
    if let Ok(device) = text.parse::<Device>() {
        assert_eq!(device.to_string().parse::<Device>().ok(), Some(device));
    }
});
