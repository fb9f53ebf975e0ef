//! Text as a saved graph of Relay; what loads is saved and must load again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relaxide_relay::json;

fuzz_target!(|text: &str| {
    if let Ok(module) = json::load(text)
        && let Ok(saved) = json::save(&module)
    {
        assert!(json::load(&saved).is_ok(), "what was saved loads");
    }
});
