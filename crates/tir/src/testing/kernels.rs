//! Random graphs of computes.

use relaxide_ffi::{DataType, Ref, Tensor};
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{BinaryOp, Var};

use super::{Dim, Random, random_tensor};
use crate::te::{self, TeError};
use crate::{PrimFunc, Stmt};

/// What random kernels may contain.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Transcendental functions, whose last bits differ between implementations.
    pub transcendental: bool,
    /// Element types other than `float32`.
    pub all_dtypes: bool,
    /// Stages written as statements (scans).
    pub opaque: bool,
    /// Most stages of a kernel.
    pub max_stages: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { transcendental: false, all_dtypes: true, opaque: true, max_stages: 4 }
    }
}

/// A kernel and arguments for it.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The kernel, in block form.
    pub func: PrimFunc,
    /// Its inputs, filled.
    pub inputs: Vec<Tensor>,
    /// Shapes and types of its outputs, which come behind the inputs.
    pub outputs: Vec<(Vec<i64>, DataType)>,
    /// Values of the scalar parameters behind the tensors: dimensions that no tensor's shape gives by itself.
    pub scalars: Vec<i64>,
}

impl Sample {
    /// Fresh tensor arguments: the inputs, and outputs of zeros.
    pub fn tensors(&self) -> relaxide_ffi::Result<Vec<Tensor>> {
        let outputs = self.outputs.iter().map(|(shape, dtype)| Tensor::zeros(shape, *dtype));
        self.inputs.iter().cloned().map(Ok).chain(outputs).collect()
    }
}

/// The random kernel of a seed.
pub fn sample(seed: u64, options: Options) -> Result<Sample, TeError> {
    sample_from(&mut Random::new(seed), options)
}

/// A random kernel.
pub fn sample_from(random: &mut Random, options: Options) -> Result<Sample, TeError> {
    let mut generator = Generator { random, options, dims: Vec::new(), tensors: Vec::new() };
    generator.choose_dims();
    let inputs = 1 + generator.random.below(3);
    for i in 0..inputs {
        generator.input(i);
    }
    for i in 0..1 + generator.random.below(options.max_stages) {
        generator.stage(i);
    }
    generator.finish(inputs)
}

#[derive(Clone, Debug)]
struct Known {
    tensor: te::Tensor,
    shape: Vec<Dim>,
}

struct Generator<'r> {
    random: &'r mut Random,
    options: Options,
    dims: Vec<Dim>,
    tensors: Vec<Known>,
}

const FLOATS: [DataType; 4] = [DataType::float(32), DataType::float(64), DataType::float(16), DataType::bfloat16()];
const INTS: [DataType; 5] =
    [DataType::int(64), DataType::int(32), DataType::int(8), DataType::uint(8), DataType::int(16)];

impl Generator<'_> {
    fn choose_dims(&mut self) {
        const SIZES: [i64; 9] = [1, 2, 3, 4, 5, 7, 8, 16, 17];
        for i in 0..3 {
            let size = self.random.pick(&SIZES).copied().unwrap_or(1);
            let expr = if self.random.one_in(3) { PrimExpr::Var(Var::dim(format!("n{i}"))) } else { size.into() };
            self.dims.push(Dim { size, expr });
        }
    }

    fn dtype(&mut self) -> DataType {
        if !self.options.all_dtypes || !self.random.one_in(3) {
            return FLOATS[0];
        }
        let all: Vec<DataType> = FLOATS.iter().chain(&INTS).copied().collect();
        self.random.pick(&all).copied().unwrap_or(FLOATS[0])
    }

    fn shape(&mut self, rank: usize) -> Vec<Dim> {
        (0..rank).map(|_| self.dims[self.random.below(self.dims.len())].clone()).collect()
    }

    fn input(&mut self, i: usize) {
        let (dtype, rank) = (self.dtype(), 1 + self.random.below(3));
        let shape = self.shape(rank);
        let tensor = te::placeholder(format!("in{i}"), shape.iter().map(|d| &d.expr), dtype);
        self.tensors.push(Known { tensor, shape });
    }

    fn pick(&mut self) -> Known {
        // The latest tensors are the likeliest, so that stages form chains.
        let back = self.random.below(self.tensors.len()).min(self.random.below(self.tensors.len()));
        self.tensors[self.tensors.len() - 1 - back].clone()
    }

    fn stage(&mut self, i: usize) {
        let name = format!("stage{i}");
        match self.random.below(8) {
            0 | 1 => self.reduction(name),
            2 => self.rearrangement(name),
            3 => self.padding(name),
            4 if self.options.opaque => self.scan(name),
            5 => self.argmax(name),
            _ => self.elementwise(name),
        }
    }

    fn push(&mut self, tensor: te::Tensor, shape: Vec<Dim>) {
        self.tensors.push(Known { tensor, shape });
    }

    fn elementwise(&mut self, name: String) {
        let shape = self.pick().shape;
        let tensor = te::compute(name, shape.iter().map(|d| &d.expr), |axes| {
            let dtype = self.dtype();
            self.expression(dtype, axes, &shape, 3)
        });
        self.push(tensor, shape);
    }

    /// An element of some tensor at some axes: dimensions that do not fit wrap around.
    fn element(&mut self, axes: &[PrimExpr], shape: &[Dim]) -> PrimExpr {
        let known = self.pick();
        let mut indices = Vec::with_capacity(known.shape.len());
        for (d, dim) in known.shape.iter().enumerate() {
            let at = (axes.len() + d).checked_sub(known.shape.len());
            let source = at.and_then(|at| Some((axes.get(at)?, shape.get(at)?)));
            indices.push(match source {
                Some((axis, of)) if prim_same(&of.expr, &dim.expr) => axis.clone(),
                Some((axis, _)) => prim::floormod(axis, &dim.expr),
                None => PrimExpr::from(0),
            });
        }
        known.tensor.at(&indices)
    }

    fn expression(&mut self, dtype: DataType, axes: &[PrimExpr], shape: &[Dim], depth: usize) -> PrimExpr {
        if depth == 0 || !self.random.mostly(5) {
            return self.leaf(dtype, axes, shape);
        }
        let a = self.expression(dtype, axes, shape, depth - 1);
        let b = self.expression(dtype, axes, shape, depth - 1);
        use BinaryOp::*;
        match self.random.below(9) {
            0..=3 => prim::binary(*self.random.pick(&[Add, Sub, Mul, Min, Max]).unwrap_or(&Add), a, b),
            4 => {
                let op = *self.random.pick(&[Lt, Le, Gt, Ge, Eq, Ne]).unwrap_or(&Lt);
                let c = self.leaf(dtype, axes, shape);
                prim::select(prim::binary(op, a.clone(), c), a, b)
            }
            5 => {
                let size = shape.first().map_or(1, |d| d.size);
                let limit = self.random.between(0, size);
                let inside = axes.first().map_or(prim::boolean(true), |axis| prim::lt(axis, limit));
                prim::if_then_else(inside, a, b)
            }
            6 if dtype.is_float() => self.float_call(a),
            6 | 7 if !dtype.is_float() => self.int_call(dtype, a),
            _ => {
                let x = Var::prim("x", dtype);
                let body = prim::add(&x, PrimExpr::from(&x) * b);
                Ref::new(prim::Let { var: x, value: a, body }).into()
            }
        }
    }

    fn leaf(&mut self, dtype: DataType, axes: &[PrimExpr], shape: &[Dim]) -> PrimExpr {
        match self.random.below(6) {
            0 => prim::constant(dtype, self.random.between(0, 16) as f64 / if dtype.is_float() { 8.0 } else { 1.0 }),
            1 if !axes.is_empty() => {
                let axis = axes[self.random.below(axes.len())].clone();
                prim::cast(dtype, axis)
            }
            _ => {
                let element = self.element(axes, shape);
                let from = element.dtype();
                // Floats that do not fit an integer type have no specified value there, so they are brought close first.
                let small = if from.is_float() && !dtype.is_float() {
                    let low = prim::float_of(from, if dtype.is_uint() { 0.0 } else { -100.0 });
                    prim::min(prim::max(element, low), prim::float_of(from, 100.0))
                } else {
                    element
                };
                prim::cast(dtype, small)
            }
        }
    }

    fn float_call(&mut self, a: PrimExpr) -> PrimExpr {
        const EXACT: [&str; 5] = ["fabs", "floor", "ceil", "round", "trunc"];
        const ROUGH: [&str; 6] = ["exp", "tanh", "sigmoid", "erf", "sin", "cos"];
        if self.options.transcendental && self.random.one_in(2) {
            return prim::math(self.random.pick(&ROUGH).unwrap_or(&"exp"), a);
        }
        prim::math(self.random.pick(&EXACT).unwrap_or(&"fabs"), a)
    }

    fn int_call(&mut self, dtype: DataType, a: PrimExpr) -> PrimExpr {
        let c = prim::int_of(dtype, self.random.between(1, 7));
        match self.random.below(5) {
            0 => prim::floordiv(a, c),
            1 => prim::floormod(a, c),
            2 => prim::call(dtype, "tirx.bitwise_and", vec![a, c]),
            3 => prim::call(dtype, "tirx.bitwise_xor", vec![a, c]),
            _ => prim::call(dtype, "tirx.shift_right", vec![a, c]),
        }
    }

    fn reduction(&mut self, name: String) {
        let known = self.pick();
        if known.shape.is_empty() {
            return self.elementwise(name);
        }
        let reduced = self.random.below(known.shape.len());
        let axis = te::reduce_axis(&known.shape[reduced].expr);
        let mut shape = known.shape.clone();
        shape.remove(reduced);
        let kind = self.random.below(4);
        let tensor = te::compute(name, shape.iter().map(|d| &d.expr), |axes| {
            let mut indices = axes.to_vec();
            indices.insert(reduced, axis.var());
            let factor = self.element(&indices, &known.shape);
            let value = known.tensor.at(&indices);
            match kind {
                0 if factor.dtype() == value.dtype() => te::sum(value * factor, [&axis]),
                1 => te::max(value, [&axis]),
                2 => te::min(value, [&axis]),
                _ => te::sum(value, [&axis]),
            }
        });
        self.push(tensor, shape);
    }

    fn argmax(&mut self, name: String) {
        let known = self.pick();
        let last = known.shape.len().saturating_sub(1);
        if known.shape.is_empty() {
            return self.elementwise(name);
        }
        let axis = te::reduce_axis(&known.shape[last].expr);
        let shape = known.shape[..last].to_vec();
        let dtype = known.tensor.dtype();
        let pair = te::compute_multi(name, shape.iter().map(|d| &d.expr), |axes| {
            let indices: Vec<PrimExpr> = axes.iter().cloned().chain([axis.var()]).collect();
            let start = [prim::int(-1), prim::lowest(dtype)];
            te::combine(start, [axis.var(), known.tensor.at(&indices)], [&axis], |acc, new| {
                let keep = prim::or(prim::gt(&acc[1], &new[1]), prim::eq(&acc[1], &new[1]));
                let keep = prim::and(keep, prim::ge(&acc[0], 0));
                vec![prim::select(keep.clone(), &acc[0], &new[0]), prim::select(keep, &acc[1], &new[1])]
            })
        });
        let which = self.random.below(2);
        self.push(pair[which].clone(), shape);
    }

    /// A transposition, reversal, repetition or flattening.
    fn rearrangement(&mut self, name: String) {
        let known = self.pick();
        if known.shape.len() >= 2 && self.random.one_in(2) {
            let mut shape = known.shape.clone();
            shape.reverse();
            let tensor = te::compute(name, shape.iter().map(|d| &d.expr), |axes| {
                let indices: Vec<PrimExpr> = axes.iter().rev().cloned().collect();
                known.tensor.at(&indices)
            });
            return self.push(tensor, shape);
        }
        let total = known
            .shape
            .iter()
            .fold(Dim { size: 1, expr: 1.into() }, |n, d| Dim { size: n.size * d.size, expr: n.expr * &d.expr });
        let reverse = self.random.one_in(2);
        let tensor = te::compute(name, [&total.expr], |axes| {
            let flat = if reverse { &total.expr - 1 - &axes[0] } else { axes[0].clone() };
            let mut rest = flat;
            let mut indices: Vec<PrimExpr> = Vec::new();
            for dim in known.shape.iter().rev() {
                indices.insert(0, prim::floormod(rest.clone(), &dim.expr));
                rest = prim::floordiv(rest, &dim.expr);
            }
            known.tensor.at(&indices)
        });
        self.push(tensor, vec![total]);
    }

    fn padding(&mut self, name: String) {
        let known = self.pick();
        let (before, after) = (self.random.between(0, 2), self.random.between(0, 3));
        let pad = |d: &Dim| Dim { size: d.size + before + after, expr: &d.expr + (before + after) };
        let shape: Vec<Dim> = known.shape.iter().map(pad).collect();
        let dtype = known.tensor.dtype();
        let tensor = te::compute(name, shape.iter().map(|d| &d.expr), |axes| {
            let mut inside = prim::boolean(true);
            for (axis, dim) in axes.iter().zip(&known.shape) {
                let in_dim = prim::and(prim::le(before, axis), prim::lt(axis, &dim.expr + before));
                inside = prim::and(inside, in_dim);
            }
            let indices: Vec<PrimExpr> = axes.iter().map(|axis| axis - before).collect();
            prim::if_then_else(inside, known.tensor.at(&indices), prim::constant(dtype, 0.0))
        });
        self.push(tensor, shape);
    }

    /// A running sum, written as statements.
    fn scan(&mut self, name: String) {
        let known = self.pick();
        let [dim] = known.shape.as_slice() else { return self.elementwise(name) };
        let (dtype, dim) = (known.tensor.dtype(), dim.clone());
        let outputs = [(name.clone(), vec![dim.expr.clone()], dtype)];
        let tensors = te::extern_stage(name, &[known.tensor], outputs, |inputs, outputs| {
            let i = Var::dim("i");
            let (previous, here) = (PrimExpr::from(&i) - 1, prim::load(&inputs[0], [&i]));
            let before =
                prim::if_then_else(prim::gt(&i, 0), prim::load(&outputs[0], [previous]), prim::constant(dtype, 0.0));
            Stmt::serial(i.clone(), &dim.expr, Stmt::store(&outputs[0], [&i], before + here))
        });
        self.push(tensors[0].clone(), vec![dim]);
    }

    fn finish(self, inputs: usize) -> Result<Sample, TeError> {
        // Every input is an argument, and so is the last stage; another stage may be one as well.
        let mut results = vec![self.tensors.len() - 1];
        if self.tensors.len() - inputs > 1 && self.random.one_in(3) {
            results.insert(0, inputs + self.random.below(self.tensors.len() - inputs - 1));
        }
        let chosen: Vec<&Known> = (0..inputs).chain(results.iter().copied()).map(|i| &self.tensors[i]).collect();
        let args: Vec<te::Tensor> = chosen.iter().map(|k| k.tensor.clone()).collect();
        let shapes: Vec<(Vec<i64>, DataType)> =
            chosen.iter().map(|k| (k.shape.iter().map(|d| d.size).collect(), k.tensor.dtype())).collect();
        let func = te::create_prim_func(&args)?;
        let size = |var: &Ref<Var>| self.dims.iter().find(|d| d.expr.as_var() == Some(var)).map_or(1, |d| d.size);
        let scalars = func.params[args.len()..].iter().map(size).collect();
        let (given, outputs) = shapes.split_at(inputs);
        // The elements are one choice: no failure becomes simpler by other numbers in tensors one by one.
        let mut elements = Random::new(self.random.bits());
        let filled = given.iter().filter_map(|(shape, dtype)| random_tensor(&mut elements, shape, *dtype).ok());
        Ok(Sample { func, inputs: filled.collect(), outputs: outputs.to_vec(), scalars })
    }
}

fn prim_same(a: &PrimExpr, b: &PrimExpr) -> bool {
    relaxide_ir::arith::same(a, b)
}
