//! Memory of results: programs that take it themselves are compiled as they are written, and others get it planned.

use relaxide::ffi::{AnyView, Tensor};
use relaxide::relay::prelude::parse_with_prelude;
use relaxide::relay::text::Source;
use relaxide::relay::transform::pass;
use relaxide::relay::{Interpreter, Module, VmOptions, vm_compile};
use relaxide::relay_vm::Instruction;
use relaxide::{CompileOptions, compile_relay, relay_machine};

use crate::programs::floats;
use crate::random::same;

const PROGRAMS: &[&str] = &[
    r#"def @main(%x: Tensor[(4, 4), float32]) -> Tensor[(4, 4), float32] {
      %0 = nn.dense(%x, %x, units=4); %1 = nn.dense(%0, %x, units=4); %2 = nn.dense(%1, %0, units=4); nn.dense(%2, %x, units=4) }"#,
    r#"def @main(%x: Tensor[(4, 4), float32]) {
      let %s = split(%x, indices_or_sections=2, axis=1);
      let %t = (tanh(%s.0), exp(%s.1));
      (concatenate((%t.1, %t.0), axis=1), negative(%s.0), %x) }"#,
    r#"def @main(%x: Tensor[(4, 4), float32]) -> Tensor[(4, 4), float32] {
      let %a = exp(%x);
      let %b = if (less(sum(%a), 0f)) { tanh(negative(%a)) } else { sigmoid(tanh(%a)) };
      let %c = multiply(%b, %b); add(%c, negative(%b)) }"#,
    r#"def @main(%x: Tensor[(4, 4), float32]) -> Tensor[(4, 4), float32] {
      let %a = exp(%x);
      let %f = fn (%y: Tensor[(4, 4), float32]) -> Tensor[(4, 4), float32] { add(%y, negative(%a)) };
      let %l = @map(%f, Cons(tanh(%x), Cons(sigmoid(%x), Nil)));
      match? (%l) { Cons(%h, Cons(%i, _)) => multiply(%h, %i), } }"#,
    r#"def @main(%x: Tensor[(4, 4), float32]) -> Tensor[(8, 2), float32] {
      let %a = exp(%x); let %v = reshape(%a, newshape=[8, 2]); let %b = tanh(%a);
      add(negative(%v), reshape(%b, newshape=[8, 2])) }"#,
    r#"def @main(%x: Tensor[(?, 4), float32]) -> Tensor[(?, 4), float32] {
      let %a = concatenate((exp(%x), %x)); let %b = tanh(%a); add(%a, negative(%b)) }"#,
    r#"def @main(%x: Tensor[(4, 4), float32]) -> Tensor[(4, 4), float32] {
      let %f = fn (%p: Tensor[(4, 4), float32], Primitive=1) -> Tensor[(4, 4), float32] { tanh(exp(%p)) };
      let %a = %f(%x); negative(%a) }"#,
    r#"def @main(%x: Tensor[(4, 4), float32]) -> Tensor[(4, 4), float32] {
      let %g = fn (%y: Tensor[(4, 4), float32], Primitive=1) -> Tensor[(4, 4), float32] {
        let %f = fn (%p: Tensor[(4, 4), float32], Primitive=1) -> Tensor[(4, 4), float32] { tanh(exp(%p)) };
        let %a = %f(%y); let %b = %f(%a); subtract(%a, multiply(%b, %y)) };
      %g(%x) }"#,
];

fn module(text: &str) -> Module {
    let text = format!("#[version = \"0.0.5\"]\n{text}");
    parse_with_prelude(&Source::new("memory.relay", text)).unwrap_or_else(|d| panic!("{d}"))
}

fn image() -> Tensor {
    floats(&(0..16).map(|i| (i * 7 % 13) as f32 / 13.0 - 0.3).collect::<Vec<_>>(), &[4, 4])
}

#[test]
fn programs_that_take_their_memory_themselves_are_compiled() {
    let chains: [&[&str]; 4] = [
        &["ManifestAlloc"],
        &["ManifestAlloc", "MemoryPlan"],
        &["ManifestAlloc", "MemoryPlan", "ManifestLifetimes"],
        &["FuseOps", "ManifestAlloc", "MemoryPlan"],
    ];
    let x = image();
    for text in PROGRAMS {
        let plain = module(text);
        let expected = Interpreter::new(&plain).run("main", &[AnyView::from(&x)]).unwrap_or_else(|e| panic!("{e}"));
        for chain in chains {
            let mut changed = plain.clone();
            for name in chain {
                changed = pass(name).unwrap().run(&changed).unwrap_or_else(|e| panic!("{name}: {e}"));
            }
            let made = compile_relay(&changed, &mut CompileOptions::default());
            let made = made.unwrap_or_else(|e| panic!("{text} {chain:?}: {e}"));
            let file = tempfile::Builder::new().suffix(".so").tempfile().unwrap();
            made.export_library(file.path()).unwrap();
            let found = relay_machine(file.path()).unwrap().run(&[AnyView::from(&x)]);
            let found = found.unwrap_or_else(|e| panic!("{text} {chain:?}: {e}"));
            assert!(same(&found, &expected), "{text} {chain:?}: {found:?} is not {expected:?}");
        }
    }
}

#[test]
fn results_that_are_not_needed_together_share_a_storage() {
    let compiled = vm_compile(&module(PROGRAMS[0]), &VmOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let code = compiled.executable.functions.iter().flat_map(|f| &f.instructions);
    let (mut storages, mut tensors) = (0, 0);
    for instruction in code {
        storages += usize::from(matches!(instruction, Instruction::AllocStorage { .. }));
        tensors += usize::from(matches!(instruction, Instruction::AllocTensor { .. }));
    }
    assert!(tensors >= 4, "{tensors}");
    // One for all that stays inside, and the result's.
    assert_eq!(storages, 2);
}
