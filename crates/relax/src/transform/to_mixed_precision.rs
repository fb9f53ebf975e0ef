//! ToMixedPrecision: what is faster in 16 bits is computed in 16 bits.
//!
//! ```text
//! lv = R.matmul(x, w)                lv = R.astype(x, "float16")
//! lv1 = R.nn.relu(lv)                lv1 = R.astype(w, "float16")
//! gv = R.nn.softmax(lv1)       →     lv2 = R.matmul(lv, lv1, out_dtype="float16")
//!                                    lv3 = R.nn.relu(lv2)
//!                                    lv4 = R.astype(lv3, "float32")
//!                                    gv = R.nn.softmax(lv4)
//! ```
//!
//! Each operator's row says whether it computes in 16 bits *always* (products, convolutions), *follows* its arguments, or
//! *never* does (sums of many terms, exponentials that may overflow). `out_dtype` is the type in which products are summed;
//! what they give is stored in 16 bits. An operator that follows computes in 16 bits where all its floating-point arguments
//! are in 16 bits or constants. A parameter that is read in 16 bits only is cast at the begin of the block, other operands where they are read.
//!
//! Whole numbers, which is what integers are that were converted and what is computed of nothing else, stay in 32 bits with the products and
//! sums of them: who adds up integers in floats counts on their being exact, and in 16 bits they are not, or overflow.
//!
//! **Works on** dataflow blocks. **Keeps** the types of what leaves a block, of the function's parameters (except those of
//! `fp16_input_names`) and of its result.
//!
//! **Refuses** an `out_dtype` other than `float16` and `float32`.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::pass::{ParamDefault, ParamKind, PassError, PassInfo, PassParam, PassResult};
use relaxide_ir::{Attrs, IRModule, TensorType, Type, Var};

use super::fuse_by_pattern::strings;
use crate::op::MixedPrecision;
use crate::rewrite::{Action, ExprMap, Rewrite, in_function, rewrite_seq};
use crate::*;

const NAME: &str = "ToMixedPrecision";

pub(super) const PASS: PassInfo =
    PassInfo::new(NAME, "What is faster in 16 bits is computed in 16 bits.", |module, _, args| {
        let out = args.dtype("out_dtype").unwrap_or(DataType::float(32));
        if out != low() && out != full() {
            return Err(PassError::new(NAME, format!("out_dtype is float16 or float32, not {out}")));
        }
        run(module, out, &strings(args.get("fp16_input_names")).into_iter().collect())
    })
    .params(&[
        PassParam::new(
            "out_dtype",
            ParamKind::DType,
            ParamDefault::Str("float32"),
            "The type that products are summed in.",
        ),
        PassParam::optional("fp16_input_names", ParamKind::Strs, "Parameters that become float16."),
    ]);

fn low() -> DataType {
    DataType::float(16)
}

fn full() -> DataType {
    DataType::float(32)
}

fn run(module: IRModule, out: DataType, inputs: &HashSet<String>) -> PassResult {
    let mut b = BlockBuilder::with_module(module);
    let functions: Vec<_> = b.module().functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    for (name, func) in functions {
        let new = function(&mut b, &func, out, inputs).map_err(|e| in_function(NAME, &name, e))?;
        b.module_mut().insert(name, new);
    }
    Ok(b.finish())
}

fn function(
    b: &mut BlockBuilder,
    func: &Ref<Function>,
    out: DataType,
    inputs: &HashSet<String>,
) -> Result<Ref<Function>, BuildError> {
    let mut replaced = ExprMap::new();
    let mut params = func.params.clone();
    for param in params.iter_mut().filter(|p| inputs.contains(&p.name)) {
        let new = Var::new(param.name.clone(), with_dtype(&param.ty, low()));
        replaced.insert(param.clone().into(), new.clone().into());
        *param = new;
    }
    func.params.iter().for_each(|p| b.reserve(&p.name));
    functor::bound_names(&func.body).iter().for_each(|n| b.reserve(n));
    let early = early_casts(func, inputs);
    let mut mixed = Mixed { out, casts: HashMap::new(), whole: HashSet::new(), early };
    let body = rewrite_seq(b, &func.body, &mut mixed, &mut replaced)?;
    Ok(Ref::new(Function { params, body, ..Function::clone(func) }))
}

/// Parameters that nothing but operators that always compute in 16 bits reads, by the first variable of each dataflow block
/// that reads them: weights mostly, which are cast at once.
fn early_casts(func: &Function, inputs: &HashSet<String>) -> HashMap<AnyVar, Vec<Expr>> {
    let blocks = &func.body.blocks;
    let bindings = || blocks.iter().flat_map(|block| &block.bindings);
    let only_low = |param: &AnyVar| {
        let reads = |e: &Expr| functor::used_vars(e).contains(param);
        !reads(&func.body.body) && bindings().all(|b| is_low_operand(b.value(), param) || !reads(b.value()))
    };
    let params = func.params.iter().filter(|p| has_dtype(&p.ty, full()) && p.ty.as_tensor().is_some());
    let params = params.filter(|p| !inputs.contains(&p.name)).map(|p| AnyVar::Var(p.clone()));
    let params: Vec<AnyVar> = params.filter(only_low).collect();
    let mut early = HashMap::new();
    for block in blocks.iter().filter(|block| block.dataflow) {
        let first = block.bindings.iter().find(|b| matches!(b, Binding::Var(_)));
        let read = |param: &&AnyVar| block.bindings.iter().any(|b| is_low_operand(b.value(), param));
        if let Some(first) = first {
            early.insert(first.var().clone(), params.iter().filter(read).map(|p| p.clone().into()).collect());
        }
    }
    early
}

/// Whether a value is a call of an operator that always computes in 16 bits and gets a variable as an argument of its own.
fn is_low_operand(value: &Expr, var: &AnyVar) -> bool {
    let Expr::Call(call) = value else { return false };
    let is_var = |arg: &Expr| arg.as_var().as_ref() == Some(var);
    is_always(call) && call.args.iter().any(is_var) && call.args.iter().all(is_mixed)
}

fn is_always(call: &Call) -> bool {
    let def = call.op_name().and_then(op::lookup);
    def.is_some_and(|d| matches!(d.mixed_precision, MixedPrecision::Always(_)))
}

struct Mixed {
    out: DataType,
    /// What was cast in this block, and to what.
    casts: HashMap<(Expr, DataType), Expr>,
    /// Values that are integers, as numbers with a point.
    whole: HashSet<AnyVar>,
    /// What is cast in front of a variable's binding.
    early: HashMap<AnyVar, Vec<Expr>>,
}

impl Rewrite for Mixed {
    fn retypes(&self) -> bool {
        false
    }

    fn begin_block(&mut self, _: bool) {
        self.casts.clear();
    }

    fn value(&mut self, b: &mut BlockBuilder, var: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        for param in self.early.remove(var).unwrap_or_default() {
            self.cast_tensor(b, param, low())?;
        }
        if matches!(&value, Expr::Call(call) if self.gives_whole(call)) {
            self.whole.insert(var.clone());
        }
        let new = match &value {
            Expr::Call(call) if b.in_dataflow() => self.call(b, call)?,
            Expr::Call(call) => self.keep(b, call)?,
            _ => value.clone(),
        };
        let stays = matches!(var, AnyVar::Dataflow(_)) && b.in_dataflow();
        let new = match (stays, &new) {
            (false, _) => self.like(b, new, var.ty())?,
            (true, Expr::Call(call)) if is_always(call) && has_dtype(&call.ty, full()) && !self.has_whole(call) => {
                self.to(b, new.clone(), low())?
            }
            (true, _) => new,
        };
        Ok(Action::Bind(new))
    }

    fn cast(&mut self, b: &mut BlockBuilder, cast: Ref<MatchCast>) -> Result<(), BuildError> {
        let value = self.like(b, cast.value.clone(), &cast.ty)?;
        let value = b.normalize_arg(value)?;
        b.push_binding(Ref::new(MatchCast { var: cast.var.clone(), value, ty: cast.ty.clone() }).into())
    }
}

impl Mixed {
    fn has_whole(&self, call: &Call) -> bool {
        call.args.iter().any(|arg| self.is_whole(arg))
    }

    fn is_whole(&self, arg: &Expr) -> bool {
        arg.as_var().is_some_and(|var| self.whole.contains(&var))
    }

    /// Whether a call makes numbers of integers alone: of tensors of such, and of what was made of such before.
    fn gives_whole(&self, call: &Call) -> bool {
        let def = call.op_name().and_then(op::lookup);
        let follows = def.is_some_and(|d| matches!(d.mixed_precision, MixedPrecision::Follow));
        let is_integer = |arg: &Expr| tensors(&arg.ty()).iter().all(|t| t.dtype.is_int() || t.dtype.is_uint());
        let mut given = call.args.iter().filter(|arg| !tensors(&arg.ty()).is_empty()).peekable();
        follows
            && has_dtype(&call.ty, full())
            && given.peek().is_some()
            && given.all(|arg| is_integer(arg) || self.is_whole(arg) || is_whole_constant(arg))
    }

    fn call(&mut self, b: &mut BlockBuilder, call: &Ref<Call>) -> Result<Expr, BuildError> {
        let Some(def) = call.op_name().and_then(op::lookup) else { return self.keep(b, call) };
        let is_low = match def.mixed_precision {
            MixedPrecision::Always(_) => call.args.iter().all(is_mixed) && !self.has_whole(call),
            MixedPrecision::Follow => call.args.iter().all(may_be_low) && call.args.iter().any(is_mixed_tensor),
            MixedPrecision::Never => return self.keep(b, call),
        };
        if !is_low {
            return self.keep(b, call);
        }
        let args = call.args.iter().map(|a| self.to(b, a.clone(), low())).collect::<Result<Vec<_>, _>>()?;
        let attrs = def.mixed_precision.with_out_dtype(&call.attrs, self.out);
        Ok(op::call_typed(def.name, args, attrs, call.ty_args.clone())?)
    }

    /// The call with arguments in full precision.
    fn keep(&mut self, b: &mut BlockBuilder, call: &Ref<Call>) -> Result<Expr, BuildError> {
        let args = call.args.iter().map(|a| self.to(b, a.clone(), full())).collect::<Result<Vec<_>, _>>()?;
        if args == call.args {
            return Ok(call.clone().into());
        }
        let callee = call.op_name().map(str::to_string);
        Ok(match callee {
            Some(name) => op::call_typed(&name, args, call.attrs.clone(), call.ty_args.clone())?,
            None => call.with_args(args, call.ty.clone()).into(),
        })
    }

    /// A value whose tensors of 16 or 32 bits have this type.
    fn to(&mut self, b: &mut BlockBuilder, value: Expr, dtype: DataType) -> Result<Expr, BuildError> {
        let ty = with_dtype(&value.ty(), dtype);
        // Parameters that the user gives in 16 bits are read so by every operator that may.
        self.like(b, value, &ty)
    }

    /// A value whose tensors of 16 or 32 bits have the types of `ty`'s.
    fn like(&mut self, b: &mut BlockBuilder, value: Expr, ty: &Type) -> Result<Expr, BuildError> {
        match (value.ty(), ty) {
            (Type::Tensor(have), Type::Tensor(want)) => {
                let mixed = |t: &TensorType| t.dtype == low() || t.dtype == full();
                if have.dtype == want.dtype || !mixed(&have) || !mixed(want) {
                    return Ok(value);
                }
                self.cast_tensor(b, value, want.dtype)
            }
            (Type::Tuple(have), Type::Tuple(want)) if have.fields.len() == want.fields.len() => {
                let same = have.fields.iter().zip(&want.fields).all(|(h, w)| same_dtypes(h, w));
                if same {
                    return Ok(value);
                }
                let value = b.normalize_arg(value)?;
                let mut fields = Vec::with_capacity(want.fields.len());
                for (i, want) in want.fields.iter().enumerate() {
                    let field = match &value {
                        Expr::Tuple(tuple) => {
                            tuple.fields.get(i).cloned().unwrap_or_else(|| Expr::field(value.clone(), i))
                        }
                        _ => b.emit(Expr::field(value.clone(), i))?,
                    };
                    let field = self.like(b, field, want)?;
                    fields.push(b.normalize_arg(field)?);
                }
                Ok(Expr::tuple(fields))
            }
            _ => Ok(value),
        }
    }

    /// A cast; of an operand, it is bound once a block.
    fn cast_tensor(&mut self, b: &mut BlockBuilder, value: Expr, dtype: DataType) -> Result<Expr, BuildError> {
        let key = (value.clone(), dtype);
        if let Some(known) = self.casts.get(&key) {
            return Ok(known.clone());
        }
        let is_operand = !matches!(value, Expr::Call(_) | Expr::TupleGetItem(_));
        let value = b.normalize_arg(value)?;
        let cast = op::call("astype", [value], Attrs::new().with("dtype", dtype))?;
        if !is_operand {
            return Ok(cast);
        }
        let cast = b.emit(cast)?;
        if b.in_dataflow() {
            self.casts.insert(key, cast.clone());
        }
        Ok(cast)
    }
}

/// The tensors of a type.
fn tensors(ty: &Type) -> Vec<Ref<TensorType>> {
    match ty {
        Type::Tensor(t) => vec![t.clone()],
        Type::Tuple(t) => t.fields.iter().flat_map(tensors).collect(),
        _ => Vec::new(),
    }
}

fn has_dtype(ty: &Type, dtype: DataType) -> bool {
    tensors(ty).iter().any(|t| t.dtype == dtype)
}

/// Whether all tensors of an argument have 16 or 32 bits.
fn is_mixed(arg: &Expr) -> bool {
    tensors(&arg.ty()).iter().all(|t| t.dtype == low() || t.dtype == full())
}

fn is_mixed_tensor(arg: &Expr) -> bool {
    let tensors = tensors(&arg.ty());
    !tensors.is_empty() && is_mixed(arg)
}

/// Whether an argument is in 16 bits already, or costs nothing to be: a constant, or no floating-point tensor.
fn may_be_low(arg: &Expr) -> bool {
    match arg {
        Expr::Constant(c) => c.value.dtype() == full() || c.value.dtype() == low(),
        Expr::Tuple(tuple) => tuple.fields.iter().all(may_be_low),
        _ => tensors(&arg.ty()).iter().all(|t| t.dtype == low()),
    }
}

/// A constant of which every element is a whole number.
fn is_whole_constant(arg: &Expr) -> bool {
    let Expr::Constant(c) = arg else { return false };
    c.value.dtype() == full() && c.value.to_vec::<f32>().is_ok_and(|values| values.iter().all(|x| x.fract() == 0.0))
}

fn same_dtypes(a: &Type, b: &Type) -> bool {
    let (a, b) = (tensors(a), tensors(b));
    a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a.dtype == b.dtype)
}

/// A type whose tensors of 16 or 32 bits have an element type.
fn with_dtype(ty: &Type, dtype: DataType) -> Type {
    match ty {
        Type::Tensor(t) if t.dtype == low() || t.dtype == full() => Type::Tensor(Ref::new(TensorType {
            shape: t.shape.clone(),
            dtype,
            ndim: t.ndim,
            vdevice: t.vdevice.clone(),
        })),
        Type::Tuple(t) => Type::tuple(t.fields.iter().map(|f| with_dtype(f, dtype)).collect::<Vec<_>>()),
        _ => ty.clone(),
    }
}
