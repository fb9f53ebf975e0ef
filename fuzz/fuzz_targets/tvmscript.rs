//! Text as TVMScript; what parses is printed and must parse again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relaxide_script::{PrintOptions, parse_module, print_module_with};

fuzz_target!(|text: &str| {
    if let Ok(module) = parse_module(text, "fuzz.py") {
        let printed = print_module_with(&module, PrintOptions { show_meta: true });
        assert!(parse_module(&printed, "printed.py").is_ok(), "what was printed parses:\n{printed}");
    }
});
