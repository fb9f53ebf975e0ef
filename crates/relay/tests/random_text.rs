//! Random programs: what is printed is read again, as text and as a graph.

use crate::generate;
use relaxide_ffi::{FreeVars, structural_equal};
use relaxide_relay::prelude::parse_with_prelude;
use relaxide_relay::text::{PrintOptions, Source, parse, print_module};
use relaxide_relay::{Module, infer, json, to_a_normal_form};

fn differs(a: &Module, b: &Module) -> Option<String> {
    let different = |(name, f): (&String, &relaxide_ffi::Ref<relaxide_relay::Function>)| match b.functions.get(name) {
        Some(g) => structural_equal(f, g, FreeVars::Same).is_err().then(|| name.clone()),
        None => Some(name.clone()),
    };
    a.functions.iter().find_map(different)
}

#[test]
fn random_programs_are_read_as_they_were_printed() {
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for worker in 0..workers {
            scope.spawn(move || (worker as u64..250).step_by(workers).for_each(is_read_as_it_was_printed));
        }
    });
}

fn is_read_as_it_was_printed(seed: u64) {
    let text = generate::module(seed, 20);
    let source = Source::new("random", text);
    let module = parse_with_prelude(&source).unwrap_or_else(|d| panic!("{seed}: {d}"));
    let types = infer(&module).unwrap_or_else(|e| panic!("{seed}: {}", e[0].diagnostic(Some(&source))));
    let printed = print_module(&module, PrintOptions::default());
    let again = parse(&Source::new("printed", printed.clone())).unwrap_or_else(|d| panic!("{seed}: {d}"));
    assert_eq!(differs(&module, &again), None, "{seed}:\n{printed}");
    let typed = print_module(&module, PrintOptions { types: Some(&types), spans: true, ..PrintOptions::default() });
    let again = parse(&Source::new("printed", typed)).unwrap_or_else(|d| panic!("{seed}: {d}"));
    infer(&again).unwrap_or_else(|e| panic!("{seed}: {}", e[0].message));
    let graph = json::load(&json::save(&module).unwrap()).unwrap_or_else(|e| panic!("{seed}: {e}"));
    assert_eq!(differs(&module, &graph), None, "{seed}");
    let normal = to_a_normal_form(&module);
    infer(&normal).unwrap_or_else(|e| panic!("{seed}: {}", e[0].message));
    let text = print_module(&normal, PrintOptions::default());
    let again = parse(&Source::new("normal", text)).unwrap_or_else(|d| panic!("{seed}: {d}"));
    assert_eq!(differs(&normal, &again), None, "{seed}");
}
