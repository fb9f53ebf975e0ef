//! Programs with data types by way of Relax give what the interpreter gives.

use relaxide::ffi::{Any, AnyView, Tensor};
use relaxide::relay::prelude::parse_with_prelude;
use relaxide::relay::text::Source;
use relaxide::relay::{Interpreter, Module, to_relax};
use relaxide::{CompileOptions, VirtualMachine, compile};

use crate::programs::{floats, int};
use crate::random::same_in_relax;

fn module(text: &str) -> Module {
    let text = format!("#[version = \"0.0.5\"]\n{text}");
    parse_with_prelude(&Source::new("test.relay", text)).unwrap_or_else(|d| panic!("{d}"))
}

fn run(module: &Module, inputs: &[Tensor]) -> Result<Any, String> {
    let program = to_relax(module).map_err(|e| e.to_string())?;
    let program = compile(&program, &mut CompileOptions::default()).map_err(|e| e.to_string())?;
    let machine = VirtualMachine::of(&program.jit().map_err(|e| e.to_string())?).map_err(|e| e.to_string())?;
    let views: Vec<AnyView<'_>> = inputs.iter().map(AnyView::from).collect();
    machine.invoke("main", &views).map_err(|e| e.to_string())
}

fn check(text: &str, inputs: &[Tensor]) {
    let module = module(text);
    let views: Vec<AnyView<'_>> = inputs.iter().map(AnyView::from).collect();
    let expected = Interpreter::new(&module).run("main", &views).unwrap_or_else(|e| panic!("{text}: {e}"));
    let found = run(&module, inputs).unwrap_or_else(|e| panic!("{text}: {e}"));
    assert!(same_in_relax(&module, &found, &expected), "{text}: {found:?} is not {expected:?}");
}

#[test]
fn lists_and_functions_of_the_prelude_run() {
    check(
        r#"def @main(%n: int32) {
          let %xs = Cons(%n, Cons(2, Cons(3, Nil)));
          let %double = fn (%x: int32) -> int32 { %x * 2 };
          let %add_f = fn (%x: int32, %y: int32) -> int32 { %x + %y };
          let %count = fn (%acc: int32, %x: int32) -> (int32, int32) { (%acc + %x, %acc * 10) };
          (@map(%double, %xs), @length(%xs), @sum(%xs), @foldr1(%add_f, %xs), @rev(%xs), @nth(%xs, 1),
           @update(%xs, 1, 9), @map_accuml(%count, 0, %xs), @map_accumr(%count, 0, %xs), @zip(%xs, @tl(%xs)),
           @size(Rose(1, Cons(Rose(2, Nil), Cons(Rose(3, Nil), Nil)))), @iterate(%double, 5)(%n),
           @flip(fn (%a: int32, %b: int32) -> int32 { %a - %b })(%n, 1), @compose(%double, %double)(%n),
           @map(Some, %xs), @hd(@unfoldl(fn (%s: int32) -> Option[(int32, int32)] {
             if (%s == 0) { None } else { Some((%s - 1, %s)) } }, 4)))
        }"#,
        &[int(7)],
    );
}

#[test]
fn nested_forms_fall_through_and_types_of_many_constructors_are_told_apart() {
    check(
        r#"type Shape { Dot, Line(int32), Box(int32, int32), Text(List[int32]) }
        def @f(%a: Option[int32], %b: Option[int32]) -> int32 {
          match ((%a, %b)) {
            (Some(%x), Some(%y)) => %x + %y,
            (Some(%x), _) => %x,
            (_, Some(%y)) => %y * 100,
            _ => 7,
          }
        }
        def @size(%s: Shape) -> int32 {
          match (%s) {
            Box(%w, %h) => %w * %h,
            Text(Cons(%x, Cons(%y, _))) => %x - %y,
            Text(Nil) => 0 - 1,
            Line(%l) => %l,
            Text(_) => 9,
            Dot => 0,
          }
        }
        def @main(%n: int32) {
          (@f(Some(%n), Some(1)), @f(Some(%n), None), @f(None, Some(%n)), @f(None, None), @size(Dot), @size(Line(%n)),
           @size(Box(%n, 3)), @size(Text(Cons(%n, Cons(2, Nil)))), @size(Text(Nil)), @size(Text(Cons(1, Nil))))
        }"#,
        &[int(5)],
    );
}

#[test]
fn a_case_that_is_missing_is_an_error_of_the_run() {
    let module = module(r#"def @main(%n: int32) -> int32 { match? (Cons(%n, Nil)) { Nil => 1, } }"#);
    let error = run(&module, &[int(5)]).unwrap_err();
    assert!(error.contains("no case of a `match` fits"), "{error}");
}

#[test]
fn closures_in_data_and_polymorphic_local_functions_run() {
    check(
        r#"def @main(%n: int32) {
          let %id2 = fn [A](%x: A) -> A { %x };
          let %fs = Cons(fn (%x: int32) -> int32 { %x + %n }, Cons(fn (%x: int32) -> int32 { %x * %n }, Nil));
          let %down = fn (%i: int32) -> List[int32] { if (%i == 0) { Nil } else { Cons(%i, %down(%i - 1)) } };
          (%id2(%n), %id2((%n, True)).0, @map(fn (%f: fn (int32) -> int32) -> int32 { %f(10) }, %fs), %down(%n))
        }"#,
        &[int(4)],
    );
}

#[test]
fn trees_and_tensors_in_data_run() {
    check(
        r#"type Tree2[A] { Leaf(A), Node(Tree2[A], Tree2[A]) }
        def @join(%t: Tree2[Tensor[(3), float32]]) -> Tensor[(3), float32] {
          match (%t) { Leaf(%x) => tanh(%x), Node(%a, %b) => add(@join(%a), multiply(@join(%b), 0.5f)), }
        }
        def @main(%x: Tensor[(3), float32]) {
          let %t = Node(Node(Leaf(%x), Leaf(exp(%x))), Leaf(negative(%x)));
          (@join(%t), @join(@step(%t)))
        }
        def @step(%t: Tree2[Tensor[(3), float32]]) -> Tree2[Tensor[(3), float32]] {
          match (%t) { Leaf(%x) => Node(Leaf(%x), Leaf(%x)), Node(%a, %b) => Node(@step(%b), @step(%a)), }
        }"#,
        &[floats(&[0.5, -1.0, 2.0], &[3])],
    );
}

#[test]
fn lengths_that_only_the_run_shows_stay_open_in_data() {
    check(
        r#"def @grow(%xs: List[Tensor[(?), float32]]) -> Tensor[(?), float32] {
          match (%xs) { Nil => ones(shape=[1], dtype="float32"), Cons(%x, %rest) => concatenate((%x, @grow(%rest))), }
        }
        def @main(%x: Tensor[(?), float32]) { @grow(Cons(%x, Cons(concatenate((%x, %x)), Nil))) }"#,
        &[floats(&[0.5, -1.0, 2.0], &[3])],
    );
}

#[test]
fn a_long_loop_over_data_needs_one_frame() {
    let module = module(
        r#"def @loop(%i: int32, %o: Option[int32]) -> int32 {
          match (%o) { None => %i, Some(%n) => if (%n == 0) { @loop(%i, None) } else { @loop(%i + 1, Some(%n - 1)) } }
        }
        def @main(%n: int32) -> int32 { @loop(0, Some(%n)) }"#,
    );
    let found = run(&module, &[int(100_000)]).unwrap();
    assert_eq!(found.as_tensor().unwrap().to_vec::<i32>().unwrap(), [100_000]);
}

#[test]
fn references_are_written_in_order_and_shared() {
    check(
        r#"def @twice(%f: fn () -> (), %n: int32) -> () { let %a = %f(); %f() }
        def @main(%n: int32, %x: Tensor[(3), float32]) {
          let %r = ref(%n);
          let %same = %r;
          let %before = ref_read(%r);
          let %u = @twice(fn () -> () { ref_write(%r, ref_read(%same) * 2) }, %n);
          let %held = ref(%x);
          let %v = ref_write(%held, exp(%x));
          let %of = ref(%held);
          let %w = if (%n > 3) { ref_write(ref_read(%of), add(ref_read(%held), %x)) } else { () };
          let %list = ref(Nil);
          let %y = ref_write(%list, Cons(%n, ref_read(%list)));
          let %z = ref_write(%list, Cons(ref_read(%r), ref_read(%list)));
          (%before, ref_read(%same), ref_read(%held), ref_read(%list))
        }"#,
        &[int(5), floats(&[0.5, -1.0, 2.0], &[3])],
    );
}

#[test]
fn dimensions_that_are_not_known_have_names_of_their_own() {
    let program =
        to_relax(&module("def @main(%x: Tensor[(?, 2, ?), float32], %y: Tensor[(?), int32]) { (%x, %y) }")).unwrap();
    let signature = relaxide::signature(&program);
    let dims: Vec<String> =
        signature.functions[0].params.iter().flat_map(|p| &p.dims).map(ToString::to_string).collect();
    assert_eq!(dims, ["n", "2", "n1", "n2"]);
}
