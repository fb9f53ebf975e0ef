//! Hand-made kernels with known answers.

mod addresses;
mod c;
mod dot_bytes;
mod dot_pairs;
mod many_elements;
mod masked_loads;
mod masked_stores;
mod neighbours;
mod processors;
mod scalable;
mod small_elements;
mod webassembly;
mod whole_numbers;
mod words;

use crate::harness::{Kernels, Packed, Tensor, elementwise, emulated, kernel};
use relaxide_codegen::{CodegenError, CompileSettings};
use relaxide_ir::{Buffer, Code, DataType, PrimExpr, Ref, Target, Var, prim};
use relaxide_tir::schedule::nest;
use relaxide_tir::{ForKind, PrimFunc, Stmt};

const F32: DataType = DataType::float(32);
const I32: DataType = DataType::int(32);
const I64: DataType = DataType::int(64);

fn buffer(name: &str, dtype: DataType, shape: &[i64]) -> Ref<Buffer> {
    Buffer::new(name, dtype, shape.iter().copied())
}

fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 37 % 101) as f32 - 50.0) / 8.0).collect()
}

/// `C = A + B` over a symbolic length, by a loop of the given kind.
fn add(kind: ForKind) -> PrimFunc {
    let (n, i) = (Var::dim("n"), Var::dim("i"));
    let [a, b, c] = ["A", "B", "C"].map(|name| Buffer::new(name, F32, [PrimExpr::from(&n)]));
    let body = Stmt::store(&c, [&i], prim::load(&a, [&i]) + prim::load(&b, [&i]));
    kernel("add", &[a, b, c], &[], Stmt::for_loop(kind, i, &n, body))
}

#[test]
fn serial_and_parallel_loops_cover_every_element() {
    for kind in [ForKind::Serial, ForKind::Parallel, ForKind::Vectorized, ForKind::Unrolled] {
        let kernels = Kernels::compile(&[add(kind)]);
        for length in [0i64, 1, 2, 3, 4, 5, 17, 1000] {
            let values = numbers(length as usize);
            let input = Tensor::f32(&values, &[length]);
            let mut tensors = [input.clone(), input, Tensor::zeros(F32, &[length])];
            kernels.run("add", &mut tensors);
            let doubled: Vec<f32> = values.iter().map(|value| value + value).collect();
            assert_eq!(tensors[2].values::<f32>(), doubled, "{kind:?} over {length}");
        }
    }
}

#[test]
fn vector_accesses_follow_their_strides() {
    let (a, b) = (buffer("A", F32, &[64]), buffer("B", F32, &[64]));
    let vector = |base: i64, stride: i64| prim::ramp(base, stride, 8);
    let stores = [
        Stmt::store(&b, [vector(0, 1)], prim::load(&a, [vector(3, 1)])),
        Stmt::store(&b, [vector(8, 1)], prim::load(&a, [vector(1, 4)])),
        Stmt::store(&b, [vector(23, -1)], prim::load(&a, [vector(0, 1)])),
        Stmt::store(&b, [vector(24, 1)], prim::load(&a, [vector(15, -1)])),
        Stmt::store(&b, [vector(32, 1)], prim::load(&a, [prim::broadcast(5, 8)])),
        Stmt::store(&b, [vector(40, 3)], prim::load(&a, [vector(0, 1)])),
    ];
    let kernels = Kernels::compile(&[kernel("strides", &[a, b], &[], Stmt::seq(stores))]);
    let values: Vec<f32> = (0..64).map(|i| i as f32).collect();
    let mut tensors = [Tensor::f32(&values, &[64]), Tensor::zeros(F32, &[64])];
    kernels.run("strides", &mut tensors);
    let got = tensors[1].values::<f32>();
    let mut expected = vec![0f32; 64];
    for lane in 0..8 {
        expected[lane] = (3 + lane) as f32;
        expected[8 + lane] = (1 + 4 * lane) as f32;
        expected[23 - lane] = lane as f32;
        expected[24 + lane] = (15 - lane) as f32;
        expected[32 + lane] = 5.0;
        expected[40 + 3 * lane] = lane as f32;
    }
    assert_eq!(got, expected);
}

#[test]
fn predicates_keep_lanes_from_memory() {
    // Only the first five of eight lanes exist in either buffer; the pages behind them are not touched.
    let (a, b) = (buffer("A", F32, &[5]), buffer("B", F32, &[5]));
    let lanes = prim::ramp(0, 1, 8);
    let inside = prim::lt(lanes.clone(), prim::broadcast(5, 8));
    let value: PrimExpr =
        Ref::new(prim::BufferLoad { buffer: a.clone(), indices: vec![lanes.clone()], predicate: Some(inside.clone()) })
            .into();
    let store = relaxide_tir::BufferStore {
        buffer: b.clone(),
        value: value + 1.0f32.f32_imm(),
        indices: vec![lanes],
        predicate: Some(inside),
    };
    let kernels = Kernels::compile(&[kernel("masked", &[a, b], &[], Ref::new(store).into())]);
    let mut tensors = [Tensor::f32(&[1.0, 2.0, 3.0, 4.0, 5.0], &[5]), Tensor::zeros(F32, &[5])];
    kernels.run("masked", &mut tensors);
    assert_eq!(tensors[1].values::<f32>(), [2.0, 3.0, 4.0, 5.0, 6.0]);
}

trait FloatLiteral {
    fn f32_imm(self) -> PrimExpr;
}
impl FloatLiteral for f32 {
    fn f32_imm(self) -> PrimExpr {
        prim::float_of(F32, f64::from(self))
    }
}

#[test]
fn a_lane_wise_choice_reads_only_where_it_may() {
    // Padding: lanes outside 2..6 read nothing and get -1.
    let (a, b) = (buffer("A", F32, &[4]), buffer("B", F32, &[8]));
    let lanes = prim::ramp(0, 1, 8);
    let inside =
        prim::and(prim::ge(lanes.clone(), prim::broadcast(2, 8)), prim::lt(lanes.clone(), prim::broadcast(6, 8)));
    let value =
        prim::if_then_else(inside, prim::load(&a, [lanes.clone() - prim::broadcast(2, 8)]), (-1.0f32).f32_imm());
    let kernels = Kernels::compile(&[kernel("pad", &[a, b.clone()], &[], Stmt::store(&b, [lanes], value))]);
    let mut tensors = [Tensor::f32(&[1.0, 2.0, 3.0, 4.0], &[4]), Tensor::zeros(F32, &[8])];
    kernels.run("pad", &mut tensors);
    assert_eq!(tensors[1].values::<f32>(), [-1.0, -1.0, 1.0, 2.0, 3.0, 4.0, -1.0, -1.0]);
}

#[test]
fn a_lazy_choice_evaluates_one_side() {
    let (a, b) = (buffer("A", F32, &[4]), buffer("B", F32, &[6]));
    let func = elementwise("shift", &[a.clone(), b], |i| {
        let inside = prim::and(prim::ge(i.clone(), 1), prim::lt(i.clone(), 5));
        prim::if_then_else(inside, prim::load(&a, [i.clone() - 1]), 0.5f32.f32_imm())
    });
    let kernels = Kernels::compile(&[func]);
    let mut tensors = [Tensor::f32(&[1.0, 2.0, 3.0, 4.0], &[4]), Tensor::zeros(F32, &[6])];
    kernels.run("shift", &mut tensors);
    assert_eq!(tensors[1].values::<f32>(), [0.5, 1.0, 2.0, 3.0, 4.0, 0.5]);
}

#[test]
fn integer_division_rounds_as_asked_and_survives_zero() {
    let [a, b, q, r, t, m] = ["A", "B", "Q", "R", "T", "M"].map(|name| buffer(name, I32, &[8]));
    let i = Var::dim("i");
    let (x, y) = (prim::load(&a, [&i]), prim::load(&b, [&i]));
    let body = Stmt::seq([
        Stmt::store(&q, [&i], prim::floordiv(x.clone(), y.clone())),
        Stmt::store(&r, [&i], prim::floormod(x.clone(), y.clone())),
        Stmt::store(&t, [&i], prim::div(x.clone(), y.clone())),
        Stmt::store(&m, [&i], prim::truncmod(x, y)),
    ]);
    let kernels = Kernels::compile(&[kernel("divide", &[a, b, q, r, t, m], &[], Stmt::serial(i, 8, body))]);
    let (x, y) = ([7, -7, 7, -7, 5, i32::MIN, 0, 9], [2, 2, -2, -2, 0, -1, 3, 3]);
    let zeros = Tensor::zeros(I32, &[8]);
    let mut tensors =
        [Tensor::of(I32, &x, &[8]), Tensor::of(I32, &y, &[8]), zeros.clone(), zeros.clone(), zeros.clone(), zeros];
    kernels.run("divide", &mut tensors);
    assert_eq!(tensors[2].values::<i32>(), [3, -4, -4, 3, 0, i32::MIN, 0, 3]);
    assert_eq!(tensors[3].values::<i32>(), [1, 1, -1, -1, 0, 0, 0, 0]);
    assert_eq!(tensors[4].values::<i32>(), [3, -3, -3, 3, 0, i32::MIN, 0, 3]);
    assert_eq!(tensors[5].values::<i32>(), [1, -1, 1, -1, 0, 0, 0, 0]);
}

#[test]
fn local_buffers_live_on_the_stack_and_large_ones_in_the_workspace() {
    for length in [16i64, 100_000] {
        let (a, b, t) = (buffer("A", F32, &[length]), buffer("B", F32, &[length]), buffer("T", F32, &[length]));
        let (i, j) = (Var::dim("i"), Var::dim("j"));
        let body = Stmt::seq([
            Stmt::alloc(&t),
            Stmt::serial(i.clone(), length, Stmt::store(&t, [&i], prim::load(&a, [&i]) * 2.0f32.f32_imm())),
            Stmt::serial(
                j.clone(),
                length,
                Stmt::store(&b, [&j], prim::load(&t, [PrimExpr::from(length - 1) - &PrimExpr::from(&j)])),
            ),
        ]);
        let kernels = Kernels::compile(&[kernel("reverse", &[a, b], &[], body)]);
        let values = numbers(length as usize);
        let mut tensors = [Tensor::f32(&values, &[length]), Tensor::zeros(F32, &[length])];
        kernels.run("reverse", &mut tensors);
        let expected: Vec<f32> = values.iter().rev().map(|value| value * 2.0).collect();
        assert_eq!(tensors[1].values::<f32>(), expected);
    }
}

#[test]
fn a_failed_assertion_raises_and_frees() {
    let (a, t) = (buffer("A", F32, &[1]), buffer("T", F32, &[1_000_000]));
    let n = Var::prim("n", I64);
    let check = relaxide_tir::AssertStmt {
        condition: prim::lt(PrimExpr::from(&n), 10),
        error_kind: "ValueError".into(),
        message: "n is too large".into(),
        numbers: Vec::new(),
    };
    let body = Stmt::seq([
        Stmt::alloc(&t),
        Stmt::store(&t, [PrimExpr::from(7)], 1.5f32.f32_imm()),
        Ref::new(check).into(),
        Stmt::store(&a, [PrimExpr::from(0)], prim::load(&t, [PrimExpr::from(7)])),
    ]);
    let kernels = Kernels::compile(&[kernel("check", &[a], &[n], body)]);
    let mut tensors = [Tensor::zeros(F32, &[1])];
    let failed = kernels.call("check", &mut tensors, &[Packed::int(10)]).unwrap_err();
    assert_eq!(failed, ("ValueError".to_string(), "n is too large".to_string()));
    kernels.call("check", &mut tensors, &[Packed::int(9)]).unwrap();
    assert_eq!(tensors[0].values::<f32>(), [1.5]);
}

#[test]
fn an_assertion_tells_its_numbers() {
    let a = buffer("A", F32, &[1]);
    let (n, m) = (Var::prim("n", I64), Var::prim("m", I64));
    let check = relaxide_tir::AssertStmt {
        condition: prim::eq(PrimExpr::from(&n), PrimExpr::from(&m) * 2),
        error_kind: "ValueError".into(),
        message: "length n is {0}, not {1}, twice m".into(),
        numbers: vec![PrimExpr::from(&n), PrimExpr::from(&m) * 2],
    };
    assert_eq!(check.said(), "length n is n, not m * 2, twice m");
    let body = Stmt::seq([Ref::new(check).into(), Stmt::store(&a, [PrimExpr::from(0)], 1.5f32.f32_imm())]);
    let kernels = Kernels::compile(&[kernel("check", &[a], &[n, m], body)]);
    let mut tensors = [Tensor::zeros(F32, &[1])];
    let failed = kernels.call("check", &mut tensors, &[Packed::int(-7), Packed::int(i64::from(i32::MAX))]).unwrap_err();
    assert_eq!(failed, ("ValueError".to_string(), "length n is -7, not 4294967294, twice m".to_string()));
    kernels.call("check", &mut tensors, &[Packed::int(8), Packed::int(4)]).unwrap();
    assert_eq!(tensors[0].values::<f32>(), [1.5]);
}

#[test]
fn an_error_in_a_parallel_loop_ends_the_kernel() {
    let (a, i) = (buffer("A", F32, &[1]), Var::dim("i"));
    let check = relaxide_tir::AssertStmt {
        condition: prim::lt(PrimExpr::from(&i), 50),
        error_kind: "ValueError".into(),
        message: "too far".into(),
        numbers: Vec::new(),
    };
    let body = Stmt::seq([
        Stmt::for_loop(ForKind::Parallel, i, 100, Ref::new(check).into()),
        Stmt::store(&a, [PrimExpr::from(0)], 1.0f32.f32_imm()),
    ]);
    let func = Ref::new(kernel("race", &[a], &[], body));
    // The pool of the test does not carry errors between threads, so only the return code is looked at.
    let text = relaxide_codegen::llvm_text(std::slice::from_ref(&func), &Target::default()).unwrap();
    let kernels = Kernels::compile(std::slice::from_ref(&*func));
    let mut tensor = Tensor::zeros(F32, &[1]);
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        kernels.call("race", std::slice::from_mut(&mut tensor), &[])
    }));
    assert!(failed.is_err() || failed.is_ok_and(|result| result.is_err()), "{text}");
    assert_eq!(tensor.values::<f32>(), [0.0]);
}

#[test]
fn an_outlined_statement_is_a_function_that_is_not_inlined() {
    let (n, i) = (Var::dim("n"), Var::dim("i"));
    let [a, b] = ["A", "B"].map(|name| Buffer::new(name, F32, [PrimExpr::from(&n)]));
    let scale = Var::prim("scale", F32);
    let check = relaxide_tir::AssertStmt {
        condition: prim::lt(PrimExpr::from(&i), 50),
        error_kind: "ValueError".into(),
        message: "too far".into(),
        numbers: Vec::new(),
    };
    let store = Stmt::store(&b, [&i], prim::load(&a, [&i]) * PrimExpr::from(&scale));
    let body = nest::outlined(Stmt::seq([Ref::new(check).into(), store]));
    let body =
        Stmt::seq([Stmt::bind(scale, prim::load(&a, [prim::int(0)])), Stmt::for_loop(ForKind::Serial, i, &n, body)]);
    let func = Ref::new(kernel("scaled", &[a, b], &[], body));
    let text = relaxide_codegen::llvm_text(std::slice::from_ref(&func), &Target::default()).unwrap();
    assert!(text.contains("noinline") && text.contains(".outlined"), "{text}");
    let kernels = Kernels::compile(std::slice::from_ref(&*func));
    let values = numbers(40);
    let mut tensors = [Tensor::f32(&values, &[40]), Tensor::zeros(F32, &[40])];
    kernels.run("scaled", &mut tensors);
    let expected: Vec<f32> = values.iter().map(|value| value * values[0]).collect();
    assert_eq!(tensors[1].values::<f32>(), expected);
    let mut tensors = [Tensor::f32(&numbers(60), &[60]), Tensor::zeros(F32, &[60])];
    let failed = kernels.call("scaled", &mut tensors, &[]).unwrap_err();
    assert_eq!(failed, ("ValueError".to_string(), "too far".to_string()));
}

#[test]
fn scalars_of_every_type_arrive() {
    let out = buffer("O", DataType::float(64), &[5]);
    let params = [
        Var::prim("i", DataType::int(8)),
        Var::prim("f", F32),
        Var::prim("b", DataType::bool()),
        Var::prim("u", DataType::uint(16)),
        Var::prim("h", DataType::float(16)),
    ];
    let stores = params.iter().enumerate().map(|(index, param)| {
        Stmt::store(&out, [PrimExpr::from(index as i64)], prim::cast(DataType::float(64), PrimExpr::from(param)))
    });
    let body = Stmt::seq(stores.collect::<Vec<_>>());
    let kernels = Kernels::compile(&[kernel("scalars", &[out], &params, body)]);
    let mut tensors = [Tensor::zeros(DataType::float(64), &[5])];
    let scalars = [Packed::int(-3), Packed::float(0.25), Packed::bool(true), Packed::int(65535), Packed::float(0.1)];
    kernels.call("scalars", &mut tensors, &scalars).unwrap();
    assert_eq!(tensors[0].values::<f64>(), [-3.0, 0.25, 1.0, 65535.0, half::f16::from_f64(0.1).to_f64()]);
    let scalars = [Packed::bool(true), Packed::int(2), Packed::int(0), Packed::int(1), Packed::bool(true)];
    kernels.call("scalars", &mut tensors, &scalars).unwrap();
    assert_eq!(tensors[0].values::<f64>(), [1.0, 2.0, 0.0, 1.0, 1.0]);
    let wrong = [Packed::float(1.0), Packed::int(2), Packed::int(0), Packed::int(1), Packed::int(1)];
    let (kind, message) = kernels.call("scalars", &mut tensors, &wrong).unwrap_err();
    assert_eq!(kind, "TypeError");
    assert!(message.starts_with("Mismatched type on argument #1 when calling:\n  `scalars(O: Tensor("), "{message}");
    assert!(message.ends_with("`,\n  expected int"), "{message}");
}

#[test]
fn what_a_kernel_returns_is_packed() {
    let n = Var::prim("n", I64);
    let value = prim::call(I64, "tirx.ret", vec![PrimExpr::from(&n) * 2]);
    let body: Stmt = Ref::new(relaxide_tir::Evaluate { value }).into();
    let kernels = Kernels::compile(&[kernel("double", &[], &[n], body)]);
    let result = kernels.call_packed("double", &[Packed::int(21)]).unwrap();
    assert_eq!((result.type_index, result.payload), (1, 42));
    assert_eq!(kernels.call_packed("main", &[Packed::int(1)]).unwrap().payload, 2);
}

#[test]
fn bools_are_bytes_in_memory() {
    let (a, b) = (buffer("A", F32, &[8]), buffer("B", DataType::bool(), &[8]));
    let lanes = prim::ramp(0, 1, 8);
    let positive = prim::gt(prim::load(&a, [lanes.clone()]), prim::broadcast(0.0f32.f32_imm(), 8));
    let stored = Stmt::store(&b, [lanes.clone()], positive);
    let c = buffer("C", I32, &[8]);
    let read = Stmt::store(&c, [lanes.clone()], prim::cast(I32.with_lanes(8), prim::load(&b, [lanes])));
    let kernels = Kernels::compile(&[kernel("positive", &[a, b, c], &[], Stmt::seq([stored, read]))]);
    let values = [1.0, -1.0, 0.0, 2.0, f32::NAN, -0.0, f32::INFINITY, -2.0];
    let mut tensors = [Tensor::f32(&values, &[8]), Tensor::zeros(DataType::bool(), &[8]), Tensor::zeros(I32, &[8])];
    kernels.run("positive", &mut tensors);
    assert_eq!(tensors[1].values::<u8>(), [1, 0, 0, 1, 0, 0, 1, 0]);
    assert_eq!(tensors[2].values::<i32>(), [1, 0, 0, 1, 0, 0, 1, 0]);
}

#[test]
fn what_is_not_supported_is_named() {
    let a = buffer("A", DataType::new(DataType::COMPLEX, 64), &[1]);
    let func = kernel("complex", std::slice::from_ref(&a), &[], Stmt::nop());
    let error = relaxide_codegen::compile(&[Ref::new(func)], &Target::default()).unwrap_err();
    assert_eq!(error.code(), Code::ElementType);
    assert!(
        error.to_string().starts_with("kernel `complex`: there is no native code for type dtype[5]64 on "),
        "{error}"
    );
    let b = buffer("B", F32, &[1]);
    let unknown = Stmt::store(&b, [PrimExpr::from(0)], prim::call(F32, "tirx.frobnicate", vec![]));
    let error =
        relaxide_codegen::compile(&[Ref::new(kernel("odd", &[b], &[], unknown))], &Target::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `odd`: intrinsic `tirx.frobnicate` is not supported by the LLVM back end, in `B[0] = frobnicate()`"
    );
}

/// A function of LLVM's own that is called with another type than it takes: only LLVM knows better.
#[test]
fn what_llvm_rejects_is_traced_to_kernel_and_statement() {
    let (a, b) = (buffer("A", F32, &[8]), buffer("B", F32, &[8]));
    let call = |name: &str, argument: PrimExpr| prim::call(F32, "tirx.call_extern", vec![prim::string(name), argument]);
    let i = Var::dim("i");
    let good = Stmt::store(&b, [&i], prim::load(&a, [&i]) + 1.0f32.f32_imm());
    let bad = Stmt::store(&b, [&i], call("llvm.sqrt.f32", prim::cast(I32, PrimExpr::from(&i))));
    let body = Stmt::serial(i, 8, Stmt::seq([good, bad]));
    let fine = elementwise("fine", &[a.clone(), b.clone()], |i| prim::load(&a, [i.clone()]));
    let funcs = [fine, kernel("square_roots", &[a, b], &[], body)].map(Ref::new);
    let error = relaxide_codegen::compile(&funcs, &Target::default()).unwrap_err();
    let CodegenError::Rejected { kernel, statement, .. } = &error else { panic!("{error}") };
    assert_eq!(kernel, "square_roots");
    assert_eq!(statement.as_deref(), Some("B[i] = call_extern(\"llvm.sqrt.f32\", int32(i))"), "{error}");
    assert_eq!(error.code(), Code::Rejected);
}

#[test]
fn webassembly_comes_as_an_object_and_not_as_a_library() {
    let target: Target = "llvm -mtriple=wasm32-unknown-unknown".parse().unwrap();
    let compiled = relaxide_codegen::compile(&[Ref::new(add(ForKind::Parallel))], &target).unwrap();
    let [object] = compiled.objects.as_slice() else { panic!("{} objects", compiled.objects.len()) };
    assert!(object.starts_with(b"\0asm\x01\0\0\0") && object.windows(7).any(|name| name == b"linking"));
    let refused = compiled.library().map(|_| ()).unwrap_err();
    assert!(refused.to_string().starts_with("no library is written for WebAssembly"), "{refused}");
}

/// Constructor, slots and sections of an object that was joined of several, by another machine's linker.
#[test]
fn kernels_are_linked_into_a_program_for_an_emulated_aarch64_machine() {
    if let Some(reason) = emulated::unavailable() {
        return eprintln!("skipped: {reason}; `scripts/setup test-tools` installs what is needed");
    }
    let a = buffer("A", F32, &[8]);
    let extra = (0..9).map(|i| {
        let scaled = |x: &PrimExpr| prim::load(&a, [x.clone()]) * (i as f32 * 0.7).f32_imm();
        elementwise(&format!("scale{i}"), &[a.clone(), buffer("B", F32, &[8])], scaled)
    });
    let funcs: Vec<Ref<PrimFunc>> = extra.chain([add(ForKind::Parallel)]).map(Ref::new).collect();
    let compiled = relaxide_codegen::compile(&funcs, &emulated::TARGET.parse().unwrap()).unwrap();
    assert!(compiled.objects.len() > 1);
    let printed = emulated::run_linked(&compiled.linked_object(&[], "mine_").unwrap(), "linked.c");
    assert_eq!(printed, "2 4 6 8 10 by 1 launch\nTypeError: Expected 3 arguments when calling:\n");
}

/// Every kind of reference that AArch64 code makes (calls, constants, slots, the C library) is one that the writer knows.
#[test]
fn aarch64_objects_become_libraries_too() {
    let target: Target = "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a76".parse().unwrap();
    let mut funcs = vec![Ref::new(add(ForKind::Parallel))];
    for name in ["exp", "log", "tanh", "erf", "sin", "atan", "asin", "log1p"] {
        for dtype in [F32, DataType::float(64), DataType::float(16), DataType::bfloat16()] {
            let [a, b] = ["A", "B"].map(|name| buffer(name, dtype, &[1024]));
            let value = |i: &PrimExpr| prim::math(name, prim::load(&a, [i.clone()]));
            funcs.push(Ref::new(elementwise(&format!("{name}_{dtype}"), &[a.clone(), b], value)));
        }
    }
    let compiled = relaxide_codegen::compile(&funcs, &target).unwrap();
    let mut file = Vec::new();
    compiled.library().unwrap().write_to(&mut file).unwrap();
    assert_eq!(&file[18..20], &183u16.to_le_bytes());
}

#[test]
fn equal_kernels_share_one_body() {
    let named =
        |name: &str| PrimFunc { attrs: add(ForKind::Serial).attrs.with("global_symbol", name), ..add(ForKind::Serial) };
    let funcs = ["first", "second", "third"].map(named);
    let refs: Vec<Ref<PrimFunc>> = funcs.iter().cloned().map(Ref::new).collect();
    let text = relaxide_codegen::llvm_text(&refs, &Target::default()).unwrap();
    assert_eq!(text.matches("define internal i32 @").count(), 1);
    let kernels = Kernels::compile(&funcs);
    for name in ["first", "second", "third"] {
        let input = Tensor::f32(&[1.0, 2.0], &[2]);
        let mut tensors = [input.clone(), input, Tensor::zeros(F32, &[2])];
        kernels.run(name, &mut tensors);
        assert_eq!(tensors[2].values::<f32>(), [2.0, 4.0]);
        let (_, message) = kernels.call(name, &mut [], &[]).unwrap_err();
        assert!(message.contains(&format!("`{name}(")), "{message}");
    }
}

#[test]
fn many_kernels_are_compiled_in_parts() {
    let scaled = |factor: i64| {
        let [a, b] = ["A", "B"].map(|name| buffer(name, F32, &[16]));
        let value = |i: &PrimExpr| prim::load(&a, [i.clone()]) * prim::float_of(F32, factor as f64);
        elementwise(&format!("scale{factor}"), &[a.clone(), b], value)
    };
    let funcs: Vec<PrimFunc> = (0..20).map(scaled).collect();
    let refs: Vec<Ref<PrimFunc>> = funcs.iter().cloned().map(Ref::new).collect();
    let mut told = Vec::new();
    let tell = &mut |done, total| told.push((done, total));
    let [once, again] = [(); 2]
        .map(|()| relaxide_codegen::compile_with(&refs, &Target::default(), CompileSettings::default(), tell).unwrap());
    assert!(once.objects.len() > 1 && once.objects == again.objects, "objects do not depend on timing");
    let last = once.objects.len();
    assert_eq!(told.iter().filter(|step| **step == (last, last)).count(), 2);
    let kernels = Kernels::compile(&funcs);
    for factor in 0..20 {
        let mut tensors = [Tensor::f32(&[1.5; 16], &[16]), Tensor::zeros(F32, &[16])];
        kernels.run(&format!("scale{factor}"), &mut tensors);
        assert_eq!(tensors[1].values::<f32>(), [1.5 * factor as f32; 16]);
    }
}

#[test]
fn no_kernels_make_an_empty_library() {
    Kernels::compile(&[]);
}
