//! Text as JSON and as a graph of objects: what reads prints to text that reads to the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relaxide_ffi::json::{from_graph, parse, stringify, to_graph};
use relaxide_ffi::{Any, CompareOptions, first_mismatch, get_global, value_hash};

/// Everything that walks a graph ends, with a result or an error.
fn walk(value: &Any) {
    let options = CompareOptions { map_free_vars: true, skip_tensor_content: false };
    let _ = first_mismatch(value, value, options);
    let _ = value_hash(value, options);
    for name in ["ffi.ReprPrint", "ffi.DeepCopy", "ffi.RecursiveHash"] {
        if let Some(function) = get_global(name) {
            let _ = function.call(&[value.into()]);
        }
    }
}

fuzz_target!(|text: &str| {
    let Ok(value) = parse(text) else { return };
    let written = stringify(&value, 0).expect("what was read can be written");
    let again = parse(&written).expect("what was written can be read");
    assert_eq!(stringify(&again, 0).expect("as above"), written);
    walk(&value);
    let Ok(object) = from_graph(&value) else { return };
    walk(&object);
    let Ok(graph) = to_graph(&object, &Any::none()) else { return };
    let again = from_graph(&graph).expect("what was written can be read");
    let graph_again = to_graph(&again, &Any::none()).expect("as above");
    assert_eq!(stringify(&graph_again, 0).ok(), stringify(&graph, 0).ok());
});
