//! Text as a program of Relay; what parses is printed and must parse again, and typing it must end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relaxide_relay::infer;
use relaxide_relay::text::{PrintOptions, Source, parse, print_module};

fuzz_target!(|text: &str| {
    if let Ok(module) = parse(&Source::new("fuzz.relay", text)) {
        let printed = print_module(&module, PrintOptions::default());
        assert!(parse(&Source::new("printed.relay", printed.clone())).is_ok(), "what was printed parses:\n{printed}");
        let _ = infer(&module);
    }
});
