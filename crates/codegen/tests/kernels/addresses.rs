//! What is computed for addresses, and where.

use relaxide_codegen::llvm_text;
use relaxide_ir::prim::{self, int, ramp};
use relaxide_ir::{Buffer, DataType, PrimExpr, Ref, Target, Var};
use relaxide_tir::{PrimFunc, Stmt};

use super::{F32, I32, numbers};
use crate::harness::{Kernels, Tensor, kernel};

/// What [`rows`] works on: elements of a row, and how often there are four rows.
const WIDTH: i64 = 32;
const TIMES: i64 = 3;

/// `C[i, j, :] = A[i, j, :] + A[i, 0, :]`, `lanes` elements at once.
fn rows(lanes: i64) -> PrimFunc {
    let [a, c] = ["A", "C"].map(|name| Buffer::new(name, F32, [TIMES * 4 * WIDTH]));
    let (i, j, x) = (Var::dim("i"), Var::dim("j"), Var::dim("x"));
    let at = |row: PrimExpr| {
        let start = (PrimExpr::from(&i) * 4 + row) * WIDTH + PrimExpr::from(&x) * lanes;
        if lanes == 1 { start } else { ramp(start, int(1), lanes) }
    };
    let sum = prim::load(&a, [at(PrimExpr::from(&j))]) + prim::load(&a, [at(int(0))]);
    let store = Stmt::store(&c, [at(PrimExpr::from(&j))], sum);
    let row = Stmt::serial(x.clone(), WIDTH / lanes, store);
    let body = Stmt::serial(i.clone(), TIMES, Stmt::serial(j.clone(), 4, row));
    kernel("rows", &[a, c], &[], body)
}

fn check(func: &PrimFunc) {
    let values = numbers((TIMES * 4 * WIDTH) as usize);
    let mut tensors = [Tensor::f32(&values, &[values.len() as i64]), Tensor::zeros(F32, &[values.len() as i64])];
    Kernels::compile(std::slice::from_ref(func)).run("rows", &mut tensors);
    let width = WIDTH as usize;
    let first = |at: usize| values[at / (4 * width) * 4 * width + at % width];
    let expected: Vec<f32> = (0..values.len()).map(|at| values[at] + first(at)).collect();
    assert_eq!(tensors[1].values::<f32>(), expected);
}

#[test]
fn a_term_is_multiplied_once_in_front_of_the_loops_that_do_not_count_it() {
    let func = rows(16);
    check(&func);
    let text = llvm_text(&[Ref::new(func)], &Target::default()).unwrap();
    let body = text.split("define").find(|part| part.contains("<16 x float>")).unwrap();
    // Rows of 4 * 32 elements for `i`, of 32 for `j`: each once, before the loop inside begins.
    let outer = body.find(", 128\n").unwrap_or_else(|| panic!("{body}"));
    assert_eq!(body.matches(", 128\n").count(), 1, "{body}");
    let inner: Vec<usize> = body.match_indices("phi i64").map(|(at, _)| at).collect();
    assert!(inner[0] < outer && outer < inner[1], "{body}");
    let row = body.find(", 32\n").unwrap();
    assert!(inner[1] < row && row < inner[2], "{body}");
}

#[test]
fn rows_whose_length_only_the_run_tells_are_added_up_too() {
    let width = Var::dim("w");
    let (n, j) = (Var::dim("n"), Var::dim("j"));
    let w = PrimExpr::from(&width);
    let shape = || [PrimExpr::from(&n), w.clone()];
    let (a, c) = (Buffer::new("A", F32, shape()), Buffer::new("C", F32, [int(16)]));
    // The last sixteen of each row but the first, from the last row on.
    let row = PrimExpr::from(&n) - int(1) - PrimExpr::from(&j);
    let from = prim::load(&a, [row, ramp(w.clone() - int(16), int(1), 16)]);
    let lanes = || ramp(int(0), int(1), 16);
    let half = prim::broadcast(prim::float_of(F32, 0.5), 16);
    let sum = prim::load(&c, [lanes()]) * half + from;
    let body = Stmt::serial(j.clone(), PrimExpr::from(&n) - int(1), Stmt::store(&c, [lanes()], sum));
    let func = kernel("sums", &[a, c], &[], body);
    let (height, width) = (5usize, 20usize);
    let values = numbers(height * width);
    let mut tensors = [Tensor::f32(&values, &[height as i64, width as i64]), Tensor::zeros(F32, &[16])];
    Kernels::compile(std::slice::from_ref(&func)).run("sums", &mut tensors);
    let expected: Vec<f32> = (0..16)
        .map(|x| (1..height).rev().fold(0.0, |sum, row| sum * 0.5 + values[row * width + width - 16 + x]))
        .collect();
    assert_eq!(tensors[1].values::<f32>(), expected);
}

#[test]
fn loops_without_vectors_keep_addresses_in_one_piece() {
    let func = rows(1);
    check(&func);
    let text = llvm_text(&[Ref::new(func)], &Target::default()).unwrap();
    assert!(text.contains("getelementptr inbounds float"), "{text}");
}

/// Eight elements of `A` from `start` on, `stride` apart, all but the first, which lies in front of it.
fn all_but_the_first(start: i64, stride: i64, masked: bool) -> PrimFunc {
    let [a, c] = [("A", 33), ("C", 8)].map(|(name, length)| Buffer::new(name, F32, [length]));
    let predicate = masked.then(|| prim::ge(ramp(int(0), int(1), 8), prim::broadcast(int(1), 8)));
    let indices = vec![ramp(int(start), int(stride), 8)];
    let load: PrimExpr = Ref::new(prim::BufferLoad { buffer: a.clone(), indices, predicate }).into();
    kernel("masked", &[a, c.clone()], &[], Stmt::store(&c, [ramp(int(0), int(1), 8)], load))
}

#[test]
fn addresses_of_lanes_that_a_mask_leaves_out_may_lie_outside_of_the_buffer() {
    let body = |func: PrimFunc| {
        let text = llvm_text(&[Ref::new(func)], &Target::default()).unwrap();
        text.split("define").find(|part| part.contains("<8 x float>")).unwrap_or_else(|| panic!("{text}")).to_string()
    };
    let values = numbers(33);
    for (start, stride) in [(-1, 1), (-2, 2), (-3, 3), (-5, 5), (33, -1), (34, -4)] {
        let func = all_but_the_first(start, stride, true);
        let text = body(func.clone());
        assert!(text.contains("getelementptr") && !text.contains("inbounds"), "{start}, {stride}\n{text}");
        let mut tensors = [Tensor::f32(&values, &[33]), Tensor::zeros(F32, &[8])];
        Kernels::compile(&[func]).run("masked", &mut tensors);
        let at = |lane: i64| if lane == 0 { 0.0 } else { values[(start + lane * stride) as usize] };
        assert_eq!(tensors[1].values::<f32>(), (0..8).map(at).collect::<Vec<f32>>(), "{start}, {stride}");
    }
    assert!(body(all_but_the_first(1, 3, false)).contains("inbounds"));
}

#[test]
fn one_instruction_makes_signed_and_unsigned_numbers() {
    let (a, b) = (Buffer::new("A", I32, [4]), Buffer::new("B", I32, [4]));
    let i = Var::dim("i");
    let narrowed = |dtype: DataType| {
        let value = prim::cast(dtype, prim::load(&a, [&i]));
        prim::cast(I32, prim::call(dtype, "tirx.bitwise_or", vec![value, prim::int_of(dtype, 1)]))
    };
    let sum = narrowed(DataType::uint(8)) * 1000 + narrowed(DataType::int(8));
    let func = kernel("narrowed", &[a.clone(), b.clone()], &[], Stmt::serial(i.clone(), 4, Stmt::store(&b, [&i], sum)));
    let values = [0, 200, -2, 511];
    let mut tensors = [Tensor::of(I32, &values, &[4]), Tensor::zeros(I32, &[4])];
    Kernels::compile(std::slice::from_ref(&func)).run("narrowed", &mut tensors);
    let expected = values.map(|v: i32| i32::from(v as u8 | 1) * 1000 + i32::from(v as i8 | 1));
    assert_eq!(tensors[1].values::<i32>(), expected);
}
