//! Scheduled kernels compute what their blocks say: both are interpreted on the same random inputs.

mod chains;
mod convolutions;
mod panels;
mod parameters;
mod random_sizes;

use std::cell::RefCell;
use std::collections::HashSet;

use relaxide_ffi::{DataType, FreeVars, Ref, Tensor, structural_hash};
use relaxide_ir::prim::{self, PrimExpr, VarMap, int};
use relaxide_ir::{Target, Var};
use relaxide_tir::interp::{self, Arg};
use relaxide_tir::schedule::{self, Machine};
use relaxide_tir::{PrimFunc, Stmt, te};

use convolutions::{Conv, PLAIN};

const F32: DataType = DataType::float(32);

/// A kernel's tensors, and values of its symbolic dimensions.
struct Case {
    name: String,
    args: Vec<te::Tensor>,
    dims: VarMap,
    rule: &'static str,
}

/// Dimensions by value: symbolic if asked, so that one description serves both.
struct Dims {
    symbolic: bool,
    values: VarMap,
}

impl Dims {
    fn new(symbolic: bool) -> Dims {
        Dims { symbolic, values: VarMap::new() }
    }

    fn dim(&mut self, name: &str, value: i64) -> PrimExpr {
        if !self.symbolic {
            return int(value);
        }
        let var = Var::dim(name);
        self.values.insert(var.clone(), int(value));
        PrimExpr::from(&var)
    }

    fn case(self, name: String, rule: &'static str, args: Vec<te::Tensor>) -> Case {
        Case { name, args, dims: self.values, rule }
    }
}

/// Numbers that differ from each other and have few digits, so that sums in any order agree closely.
fn values(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((state >> 40) % 256) as f32 / 64.0 - 2.0
    };
    (0..count).map(|_| next()).collect()
}

fn shape_of(tensor: &te::Tensor, dims: &VarMap) -> Vec<i64> {
    let known = |d: &PrimExpr| prim::substitute(d, dims).as_int().expect("the dimension folds to a number");
    tensor.shape().iter().map(known).collect()
}

fn execute(func: &PrimFunc, inputs: &[Tensor], shape: &[i64]) -> Result<Vec<f32>, interp::InterpError> {
    let output = Tensor::from_slice(&vec![f32::NAN; shape.iter().product::<i64>() as usize], shape).expect("a tensor");
    let args: Vec<Arg> = inputs.iter().chain([&output]).map(Arg::from).collect();
    interp::run(func, &args)?;
    Ok(output.to_vec::<f32>().expect("floats"))
}

/// A case, its inputs, and what its blocks make of them.
struct Prepared<'a> {
    case: &'a Case,
    func: PrimFunc,
    inputs: Vec<Tensor>,
    shape: Vec<i64>,
    expected: Vec<f32>,
    /// Kernels that were interpreted, by their hash: many targets and many values of a parameter make the same one.
    interpreted: RefCell<HashSet<u64>>,
}

impl Prepared<'_> {
    fn of(case: &Case) -> Prepared<'_> {
        let func = te::create_prim_func(&case.args).expect("a kernel");
        let (inputs, output) = case.args.split_at(case.args.len() - 1);
        let inputs: Vec<Tensor> = inputs
            .iter()
            .enumerate()
            .map(|(seed, t)| {
                let shape = shape_of(t, &case.dims);
                let data = values(shape.iter().product::<i64>() as usize, seed as u64 + 1);
                Tensor::from_slice(&data, &shape).expect("a tensor")
            })
            .collect();
        let shape = shape_of(&output[0], &case.dims);
        let expected = execute(&func, &inputs, &shape).expect("the block form runs");
        Prepared { case, func, inputs, shape, expected, interpreted: RefCell::default() }
    }

    /// What is wrong with a scheduled kernel, unless it was asked of an equal one before.
    fn difference(&self, scheduled: &PrimFunc) -> Option<String> {
        let mut plain = scheduled.clone();
        // Schedules are interpreted, and targets are not.
        plain.attrs.0.shift_remove("target");
        if !self.interpreted.borrow_mut().insert(structural_hash(&Ref::new(plain), FreeVars::Mapped)) {
            return None;
        }
        let got = match execute(scheduled, &self.inputs, &self.shape) {
            Ok(got) => got,
            Err(error) => return Some(format!("{}: {error}", self.case.name)),
        };
        let differ =
            |want: f32, have: f32| (want - have).abs() > 1e-4 * want.abs().max(1.0) || want.is_nan() != have.is_nan();
        let (i, (want, have)) =
            self.expected.iter().zip(&got).enumerate().find(|(_, (want, have))| differ(**want, **have))?;
        Some(format!("{}: element {i} of {:?} is {have}, not {want}", self.case.name, self.shape))
    }
}

/// What is wrong with the scheduled kernel of a case.
fn problems(prepared: &Prepared<'_>, target: &Target) -> Vec<String> {
    let case = prepared.case;
    let scheduled = schedule::apply(&prepared.func, target).expect("a schedule");
    let mut found = Vec::new();
    let rules: Vec<&str> = scheduled.notes.iter().map(|n| n.rule).collect();
    if !rules.contains(&case.rule) {
        let notes: Vec<String> = scheduled.notes.iter().map(ToString::to_string).collect();
        found.push(format!("{}: rule {} was to take it\n{}", case.name, case.rule, notes.join("\n")));
    }
    found.extend(prepared.difference(&scheduled.func));
    found
}

fn check(cases: Vec<Case>) {
    let mut found = Vec::new();
    let targets = ["x86-64-v3", "x86-64-v4"].map(Target::llvm);
    assert!(targets.iter().all(|target| Machine::of(target).vector_bytes >= 32));
    for (at, case) in cases.iter().enumerate() {
        let prepared = Prepared::of(case);
        // The wider machine takes the same paths with other sizes: a quarter of the cases shows that.
        let targets = if at % 4 == 0 { &targets[..] } else { &targets[..1] };
        found.extend(targets.iter().flat_map(|target| problems(&prepared, target)));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn relu(x: PrimExpr) -> PrimExpr {
    prim::max(x, prim::constant(F32, 0.0))
}

fn all(conditions: impl IntoIterator<Item = PrimExpr>) -> PrimExpr {
    conditions.into_iter().reduce(prim::and).expect("conditions")
}

#[test]
fn elementwise_chains_with_broadcasts() {
    let mut cases = Vec::new();
    for symbolic in [false, true] {
        for (c, h, w) in [(3, 5, 7), (1, 1, 1), (4, 9, 33), (2, 1, 40)] {
            let mut d = Dims::new(symbolic);
            let shape = [int(2), int(c), d.dim("h", h), d.dim("w", w)];
            let a = te::placeholder("A", shape.clone(), F32);
            let s = te::placeholder("s", [int(c)], F32);
            let t = te::compute("t", shape.clone(), |i| a.at(i) * s.at(&[i[1].clone()]));
            let b = te::compute("B", shape, |i| t.at(i) * relu(t.at(i) + prim::constant(F32, 1.0)));
            let rule = if !symbolic && c * h * w < 4 { "fallback" } else { "elementwise" };
            cases.push(d.case(format!("scale {c}x{h}x{w} {symbolic}"), rule, vec![a, s, b]));
        }
    }
    check(cases);
}

#[test]
fn padding_concatenation_transposition_and_gathers() {
    let mut cases = Vec::new();
    for symbolic in [false, true] {
        let mut d = Dims::new(symbolic);
        let (h, w) = (d.dim("h", 6), d.dim("w", 21));
        let a = te::placeholder("A", [h.clone(), w.clone()], F32);
        let padded = te::compute("P", [&h + 2, &w + 3], |i| {
            let (y, x) = (&i[0], &i[1]);
            let inside = all([prim::ge(y, int(1)), prim::lt(y, &h + 1), prim::ge(x, int(2)), prim::lt(x, &w + 2)]);
            prim::if_then_else(inside, a.at(&[y - 1, x - 2]), prim::constant(F32, 0.5))
        });
        cases.push(d.case(format!("pad {symbolic}"), "elementwise", vec![a, padded]));

        let mut d = Dims::new(symbolic);
        let (h, w) = (d.dim("h", 6), d.dim("w", 21));
        let a = te::placeholder("A", [h.clone(), w.clone()], F32);
        let b = te::placeholder("B", [h.clone(), int(5)], F32);
        let joined = te::compute("C", [h, &w + 5], |i| {
            let second = b.at(&[i[0].clone(), &i[1] - &w]);
            prim::if_then_else(prim::lt(&i[1], w.clone()), a.at(i), second)
        });
        cases.push(d.case(format!("concatenate {symbolic}"), "elementwise", vec![a, b, joined]));

        for (height, width) in [(19, 21), (130, 33), (64, 128)] {
            let mut d = Dims::new(symbolic);
            let (h, w) = (d.dim("h", height), d.dim("w", width));
            let a = te::placeholder("A", [int(3), h.clone(), w.clone()], F32);
            let transposed =
                te::compute("T", [w, int(3), h], |i| relu(a.at(&[i[1].clone(), i[2].clone(), i[0].clone()])));
            cases.push(d.case(format!("transpose {height} × {width} {symbolic}"), "transpose", vec![a, transposed]));
        }

        let mut d = Dims::new(symbolic);
        let (h, w) = (d.dim("h", 3), d.dim("w", 11));
        let a = te::placeholder("A", [h.clone(), w.clone()], F32);
        let twice = te::compute("R", [&h * 2, &w * 2], |i| {
            a.at(&[prim::floordiv(&i[0], int(2)), prim::floordiv(&i[1], int(2))])
        });
        cases.push(d.case(format!("resize {symbolic}"), "interleave", vec![a, twice]));

        let mut d = Dims::new(symbolic);
        let (h, w) = (d.dim("h", 3), d.dim("w", 35));
        let a = te::placeholder("A", [int(2), int(2), h.clone(), w.clone()], F32);
        let spread = te::compute("S", [&h * 2, w.clone()], |i| {
            let (y, x) = (&i[0], &i[1]);
            let phase = [prim::floormod(y, int(2)), prim::floormod(x, int(2))];
            let place = [prim::floordiv(y, int(2)), prim::floordiv(x, int(2))];
            relu(a.at(&[&phase[..], &place[..]].concat()))
        });
        cases.push(d.case(format!("spread {symbolic}"), "interleave", vec![a, spread]));
    }
    check(cases);
}

fn matmul(symbolic: bool, (b, m, n, k): (i64, i64, i64, i64), transposed: bool) -> Case {
    let mut d = Dims::new(symbolic);
    let (batch, rows) = (d.dim("b", b), d.dim("m", m));
    let columns = if transposed { d.dim("n", n) } else { int(n) };
    let a = te::placeholder("A", [batch.clone(), rows.clone(), int(k)], F32);
    let (batched, depth, wide) = (batch.clone(), int(k), columns.clone());
    let w_shape = if transposed { [batched, wide, depth] } else { [batched, depth, wide] };
    let w = te::placeholder("W", w_shape, F32);
    let bias = te::placeholder("bias", [columns.clone()], F32);
    let r = te::reduce_axis(k);
    let shape = [batch, rows, columns];
    let product = te::compute("mm", shape.clone(), |i| {
        let (x, k) = (i[2].clone(), r.var());
        let right = if transposed { [i[0].clone(), x, k] } else { [i[0].clone(), k, x] };
        te::sum(a.at(&[i[0].clone(), i[1].clone(), r.var()]) * w.at(&right), [&r])
    });
    let out = te::compute("out", shape, |i| relu(product.at(i) + bias.at(&[i[2].clone()])));
    d.case(format!("matmul {b}x{m}x{n}x{k} {symbolic} {transposed}"), "matmul", vec![a, w, bias, out])
}

#[test]
fn matrix_products_with_epilogues() {
    let mut cases = Vec::new();
    for symbolic in [false, true] {
        for transposed in [false, true] {
            for size in [(1, 1, 17, 5), (2, 5, 40, 15), (1, 13, 15, 40), (3, 7, 70, 4), (1, 32, 33, 3), (1, 29, 8, 9)] {
                cases.push(matmul(symbolic, size, transposed));
            }
        }
    }
    check(cases);
}

#[test]
fn a_reader_of_a_part_of_a_product_computes_just_that_part() {
    let (a, w) = (te::placeholder("A", [14, 9], F32), te::placeholder("W", [9, 20], F32));
    let r = te::reduce_axis(9);
    let product =
        te::compute("mm", [14, 20], |i| te::sum(a.at(&[i[0].clone(), r.var()]) * w.at(&[r.var(), i[1].clone()]), [&r]));
    let out = te::compute("out", [11, 17], |i| relu(product.at(i)));
    check(vec![Dims::new(false).case("a part of a product".into(), "matmul", vec![a, w, out])]);
}

#[test]
fn one_row_with_a_matrix_whose_rows_are_summed_is_a_reduction() {
    let product = |columns: i64, depth: i64, rule: &'static str| {
        let (a, w) = (te::placeholder("A", [1, depth], F32), te::placeholder("W", [columns, depth], F32));
        let r = te::reduce_axis(depth);
        let out = te::compute("mm", [1, columns], |i| {
            te::sum(a.at(&[i[0].clone(), r.var()]) * w.at(&[i[1].clone(), r.var()]), [&r])
        });
        Dims::new(false).case(format!("a row by {columns} rows of {depth}"), rule, vec![a, w, out])
    };
    check(vec![product(33, 70, "reduction"), product(20, 1000, "reduction"), product(40, 3, "matmul")]);
}

#[test]
fn deep_matrix_products() {
    check(vec![matmul(false, (1, 7, 20, 1040), false), matmul(true, (1, 13, 17, 1537), true)]);
}

#[test]
fn matrix_products_of_several_blocks_of_rows() {
    check(vec![matmul(true, (1, 101, 17, 3), false), matmul(false, (1, 98, 9, 130), true)]);
}

#[test]
fn matrix_products_wide_enough_for_chunks() {
    check(vec![matmul(false, (1, 14, 1030, 1), false), matmul(true, (1, 13, 1030, 2), true)]);
}

fn reduction(symbolic: bool, shape: [i64; 3], axes: &[usize], maximum: bool) -> Case {
    let mut d = Dims::new(symbolic);
    let dims: Vec<PrimExpr> = shape.iter().enumerate().map(|(i, n)| d.dim(&format!("d{i}"), *n)).collect();
    let a = te::placeholder("A", dims.clone(), F32);
    let reduce: Vec<te::ReduceAxis> = axes.iter().map(|i| te::reduce_axis(dims[*i].clone())).collect();
    let kept: Vec<PrimExpr> = (0..3).filter(|i| !axes.contains(i)).map(|i| dims[i].clone()).collect();
    let total = te::compute("total", kept.clone(), |i| {
        let mut free = i.iter();
        let index: Vec<PrimExpr> = (0..3)
            .map(|d| match axes.iter().position(|x| *x == d) {
                Some(r) => reduce[r].var(),
                None => free.next().expect("an axis").clone(),
            })
            .collect();
        if maximum { te::max(a.at(&index), reduce.iter()) } else { te::sum(a.at(&index) * a.at(&index), reduce.iter()) }
    });
    let half = te::compute("half", kept, |i| total.at(i) * prim::constant(F32, 0.5));
    d.case(format!("reduce {shape:?} {axes:?} {maximum} {symbolic}"), "reduction", vec![a, half])
}

#[test]
fn reductions_over_every_axis() {
    let mut cases = Vec::new();
    for symbolic in [false, true] {
        for maximum in [symbolic] {
            for axes in [&[2][..], &[1, 2], &[0], &[1], &[0, 2], &[0, 1, 2]] {
                cases.push(reduction(symbolic, [3, 5, 41], axes, maximum));
            }
        }
    }
    check(cases);
}

/// Many terms, whose neighbours belong to other outputs: blocks of columns, the last of which is not full.
#[test]
fn sums_of_many_rows_go_in_blocks_of_columns() {
    let mut cases = Vec::new();
    for symbolic in [false, true] {
        for maximum in [false, true] {
            cases.extend([
                reduction(symbolic, [67, 1, 531], &[0], maximum),
                reduction(symbolic, [9, 8, 512], &[0, 1], maximum),
                reduction(symbolic, [2, 130, 70], &[1], maximum),
            ]);
        }
    }
    check(cases);
}

/// Softmax along an axis, of a cheap function of the input.
fn softmax(symbolic: bool, shape: &[i64], axis: usize, rule: &'static str) -> Case {
    let mut d = Dims::new(symbolic);
    let dims: Vec<PrimExpr> = shape.iter().enumerate().map(|(i, n)| d.dim(&format!("d{i}"), *n)).collect();
    let kept: Vec<PrimExpr> = (0..shape.len()).filter(|i| *i != axis).map(|i| dims[i].clone()).collect();
    let a = te::placeholder("A", dims.clone(), F32);
    let without = |i: &[PrimExpr]| (0..i.len()).filter(|d| *d != axis).map(|d| i[d].clone()).collect::<Vec<_>>();
    let with = |i: &[PrimExpr], k: PrimExpr| [&i[..axis], &[k], &i[axis..]].concat();
    let k = te::reduce_axis(dims[axis].clone());
    let half = |i: &[PrimExpr]| a.at(i) * prim::constant(F32, 0.5);
    let highest = te::compute("highest", kept.clone(), |i| te::max(half(&with(i, k.var())), [&k]));
    let exps = te::compute("exps", dims.clone(), |i| prim::math("exp", half(i) - highest.at(&without(i))));
    let k = te::reduce_axis(dims[axis].clone());
    let total = te::compute("total", kept, |i| te::sum(exps.at(&with(i, k.var())), [&k]));
    let out = te::compute("B", dims, |i| prim::div(exps.at(i), total.at(&without(i))));
    d.case(format!("softmax {shape:?} along {axis}, symbolic {symbolic}"), rule, vec![a, out])
}

/// The normal form of rows over the last `depth` dimensions, of an expensive function that two stages read.
fn norm(symbolic: bool, shape: &[i64], depth: usize) -> Case {
    norm_of(symbolic, shape, depth, |a| te::compute("x", a.shape(), |i| prim::math("tanh", a.at(i))))
}

/// The normal form of rows of the input itself.
fn plain_norm(symbolic: bool, shape: &[i64], depth: usize) -> Case {
    norm_of(symbolic, shape, depth, te::Tensor::clone)
}

fn norm_of(symbolic: bool, shape: &[i64], depth: usize, of: impl Fn(&te::Tensor) -> te::Tensor) -> Case {
    let mut d = Dims::new(symbolic);
    let dims: Vec<PrimExpr> = shape.iter().enumerate().map(|(i, n)| d.dim(&format!("d{i}"), *n)).collect();
    let outer = shape.len() - depth;
    let a = te::placeholder("A", dims.clone(), F32);
    let g = te::placeholder("G", dims[outer..].to_vec(), F32);
    let x = of(&a);
    let count = prim::constant(F32, shape[outer..].iter().product::<i64>() as f64);
    let mean = |name: &str, value: &dyn Fn(&[PrimExpr]) -> PrimExpr| {
        let axes: Vec<_> = dims[outer..].iter().map(|n| te::reduce_axis(n.clone())).collect();
        let total = te::compute(format!("{name}_total"), dims[..outer].to_vec(), |i| {
            let at: Vec<PrimExpr> = i.iter().cloned().chain(axes.iter().map(te::ReduceAxis::var)).collect();
            te::sum(value(&at), &axes)
        });
        te::compute(name, dims[..outer].to_vec(), |i| prim::div(total.at(i), &count))
    };
    let average = mean("average", &|at| x.at(at));
    let variance = mean("variance", &|at| {
        let distance = x.at(at) - average.at(&at[..outer]);
        &distance * &distance
    });
    let out = te::compute("B", dims.clone(), |i| {
        let spread = prim::math("sqrt", variance.at(&i[..outer]) + prim::constant(F32, 1e-5));
        prim::div(x.at(i) - average.at(&i[..outer]), spread) * g.at(&i[outer..])
    });
    d.case(format!("norm {shape:?} over the last {depth}, symbolic {symbolic}"), "rowwise", vec![a, g, out])
}

#[test]
fn softmax_and_norms_go_row_by_row() {
    let mut cases = Vec::new();
    for symbolic in [false, true] {
        cases.extend([
            softmax(symbolic, &[5, 37], 1, "rowwise"),
            softmax(symbolic, &[3, 2, 64], 2, "rowwise"),
            // Rows along memory stay inside: the axis before them is reduced for a vector of them at a time.
            softmax(symbolic, &[3, 5, 24], 1, "rowwise"),
            // All axes but the reduced one lie along memory: no rows are left.
            softmax(symbolic, &[9, 40], 0, "elementwise"),
            norm(symbolic, &[4, 33], 1),
            norm(symbolic, &[2, 3, 4, 9], 2),
        ]);
    }
    // Shorter than a vector.
    cases.extend([2, 5].map(|n| softmax(false, &[40, n], 1, "rowwise")));
    check(cases);
}

/// Norms of what is in memory: the first sum asks for the next row and for the row that is written, but in groups.
#[test]
fn norms_ask_for_what_comes_next() {
    let mut cases = Vec::new();
    for symbolic in [false, true] {
        cases.extend([
            plain_norm(symbolic, &[67, 20], 1),
            plain_norm(symbolic, &[3, 64], 1),
            plain_norm(symbolic, &[5, 65], 1),
            plain_norm(symbolic, &[3, 2, 531], 1),
            plain_norm(symbolic, &[2, 3, 24, 9], 2),
        ]);
    }
    check(cases);
}

#[test]
fn rows_of_one_element_and_of_thousands() {
    check(vec![
        softmax(true, &[3, 1], 1, "rowwise"),
        softmax(true, &[2, 9000], 1, "rowwise"),
        softmax(false, &[2, 5000], 1, "rowwise"),
    ]);
}

/// Groups of rows, the last one of which is not full, within tasks of which the last is not either.
#[test]
fn short_rows_go_in_groups() {
    for symbolic in [false, true] {
        check(vec![
            softmax(symbolic, &[450, 37], 1, "rowwise"),
            softmax(symbolic, &[3, 7, 65], 2, "rowwise"),
            norm(symbolic, &[67, 20], 1),
        ]);
    }
}

/// Rows that end with a vector, just before one and just behind one, and on both sides of the length that is short.
#[test]
fn rows_end_anywhere_in_a_vector() {
    let mut cases: Vec<Case> =
        [1, 2, 7, 8, 9, 15, 16, 17, 31, 33].map(|n| softmax(true, &[19, n], 1, "rowwise")).into();
    for n in [17, 32, 511, 512, 513] {
        cases.extend([false, true].map(|symbolic| softmax(symbolic, &[5, n], 1, "rowwise")));
    }
    cases.extend([1, 3, 512, 530].map(|n| norm(true, &[5, n], 1)));
    check(cases);
}

#[test]
fn only_one_row_is_kept_in_the_row_that_will_be_written() {
    let mut cases = Vec::new();
    for symbolic in [false, true] {
        let mut d = Dims::new(symbolic);
        let (m, n) = (d.dim("m", 5), d.dim("n", 33));
        let a = te::placeholder("A", [m.clone(), n.clone()], F32);
        let both = ["exp", "sqrt"].map(|function| {
            let row = te::compute(function, [m.clone(), n.clone()], |i| {
                prim::math(function, prim::max(a.at(i), prim::constant(F32, 0.1)))
            });
            let k = te::reduce_axis(n.clone());
            let total = te::compute("total", [m.clone()], |i| te::sum(row.at(&[i[0].clone(), k.var()]), [&k]));
            (row, total)
        });
        let out = te::compute("B", [m, n], |i| {
            let parts = both.iter().map(|(row, total)| prim::div(row.at(i), total.at(&i[..1])));
            parts.reduce(|x, y| x - y).expect("two")
        });
        cases.push(d.case(format!("two rows, symbolic {symbolic}"), "rowwise", vec![a, out]));
    }
    check(cases);
}

#[test]
fn exponentials_below_a_maximum_are_marked() {
    let marked = |symbolic| {
        let func = te::create_prim_func(&softmax(symbolic, &[4, 40], 1, "rowwise").args).expect("a kernel");
        let scheduled = schedule::apply(&func, &Target::default()).expect("a schedule").func;
        scheduled.to_string()
    };
    for symbolic in [false, true] {
        assert!(marked(symbolic).contains("exp_nonpositive"), "{}", marked(symbolic));
    }
}

#[test]
fn a_stage_that_reads_other_rows_ends_the_run() {
    // The total of all rows' totals reads every row.
    let mut d = Dims::new(true);
    let (m, n) = (d.dim("m", 6), d.dim("n", 20));
    let a = te::placeholder("A", [m.clone(), n.clone()], F32);
    let k = te::reduce_axis(n.clone());
    let rows = te::compute("rows", [m.clone()], |i| te::sum(a.at(&[i[0].clone(), k.var()]), [&k]));
    let r = te::reduce_axis(m.clone());
    let all = te::compute("all", [int(1)], |_| te::sum(rows.at(&[r.var()]), [&r]));
    let out = te::compute("B", [m, n], |i| a.at(i) - rows.at(&i[..1]) * all.at(&[int(0)]));
    check(vec![d.case("totals of totals".into(), "elementwise", vec![a, out])]);
}

#[test]
fn pooling_windows_are_reduced_in_vectors_of_outputs() {
    let mut cases = Vec::new();
    // Windows that share enough go down their columns first, which makes rows of two pieces.
    let rule = |stride| if stride < 3 { "rowwise" } else { "reduction" };
    for (symbolic, stride, w) in
        [(false, 1, 29), (true, 2, 29), (true, 3, 29), (true, 1, 3), (false, 2, 70), (true, 2, 1)]
    {
        let mut d = Dims::new(symbolic);
        let (h, w) = (d.dim("h", 7), d.dim("w", w));
        let a = te::placeholder("A", [int(2), h.clone(), w.clone()], F32);
        let (ry, rx) = (te::reduce_axis(3), te::reduce_axis(3));
        let size = |n: &PrimExpr| prim::floordiv(n - 1, int(stride)) + 1;
        let pooled = te::compute("pool", [int(2), size(&h), size(&w)], |i| {
            let (y, x) = (&i[1] * stride + ry.var() - 1, &i[2] * stride + rx.var() - 1);
            let inside = all([prim::ge(&y, 0), prim::lt(&y, h.clone()), prim::ge(&x, 0), prim::lt(&x, w.clone())]);
            let value = prim::if_then_else(inside, a.at(&[i[0].clone(), y, x]), prim::constant(F32, -9.0));
            te::max(value, [&ry, &rx])
        });
        cases.push(d.case(format!("pool {symbolic} {stride}"), rule(stride), vec![a, pooled]));
    }
    check(cases);
}

/// Running sums of rows, by a number that is kept beside them: set before each row, or only before the first one.
fn running_sums(symbolic: bool, each_row: bool) -> Case {
    let mut d = Dims::new(symbolic);
    let shape = [d.dim("b", 40), d.dim("m", 30), d.dim("n", 50)];
    let a = te::placeholder("A", shape.clone(), F32);
    let outs = [("sums".to_string(), shape.to_vec(), F32), ("state".to_string(), vec![int(1)], F32)];
    let mut outs = te::extern_stage("running", std::slice::from_ref(&a), outs, |source, target| {
        let vars = ["i", "j", "k"].map(Var::dim);
        let at = vars.iter().map(PrimExpr::from).collect::<Vec<_>>();
        let state = prim::load(&target[1], [int(0)]);
        let clear = Stmt::store(&target[1], [int(0)], prim::constant(F32, 0.0));
        let add = Stmt::store(&target[1], [int(0)], state.clone() + prim::load(&source[0], at.clone()));
        let step = Stmt::seq([add, Stmt::store(&target[0], at, state)]);
        let row = Stmt::serial(vars[2].clone(), shape[2].clone(), step);
        let row = if each_row { Stmt::seq([clear.clone(), row]) } else { row };
        let all = Stmt::serial(vars[1].clone(), shape[1].clone(), row);
        let all = Stmt::serial(vars[0].clone(), shape[0].clone(), all);
        if each_row { all } else { Stmt::seq([clear, all]) }
    });
    let sums = outs.swap_remove(0);
    let out = te::compute("B", sums.shape().to_vec(), |i| sums.at(i) * prim::constant(F32, 0.5));
    let rule = if each_row { "independent" } else { "opaque" };
    d.case(format!("running sums, each row {each_row}, symbolic {symbolic}"), rule, vec![a, out])
}

#[test]
fn loops_whose_iterations_never_meet_run_on_all_threads() {
    check(vec![running_sums(false, true), running_sums(true, true), running_sums(false, false)]);
    for (each_row, symbolic) in [(true, false), (true, true), (false, false)] {
        let func = te::create_prim_func(&running_sums(symbolic, each_row).args).expect("a kernel");
        let text = schedule::apply(&func, &Target::default()).expect("a schedule").func.to_string();
        // The element-wise stage behind it is parallel in any case.
        assert_eq!(text.matches("parallel(").count(), 1 + usize::from(each_row), "{text}");
        assert_eq!(text.contains("alloc state: float32[1] in local"), each_row, "{text}");
    }
}
