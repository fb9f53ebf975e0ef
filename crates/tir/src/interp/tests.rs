//! What the interpreter computes, and what it refuses.

use half::{bf16, f16};
use relaxide_ffi::{DataType, Function, Ref, Tensor};
use relaxide_ir::prim::{self, BufferLoad, PrimExpr};
use relaxide_ir::{Buffer, Var};

use super::*;
use crate::stmt::*;
use crate::{PrimFunc, te};

const F32: DataType = DataType::float(32);
const I64: DataType = DataType::int(64);

/// A kernel that stores `value(i)` at each `i` of its last buffer.
fn elementwise(inputs: &[&Ref<Buffer>], dtype: DataType, n: i64, value: impl Fn(PrimExpr) -> PrimExpr) -> PrimFunc {
    let (out, i) = (Buffer::new("out", dtype, [n]), Var::dim("i"));
    let body = Stmt::serial(i.clone(), n, Stmt::store(&out, [&i], value(PrimExpr::from(&i))));
    let buffers: Vec<Ref<Buffer>> = inputs.iter().map(|b| (*b).clone()).chain([out]).collect();
    PrimFunc::over_buffers(&buffers, &[], body)
}

/// Runs a kernel over two vectors of floats.
fn floats(a: &[f32], b: &[f32], f: impl Fn(PrimExpr, PrimExpr) -> PrimExpr) -> Vec<f32> {
    let n = a.len() as i64;
    let (x, y) = (Buffer::new("x", F32, [n]), Buffer::new("y", F32, [n]));
    let func = elementwise(&[&x, &y], F32, n, |i| f(prim::load(&x, [&i]), prim::load(&y, [&i])));
    let out = Tensor::zeros(&[n], F32).unwrap();
    let args = [Tensor::from_slice(a, &[n]).unwrap(), Tensor::from_slice(b, &[n]).unwrap(), out.clone()];
    run(&func, &args.map(Arg::from)).unwrap();
    out.to_vec().unwrap()
}

/// The value of an expression without variables.
fn value(e: PrimExpr) -> Result<Scalar> {
    eval(&e, &Default::default())
}

#[test]
fn a_matrix_product_in_block_form_is_the_matrix_product() {
    let (n, m, l) = (Var::dim("n"), Var::dim("m"), Var::dim("l"));
    let a = te::placeholder("A", [&n, &l], F32);
    let b = te::placeholder("B", [&l, &m], F32);
    let k = te::reduce_axis(&l);
    let product = |i: &[PrimExpr]| te::sum(a.at(&[i[0].clone(), k.var()]) * b.at(&[k.var(), i[1].clone()]), [&k]);
    let c = te::compute("C", [&n, &m], product);
    let func = te::create_prim_func(&[a.clone(), b.clone(), c]).unwrap();
    let x = Tensor::from_slice(&[1f32, 2., 3., 4., 5., 6.], &[2, 3]).unwrap();
    let y = Tensor::from_slice(&[1f32, 0., 0., 1., 1., 1.], &[3, 2]).unwrap();
    let out = Tensor::zeros(&[2, 2], F32).unwrap();
    run(&func, &[x.into(), y.into(), (&out).into()]).unwrap();
    assert_eq!(out.to_vec::<f32>().unwrap(), [4., 5., 10., 11.]);
}

#[test]
fn integers_wrap_at_their_width() {
    let add = |dtype, a: i64, b: i64| {
        let sum = Ref::new(prim::Binary {
            op: relaxide_ir::BinaryOp::Add,
            a: prim::int_of(dtype, a),
            b: prim::int_of(dtype, b),
        });
        value(sum.into()).unwrap()
    };
    assert_eq!(add(DataType::int(8), 127, 1), Scalar::Int(-128));
    assert_eq!(add(DataType::uint(8), 255, 2), Scalar::Int(1));
    assert_eq!(add(DataType::int(64), i64::MAX, 1), Scalar::Int(i64::MIN));
    assert_eq!(value(prim::cast(DataType::uint(16), prim::int(-1))).unwrap(), Scalar::Int(0xffff));
    let big = prim::int_of(DataType::uint(64), -1);
    assert_eq!(value(prim::cast(F32, prim::floordiv(big.clone(), 2))).unwrap(), Scalar::Float(2f64.powi(63)));
    assert_eq!(value(prim::lt(prim::int_of(DataType::uint(64), 5), big)).unwrap(), Scalar::Int(1));
}

#[test]
fn division_rounds_as_its_name_says_and_refuses_zero() {
    type Divide = fn(PrimExpr, PrimExpr) -> PrimExpr;
    let cases: [(Divide, i64, i64, i64); 5] = [
        (prim::floordiv, -7, 2, -4),
        (prim::floormod, -7, 2, 1),
        (prim::floormod, 7, -2, -1),
        (prim::div, -7, 2, -3),
        (prim::truncmod, -7, 2, -1),
    ];
    let x = Var::dim("x");
    for (f, a, b, expected) in cases {
        let e = f(PrimExpr::from(&x), b.into());
        assert_eq!(eval(&e, &[(x.clone(), a)].into()).unwrap(), Scalar::Int(expected), "{e}");
    }
    let found = eval(&prim::floordiv(&x, &x), &[(x.clone(), 0)].into()).unwrap_err();
    assert_eq!(found.to_string(), "`x // x` divides 0 by 0");
    let found = eval(&prim::div(&x, -1), &[(x.clone(), i64::MIN)].into()).unwrap_err();
    assert!(matches!(found, InterpError::Division { .. }));
}

#[test]
fn minimum_and_maximum_keep_nan_and_take_the_second_of_two_zeros() {
    let nan = f32::NAN;
    let (a, b) = ([nan, 1., -0., 0., 2.], [1., nan, 0., -0., 1.]);
    let bits = |list: Vec<f32>| list.into_iter().map(f32::to_bits).collect::<Vec<_>>();
    assert_eq!(bits(floats(&a, &b, prim::max)), bits(vec![nan, nan, 0., -0., 2.]));
    assert_eq!(bits(floats(&a, &b, prim::min)), bits(vec![nan, nan, 0., -0., 1.]));
}

#[test]
fn short_floats_round_after_every_operation() {
    let one_and = |dtype| {
        let big = prim::float_of(dtype, 256.0);
        let sum = prim::add(prim::add(big, prim::float_of(dtype, 1.0)), prim::float_of(dtype, -256.0));
        value(sum).unwrap()
    };
    assert_eq!(one_and(DataType::bfloat16()), Scalar::Float(0.0));
    assert_eq!(one_and(DataType::float(16)), Scalar::Float(1.0));
    let third = |dtype| value(prim::div(prim::float_of(dtype, 1.0), prim::float_of(dtype, 3.0))).unwrap();
    assert_eq!(third(DataType::float(16)), Scalar::Float(f16::from_f32(1.0 / 3.0).to_f64()));
    assert_eq!(third(DataType::bfloat16()), Scalar::Float(bf16::from_f32(1.0 / 3.0).to_f64()));
    assert_eq!(third(F32), Scalar::Float(f64::from(1f32 / 3.0)));
}

#[test]
fn intrinsics_follow_their_descriptions() {
    let f = |v: f64| prim::float_of(F32, v);
    let i = |v: i64| prim::int_of(DataType::int(32), v);
    let call = |name: &str, args: Vec<PrimExpr>| {
        let dtype = args[0].dtype();
        value(prim::call(dtype, format!("tirx.{name}"), args)).unwrap()
    };
    assert_eq!(call("round", vec![f(2.5)]), Scalar::Float(2.0));
    assert_eq!(call("round", vec![f(-3.5)]), Scalar::Float(-4.0));
    assert_eq!(call("erf", vec![f(0.0)]), Scalar::Float(0.0));
    assert_eq!(call("pow", vec![f(2.0), f(10.0)]), Scalar::Float(1024.0));
    assert_eq!(call("pow", vec![i(3), i(4)]), Scalar::Int(81));
    assert_eq!(call("popcount", vec![i(-1)]), Scalar::Int(32));
    assert_eq!(call("clz", vec![i(1)]), Scalar::Int(31));
    assert_eq!(call("shift_left", vec![i(1), i(33)]), Scalar::Int(2));
    assert_eq!(call("shift_right", vec![i(-8), i(1)]), Scalar::Int(-4));
    assert_eq!(call("nextafter", vec![f(0.0), f(-1.0)]), Scalar::Float(-f64::from(f32::from_bits(1))));
    assert_eq!(call("fma", vec![f(1e8), f(1e8), f(-1e16)]), Scalar::Float(f64::from(1e8f32.mul_add(1e8, -1e16))));
    // Bytes have the signs that their words' types have: 255 * -128 four times, -1 * -128 four times.
    let unsigned = prim::int_of(DataType::uint(32), 0xffff_ffff);
    let dot = |words| value(prim::call(DataType::int(32), "tirx.dot_bytes", words)).unwrap();
    assert_eq!(dot(vec![unsigned, i(-2_139_062_144), i(7)]), Scalar::Int(7 - 4 * 255 * 128));
    assert_eq!(dot(vec![i(-1), i(-2_139_062_144), i(7)]), Scalar::Int(7 + 4 * 128));
    // 1.5 * -2 + 3 * 4, each pair in a word with its second number in the upper half.
    let pair = |low: f32, high: f32| prim::int_of(DataType::uint(32), i64::from(low.to_bits() >> 16 | high.to_bits()));
    let pairs = prim::call(F32, "tirx.dot_pairs", vec![pair(1.5, 3.0), pair(-2.0, 4.0), f(0.5)]);
    assert_eq!(value(pairs).unwrap(), Scalar::Float(9.5));
    assert_eq!(call("isnan", vec![f(f64::NAN)]), Scalar::Int(1));
    let bits = prim::call(DataType::int(32), "tirx.reinterpret", vec![f(1.0)]);
    assert_eq!(value(bits).unwrap(), Scalar::Int(0x3f80_0000));
    let least = prim::call(DataType::int(8), "tirx.min_value", vec![]);
    assert_eq!(value(least).unwrap(), Scalar::Int(-128));
    assert_eq!(value(prim::cast(DataType::int(8), f(1e9))).unwrap(), Scalar::Int(127));
    assert_eq!(value(prim::cast(DataType::bool(), f(f64::NAN))).unwrap(), Scalar::Int(1));
}

#[test]
fn accesses_outside_of_a_buffer_are_named() {
    let x = Buffer::new("x", F32, [2, 4]);
    let func = elementwise(&[&x], F32, 4, |i| prim::load(&x, [&i - 1, i.clone()]));
    let args = [Tensor::zeros(&[2, 4], F32).unwrap(), Tensor::zeros(&[4], F32).unwrap()];
    let found = run(&func, &args.map(Arg::from)).unwrap_err();
    assert_eq!(found.to_string(), "load of `x` at [-1, 0] is outside of its shape [2, 4]");
}

#[test]
fn scratch_must_be_written_before_it_is_read() {
    let (scratch, out, i) = (Buffer::new("s", F32, [4]), Buffer::new("out", F32, [4]), Var::dim("i"));
    let one = prim::float_of(F32, 1.0);
    let body = |extent: i64| {
        let fill = Stmt::serial(i.clone(), extent, Stmt::store(&scratch, [&i], one.clone()));
        let copy = Stmt::serial(i.clone(), 4, Stmt::store(&out, [&i], prim::load(&scratch, [&i])));
        PrimFunc::over_buffers(std::slice::from_ref(&out), &[], Stmt::seq([Stmt::alloc(&scratch), fill, copy]))
    };
    let tensor = Tensor::zeros(&[4], F32).unwrap();
    run(&body(4), &[(&tensor).into()]).unwrap();
    assert_eq!(tensor.to_vec::<f32>().unwrap(), [1.0; 4]);
    let found = run(&body(3), &[tensor.into()]).unwrap_err();
    assert_eq!(found.to_string(), "load of `s` at [3], which was not written before");
}

#[test]
fn arguments_must_fit_their_parameters() {
    let n = Var::dim("n");
    let (a, b) = (Buffer::new("a", F32, [&n]), Buffer::new("b", F32, [PrimExpr::from(&n) * 2]));
    let func = PrimFunc::over_buffers(&[a, b], &[], Stmt::nop());
    let tensor = |n: i64| Arg::from(Tensor::zeros(&[n], F32).unwrap());
    run(&func, &[tensor(3), tensor(6)]).unwrap();
    let messages = [
        (vec![tensor(3)], "the kernel takes 2 arguments, 1 were given"),
        (vec![tensor(3), tensor(5)], "argument 1 (`var_b`): expected a tensor of shape [6], got [5]"),
        (vec![tensor(3), Arg::Int(1)], "argument 1 (`var_b`): expected a tensor, got an integer"),
        (
            vec![tensor(3), Tensor::zeros(&[6], I64).unwrap().into()],
            "argument 1 (`var_b`): expected a tensor of 1 dimensions of type float32, got 1 of int64",
        ),
    ];
    for (args, message) in messages {
        assert_eq!(run(&func, &args).unwrap_err().to_string(), message);
    }
}

#[test]
fn vectors_are_read_and_written_lane_by_lane_where_their_predicate_holds() {
    let (a, b) = (Buffer::new("a", F32, [6]), Buffer::new("b", F32, [6]));
    let index = prim::ramp(2, 1, 8);
    let in_range = prim::lt(index.clone(), prim::int_of(index.dtype(), 6));
    let value: PrimExpr =
        Ref::new(BufferLoad { buffer: a.clone(), indices: vec![index.clone()], predicate: Some(in_range.clone()) })
            .into();
    let value = prim::add(value, prim::float_of(F32.with_lanes(8), 1.0));
    let store = BufferStore { buffer: b.clone(), value, indices: vec![index], predicate: Some(in_range) };
    let func = PrimFunc::over_buffers(&[a, b], &[], Ref::new(store).into());
    let out = Tensor::zeros(&[6], F32).unwrap();
    let input = Tensor::from_slice(&[0f32, 1., 2., 3., 4., 5.], &[6]).unwrap();
    run(&func, &[input.into(), (&out).into()]).unwrap();
    assert_eq!(out.to_vec::<f32>().unwrap(), [0., 0., 3., 4., 5., 6.]);
}

#[test]
fn a_lazy_choice_of_vectors_evaluates_only_what_each_lane_picks() {
    let (a, out) = (Buffer::new("a", F32, [2]), Buffer::new("out", F32, [4]));
    let index = prim::ramp(0, 1, 4);
    let inside = prim::lt(index.clone(), prim::int_of(index.dtype(), 2));
    let choice = prim::if_then_else(inside, prim::load(&a, [&index]), prim::float_of(F32.with_lanes(4), 9.0));
    let func = PrimFunc::over_buffers(&[a, out.clone()], &[], Stmt::store(&out, [&index], choice));
    let result = Tensor::zeros(&[4], F32).unwrap();
    run(&func, &[Tensor::from_slice(&[1f32, 2.], &[2]).unwrap().into(), (&result).into()]).unwrap();
    assert_eq!(result.to_vec::<f32>().unwrap(), [1., 2., 9., 9.]);
}

#[test]
fn iterations_that_depend_on_each_other_show_in_a_parallel_loop() {
    let (out, i) = (Buffer::new("out", I64, [4]), Var::dim("i"));
    let previous = prim::if_then_else(prim::gt(&i, 0), prim::load(&out, [PrimExpr::from(&i) - 1]), 0);
    let store = Stmt::store(&out, [&i], previous + 1);
    let result = |kind| {
        let body = Stmt::for_loop(kind, i.clone(), 4, store.clone());
        let tensor = Tensor::zeros(&[4], I64).unwrap();
        run(&PrimFunc::over_buffers(std::slice::from_ref(&out), &[], body), &[(&tensor).into()]).unwrap();
        tensor.to_vec::<i64>().unwrap()
    };
    assert_eq!(result(ForKind::Serial), [1, 2, 3, 4]);
    assert_ne!(result(ForKind::Parallel), [1, 2, 3, 4]);
}

#[test]
fn a_matched_buffer_is_a_window_of_its_source() {
    let a = Buffer::new("A", F32, [4, 4]);
    let stride = Var::dim("s0");
    let window = Ref::new(Buffer {
        name: "W".into(),
        data: Var::new("W", a.data.ty.clone()),
        dtype: F32,
        shape: vec![2.into(), 2.into()],
        strides: vec![PrimExpr::from(&stride), 1.into()],
        elem_offset: PrimExpr::Var(Var::dim("offset")),
        scope: "global".into(),
        alignment: 64,
        offset_factor: 1,
        layout: relaxide_ir::layout::Placement::Strided,
        producer: None,
    });
    let range = |min: i64| Ref::new(Range { min: min.into(), extent: 2.into() });
    let source = Ref::new(BufferRegion { buffer: a.clone(), region: vec![range(1), range(2)] });
    let block = SBlock {
        iter_vars: vec![],
        reads: vec![],
        writes: vec![],
        name: "w".into(),
        alloc_buffers: vec![],
        match_buffers: vec![Ref::new(MatchBufferRegion { buffer: window.clone(), source })],
        annotations: Default::default(),
        init: None,
        body: Stmt::store(&window, [1, 0], prim::float_of(F32, 7.0)),
    };
    let realize = SBlockRealize { iter_values: vec![], predicate: prim::boolean(true), block: Ref::new(block) };
    let out = Tensor::zeros(&[4, 4], F32).unwrap();
    run(&PrimFunc::over_buffers(&[a], &[], Ref::new(realize).into()), &[(&out).into()]).unwrap();
    let at = out.to_vec::<f32>().unwrap().iter().position(|v| *v == 7.0);
    assert_eq!(at, Some(2 * 4 + 2));
}

#[test]
fn kernels_return_values_and_call_functions() {
    let twice = Function::typed(|v: i64| -> relaxide_ffi::Result<i64> { Ok(v * 2) });
    relaxide_ffi::register_global("tir.interp.test.twice", twice).unwrap();
    let x = Var::dim("x");
    let call = prim::call(I64, "tirx.call_packed", vec![prim::string("tir.interp.test.twice"), PrimExpr::from(&x)]);
    let ret = prim::call(I64, "tirx.ret", vec![call]);
    let fail = Ref::new(AssertStmt {
        condition: prim::lt(&x, 100),
        error_kind: "ValueError".into(),
        message: "x is too large".into(),
        numbers: Vec::new(),
    });
    let body = Stmt::seq([fail.into(), Ref::new(Evaluate { value: ret }).into()]);
    let func = PrimFunc::over_buffers(&[], &[x], body);
    assert_eq!(run(&func, &[Arg::Int(21)]).unwrap(), Some(Scalar::Int(42)));
    assert_eq!(run(&func, &[Arg::Int(100)]).unwrap_err().to_string(), "ValueError: x is too large");
}

#[test]
fn functions_get_buffers_as_tensors() {
    let double = Function::typed(|from: Tensor, to: Tensor| -> relaxide_ffi::Result<()> {
        let twice: Vec<f32> = from.to_vec::<f32>()?.iter().map(|v| v * 2.0).collect();
        to.copy_from_slice(&twice)
    });
    relaxide_ffi::register_global("tir.interp.test.double", double).unwrap();
    let (a, b) = (Buffer::new("a", F32, [2, 3]), Buffer::new("b", F32, [2, 3]));
    let buffers = [&a, &b].map(|buffer| crate::tensor_argument::tensor_argument(buffer));
    let args = [prim::string("tir.interp.test.double")].into_iter().chain(buffers).collect();
    let body = Ref::new(Evaluate { value: prim::call(I64, "tirx.call_packed", args) }).into();
    let given = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap();
    let out = Tensor::zeros(&[2, 3], F32).unwrap();
    run(&PrimFunc::over_buffers(&[a, b], &[], body), &[(&given).into(), (&out).into()]).unwrap();
    assert_eq!(out.to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
}
