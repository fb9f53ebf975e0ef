//! Executing kernels over known tensors, fast enough for weights.
//!
//! The reference interpreter looks up every variable and every buffer by name at every element. Here a kernel is read as
//! [stages](relaxide_tir::schedule::Stage), or as [loops] where it is none, and their expressions are brought into a form in which variables are
//! numbered and buffers are arrays; what remains to be done for an element is arithmetic, and that is the interpreter's.

mod loops;

use std::collections::HashMap;

use relaxide_ffi::{Any, DataType, Ref, Tensor};
use relaxide_ir::prim::PrimExpr;
use relaxide_ir::{BinaryOp, Buffer, Var};
use relaxide_tir::PrimFunc;
use relaxide_tir::interp::{self, InterpError, Scalar};
use relaxide_tir::intrin::Intrinsic;
use relaxide_tir::schedule::affine::loads;
use relaxide_tir::schedule::{Item, Program, Stage};

use self::loops::Loops;

/// The largest buffer that is worked on.
const MAX_BYTES: i64 = 1 << 30;

/// An argument of a kernel.
pub(super) enum Argument {
    Tensor(Tensor),
    Scalar(Scalar),
}

impl Argument {
    /// A literal as an argument.
    pub(super) fn scalar(e: &PrimExpr) -> Option<Argument> {
        literal(e).map(Argument::Scalar)
    }

    /// As a compiled kernel takes it.
    pub(super) fn value(&self) -> Any {
        match self {
            Argument::Tensor(tensor) => tensor.clone().into(),
            Argument::Scalar(Scalar::Int(number)) => (*number).into(),
            Argument::Scalar(Scalar::Float(number)) => (*number).into(),
        }
    }
}

fn literal(e: &PrimExpr) -> Option<Scalar> {
    match e {
        PrimExpr::Int(n) => Some(Scalar::Int(n.value).wrapped(n.dtype)),
        PrimExpr::Float(n) => Some(Scalar::Float(n.value).wrapped(n.dtype)),
        _ => None,
    }
}

/// An expression over numbered variables.
enum Numbered {
    Known(Scalar),
    Slot(usize),
    Cast {
        from: DataType,
        to: DataType,
        value: Box<Numbered>,
    },
    Binary {
        op: BinaryOp,
        dtype: DataType,
        a: Box<Numbered>,
        b: Box<Numbered>,
    },
    Not(Box<Numbered>),
    /// Both sides of a `select` are evaluated, of an `if_then_else` one.
    Choice {
        lazy: bool,
        parts: Box<[Numbered; 3]>,
    },
    Let {
        slot: usize,
        value: Box<Numbered>,
        body: Box<Numbered>,
    },
    Load {
        buffer: usize,
        at: Vec<Numbered>,
    },
    Intrinsic {
        which: Intrinsic,
        of: DataType,
        dtype: DataType,
        args: Vec<Numbered>,
    },
}

/// One buffer.
struct Array {
    dtype: DataType,
    dims: Vec<i64>,
}

/// One stage: its loops, and what is done in the innermost.
struct Nest {
    /// How many values each axis takes; axis `i` is variable `i`.
    extents: Vec<i64>,
    /// How many of them are spatial.
    spatial: usize,
    output: usize,
    at: Vec<Numbered>,
    /// What an element is before the first value, and how values are combined.
    reduction: Option<(Numbered, BinaryOp)>,
    value: Numbered,
    slots: usize,
    work: i64,
}

/// A kernel, ready to be executed.
pub(super) struct Evaluator {
    arrays: Vec<Array>,
    /// The array of each tensor argument.
    params: Vec<Option<usize>>,
    parts: Vec<KernelPart>,
}

/// A part of a kernel.
enum KernelPart {
    Stage(Nest),
    Loops(Loops),
}

impl Evaluator {
    /// Prepares a kernel for arguments of certain shapes; `None` where it is not made of stages or the arguments do not fit.
    pub(super) fn new(kernel: &PrimFunc, args: &[Argument]) -> Option<Evaluator> {
        if kernel.params.len() != args.len() {
            return None;
        }
        let program = Program::read(kernel);
        let mut reader = Numbering::default();
        let mut params = Vec::with_capacity(args.len());
        for ((param, buffer), arg) in kernel.params.iter().zip(&kernel.buffers).zip(args) {
            params.push(match (buffer, arg) {
                (Some(buffer), Argument::Tensor(tensor)) => Some(reader.tensor(buffer, tensor)?),
                (None, Argument::Scalar(value)) => {
                    reader.known.insert(param.clone(), value.wrapped(param.dtype()));
                    None
                }
                _ => return None,
            });
        }
        for buffer in &program.intermediates {
            let dims = buffer.shape.iter().map(|d| reader.int(d)).collect::<Option<Vec<i64>>>()?;
            reader.array(buffer, dims)?;
        }
        let part = |item: &Item| match item {
            Item::Stage(stage) => reader.nest(stage).map(KernelPart::Stage),
            Item::Opaque(stmt) => Loops::of(&mut reader, stmt).map(KernelPart::Loops),
        };
        let parts = program.items.iter().map(part).collect::<Option<Vec<KernelPart>>>()?;
        Some(Evaluator { arrays: reader.arrays, params, parts })
    }

    /// About how many operations it takes.
    pub(super) fn work(&self) -> i64 {
        let work = |part: &KernelPart| match part {
            KernelPart::Stage(nest) => nest.work,
            KernelPart::Loops(loops) => loops.work,
        };
        self.parts.iter().map(work).fold(0, i64::saturating_add)
    }

    /// Carries it out; tensors behind the first `inputs` arguments are written.
    pub(super) fn run(&self, args: &[Argument], inputs: usize) -> Result<(), InterpError> {
        let size =
            |array: &Array| usize::try_from(array.dims.iter().product::<i64>()).unwrap_or(0) * array.dtype.bytes();
        let mut memory: Vec<Vec<u8>> = self.arrays.iter().map(|array| vec![0; size(array)]).collect();
        for (param, arg) in self.params.iter().zip(args).take(inputs) {
            if let (Some(at), Argument::Tensor(tensor)) = (param, arg) {
                memory[*at] = tensor.to_bytes()?;
            }
        }
        for part in &self.parts {
            match part {
                KernelPart::Stage(nest) => nest.run(&self.arrays, &mut memory)?,
                KernelPart::Loops(loops) => loops.run(&self.arrays, &mut memory)?,
            }
        }
        for (param, arg) in self.params.iter().zip(args).skip(inputs) {
            if let (Some(at), Argument::Tensor(tensor)) = (param, arg) {
                tensor.copy_from_bytes(&memory[*at])?;
            }
        }
        Ok(())
    }
}

impl Array {
    fn load(&self, bytes: &[u8], at: usize) -> Result<Scalar, InterpError> {
        let size = self.dtype.bytes();
        let element = bytes.get(at * size..(at + 1) * size).and_then(|b| Scalar::from_bytes(self.dtype, b));
        element.ok_or_else(|| InterpError::Unsupported(format!("elements of type {}", self.dtype)))
    }

    fn store(&self, bytes: &mut [u8], at: usize, value: Scalar) -> Result<(), InterpError> {
        let size = self.dtype.bytes();
        let element = bytes.get_mut(at * size..(at + 1) * size);
        match (element, value) {
            (Some(element), Scalar::Float(v)) if self.dtype == DataType::float(32) => {
                element.copy_from_slice(&(v as f32).to_le_bytes());
            }
            (Some(element), value) => element.copy_from_slice(&value.to_bytes(self.dtype)),
            (None, _) => return Err(InterpError::Unsupported(format!("elements of type {}", self.dtype))),
        }
        Ok(())
    }
}

/// Brings expressions into their numbered form.
#[derive(Default)]
struct Numbering {
    known: HashMap<Ref<Var>, Scalar>,
    slots: HashMap<Ref<Var>, usize>,
    buffers: HashMap<Ref<Buffer>, usize>,
    arrays: Vec<Array>,
    /// Nodes of the expression that is being read.
    nodes: i64,
}

impl Numbering {
    fn array(&mut self, buffer: &Ref<Buffer>, dims: Vec<i64>) -> Option<usize> {
        if !buffer.strides.is_empty() || !buffer.elem_offset.is_int(0) || buffer.dtype.lanes != 1 {
            return None;
        }
        let bytes = dims.iter().try_fold(buffer.dtype.bytes() as i64, |n, d| n.checked_mul(*d))?;
        // Types of elements that are no whole bytes have no place of their own.
        if !(0..=MAX_BYTES).contains(&bytes) || u32::from(buffer.dtype.bits) % 8 != 0 && !buffer.dtype.is_bool() {
            return None;
        }
        self.arrays.push(Array { dtype: buffer.dtype, dims });
        self.buffers.insert(buffer.clone(), self.arrays.len() - 1);
        Some(self.arrays.len() - 1)
    }

    fn tensor(&mut self, buffer: &Ref<Buffer>, tensor: &Tensor) -> Option<usize> {
        if tensor.dtype() != buffer.dtype || tensor.ndim() != buffer.ndim() {
            return None;
        }
        for (dim, size) in buffer.shape.iter().zip(tensor.shape()) {
            let bound = dim.as_var().map(|var| *self.known.entry(var.clone()).or_insert(Scalar::Int(*size)));
            let expected = bound.or(dim.as_int().map(Scalar::Int));
            if expected.is_some_and(|e| e != Scalar::Int(*size)) {
                return None;
            }
        }
        self.array(buffer, tensor.shape().to_vec())
    }

    fn int(&mut self, e: &PrimExpr) -> Option<i64> {
        if !loads(e).is_empty() {
            return None;
        }
        let node = self.node(e)?;
        let mut slots = vec![Scalar::Int(0); self.slots.len()];
        match node.eval(&[], &mut slots, &[]).ok()? {
            Scalar::Int(v) => Some(v),
            Scalar::Float(_) => None,
        }
    }

    fn nest(&mut self, stage: &Stage) -> Option<Nest> {
        self.slots.clear();
        let mut extents = Vec::new();
        for axis in stage.spatial.iter().chain(&stage.reduce) {
            extents.push(self.int(&axis.extent)?);
        }
        for (slot, axis) in stage.spatial.iter().chain(&stage.reduce).enumerate() {
            self.slots.insert(axis.var.clone(), slot);
        }
        self.nodes = 0;
        let value = self.node(&stage.value)?;
        let at = stage.indices.iter().map(|i| self.node(i)).collect::<Option<Vec<_>>>()?;
        let reduction = match &stage.reduction {
            Some(r) => Some((self.node(&r.init)?, r.op)),
            None => None,
        };
        let points = extents.iter().try_fold(1i64, |n, e| n.checked_mul(*e))?;
        let work = points.checked_mul(self.nodes + 4)?;
        let output = *self.buffers.get(&stage.output)?;
        let (spatial, slots) = (stage.spatial.len(), self.slots.len());
        Some(Nest { extents, spatial, output, at, reduction, value, slots, work })
    }

    /// A place for the value of a variable.
    fn name(&mut self, var: &Ref<Var>) -> usize {
        let slot = self.slots.len();
        *self.slots.entry(var.clone()).or_insert(slot)
    }

    fn boxed(&mut self, e: &PrimExpr) -> Option<Box<Numbered>> {
        self.node(e).map(Box::new)
    }

    fn node(&mut self, e: &PrimExpr) -> Option<Numbered> {
        self.nodes += 1;
        if e.dtype().lanes > 1 {
            return None;
        }
        Some(match e {
            PrimExpr::Int(_) | PrimExpr::Float(_) => Numbered::Known(literal(e)?),
            PrimExpr::Var(var) => match self.known.get(var) {
                Some(value) => Numbered::Known(*value),
                None => Numbered::Slot(*self.slots.get(var)?),
            },
            PrimExpr::Cast(n) => Numbered::Cast { from: n.value.dtype(), to: n.dtype, value: self.boxed(&n.value)? },
            PrimExpr::Binary(n) => {
                Numbered::Binary { op: n.op, dtype: n.a.dtype(), a: self.boxed(&n.a)?, b: self.boxed(&n.b)? }
            }
            PrimExpr::Not(n) => Numbered::Not(self.boxed(&n.a)?),
            PrimExpr::Select(n) => self.choice(false, &n.condition, &n.true_value, &n.false_value)?,
            PrimExpr::Let(n) => {
                let value = self.boxed(&n.value)?;
                Numbered::Let { slot: self.name(&n.var), value, body: self.boxed(&n.body)? }
            }
            PrimExpr::Load(n) if n.predicate.is_none() && n.indices.len() == n.buffer.ndim() => {
                let at = n.indices.iter().map(|i| self.node(i)).collect::<Option<Vec<_>>>()?;
                Numbered::Load { buffer: *self.buffers.get(&n.buffer)?, at }
            }
            PrimExpr::Call(n) => match (Intrinsic::of_call(&n.op)?, n.args.as_slice()) {
                (Intrinsic::IfThenElse, [c, t, f]) => self.choice(true, c, t, f)?,
                (which, args) => {
                    let of = args.first().map_or(n.dtype, PrimExpr::dtype);
                    let args = args.iter().map(|a| self.node(a)).collect::<Option<Vec<_>>>()?;
                    Numbered::Intrinsic { which, of, dtype: n.dtype, args }
                }
            },
            _ => return None,
        })
    }

    fn choice(&mut self, lazy: bool, c: &PrimExpr, t: &PrimExpr, f: &PrimExpr) -> Option<Numbered> {
        Some(Numbered::Choice { lazy, parts: Box::new([self.node(c)?, self.node(t)?, self.node(f)?]) })
    }
}

impl Nest {
    fn run(&self, arrays: &[Array], memory: &mut [Vec<u8>]) -> Result<(), InterpError> {
        let mut slots = vec![Scalar::Int(0); self.slots];
        if self.extents.contains(&0) && self.reduction.is_none() || self.extents[..self.spatial].contains(&0) {
            return Ok(());
        }
        let (outer, inner) = self.extents.split_at(self.spatial);
        let mut point = vec![0i64; self.extents.len()];
        loop {
            set(&mut slots, &point);
            let at = position(&arrays[self.output].dims, &self.at, arrays, &mut slots, memory)?;
            let value = match &self.reduction {
                None => self.value.eval(arrays, &mut slots, memory)?,
                Some((init, op)) => self.reduce(init, *op, inner, &mut point, arrays, &mut slots, memory)?,
            };
            arrays[self.output].store(&mut memory[self.output], at, value)?;
            if !advance(&mut point[..self.spatial], outer) {
                return Ok(());
            }
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the state of one loop, which nothing else shares")]
    fn reduce(
        &self,
        init: &Numbered,
        op: BinaryOp,
        inner: &[i64],
        point: &mut [i64],
        arrays: &[Array],
        slots: &mut [Scalar],
        memory: &[Vec<u8>],
    ) -> Result<Scalar, InterpError> {
        let dtype = arrays[self.output].dtype;
        let mut total = init.eval(arrays, slots, memory)?;
        if inner.contains(&0) {
            return Ok(total);
        }
        point[self.spatial..].fill(0);
        loop {
            set(slots, point);
            let value = self.value.eval(arrays, slots, memory)?;
            total = interp::binary(op, dtype, total, value)?;
            if !advance(&mut point[self.spatial..], inner) {
                return Ok(total);
            }
        }
    }
}

fn set(slots: &mut [Scalar], point: &[i64]) {
    slots.iter_mut().zip(point).for_each(|(slot, v)| *slot = Scalar::Int(*v));
}

/// The next point, last axis first; `false` behind the last.
fn advance(point: &mut [i64], extents: &[i64]) -> bool {
    for (i, extent) in point.iter_mut().zip(extents).rev() {
        *i += 1;
        if *i < *extent {
            return true;
        }
        *i = 0;
    }
    false
}

/// The place of an element in an array.
fn position(
    dims: &[i64],
    at: &[Numbered],
    arrays: &[Array],
    slots: &mut [Scalar],
    memory: &[Vec<u8>],
) -> Result<usize, InterpError> {
    let mut flat = 0;
    for (dim, index) in dims.iter().zip(at) {
        match index.eval(arrays, slots, memory)? {
            Scalar::Int(i) if i >= 0 && i < *dim => flat = flat * dim + i,
            _ => return Err(InterpError::Malformed("an index outside of its buffer".into())),
        }
    }
    Ok(flat as usize)
}

impl Numbered {
    fn eval(&self, arrays: &[Array], slots: &mut [Scalar], memory: &[Vec<u8>]) -> Result<Scalar, InterpError> {
        Ok(match self {
            Numbered::Known(value) => *value,
            Numbered::Slot(slot) => slots[*slot],
            Numbered::Cast { from, to, value } => value.eval(arrays, slots, memory)?.convert(*from, *to),
            Numbered::Binary { op, dtype, a, b } => {
                let (a, b) = (a.eval(arrays, slots, memory)?, b.eval(arrays, slots, memory)?);
                interp::binary(*op, *dtype, a, b)?
            }
            Numbered::Not(a) => Scalar::Int(i64::from(!a.eval(arrays, slots, memory)?.is_true())),
            Numbered::Choice { lazy, parts } => {
                let [condition, t, f] = &**parts;
                let condition = condition.eval(arrays, slots, memory)?.is_true();
                let (chosen, other) = if condition { (t, f) } else { (f, t) };
                if !lazy {
                    other.eval(arrays, slots, memory)?;
                }
                chosen.eval(arrays, slots, memory)?
            }
            Numbered::Let { slot, value, body } => {
                let value = value.eval(arrays, slots, memory)?;
                slots[*slot] = value;
                body.eval(arrays, slots, memory)?
            }
            Numbered::Load { buffer, at } => {
                let flat = position(&arrays[*buffer].dims, at, arrays, slots, memory)?;
                arrays[*buffer].load(&memory[*buffer], flat)?
            }
            Numbered::Intrinsic { which, of, dtype, args } => {
                let args = args.iter().map(|a| a.eval(arrays, slots, memory)).collect::<Result<Vec<_>, _>>()?;
                interp::intrinsic(*which, &args, of.element(), dtype.element())?
            }
        })
    }
}
