//! Random programs: the interpreter, the VM and, where it goes, Relax agree.

#[path = "../../../relay/tests/support/generate.rs"]
pub mod generate;

use relaxide::ffi::{Any, AnyView, Array};
use relaxide::relay::prelude::parse_with_prelude;
use relaxide::relay::text::Source;
use relaxide::relay::{Expr, Interpreter, Module, scalar, to_relax, visit};
use relaxide::relay_vm::Adt;
use relaxide::{CompileOptions, compile_relay, relay_machine};

use crate::programs::{floats, int};

/// Whether two values are equal; floats up to rounding.
pub fn same(a: &Any, b: &Any) -> bool {
    match (a.downcast_ref::<Adt>(), b.downcast_ref::<Adt>()) {
        (Some(a), Some(b)) => {
            a.tag == b.tag
                && a.fields.len() == b.fields.len()
                && a.fields.iter().zip(&b.fields).all(|(a, b)| same(a, b))
        }
        (None, None) => {
            let (Some(a), Some(b)) = (a.as_tensor(), b.as_tensor()) else { return false };
            let close = |x: &scalar::Number, y: &scalar::Number| match (x, y) {
                (scalar::Number::Float(x), scalar::Number::Float(y)) => {
                    x == y || (x - y).abs() <= 1e-4 * y.abs().max(1.0) || (x.is_nan() && y.is_nan())
                }
                (x, y) => x == y,
            };
            let (x, y) = (scalar::numbers(a).unwrap(), scalar::numbers(b).unwrap());
            (a.shape(), a.dtype()) == (b.shape(), b.dtype()) && x.iter().zip(&y).all(|(x, y)| close(x, y))
        }
        _ => false,
    }
}

/// Whether a program of Relax gave what one of Relay gave: data are tuples there, with the constructor's number in front.
pub fn same_in_relax(module: &Module, found: &Any, expected: &Any) -> bool {
    let Some(adt) = expected.downcast_ref::<Adt>() else { return same(found, expected) };
    let Ok(found) = found.to::<Array>() else { return false };
    let constructor = module.constructor_of_tag(adt.tag.into()).filter(|_| adt.tag != 0);
    let number = constructor.filter(|c| c.siblings > 1).map(|c| c.tag & 0xff_ffff);
    let mut found: Vec<Any> = found.iter().cloned().collect();
    if let Some(number) = number
        && (found.is_empty() || found.remove(0).as_int() != Some(number))
    {
        return false;
    }
    found.len() == adt.fields.len()
        && found.iter().zip(&adt.fields).all(|(found, expected)| same_in_relax(module, found, expected))
}

/// The functions that use no references: as one program they have no effects.
fn without_references(module: &Module) -> Module {
    let mut plain = module.clone();
    plain.functions.retain(|_, function| {
        let mut found = false;
        visit::each(&function.body, |e| {
            found |= matches!(e, Expr::RefCreate(_) | Expr::RefRead(_) | Expr::RefWrite(_));
        });
        !found
    });
    plain
}

#[test]
fn the_interpreter_and_the_machine_agree_on_random_programs() {
    const FUNCTIONS: usize = 100;
    // RELAXIDE_RELAY_PROGRAMS says how many hundreds.
    let batches = std::env::var("RELAXIDE_RELAY_PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(5);
    for seed in 0..batches {
        let source = Source::new("random", generate::module(1000 + seed, FUNCTIONS));
        let module = parse_with_prelude(&source).unwrap_or_else(|d| panic!("{seed}: {d}"));
        let executable =
            compile_relay(&module, &mut CompileOptions::default()).unwrap_or_else(|e| panic!("{seed}: {e}"));
        let file = tempfile::Builder::new().suffix(".so").tempfile().unwrap();
        executable.export_library(file.path()).unwrap();
        let vm = relay_machine(file.path()).unwrap();
        // With a reference anywhere all functions have effects to Relax, which compiles them in another way.
        let by_relax = if seed % 2 == 0 { without_references(&module) } else { module.clone() };
        let program = to_relax(&by_relax).unwrap_or_else(|e| panic!("{seed}: {e}"));
        let program = relaxide::compile(&program, &mut CompileOptions::default());
        let program = program.and_then(|e| e.jit()).unwrap_or_else(|e| panic!("{seed}: {e}"));
        let relax = relaxide::VirtualMachine::of(&program).unwrap_or_else(|e| panic!("{seed}: {e}"));
        let mut interpreter = Interpreter::new(&module);
        let inputs = [int(seed as i32 % 7 - 2), floats(&[0.5, -1.5, seed as f32], &[3])];
        let views: Vec<AnyView<'_>> = inputs.iter().map(AnyView::from).collect();
        for i in 0..FUNCTIONS {
            let name = format!("r{i}");
            let expected = interpreter.run(&name, &views).unwrap_or_else(|e| panic!("{seed} {name}: {e}"));
            let found = vm.invoke(&name, &views).unwrap_or_else(|e| panic!("{seed} {name}: {e}"));
            assert!(same(&found, &expected), "{seed} {name}: {found:?} is not {expected:?}");
            if !by_relax.functions.contains_key(&name) {
                continue;
            }
            let found = relax.invoke(&name, &views).unwrap_or_else(|e| panic!("{seed} {name} by Relax: {e}"));
            assert!(same_in_relax(&module, &found, &expected), "{seed} {name} by Relax: {found:?} is not {expected:?}");
        }
    }
}
