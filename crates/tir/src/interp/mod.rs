//! The reference interpreter: kernels of every form, executed statement by statement.
//!
//! It is slow and meant to be obviously right: the oracle against which schedules, lowering passes and compiled kernels are
//! checked, and the way constants are folded. It accepts block form, scheduled form and lowered form alike, and checks what
//! compiled code does not: every index against its buffer's shape, every element of a scratch buffer for having been
//! written before it is read.
//!
//! # Semantics
//! Back ends compute the same, except where a value is called *unspecified*.
//!
//! | construct | meaning |
//! | --- | --- |
//! | integers | wrap around at the width of their type |
//! | `//`, `%`, truncating division | a divisor of zero and the overflow of `MIN / -1` are errors here and undefined in compiled code |
//! | `float32`, `float64` | IEEE, every operation rounded to its type; no reassociation, no contraction |
//! | `float16`, `bfloat16` | every operation and conversion is done in `float32` and rounded |
//! | `min(a, b)`, `max(a, b)` | NaN if either is; of two zeros the second, unspecified in compiled code |
//! | `//`, `%` of floats | `floor(a / b)`, `a - b * floor(a / b)` |
//! | comparisons | false with NaN, except `!=` |
//! | float to integer | truncates; unspecified out of range (here: the nearest value, and 0 for NaN) |
//! | integer to bool, float to bool | whether it differs from zero |
//! | `round`, `nearbyint` | to nearest, ties to even |
//! | shifts | the amount counts modulo the width |
//! | transcendental functions | accurate to a few units in the last place; exact results are unspecified |
//! | `select(c, a, b)` | both sides are evaluated, so an error in either is an error |
//! | `if_then_else(c, a, b)` | only the chosen side is evaluated; on vectors, loads in a side see only its lanes |
//! | predicated load | lanes that are off are zero, and their indices are not looked at |
//! | parallel loop | iterations run last to first, so that a dependence between them shows |
//! | threads of a block | one after the other up to each barrier; what two of them use of shared memory between barriers, and one writes, is an error |
//! | what threads of a warp do together | in turn for all of its threads; sums of floats are rounded once |
//! | a block's `init` | runs where every reduction axis is at its first value |
//! | scratch buffers | begin unwritten; zeroed where the back end happens to, which no program may rely on |
//!
//! A buffer of several dimensions with one index is accessed by flat index, in elements behind its first element.

mod eval;
mod exec;
mod lanes;
mod math;
mod memory;
mod pointer;
mod scalar;
mod threads;
mod warp;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use relaxide_ffi::{DataType, Ref, Tensor};
use relaxide_ir::{Buffer, Var};

use crate::PrimFunc;
use crate::lower::{fix_vscale, unit_steps};
use memory::{Memory, View};
pub use scalar::Scalar;
use scalar::ScalarOrLanes;

/// An argument of a kernel.
#[derive(Clone, Debug)]
pub enum Arg {
    /// A tensor in the host's memory; outputs are written in place.
    Tensor(Tensor),
    /// An integer (or bool) scalar.
    Int(i64),
    /// A floating-point scalar.
    Float(f64),
}

impl From<Tensor> for Arg {
    fn from(value: Tensor) -> Self {
        Arg::Tensor(value)
    }
}

impl From<&Tensor> for Arg {
    fn from(value: &Tensor) -> Self {
        Arg::Tensor(value.clone())
    }
}

impl From<i64> for Arg {
    fn from(value: i64) -> Self {
        Arg::Int(value)
    }
}

/// Why a kernel could not be executed.
#[derive(Debug, thiserror::Error)]
pub enum InterpError {
    /// An argument does not fit its parameter. The caller's fault.
    #[error("argument {index} (`{param}`): {message}")]
    Argument {
        /// Its place.
        index: usize,
        /// The parameter.
        param: String,
        /// What was expected and what was given.
        message: String,
    },
    /// The number of arguments is wrong. The caller's fault.
    #[error("the kernel takes {expected} arguments, {given} were given")]
    ArgumentCount {
        /// How many parameters there are.
        expected: usize,
        /// How many arguments there were.
        given: usize,
    },
    /// A statement about the tiles of a device. The kernel's fault.
    #[error("tiles are not interpreted: {statement}")]
    Tile {
        /// The statement as text.
        statement: String,
    },
    /// An access outside of a buffer. The kernel's fault.
    #[error("{access} of `{buffer}` at {indices:?} is outside of its shape {shape:?}")]
    OutOfBounds {
        /// `load` or `store`.
        access: &'static str,
        /// The buffer.
        buffer: String,
        /// Where.
        indices: Vec<i64>,
        /// Its shape, as it is in this execution.
        shape: Vec<i64>,
    },
    /// A scratch element was read before it was written. The kernel's fault.
    #[error("load of `{buffer}` at {indices:?}, which was not written before")]
    Unwritten {
        /// The buffer.
        buffer: String,
        /// Where.
        indices: Vec<i64>,
    },
    /// Threads of a block use an element of memory that they share, one of them to write it, and no barrier says in which order. The
    /// kernel's fault.
    #[error(
        "threads {threads:?} of a block use `{buffer}` at {indices:?}, and one writes it, without a barrier between them"
    )]
    Race {
        /// The buffer.
        buffer: String,
        /// Where.
        indices: Vec<i64>,
        /// The threads.
        threads: [u32; 2],
    },
    /// An integer division without a result. The kernel's fault.
    #[error("`{expression}` divides {a} by {b}")]
    Division {
        /// The expression.
        expression: String,
        /// Its dividend.
        a: i64,
        /// Its divisor.
        b: i64,
    },
    /// An assertion of the kernel failed.
    #[error("{kind}: {message}")]
    Assertion {
        /// The kind of the error.
        kind: String,
        /// The message.
        message: String,
    },
    /// The kernel is malformed: types that do not go together, something that is used and never defined.
    #[error("malformed kernel: {0}")]
    Malformed(String),
    /// Something that only compiled code can do.
    #[error("the interpreter has no {0}")]
    Unsupported(String),
    /// A called function failed.
    #[error(transparent)]
    Called(#[from] relaxide_ffi::Error),
}

/// What the functions of this module return.
pub type Result<T> = std::result::Result<T, InterpError>;

/// The result of an operator on two elements of type `dtype`.
pub fn binary(op: relaxide_ir::BinaryOp, dtype: DataType, a: Scalar, b: Scalar) -> Result<Scalar> {
    scalar::binary(op, dtype, a, b, || format!("{op:?}"))
}

/// The result of an element-wise intrinsic of type `dtype` on elements, the first of type `of`.
pub fn intrinsic(
    intrinsic: crate::intrin::Intrinsic,
    args: &[Scalar],
    of: DataType,
    dtype: DataType,
) -> Result<Scalar> {
    math::apply(intrinsic, args, of, dtype)
}

/// A map from nodes by their address.
type ByNode<K, V> = HashMap<Ref<K>, V, BuildHasherDefault<AddressHasher>>;

/// Hashes addresses by one multiplication: they are spread already, and lookups are most of what the interpreter does.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64(u64::from(*b)));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

/// The state of an execution.
#[derive(Default)]
struct Interp {
    vars: ByNode<Var, ScalarOrLanes>,
    memory: Memory,
    /// Parameters and dimensions, which keep their values.
    fixed: HashSet<Ref<Var>>,
    /// Buffers whose dimensions are fixed.
    views: ByNode<Buffer, Rc<View>>,
    /// Lists of indices that are not in use: a fresh one for each access would be much of its time.
    spare: Vec<Vec<i64>>,
}

/// Executes a kernel. Tensors are written in place; the result is what the kernel returned, if it did.
pub fn run(func: &PrimFunc, args: &[Arg]) -> Result<Option<Scalar>> {
    if args.len() != func.params.len() {
        return Err(InterpError::ArgumentCount { expected: func.params.len(), given: args.len() });
    }
    let fixed = fix_vscale(func);
    let func = fixed.as_ref().unwrap_or(func);
    let stepped = unit_steps(func).map_err(|why| InterpError::Malformed(why.to_string()))?;
    let func = stepped.as_ref().unwrap_or(func);
    let mut interp = Interp::default();
    interp.bind_scalars(func, args)?;
    interp.bind_tensors(func, args)?;
    interp.fixed = interp.vars.keys().cloned().collect();
    let result = interp.exec_func(&func.body)?;
    interp.memory.write_back()?;
    Ok(result)
}

/// Evaluates a scalar expression under values of its variables, as shape functions and tests do.
pub fn eval(e: &relaxide_ir::PrimExpr, values: &HashMap<Ref<Var>, i64>) -> Result<Scalar> {
    let vars = values.iter().map(|(var, value)| (var.clone(), ScalarOrLanes::One(Scalar::Int(*value)))).collect();
    let mut interp = Interp { vars, ..Interp::default() };
    interp.eval_at(e, 0)
}

impl Interp {
    fn bind_scalars(&mut self, func: &PrimFunc, args: &[Arg]) -> Result<()> {
        for (index, (param, arg)) in func.params.iter().zip(args).enumerate() {
            if func.buffers.get(index).is_some_and(Option::is_some) {
                continue;
            }
            let dtype = param.dtype();
            let value = match arg {
                Arg::Int(v) if dtype.is_integer() || dtype.is_bool() => Scalar::Int(*v).wrapped(dtype),
                Arg::Int(v) if dtype.is_float() => Scalar::Float(*v as f64).wrapped(dtype),
                Arg::Float(v) if dtype.is_float() => Scalar::Float(*v).wrapped(dtype),
                other => {
                    let message = format!("expected a scalar of type {dtype}, got {}", kind_of(other));
                    return Err(InterpError::Argument { index, param: param.name.clone(), message });
                }
            };
            self.vars.insert(param.clone(), ScalarOrLanes::One(value));
        }
        Ok(())
    }

    /// Binds symbolic dimensions first, wherever one stands alone, then checks all shapes against the tensors.
    fn bind_tensors(&mut self, func: &PrimFunc, args: &[Arg]) -> Result<()> {
        for (index, (param, arg)) in func.params.iter().zip(args).enumerate() {
            let Some(Some(buffer)) = func.buffers.get(index) else { continue };
            let fail = |message| InterpError::Argument { index, param: param.name.clone(), message };
            let Arg::Tensor(tensor) = arg else {
                return Err(fail(format!("expected a tensor, got {}", kind_of(arg))));
            };
            if tensor.dtype() != buffer.dtype || tensor.ndim() != buffer.ndim() {
                return Err(fail(format!(
                    "expected a tensor of {} dimensions of type {}, got {} of {}",
                    buffer.ndim(),
                    buffer.dtype,
                    tensor.ndim(),
                    tensor.dtype()
                )));
            }
            if !tensor.is_contiguous() {
                return Err(fail("expected a compact tensor".to_string()));
            }
            let dims = buffer.shape.iter().zip(tensor.shape());
            let strides = buffer.strides.iter().zip(tensor.strides());
            for (dim, size) in dims.chain(strides) {
                if let Some(var) = dim.as_var() {
                    self.vars.entry(var.clone()).or_insert(ScalarOrLanes::One(Scalar::Int(*size)));
                }
            }
            if let Some(offset) = buffer.elem_offset.as_var() {
                self.vars.insert(offset.clone(), ScalarOrLanes::One(Scalar::Int(0)));
            }
            self.memory.adopt(buffer, tensor)?;
        }
        for (index, buffer) in func.buffers.iter().enumerate() {
            let (Some(buffer), Some(Arg::Tensor(tensor))) = (buffer, args.get(index)) else { continue };
            let view = self.view_of(buffer)?;
            if view.shape != tensor.shape() {
                let param = func.params[index].name.clone();
                let message = format!("expected a tensor of shape {:?}, got {:?}", view.shape, tensor.shape());
                return Err(InterpError::Argument { index, param, message });
            }
        }
        Ok(())
    }
}

fn kind_of(arg: &Arg) -> String {
    match arg {
        Arg::Tensor(tensor) => format!("a tensor of shape {:?} and type {}", tensor.shape(), tensor.dtype()),
        Arg::Int(_) => "an integer".to_string(),
        Arg::Float(_) => "a float".to_string(),
    }
}
