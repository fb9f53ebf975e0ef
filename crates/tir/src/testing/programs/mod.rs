//! Random programs: statements of every kind, as one would write them by hand.
//!
//! Where [`sample`](super::sample) makes graphs of computes, this makes loops of every kind, blocks, choices, endless loops
//! with counters, loops and kernels that end early, scratch, views with strides and offsets, explicit vectors, all element types and nearly all intrinsics.
//! Programs are in bounds and say what every value is: whatever executes them must agree bit for bit. So
//!
//! * indices are loop counters of the dimension's own extent, or anything brought into it;
//! * divisors are never zero, nor -1 below the smallest number;
//! * floats are brought close before they become integers;
//! * an iteration of a parallel or vectorized loop reads of what the loop writes its own element only;
//! * index arithmetic stays small, for index arithmetic is promised not to overflow.
//!
//! Transcendental functions, whose last bits are unspecified, are applied to what is stored last, in an output that nothing
//! reads: [`Program::ulps`] says how far it may be off. A float product may be fused with a sum that takes it, which rounds
//! once instead of twice; a program that has such products says so by [`SEPARATE_ROUNDING`](crate::SEPARATE_ROUNDING).
//!
//! Asked for mistakes ([`ProgramOptions::mistakes`]), it makes programs of which some access, now and then, goes outside of
//! its buffer.

mod early_exits;
mod expressions;
mod nests;
mod vectors;

use relaxide_ffi::{DataType, Ref, Tensor};
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{Buffer, Var};

use super::{Dim, Random, Sample, random_tensor};
use crate::interp::Scalar;
use crate::schedule::declare_views;
use crate::{PrimFunc, Stmt};

/// What random programs may contain.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProgramOptions {
    /// Indices that are wrong, in one program of two.
    pub mistakes: bool,
}

/// A program with arguments to run it on.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program, its inputs, and what it writes.
    pub sample: Sample,
    /// How far the elements of each output may be off, in units of the last place.
    pub ulps: Vec<f64>,
}

impl Program {
    /// The first element that is off by more than it may be: output and place.
    pub fn difference(&self, a: &[Vec<Scalar>], b: &[Vec<Scalar>]) -> Option<(usize, usize)> {
        let outputs = a.iter().zip(b).zip(&self.sample.outputs).zip(&self.ulps).enumerate();
        outputs.into_iter().find_map(|(output, (((a, b), (_, dtype)), ulps))| {
            let at = a.iter().zip(b).position(|(a, b)| off_by(*dtype, *a, *b) > *ulps);
            at.or((a.len() != b.len()).then_some(a.len().min(b.len()))).map(|at| (output, at))
        })
    }
}

/// How far two elements are apart, in units of the last place of the second.
fn off_by(dtype: DataType, a: Scalar, b: Scalar) -> f64 {
    let (Scalar::Float(a), Scalar::Float(b)) = (a, b) else { return if a == b { 0.0 } else { f64::INFINITY } };
    if a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan() {
        return 0.0;
    }
    if a.is_nan() || b.is_nan() || b.is_infinite() || a.is_infinite() {
        return f64::INFINITY;
    }
    let (mantissa, least) = match (dtype.code, dtype.bits) {
        (DataType::BFLOAT, _) => (7, -126),
        (_, 16) => (10, -14),
        (_, 32) => (23, -126),
        _ => (52, -1022),
    };
    let exponent = if b == 0.0 { least } else { (b.abs().log2().floor() as i32).max(least) };
    // Zeros of different signs are half a unit apart: not equal, and near enough where anything may be off.
    ((a - b).abs() / 2f64.powi(exponent - mantissa)).max(0.5)
}

/// A random program.
pub fn program(random: &mut Random, options: ProgramOptions) -> Program {
    let index = if random.one_in(2) { DataType::int(32) } else { DataType::int(64) };
    let mut writer = ProgramWriter {
        random,
        index,
        dims: Vec::new(),
        readable: Vec::new(),
        scalars: Vec::new(),
        scope: ProgramScope::default(),
        names: 0,
        data_indices: 0,
        mistake: false,
        fused: false,
    };
    writer.mistake = options.mistakes && writer.random.one_in(2);
    writer.choose_dims();
    writer.write()
}

/// A buffer and its dimensions.
#[derive(Clone, Debug)]
struct Known {
    buffer: Ref<Buffer>,
    shape: Vec<Dim>,
}

/// A counter: an index expression with values in `0 .. dim`.
#[derive(Clone, Debug)]
struct Counter {
    value: PrimExpr,
    dim: Dim,
}

/// What may be used at a place of the program.
#[derive(Clone, Debug, Default)]
struct ProgramScope {
    counters: Vec<Counter>,
    /// Names of values.
    values: Vec<Ref<Var>>,
    /// The element that is being written, where it has a value already.
    own: Option<(Ref<Buffer>, Vec<PrimExpr>)>,
    /// The buffer that is being written, of which nothing else may be read.
    writing: Option<Ref<Buffer>>,
}

struct ProgramWriter<'r> {
    random: &'r mut Random,
    /// The type of counters.
    index: DataType,
    dims: Vec<Dim>,
    /// Buffers that are filled.
    readable: Vec<Known>,
    /// Scalar parameters and their values.
    scalars: Vec<(Ref<Var>, i64)>,
    scope: ProgramScope,
    names: usize,
    /// How many elements the one at hand is an index of, by way of others.
    data_indices: usize,
    /// Whether some index is still to be made wrong.
    mistake: bool,
    /// Whether a product might be fused with a sum.
    fused: bool,
}

const DTYPES: [DataType; 13] = [
    DataType::float(32),
    DataType::int(32),
    DataType::int(64),
    DataType::bool(),
    DataType::int(8),
    DataType::int(16),
    DataType::uint(8),
    DataType::uint(16),
    DataType::uint(32),
    DataType::uint(64),
    DataType::float(64),
    DataType::float(16),
    DataType::bfloat16(),
];

impl ProgramWriter<'_> {
    fn choose_dims(&mut self) {
        const SIZES: [i64; 9] = [1, 2, 3, 4, 5, 7, 8, 16, 17];
        for i in 0..3 {
            let size = self.random.pick(&SIZES).copied().unwrap_or(1);
            let symbolic = self.random.one_in(3);
            let expr = if symbolic {
                PrimExpr::Var(Var::prim(format!("n{i}"), self.index))
            } else {
                prim::int_of(self.index, size)
            };
            self.dims.push(Dim { size, expr });
        }
    }

    fn name(&mut self, stem: &str) -> String {
        self.names += 1;
        format!("{stem}{}", self.names)
    }

    fn dtype(&mut self) -> DataType {
        self.random.pick(&DTYPES).copied().unwrap_or(DTYPES[0])
    }

    fn shape(&mut self, largest_rank: usize) -> Vec<Dim> {
        let rank = self.random.below(largest_rank + 1);
        (0..rank).map(|_| self.dims[self.random.below(self.dims.len())].clone()).collect()
    }

    fn new_buffer(&mut self, name: String, dtype: DataType, shape: Vec<Dim>, scope: &str) -> Known {
        let buffer = Buffer::scoped(name, dtype, shape.iter().map(|d| &d.expr), scope);
        Known { buffer, shape }
    }

    fn write(mut self) -> Program {
        let mut params = Vec::new();
        let inputs = 1 + self.random.below(3);
        for i in 0..inputs {
            let (dtype, shape) = (self.dtype(), self.shape(3));
            params.push(self.new_buffer(format!("A{i}"), dtype, shape, "global"));
        }
        self.readable = params.clone();
        if self.random.one_in(3) {
            let value = self.random.between(-9, 9);
            self.scalars.push((Var::prim("s", DataType::int(64)), value));
        }
        let mut body = Vec::new();
        let mut ulps = Vec::new();
        for i in 0..1 + self.random.below(2) {
            for _ in 0..self.random.below(3) {
                self.scratch(&mut body);
            }
            let (dtype, shape) = (self.dtype(), self.shape(3));
            let output = self.new_buffer(format!("B{i}"), dtype, shape, "global");
            params.push(output.clone());
            body.push(self.fill(&output));
            if self.random.one_in(12) {
                body.push(self.sometimes_return());
            }
            let rough = self.random.one_in(4).then(|| self.rough_end(&output)).flatten();
            match rough {
                Some((stmt, off)) => {
                    body.push(stmt);
                    ulps.push(off);
                }
                None => {
                    self.readable.push(output);
                    ulps.push(0.0);
                }
            }
        }
        self.finish(params, inputs, Stmt::seq(body), ulps)
    }

    /// Scratch of the whole program, filled, and perhaps changed in place.
    fn scratch(&mut self, body: &mut Vec<Stmt>) {
        let (dtype, shape) = (self.dtype(), self.shape(2));
        let scope = if self.random.one_in(3) { "local" } else { "global" };
        let name = self.name("T");
        let constant = shape.iter().all(|d| d.expr.as_int().is_some());
        let scratch = self.new_buffer(name, dtype, shape, if constant { scope } else { "global" });
        body.push(Stmt::alloc(&scratch.buffer));
        body.push(self.fill(&scratch));
        self.readable.push(scratch.clone());
        if self.random.one_in(4) {
            body.push(self.change(&scratch));
        }
    }

    fn finish(self, params: Vec<Known>, inputs: usize, body: Stmt, ulps: Vec<f64>) -> Program {
        // Dimensions that no tensor's shape gives by itself are arguments of their own.
        let mut scalars = self.scalars.clone();
        for dim in &self.dims {
            let given = |k: &Known| k.shape.iter().any(|d| d.expr == dim.expr);
            if let Some(var) = dim.expr.as_var()
                && !params.iter().any(given)
            {
                scalars.push((var.clone(), dim.size));
            }
        }
        let buffers: Vec<Ref<Buffer>> = params.iter().map(|k| k.buffer.clone()).collect();
        let vars: Vec<Ref<Var>> = scalars.iter().map(|(var, _)| var.clone()).collect();
        // As the text has to: what is not declared is declared where it is printed.
        let mut func = declare_views(&PrimFunc::over_buffers(&buffers, &vars, body));
        if self.fused {
            func.attrs = func.attrs.clone().with(crate::SEPARATE_ROUNDING, true);
        }
        let mut elements = Random::new(self.random.bits());
        let sizes = |k: &Known| k.shape.iter().map(|d| d.size).collect::<Vec<i64>>();
        let (given, written) = params.split_at(inputs);
        let filled = given.iter().filter_map(|k| any_tensor(&mut elements, &sizes(k), k.buffer.dtype).ok());
        let outputs = written.iter().map(|k| (sizes(k), k.buffer.dtype)).collect();
        let values = scalars.iter().map(|(_, value)| *value).collect();
        Program { sample: Sample { func, inputs: filled.collect(), outputs, scalars: values }, ulps }
    }
}

/// A tensor of random elements, extreme ones among them.
fn any_tensor(random: &mut Random, shape: &[i64], dtype: DataType) -> relaxide_ffi::Result<Tensor> {
    const EXTREME: [f64; 8] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e30, -1e300, 1e-40, 65504.0];
    let tensor = random_tensor(random, shape, dtype)?;
    let mut bytes = tensor.to_bytes()?;
    for element in bytes.chunks_exact_mut(dtype.bytes()) {
        let extreme = match dtype.is_float() {
            true if random.one_in(10) => Scalar::Float(random.pick(&EXTREME).copied().unwrap_or(0.0)).wrapped(dtype),
            false if random.one_in(6) => Scalar::Int(random.bits() as i64).wrapped(dtype),
            _ => continue,
        };
        element.copy_from_slice(&extreme.to_bytes(dtype));
    }
    Tensor::from_bytes(&bytes, shape, dtype)
}
