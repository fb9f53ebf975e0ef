//! Memory passes: what a program computes stays, storages lie over each other only where that disturbs nothing, and names end.

use relaxide_ffi::{Any, AnyView, Tensor};
use relaxide_relay::prelude::parse_with_prelude;
use relaxide_relay::text::{PrintOptions, Source, parse, print_module};
use relaxide_relay::transform::pass;
use relaxide_relay::{Interpreter, Module, infer, scalar};
use relaxide_relay_vm::Adt;

const CHAIN: &str = r#"def @main(%x: Tensor[(4, 8), float32]) -> Tensor[(4, 8), float32] {
  %0 = exp(%x); %1 = tanh(%0); %2 = negative(%1); %3 = sigmoid(%2); add(multiply(%3, %3), %x) }"#;

const PROGRAMS: &[(&str, &str)] = &[
    ("chain", CHAIN),
    (
        "values that live long",
        r#"def @main(%x: Tensor[(4, 8), float32]) -> Tensor[(4, 8), float32] {
          let %a = exp(%x); let %b = tanh(%a); let %c = negative(%b); let %d = add(%a, %c); multiply(%d, %b) }"#,
    ),
    (
        "tuples of results",
        r#"def @main(%x: Tensor[(4, 8), float32]) {
          let %s = split(%x, indices_or_sections=2, axis=1);
          let %t = (tanh(%s.0), exp(%s.1));
          (concatenate((%t.1, %t.0), axis=1), negative(%s.0)) }"#,
    ),
    (
        "branches",
        r#"def @main(%x: Tensor[(4, 8), float32]) -> Tensor[(4, 8), float32] {
          let %a = exp(%x);
          let %b = if (less(sum(%a), 0f)) { tanh(negative(%a)) } else { sigmoid(tanh(%a)) };
          let %c = multiply(%b, %b); add(%c, negative(%b)) }"#,
    ),
    (
        "data and closures",
        r#"def @main(%x: Tensor[(4, 8), float32]) -> Tensor[(4, 8), float32] {
          let %a = exp(%x);
          let %f = fn (%y: Tensor[(4, 8), float32]) -> Tensor[(4, 8), float32] { add(%y, negative(%a)) };
          let %l = @map(%f, Cons(tanh(%x), Cons(sigmoid(%x), Nil)));
          match? (%l) { Cons(%h, Cons(%i, _)) => multiply(%h, %i), } }"#,
    ),
    (
        "a view",
        r#"def @main(%x: Tensor[(4, 8), float32]) -> Tensor[(8, 4), float32] {
          let %a = exp(%x); let %v = reshape(%a, newshape=[8, 4]); let %b = tanh(%a);
          add(negative(%v), reshape(%b, newshape=[8, 4])) }"#,
    ),
    (
        "shapes that only the run shows",
        r#"def @main(%x: Tensor[(?, 8), float32]) -> Tensor[(?, 8), float32] {
          let %a = concatenate((exp(%x), %x)); let %b = tanh(%a); add(%a, negative(%b)) }"#,
    ),
    (
        "kernels that are functions",
        r#"def @main(%x: Tensor[(4, 8), float32]) -> Tensor[(4, 8), float32] {
          let %f = fn (%p: Tensor[(4, 8), float32], Primitive=1) -> Tensor[(4, 8), float32] { tanh(exp(%p)) };
          let %a = %f(%x); negative(%a) }"#,
    ),
];

fn module(text: &str) -> Module {
    parse_with_prelude(&Source::new("memory", format!("#[version = \"0.0.5\"]\n{text}")))
        .unwrap_or_else(|d| panic!("{d}"))
}

fn passed(module: &Module, names: &[&str]) -> Module {
    names
        .iter()
        .fold(module.clone(), |module, name| pass(name).unwrap().run(&module).unwrap_or_else(|e| panic!("{name}: {e}")))
}

fn numbers(value: &Any) -> Vec<f64> {
    if let Some(adt) = value.downcast_ref::<Adt>() {
        return adt.fields.iter().flat_map(numbers).collect();
    }
    let found = scalar::numbers(&value.to::<Tensor>().unwrap()).unwrap();
    found.iter().map(|n| if let scalar::Number::Float(v) = n { *v } else { panic!("a float") }).collect()
}

fn run(module: &Module) -> Vec<f64> {
    let values: Vec<f32> = (0..32).map(|i| (i * 7 % 13) as f32 / 13.0 - 0.3).collect();
    let x = Tensor::from_slice(&values, &[4, 8]).unwrap();
    numbers(
        &Interpreter::new(module).run("main", &[AnyView::from(&x)]).unwrap_or_else(|e| panic!("{e}\n{}", text(module))),
    )
}

fn text(module: &Module) -> String {
    print_module(module, PrintOptions { no_metadata: true, ..PrintOptions::default() })
}

fn main_text(module: &Module) -> String {
    text(module).split("def @main").nth(1).unwrap_or_default().to_string()
}

#[test]
fn programs_compute_the_same_in_memory_that_they_take_themselves() {
    let manifest = ["ManifestAlloc"];
    let planned = ["ManifestAlloc", "MemoryPlan"];
    let all = ["ManifestAlloc", "MemoryPlan", "ManifestLifetimes"];
    let late = ["ManifestAlloc", "ManifestLifetimes", "MemoryPlan"];
    let lifetimes = ["ManifestLifetimes"];
    for (name, program) in PROGRAMS {
        let module = module(program);
        let expected = run(&module);
        for passes in [&manifest[..], &planned, &all, &late, &lifetimes] {
            let changed = passed(&module, passes);
            assert!(infer(&changed).is_ok(), "{name}: {passes:?}");
            let found = run(&changed);
            assert_eq!(found.len(), expected.len(), "{name}: {passes:?}");
            let close = found.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= 1e-6 * (1.0 + b.abs()));
            assert!(close, "{name}: {passes:?}: {found:?} is not {expected:?}\n{}", main_text(&changed));
            let full = print_module(&changed, PrintOptions::default());
            assert_eq!(
                print_module(&parse(&Source::new("again", full.clone())).unwrap(), PrintOptions::default()),
                full,
                "{name}"
            );
        }
    }
}

#[test]
fn a_chain_of_layers_takes_two_rooms_and_its_result() {
    let manifest = passed(&module(CHAIN), &["ManifestAlloc"]);
    let planned = passed(&manifest, &["MemoryPlan"]);
    let storages = |module: &Module| main_text(module).matches("memory.alloc_storage(").count();
    // exp, tanh, negative, sigmoid, multiply, add.
    assert_eq!(storages(&manifest), 6);
    // One arena, and the result, which leaves the function.
    assert_eq!(storages(&planned), 2);
    let text = main_text(&planned);
    // Each value of 128 bytes is needed while the next one is made: two rooms.
    assert!(text.contains("memory.alloc_storage(256i64"), "{text}");
}

#[test]
fn every_name_ends_but_the_result() {
    let text = main_text(&passed(&module(CHAIN), &["ManifestLifetimes"]));
    // %x and five values; the sixth is the result.
    assert_eq!(text.matches("memory.kill(").count(), 6, "{text}");
    // %x is used last by the addition.
    assert!(text.rfind("memory.kill(") > text.find("add("), "{text}");
}
