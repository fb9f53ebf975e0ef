//! Dimensions that only the run shows: what programs over them grow to, and what is refused.

use relaxide_relay::prelude::parse_with_prelude;
use relaxide_relay::text::Source;
use relaxide_relay::{Module, VmOptions, infer, to_relax, vm_compile};
use relaxide_script::print_module;

fn module(text: &str) -> Module {
    parse_with_prelude(&Source::new("dims", format!("#[version = \"0.0.5\"]\n{text}")))
        .unwrap_or_else(|d| panic!("{d}"))
}

/// An LSTM of so many steps, unrolled, each of whose inputs has a batch of its own that only the run shows.
fn unrolled(steps: usize) -> Module {
    let inputs: String = (0..steps).map(|t| format!("%x{t}: Tensor[(?, 4), float32], ")).collect();
    let mut body = "let %h = zeros_like(%x0);\n let %c = zeros_like(%x0);\n".to_string();
    for t in 0..steps {
        let (h, c) = if t == 0 { ("%h".into(), "%c".into()) } else { (format!("%h{t}"), format!("%c{t}")) };
        let next = t + 1;
        body += &format!(
            "let %g{t} = split(add(nn.dense(%x{t}, %w, units=16), nn.dense({h}, %u, units=16)), indices_or_sections=4, axis=1);
             let %c{next} = add(multiply(sigmoid(%g{t}.1), {c}), multiply(sigmoid(%g{t}.0), tanh(%g{t}.2)));
             let %h{next} = multiply(sigmoid(%g{t}.3), tanh(%c{next}));\n"
        );
    }
    module(&format!(
        "def @main({inputs}%w: Tensor[(16, 4), float32], %u: Tensor[(16, 4), float32]) {{ {body} %h{steps} }}"
    ))
}

/// How many words the kernels and the code of a program take.
fn words(module: &Module) -> usize {
    let made = vm_compile(module, &VmOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let code: usize = made.executable.functions.iter().map(|f| f.instructions.len()).sum();
    code + print_module(&made.kernels).split_whitespace().count()
}

#[test]
fn an_unrolled_loop_over_unknown_batches_grows_with_its_steps() {
    let [two, four, eight] = [2, 4, 8].map(|steps| words(&unrolled(steps)));
    // A step more costs what a step costs, and a place in the shape that is passed on.
    assert!(eight - four < 3 * (four - two), "{two}, {four}, {eight}");
}

fn in_relax(module: &Module) -> String {
    print_module(&to_relax(module).unwrap_or_else(|e| panic!("{e}")))
}

#[test]
fn an_unrolled_loop_grows_with_its_steps_in_relax() {
    let size = |steps| in_relax(&unrolled(steps)).split_whitespace().count();
    let [two, four, eight] = [2, 4, 8].map(size);
    assert!(eight - four < 3 * (four - two), "{two}, {four}, {eight}");
}

#[test]
fn what_is_broadcast_again_needs_no_new_dimension() {
    let program = |sum: &str| {
        module(&format!(
            "def @main(%x: Tensor[(?), float32], %y: Tensor[(?), float32]) {{ let %z = add(%x, %y); {sum} }}"
        ))
    };
    let repeats = |module: &Module| in_relax(module).matches("call_tir").count();
    // Both are repeated for the first sum; after that only the shorter one is.
    let first = repeats(&program("%z"));
    assert_eq!(first, 2);
    assert_eq!(repeats(&program("add(%z, %z)")), first);
    assert_eq!(repeats(&program("let %a = add(%z, %x); let %b = add(%a, %y); add(%b, %z)")), first + 2);
}

#[test]
fn tensors_of_unknown_shapes_are_refused_where_they_are_made() {
    for (call, name) in [
        ("zeros(shape=[-1, 8], dtype=\"float32\")", "dyn.zeros"),
        ("ones(shape=[2, -1], dtype=\"float32\")", "dyn.ones"),
        ("full(1f, shape=[-1], dtype=\"float32\")", "dyn.full"),
        ("broadcast_to(1f, shape=[-1])", "dyn.broadcast_to"),
    ] {
        let text = format!("#[version = \"0.0.5\"]\ndef @main(%n: int32) {{ {call} }}");
        let module = parse_with_prelude(&Source::new("dims", text)).unwrap_or_else(|d| panic!("{d}"));
        let errors = infer(&module).map(drop).expect_err(call);
        let message = &errors[0].message;
        assert!(message.contains("Any") && message.contains(name), "{message}");
    }
}
