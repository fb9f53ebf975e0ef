//! Random kernels that the threads of a block of a device carry out together: reductions, rows, products, transposes.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{BinaryOp, Var};

use super::{Dim, Random, Sample, random_tensor};
use crate::te::{self, ReduceAxis, TeError, Tensor};

/// A kernel, and which rule it is meant for.
#[derive(Debug)]
pub struct Teamwork {
    /// The kernel, with inputs.
    pub sample: Sample,
    /// The rule.
    pub rule: &'static str,
}

const F32: DataType = DataType::float(32);
const I32: DataType = DataType::int(32);

/// A kernel of a seed; neighbouring seeds are for different rules.
pub fn teamwork(seed: u64) -> Result<Teamwork, TeError> {
    let mut random = Random::new(seed);
    let random = &mut random;
    match seed % 9 {
        0 | 1 => product(random),
        2 => convolution(random),
        3 => along_rows(random),
        4 => along_columns(random),
        5 => softmax(random),
        6 => norm(random),
        7 => one_row(random),
        _ => transpose(random),
    }
}

/// A dimension that is a number or a name.
fn dim(random: &mut Random, name: &str, low: i64, high: i64) -> Dim {
    let size = random.between(low, high);
    let expr = if random.one_in(3) { PrimExpr::from(&Var::dim(name)) } else { prim::int(size) };
    Dim { size, expr }
}

fn sizes(dims: &[&Dim]) -> Vec<i64> {
    dims.iter().map(|dim| dim.size).collect()
}

fn exprs(dims: &[&Dim]) -> Vec<PrimExpr> {
    dims.iter().map(|dim| dim.expr.clone()).collect()
}

/// What a kernel of some inputs computes, with random elements.
struct Maker<'r> {
    random: &'r mut Random,
    inputs: Vec<(Tensor, Vec<i64>)>,
}

impl Maker<'_> {
    fn input(&mut self, name: &str, dims: &[&Dim], dtype: DataType) -> Tensor {
        let tensor = te::placeholder(name, exprs(dims), dtype);
        self.inputs.push((tensor.clone(), sizes(dims)));
        tensor
    }

    fn sample(self, rule: &'static str, output: Tensor, shape: Vec<i64>) -> Result<Teamwork, TeError> {
        let args: Vec<Tensor> = self.inputs.iter().map(|(tensor, _)| tensor.clone()).chain([output.clone()]).collect();
        let func = te::create_prim_func(&args)?;
        let mut inputs = Vec::new();
        for (tensor, shape) in &self.inputs {
            let drawn = random_tensor(self.random, shape, tensor.dtype());
            inputs.extend(drawn.ok());
        }
        let outputs = vec![(shape, output.dtype())];
        Ok(Teamwork { sample: Sample { func, inputs, outputs, scalars: Vec::new() }, rule })
    }
}

fn over(a: PrimExpr, b: PrimExpr) -> PrimExpr {
    prim::binary(BinaryOp::Div, a, b)
}

fn axis(dim: &Dim) -> ReduceAxis {
    te::reduce_axis(dim.expr.clone())
}

/// Products of matrices, several perhaps, either of them turned around, with something done to the result.
fn product(random: &mut Random) -> Result<Teamwork, TeError> {
    let dtype = if random.one_in(4) { I32 } else { F32 };
    let b = Dim { size: 2, expr: prim::int(2) };
    let (m, n, k) = (dim(random, "m", 8, 36), dim(random, "n", 8, 36), dim(random, "k", 8, 40));
    let (of_a, of_b, finished) = (random.one_in(2), random.one_in(2), random.one_in(2));
    let batch = random.one_in(3);
    let mut maker = Maker { random, inputs: Vec::new() };
    let shape = |first: &'static str, batch: bool| (first, batch);
    let mut operand = |(name, batch): (&str, bool), rows: &Dim, columns: &Dim, turned: bool| {
        let (first, second) = if turned { (columns, rows) } else { (rows, columns) };
        let dims: Vec<&Dim> = if batch { vec![&b, first, second] } else { vec![first, second] };
        let tensor = maker.input(name, &dims, dtype);
        move |at: &[PrimExpr], row: PrimExpr, column: PrimExpr| {
            let place = if turned { [column, row] } else { [row, column] };
            tensor.at(&[at, &place].concat())
        }
    };
    let left = operand(shape("A", batch), &m, &k, of_a);
    let right = operand(shape("B", batch), &k, &n, of_b);
    let bias = maker.input("bias", &[&n], dtype);
    let dims: Vec<&Dim> = if batch { vec![&b, &m, &n] } else { vec![&m, &n] };
    let along = axis(&k);
    let made = te::compute("product", exprs(&dims), |i| {
        let (outer, inner) = i.split_at(i.len() - 2);
        let (row, column) = (inner[0].clone(), inner[1].clone());
        te::sum(left(outer, row, along.var()) * right(outer, along.var(), column), [&along])
    });
    let output = match finished {
        true => te::compute("finished", exprs(&dims), |i| {
            prim::max(made.at(i) + bias.at(&i[i.len() - 1..]), prim::constant(dtype, 0.0))
        }),
        false => made,
    };
    let shape = sizes(&dims);
    maker.sample("tiled product", output, shape)
}

/// A convolution with borders, as a product.
fn convolution(random: &mut Random) -> Result<Teamwork, TeError> {
    let fixed = |size: i64| Dim { size, expr: prim::int(size) };
    let batch = dim(random, "batch", 1, 2);
    let (c, o, h, w) = (fixed(2), fixed(random.between(8, 20)), dim(random, "h", 4, 7), dim(random, "w", 4, 7));
    let r = fixed(3);
    let mut maker = Maker { random, inputs: Vec::new() };
    let data = maker.input("data", &[&batch, &c, &h, &w], F32);
    let weight = maker.input("weight", &[&o, &c, &r, &r], F32);
    let (rc, ry, rx) = (axis(&c), axis(&r), axis(&r));
    let (height, width) = (h.expr.clone(), w.expr.clone());
    let padded =
        te::compute("padded", [batch.expr.clone(), c.expr.clone(), h.expr.clone() + 2, w.expr.clone() + 2], |i| {
            let (y, x) = (i[2].clone() - 1, i[3].clone() - 1);
            let inside = [
                prim::ge(y.clone(), 0),
                prim::lt(y.clone(), height),
                prim::ge(x.clone(), 0),
                prim::lt(x.clone(), width),
            ];
            let inside = inside.into_iter().reduce(prim::and).unwrap_or_else(|| prim::int(1));
            prim::if_then_else(inside, data.at(&[i[0].clone(), i[1].clone(), y, x]), prim::constant(F32, 0.0))
        });
    let dims = [&batch, &o, &h, &w];
    let output = te::compute("conv", exprs(&dims), |i| {
        let (y, x) = (i[2].clone() + ry.var(), i[3].clone() + rx.var());
        let read = padded.at(&[i[0].clone(), rc.var(), y, x]);
        te::sum(read * weight.at(&[i[1].clone(), rc.var(), ry.var(), rx.var()]), [&rc, &ry, &rx])
    });
    let shape = sizes(&dims);
    maker.sample("tiled product", output, shape)
}

/// Terms side by side.
fn along_rows(random: &mut Random) -> Result<Teamwork, TeError> {
    let dtype = if random.one_in(3) { I32 } else { F32 };
    let (rows, n) = (dim(random, "rows", 1, 9), dim(random, "n", 32, 300));
    let which = random.below(3);
    let mut maker = Maker { random, inputs: Vec::new() };
    let a = maker.input("A", &[&rows, &n], dtype);
    let k = axis(&n);
    let output = te::compute("reduced", [rows.expr.clone()], |i| {
        let value = a.at(&[i[0].clone(), k.var()]);
        match which {
            0 => te::sum(value, [&k]),
            1 => te::max(value, [&k]),
            _ => te::min(value, [&k]),
        }
    });
    maker.sample("shared reduction", output, vec![rows.size])
}

/// Results side by side.
fn along_columns(random: &mut Random) -> Result<Teamwork, TeError> {
    let (n, columns) = (dim(random, "n", 32, 90), dim(random, "columns", 2, 50));
    let mut maker = Maker { random, inputs: Vec::new() };
    let a = maker.input("A", &[&n, &columns], F32);
    let k = axis(&n);
    let output = te::compute("reduced", [columns.expr.clone()], |i| te::sum(a.at(&[k.var(), i[0].clone()]), [&k]));
    maker.sample("shared reduction", output, vec![columns.size])
}

fn softmax(random: &mut Random) -> Result<Teamwork, TeError> {
    let (rows, n) = (dim(random, "rows", 2, 4), dim(random, "n", 32, 150));
    let mut maker = Maker { random, inputs: Vec::new() };
    let a = maker.input("A", &[&rows, &n], F32);
    let (k, l) = (axis(&n), axis(&n));
    let dims = exprs(&[&rows, &n]);
    let most = te::compute("most", [rows.expr.clone()], |i| te::max(a.at(&[i[0].clone(), k.var()]), [&k]));
    let power = te::compute("power", dims.clone(), |i| prim::call(F32, "tirx.exp", vec![a.at(i) - most.at(&i[..1])]));
    let total = te::compute("total", [rows.expr.clone()], |i| te::sum(power.at(&[i[0].clone(), l.var()]), [&l]));
    let output = te::compute("softmax", dims, |i| over(power.at(i), total.at(&i[..1])));
    maker.sample("shared rows", output, sizes(&[&rows, &n]))
}

fn norm(random: &mut Random) -> Result<Teamwork, TeError> {
    let (rows, n) = (dim(random, "rows", 2, 4), dim(random, "n", 32, 150));
    let mut maker = Maker { random, inputs: Vec::new() };
    let (a, scale) = (maker.input("A", &[&rows, &n], F32), maker.input("scale", &[&n], F32));
    let (k, l) = (axis(&n), axis(&n));
    let count = prim::cast(F32, n.expr.clone());
    let sum = te::compute("sum", [rows.expr.clone()], |i| te::sum(a.at(&[i[0].clone(), k.var()]), [&k]));
    let squares = te::compute("squares", [rows.expr.clone()], |i| {
        let off = || a.at(&[i[0].clone(), l.var()]) - over(sum.at(&i[..1]), count.clone());
        te::sum(off() * off(), [&l])
    });
    let output = te::compute("norm", exprs(&[&rows, &n]), |i| {
        let spread =
            prim::call(F32, "tirx.sqrt", vec![over(squares.at(&i[..1]), count.clone()) + prim::constant(F32, 1.0)]);
        over(a.at(i) - over(sum.at(&i[..1]), count.clone()), spread) * scale.at(&i[1..])
    });
    maker.sample("shared rows", output, sizes(&[&rows, &n]))
}

/// One row times a matrix, which lies either way.
fn one_row(random: &mut Random) -> Result<Teamwork, TeError> {
    let (n, k) = (dim(random, "n", 2, 40), dim(random, "k", 32, 200));
    let turned = random.one_in(2);
    let mut maker = Maker { random, inputs: Vec::new() };
    let x = maker.input("x", &[&k], F32);
    let w = if turned { maker.input("W", &[&n, &k], F32) } else { maker.input("W", &[&k, &n], F32) };
    let along = axis(&k);
    let output = te::compute("row", [n.expr.clone()], |i| {
        let place = if turned { [i[0].clone(), along.var()] } else { [along.var(), i[0].clone()] };
        te::sum(x.at(&[along.var()]) * w.at(&place), [&along])
    });
    maker.sample("shared reduction", output, vec![n.size])
}

/// A tensor turned around, with something done to its elements.
fn transpose(random: &mut Random) -> Result<Teamwork, TeError> {
    let dtype = if random.one_in(3) { I32 } else { F32 };
    let b = dim(random, "b", 2, 3);
    let (rows, columns) = (dim(random, "rows", 16, 70), dim(random, "columns", 16, 70));
    let mut maker = Maker { random, inputs: Vec::new() };
    let a = maker.input("A", &[&b, &rows, &columns], dtype);
    let scale = maker.input("scale", &[&rows], dtype);
    let dims = [&b, &columns, &rows];
    let output =
        te::compute("turned", exprs(&dims), |i| a.at(&[i[0].clone(), i[2].clone(), i[1].clone()]) * scale.at(&i[2..]));
    let shape = sizes(&dims);
    maker.sample("shared transpose", output, shape)
}
