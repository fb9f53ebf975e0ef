//! Text as JSON, and as an object graph in JSON: what is read is written, and reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relaxide_ffi::Any;
use relaxide_ffi::json::{from_graph, parse, stringify, to_graph};

fuzz_target!(|text: &str| {
    let Ok(json) = parse(text) else { return };
    let written = stringify(&json, 0).expect("what was read can be written");
    let again = parse(&written).expect("what was written can be read");
    assert_eq!(stringify(&again, 0).expect("it can be written again"), written);
    let Ok(value) = from_graph(&json) else { return };
    let graph = to_graph(&value, &Any::none()).expect("a graph that was read can be written");
    from_graph(&graph).expect("a graph that was written can be read");
});
