//! Programs with control flow and data.

use relaxide::ffi::{Any, AnyView, Tensor};
use relaxide::relay::prelude::parse_with_prelude;
use relaxide::relay::text::Source;
use relaxide::relay_vm::{Adt, Limits, VirtualMachine};
use relaxide::{CompileOptions, compile_relay, relay_machine};

/// A machine for a program, which may use the prelude.
pub fn machine(text: &str) -> VirtualMachine {
    let module = parse_with_prelude(&Source::new("test.relay", text)).unwrap_or_else(|d| panic!("{d}"));
    let executable = compile_relay(&module, &mut CompileOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let file = tempfile::Builder::new().suffix(".so").tempfile().unwrap();
    executable.export_library(file.path()).unwrap();
    relay_machine(file.path()).unwrap()
}

pub fn int(value: i32) -> Tensor {
    Tensor::from_slice(&[value], &[]).unwrap()
}

pub fn floats(values: &[f32], shape: &[i64]) -> Tensor {
    Tensor::from_slice(values, shape).unwrap()
}

pub fn as_int(value: &Any) -> i32 {
    value.as_tensor().unwrap().to_vec::<i32>().unwrap()[0]
}

/// The elements of a list of the prelude.
pub fn list(value: &Any) -> Vec<Any> {
    let (mut out, mut value) = (Vec::new(), value.clone());
    loop {
        let next = {
            let adt = value.downcast_ref::<Adt>().unwrap();
            if adt.fields.is_empty() {
                return out;
            }
            out.push(adt.fields[0].clone());
            adt.fields[1].clone()
        };
        value = next;
    }
}

fn ints(value: &Any) -> Vec<i32> {
    list(value).iter().map(as_int).collect()
}

fn run(vm: &VirtualMachine, args: &[&Tensor]) -> Any {
    let views: Vec<AnyView<'_>> = args.iter().map(|t| AnyView::from(*t)).collect();
    vm.run(&views).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn a_list_is_sorted() {
    let vm = machine(
        r#"#[version = "0.0.5"]
        def @below(%p: int32, %xs: List[int32]) -> List[int32] { @filter(fn (%x: int32) -> bool { %x < %p }, %xs) }
        def @above(%p: int32, %xs: List[int32]) -> List[int32] { @filter(fn (%x: int32) -> bool { %x >= %p }, %xs) }
        def @sort(%xs: List[int32]) -> List[int32] {
          match (%xs) { Nil => Nil, Cons(%p, %rest) => {
            @concat(@sort(@below(%p, %rest)), Cons(%p, @sort(@above(%p, %rest)))) }, }
        }
        def @main(%n: int32) -> List[int32] {
          let %xs = @unfoldr(fn (%s: (int32, int32)) -> Option[((int32, int32), int32)] {
            if (%s.1 == 0) { None } else { Some(((%s.0 * 37 + 11 - (%s.0 * 37 + 11) / 101 * 101, %s.1 - 1), %s.0)) }
          }, (5, %n));
          @sort(%xs)
        }"#,
    );
    let sorted = ints(&run(&vm, &[&int(60)]));
    let mut expected = Vec::new();
    let mut seed = 5;
    for _ in 0..60 {
        expected.push(seed);
        seed = (seed * 37 + 11) % 101;
    }
    expected.sort_unstable();
    assert_eq!(sorted, expected);
}

#[test]
fn the_functions_of_the_prelude_work() {
    let vm = machine(
        r#"#[version = "0.0.5"]
        def @main(%n: int32) {
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
    );
    let result = run(&vm, &[&int(7)]);
    let f = &result.downcast_ref::<Adt>().unwrap().fields;
    assert_eq!(ints(&f[0]), [14, 4, 6]);
    assert_eq!((as_int(&f[1]), as_int(&f[2]), as_int(&f[3])), (3, 12, 12));
    assert_eq!(ints(&f[4]), [3, 2, 7]);
    assert_eq!(as_int(&f[5]), 2);
    assert_eq!(ints(&f[6]), [7, 9, 3]);
    let pair = |v: &Any, i: usize| v.downcast_ref::<Adt>().unwrap().fields[i].clone();
    assert_eq!((as_int(&pair(&f[7], 0)), ints(&pair(&f[7], 1))), (12, vec![90, 70, 0]));
    assert_eq!((as_int(&pair(&f[8], 0)), ints(&pair(&f[8], 1))), (12, vec![50, 30, 0]));
    assert_eq!(list(&f[9]).len(), 2);
    assert_eq!((as_int(&f[10]), as_int(&f[11]), as_int(&f[12]), as_int(&f[13])), (3, 7 * 32, 1 - 7, 28));
    assert_eq!(list(&f[14]).len(), 3);
    assert_eq!(as_int(&f[15]), 1);
}

#[test]
fn functions_call_each_other_and_recursion_may_be_deep() {
    let vm = machine(
        r#"#[version = "0.0.5"]
        def @even(%n: int32) -> bool { if (%n == 0) { True } else { @odd(%n - 1) } }
        def @odd(%n: int32) -> bool { if (%n == 0) { False } else { @even(%n - 1) } }
        def @depth(%n: int32) -> int32 { if (%n == 0) { 0 } else { 1 + @depth(%n - 1) } }
        def @main(%n: int32) { (@even(%n), @depth(%n)) }"#,
    );
    let result = run(&vm, &[&int(20_001)]);
    let f = &result.downcast_ref::<Adt>().unwrap().fields;
    assert!(!relaxide::relay::scalar::ints(f[0].as_tensor().unwrap()).unwrap()[0].is_positive());
    assert_eq!(as_int(&f[1]), 20_001);
}

#[test]
fn a_loop_of_a_million_steps_takes_constant_memory() {
    let vm = machine(
        r#"#[version = "0.0.5"]
        def @loop(%i: int32, %acc: int32) -> int32 { if (%i == 0) { %acc } else { @loop(%i - 1, %acc + 1) } }
        def @main(%n: int32) -> int32 { @loop(%n, 0) }"#,
    );
    vm.set_limits(Limits { depth: Some(4), memory: None, ..Limits::default() });
    assert_eq!(as_int(&run(&vm, &[&int(1_000_000)])), 1_000_000);
}

#[test]
fn nested_matches_fall_through_to_the_next_case() {
    let vm = machine(
        r#"#[version = "0.0.5"]
        def @f(%a: Option[int32], %b: Option[int32]) -> int32 {
          match ((%a, %b)) {
            (Some(%x), Some(%y)) => %x + %y,
            (Some(%x), _) => %x,
            (_, Some(%y)) => %y * 100,
            _ => 7,
          }
        }
        def @main(%n: int32) { (@f(Some(%n), Some(1)), @f(Some(%n), None), @f(None, Some(%n)), @f(None, None)) }"#,
    );
    let result = run(&vm, &[&int(5)]);
    let found: Vec<i32> = result.downcast_ref::<Adt>().unwrap().fields.iter().map(as_int).collect();
    assert_eq!(found, [6, 5, 500, 7]);
}

#[test]
fn references_closures_in_data_and_polymorphic_local_functions_work() {
    let vm = machine(
        r#"#[version = "0.0.5"]
        def @main(%n: int32) {
          let %r = ref(%n);
          let %old = ref_read(%r);
          ref_write(%r, %old * 3);
          let %id2 = fn [A](%x: A) -> A { %x };
          let %fs = Cons(fn (%x: int32) -> int32 { %x + %n }, Cons(fn (%x: int32) -> int32 { %x * %n }, Nil));
          (ref_read(%r), %id2(%n), %id2((%n, True)).0, @map(fn (%f: fn (int32) -> int32) -> int32 { %f(10) }, %fs))
        }"#,
    );
    let result = run(&vm, &[&int(4)]);
    let f = &result.downcast_ref::<Adt>().unwrap().fields;
    assert_eq!((as_int(&f[0]), as_int(&f[1]), as_int(&f[2])), (12, 4, 4));
    assert_eq!(ints(&f[3]), [14, 40]);
}

#[test]
fn an_lstm_runs_over_a_list_of_any_length() {
    let vm = machine(
        r#"#[version = "0.0.5"]
        def @cell(%x: Tensor[(1, 2), float32], %s: (Tensor[(1, 2), float32], Tensor[(1, 2), float32]),
                  %wi: Tensor[(8, 2), float32], %wh: Tensor[(8, 2), float32])
            -> (Tensor[(1, 2), float32], Tensor[(1, 2), float32]) {
          let %g = split(nn.dense(%x, %wi, units=8) + nn.dense(%s.0, %wh, units=8), indices_or_sections=4, axis=1);
          let %c = sigmoid(%g.1) * %s.1 + sigmoid(%g.0) * tanh(%g.2);
          (sigmoid(%g.3) * tanh(%c), %c)
        }
        def @run(%xs: List[Tensor[(1, 2), float32]], %s: (Tensor[(1, 2), float32], Tensor[(1, 2), float32]),
                 %wi: Tensor[(8, 2), float32], %wh: Tensor[(8, 2), float32]) -> Tensor[(1, 2), float32] {
          match (%xs) { Nil => %s.0, Cons(%x, %rest) => @run(%rest, @cell(%x, %s, %wi, %wh), %wi, %wh), }
        }
        def @repeat_list(%x: Tensor[(1, 2), float32], %n: int32) -> List[Tensor[(1, 2), float32]] {
          if (%n == 0) { Nil } else { Cons(%x, @repeat_list(%x, %n - 1)) }
        }
        def @main(%x: Tensor[(1, 2), float32], %n: int32, %wi: Tensor[(8, 2), float32], %wh: Tensor[(8, 2), float32]) {
          @run(@repeat_list(%x, %n), (zeros(shape=[1, 2], dtype="float32"), zeros(shape=[1, 2], dtype="float32")), %wi, %wh)
        }"#,
    );
    let wi: Vec<f32> = (0..16).map(|i| (i as f32 - 8.0) / 10.0).collect();
    let wh: Vec<f32> = (0..16).map(|i| (7.0 - i as f32) / 12.0).collect();
    let x = [0.5f32, -0.25];
    for steps in [0, 1, 17] {
        let result = run(&vm, &[&floats(&x, &[1, 2]), &int(steps), &floats(&wi, &[8, 2]), &floats(&wh, &[8, 2])]);
        let (mut h, mut c) = ([0f32; 2], [0f32; 2]);
        let sigmoid = |v: f32| 1.0 / (1.0 + (-v).exp());
        for _ in 0..steps {
            let gate = |k: usize| x[0] * wi[2 * k] + x[1] * wi[2 * k + 1] + h[0] * wh[2 * k] + h[1] * wh[2 * k + 1];
            let g: Vec<f32> = (0..8).map(gate).collect();
            for j in 0..2 {
                c[j] = sigmoid(g[2 + j]) * c[j] + sigmoid(g[j]) * g[4 + j].tanh();
                h[j] = sigmoid(g[6 + j]) * c[j].tanh();
            }
        }
        let found = result.as_tensor().unwrap().to_vec::<f32>().unwrap();
        assert!(found.iter().zip(h).all(|(a, b)| (a - b).abs() < 1e-5), "{steps}: {found:?} is not {h:?}");
    }
}

#[test]
fn a_tree_is_reduced_by_a_network() {
    let vm = machine(
        r#"#[version = "0.0.5"]
        def @node(%t: Tree[Tensor[(2), float32]]) -> Tensor[(2), float32] {
          match (%t) { Rose(%v, %children) => {
            let %sum_f = fn (%a: Tensor[(2), float32], %b: Tensor[(2), float32]) -> Tensor[(2), float32] { %a + %b };
            tanh(%v + @foldl(%sum_f, zeros(shape=[2], dtype="float32"), @map(@node, %children))) }, }
        }
        def @main(%x: Tensor[(2), float32]) {
          @node(Rose(%x, Cons(Rose(%x, Nil), Cons(Rose(%x * 2f, Cons(Rose(%x, Nil), Nil)), Nil))))
        }"#,
    );
    let x = [0.3f32, -0.6];
    let found = run(&vm, &[&floats(&x, &[2])]).as_tensor().unwrap().to_vec::<f32>().unwrap();
    for (found, x) in found.iter().zip(x) {
        let leaf = x.tanh();
        let expected = (x + leaf + (2.0 * x + leaf).tanh()).tanh();
        assert!((found - expected).abs() < 1e-5, "{found} is not {expected}");
    }
}

#[test]
fn shapes_that_only_the_run_shows_are_broadcast() {
    let vm = machine(
        r#"#[version = "0.0.5"]
        def @main(%x: Tensor[(?, ?), float32], %y: Tensor[(?), float32]) { (nn.relu(%x + %y), %x * 2f, shape_of(%x + %y, dtype="int64")) }"#,
    );
    for (x, y, expected) in [([2, 3], 3, [2, 3]), ([2, 1], 3, [2, 3]), ([2, 3], 1, [2, 3])] {
        let xs: Vec<f32> = (0..x[0] * x[1]).map(|i| i as f32 - 2.0).collect();
        let ys: Vec<f32> = (0..y).map(|i| i as f32).collect();
        let result = run(&vm, &[&floats(&xs, &x), &floats(&ys, &[y])]);
        let fields = &result.downcast_ref::<Adt>().unwrap().fields;
        let sum = fields[0].as_tensor().unwrap();
        assert_eq!(sum.shape(), expected);
        assert_eq!(fields[2].as_tensor().unwrap().to_vec::<i64>().unwrap(), expected);
        let values = sum.to_vec::<f32>().unwrap();
        for i in 0..expected[0] {
            for j in 0..expected[1] {
                let a = xs[(i * x[1] + if x[1] == 1 { 0 } else { j }) as usize];
                let b = ys[if y == 1 { 0 } else { j as usize }];
                assert_eq!(values[(i * expected[1] + j) as usize], (a + b).max(0.0));
            }
        }
    }
    // Dimensions that do not fit are an error and no foreign memory.
    let bad = vm.run(&[(&floats(&[0.0; 6], &[2, 3])).into(), (&floats(&[0.0; 4], &[4])).into()]);
    assert!(bad.is_err(), "shapes that do not fit were added");
}
