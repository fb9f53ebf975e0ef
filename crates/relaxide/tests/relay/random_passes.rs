//! Random programs through each pass: it ends, what it gives has types and gives the same.

use relaxide::ffi::AnyView;
use relaxide::relay::prelude::parse_with_prelude;
use relaxide::relay::text::{PrintOptions, Source, print_module};
use relaxide::relay::transform::PASSES;
use relaxide::relay::{Interpreter, Module, infer, rewrite};

use crate::programs::{floats, int};
use crate::random::{generate, same};

/// Functions of a program.
const FUNCTIONS: usize = 8;

/// Passes that say nothing by themselves.
const NEED_OPTIONS: [&str; 1] = ["ConvertLayout"];

fn module(seed: u64) -> Module {
    let source = Source::new("random", generate::module(seed, FUNCTIONS));
    parse_with_prelude(&source).unwrap_or_else(|d| panic!("{seed}: {d}"))
}

fn seeds() -> std::ops::Range<u64> {
    3000..3000 + if std::env::var_os("RELAXIDE_DEEP").is_some() { 2000 } else { 8 }
}

#[test]
fn passes_keep_what_random_programs_give() {
    let inputs = [int(3), floats(&[0.5, -1.5, 2.0], &[3])];
    let views: Vec<AnyView<'_>> = inputs.iter().map(AnyView::from).collect();
    for seed in seeds() {
        let module = module(seed);
        let mut interpreter = Interpreter::new(&module);
        let mut run = |i: usize| interpreter.run(&format!("r{i}"), &views).unwrap_or_else(|e| panic!("{seed}: {e}"));
        let expected: Vec<_> = (0..FUNCTIONS).map(&mut run).collect();
        for pass in PASSES.iter().filter(|pass| !NEED_OPTIONS.contains(&pass.name)) {
            let name = pass.name;
            let made = pass.run(&module).unwrap_or_else(|e| panic!("{seed} {name}: {e}"));
            let text = || print_module(&made, PrintOptions::default());
            infer(&made).unwrap_or_else(|e| panic!("{seed} {name}: {}\n{}", e[0].message, text()));
            let mut interpreter = Interpreter::new(&made);
            for (i, expected) in
                expected.iter().enumerate().filter(|(i, _)| made.functions.contains_key(&format!("r{i}")))
            {
                let found = interpreter.run(&format!("r{i}"), &views);
                let found = found.unwrap_or_else(|e| panic!("{seed} {name} r{i}: {e}\n{}", text()));
                assert!(same(&found, expected), "{seed} {name} r{i}: {found:?} is not {expected:?}\n{}", text());
            }
        }
    }
}

#[test]
fn what_no_rule_changes_stays_the_same_node() {
    for seed in seeds() {
        for (name, function) in &module(seed).functions {
            assert!(rewrite(&function.body, &mut |_, _| None).ptr_eq(&function.body), "{seed} {name}");
        }
    }
}
