//! One kernel of the kernels that a primitive function calls.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::prim::{self, PrimExpr, VarMap, free_vars};
use relaxide_ir::{Attrs, Buffer, IRModule, TensorType, Type, Var};
use relaxide_tir::functor::undefined_vars;
use relaxide_tir::stmt::{SBlock, SBlockRealize};
use relaxide_tir::{PrimFunc, Stmt};

use super::instantiate::{Instantiate, Names};
use crate::constant::as_scalar;
use crate::op::core::output_types;
use crate::*;

/// Why a primitive function is not one kernel. The program's fault: FuseOps makes none such.
#[derive(Debug, thiserror::Error)]
pub(in crate::transform) enum MergeError {
    /// A binding is no call of a kernel of the module.
    #[error("`{0}` is bound to something else than a call of a kernel, a tuple or a field")]
    NotAKernel(String),
    /// A call does not fit its kernel.
    #[error("the call of `{kernel}` does not fit it: {reason}")]
    Call {
        /// The kernel.
        kernel: String,
        /// What is wrong.
        reason: Misfit,
    },
    /// A parameter or a result is of a type that no kernel takes.
    #[error("`{0}` is neither a tensor of known shape, nor a shape, nor a scalar, nor a tuple of such")]
    Type(String),
    /// A parameter is returned, or a value is returned twice.
    #[error("buffer `{0}` is returned, but is a parameter or is returned already")]
    Result(String),
    /// A dimension that nothing binds.
    #[error("symbolic variable `{0}` is bound by no parameter")]
    Unbound(String),
}

/// Why a call does not fit its kernel.
#[derive(Debug, thiserror::Error)]
pub(in crate::transform) enum Misfit {
    /// More or fewer arguments than parameters.
    #[error("it takes {wanted} arguments and gets {found}")]
    Count {
        /// The parameters.
        wanted: usize,
        /// The arguments.
        found: usize,
    },
    /// A result has the memory of an argument that has none.
    #[error("a result overwrites what is no tensor")]
    Overwritten,
    /// A tensor of another type or shape.
    #[error("`{param}` and `{given}` differ in {what}")]
    Differs {
        /// The parameter.
        param: String,
        /// The argument.
        given: String,
        /// What differs.
        what: &'static str,
    },
    /// A tensor where a scalar is expected, or the other way around.
    #[error("`{0}` is given a value of another kind")]
    Kind(String),
}

/// Where an argument of the kernel comes from.
#[derive(Clone, Debug)]
pub(in crate::transform) enum Argument {
    /// A parameter of the function, or a field of one.
    Field {
        /// Which.
        param: usize,
        /// The fields on the way.
        path: Vec<usize>,
    },
    /// A dimension of a shape parameter.
    Dim {
        /// Which parameter.
        param: usize,
        /// Which dimension.
        dim: usize,
    },
    /// A constant of the function.
    Constant(Expr),
}

/// A kernel, and how it is called.
pub(in crate::transform) struct Merged {
    pub(in crate::transform) kernel: PrimFunc,
    pub(in crate::transform) arguments: Vec<Argument>,
    /// For each result the argument that it overwrites, or -1; `None` where none does.
    pub(super) inplace: Option<Vec<i64>>,
}

/// What a variable of the function stands for.
#[derive(Clone, Debug)]
enum FusedValue {
    Buffer(Ref<Buffer>),
    Scalar(PrimExpr),
    Literal(PrimExpr),
    Tuple(Vec<FusedValue>),
    /// A shape, which calls do not take.
    Shape,
}

/// The kernel under construction.
#[derive(Default)]
struct Merger {
    values: HashMap<AnyVar, FusedValue>,
    inputs: Vec<(Ref<Var>, Option<Ref<Buffer>>)>,
    arguments: Vec<Argument>,
    /// Dimensions of shape parameters, and where they come from.
    dims: Vec<(Ref<Var>, Argument)>,
    constants: HashMap<Expr, Ref<Buffer>>,
    scratch: Vec<Ref<Buffer>>,
    overwritten: HashSet<Ref<Buffer>>,
    names: Names,
    body: Vec<Stmt>,
}

/// Makes one kernel of a primitive function.
pub(in crate::transform) fn merge(module: &IRModule, func: &Function) -> Result<Merged, MergeError> {
    let mut merger = Merger::default();
    for (i, param) in func.params.iter().enumerate() {
        let value = merger.param(param, &param.ty, i, &[])?;
        merger.values.insert(AnyVar::Var(param.clone()), value);
    }
    for binding in func.body.blocks.iter().flat_map(|b| &b.bindings) {
        let Binding::Var(bound) = binding else {
            return Err(MergeError::NotAKernel(binding.var().name().to_string()));
        };
        let value = merger.bound(module, bound)?;
        merger.values.insert(bound.var.clone(), value);
    }
    let result = merger.value(&func.body.body)?;
    merger.finish(&result)
}

impl Merger {
    /// What a parameter, or a field of one, stands for.
    fn param(&mut self, param: &Ref<Var>, ty: &Type, index: usize, path: &[usize]) -> Result<FusedValue, MergeError> {
        let argument = || Argument::Field { param: index, path: path.to_vec() };
        match ty {
            Type::Tensor(tensor) => {
                let hint = path.iter().fold(param.name.clone(), |name, i| format!("{name}_{i}"));
                let buffer = self.buffer(&hint, tensor)?;
                self.inputs.push((handle(&buffer), Some(buffer.clone())));
                self.arguments.push(argument());
                Ok(FusedValue::Buffer(buffer))
            }
            Type::Tuple(tuple) => {
                let field = |(i, ty): (usize, &Type)| {
                    let path: Vec<usize> = path.iter().copied().chain([i]).collect();
                    self.param(param, ty, index, &path)
                };
                Ok(FusedValue::Tuple(tuple.fields.iter().enumerate().map(field).collect::<Result<_, _>>()?))
            }
            Type::Shape(shape) if path.is_empty() => {
                for (dim, value) in shape.values.iter().flatten().enumerate() {
                    if let Some(var) = value.as_var() {
                        self.dims.push((var.clone(), Argument::Dim { param: index, dim }));
                    }
                }
                Ok(FusedValue::Shape)
            }
            Type::Prim(_) if path.is_empty() => {
                self.inputs.push((param.clone(), None));
                self.arguments.push(argument());
                Ok(FusedValue::Scalar(PrimExpr::from(param)))
            }
            _ => Err(MergeError::Type(param.name.clone())),
        }
    }

    fn buffer(&mut self, hint: &str, ty: &TensorType) -> Result<Ref<Buffer>, MergeError> {
        let dims = ty.shape.as_ref().ok_or_else(|| MergeError::Type(hint.to_string()))?;
        Ok(Buffer::new(self.names.buffer(hint), ty.dtype, dims))
    }

    /// What an operand stands for.
    fn value(&mut self, e: &Expr) -> Result<FusedValue, MergeError> {
        match e {
            Expr::Prim(p) => Ok(FusedValue::Scalar(p.value.clone())),
            Expr::Constant(c) => match as_scalar(&c.value) {
                Some(literal) => Ok(FusedValue::Literal(literal)),
                None => self.constant(e, c).map(FusedValue::Buffer),
            },
            Expr::Tuple(t) => Ok(FusedValue::Tuple(t.fields.iter().map(|f| self.value(f)).collect::<Result<_, _>>()?)),
            Expr::TupleGetItem(t) => match self.value(&t.tuple)? {
                FusedValue::Tuple(fields) => {
                    let field = usize::try_from(t.index).ok().and_then(|i| fields.get(i).cloned());
                    field.ok_or_else(|| MergeError::NotAKernel(format!("field {}", t.index)))
                }
                _ => Err(MergeError::NotAKernel(format!("field {}", t.index))),
            },
            other => {
                let var = other.as_var().ok_or_else(|| MergeError::NotAKernel("an operand".into()))?;
                self.values.get(&var).cloned().ok_or_else(|| MergeError::NotAKernel(var.name().to_string()))
            }
        }
    }

    /// A constant that is passed by the caller.
    fn constant(&mut self, e: &Expr, c: &Constant) -> Result<Ref<Buffer>, MergeError> {
        if let Some(buffer) = self.constants.get(e) {
            return Ok(buffer.clone());
        }
        let Type::Tensor(ty) = &c.ty else { return Err(MergeError::Type("a constant".into())) };
        let buffer = self.buffer("param", ty)?;
        self.inputs.push((handle(&buffer), Some(buffer.clone())));
        self.arguments.push(Argument::Constant(e.clone()));
        self.constants.insert(e.clone(), buffer.clone());
        Ok(buffer)
    }

    /// What a binding's variable stands for; statements of a kernel are added.
    fn bound(&mut self, module: &IRModule, bound: &VarBinding) -> Result<FusedValue, MergeError> {
        let name = bound.var.name();
        let Expr::Call(call) = &bound.value else { return self.value(&bound.value) };
        let not_a_kernel = || MergeError::NotAKernel(name.to_string());
        let (Some("call_tir" | "call_tir_inplace"), [Expr::Global(callee), Expr::Tuple(args)]) =
            (call.op_name(), call.args.as_slice())
        else {
            return Err(not_a_kernel());
        };
        let kernel = module.get_as::<PrimFunc>(&callee.name).ok_or_else(not_a_kernel)?;
        let args = args.fields.iter().map(|a| self.value(a)).collect::<Result<Vec<_>, _>>()?;
        let inplace = call.attrs.ints("inplace_indices").unwrap_or_default();
        let (mut outputs, mut made) = (Vec::new(), Vec::new());
        let mut passed = args.clone();
        for (i, ty) in output_types(&call.ty).iter().enumerate() {
            let over = inplace.get(i).and_then(|at| usize::try_from(*at).ok());
            outputs.push(match over {
                Some(at) => self.overwrite(&callee.name, args.get(at))?,
                None => {
                    let Type::Tensor(tensor) = ty else { return Err(MergeError::Type(name.to_string())) };
                    let buffer = self.buffer(name, tensor)?;
                    made.push(buffer.clone());
                    passed.push(FusedValue::Buffer(buffer.clone()));
                    buffer
                }
            });
        }
        // Behind what the kernel itself allocates.
        self.instantiate(&callee.name, &kernel, &passed)?;
        self.scratch.extend(made);
        let mut values: Vec<FusedValue> = outputs.into_iter().map(FusedValue::Buffer).collect();
        match &call.ty {
            Type::Tuple(_) => Ok(FusedValue::Tuple(values)),
            _ => values.pop().ok_or_else(not_a_kernel),
        }
    }

    fn overwrite(&mut self, kernel: &str, arg: Option<&FusedValue>) -> Result<Ref<Buffer>, MergeError> {
        let Some(FusedValue::Buffer(buffer)) = arg else {
            return Err(misfit(kernel, Misfit::Overwritten));
        };
        self.overwritten.insert(buffer.clone());
        Ok(buffer.clone())
    }

    /// Adds the statements of a kernel over some arguments.
    fn instantiate(&mut self, name: &str, kernel: &PrimFunc, args: &[FusedValue]) -> Result<(), MergeError> {
        if args.len() != kernel.params.len() {
            return Err(misfit(name, Misfit::Count { wanted: kernel.params.len(), found: args.len() }));
        }
        let (vars, buffers, literals) = (VarMap::new(), HashMap::new(), HashMap::new());
        let mut copy = Instantiate { vars, buffers, literals, names: &mut self.names };
        for ((param, buffer), arg) in kernel.params.iter().zip(&kernel.buffers).zip(args) {
            give(&mut copy, param, buffer.as_ref(), arg).map_err(|reason| misfit(name, reason))?;
        }
        let body = copy.body(&kernel.body, &mut self.scratch);
        self.body.push(body);
        Ok(())
    }

    /// The kernel that writes a result.
    fn finish(mut self, result: &FusedValue) -> Result<Merged, MergeError> {
        let mut outputs = Vec::new();
        let mut inplace = Vec::new();
        for buffer in results(result)? {
            let input = self.inputs.iter().position(|(_, b)| b.as_ref() == Some(&buffer));
            match input {
                Some(at) if self.overwritten.contains(&buffer) && !inplace.contains(&(at as i64)) => {
                    inplace.push(at as i64);
                }
                None if !outputs.contains(&buffer) => {
                    self.scratch.retain(|b| *b != buffer);
                    outputs.push(buffer);
                    inplace.push(-1);
                }
                _ => return Err(MergeError::Result(buffer.name.clone())),
            }
        }
        let scalars = self.scalars(&outputs)?;
        let outputs = outputs.iter().map(|b| (handle(b), Some(b.clone())));
        let scalars = scalars.into_iter().map(|v| (v, None));
        let (params, buffers) = self.inputs.iter().cloned().chain(scalars).chain(outputs).unzip();
        let kernel = PrimFunc {
            params,
            ret_type: Type::void(),
            buffers,
            attrs: Attrs::new().with("tirx.noalias", true),
            body: root(self.scratch, Stmt::seq(self.body)),
        };
        let inplace = inplace.iter().any(|at| *at >= 0).then_some(inplace);
        Ok(Merged { kernel, arguments: self.arguments, inplace })
    }

    /// The variables that follow the inputs: those that are used and that no buffer binds as a dimension.
    fn scalars(&mut self, outputs: &[Ref<Buffer>]) -> Result<Vec<Ref<Var>>, MergeError> {
        let known: Vec<&Ref<Buffer>> = self.inputs.iter().filter_map(|(_, b)| b.as_ref()).chain(outputs).collect();
        let mut bound: HashSet<Ref<Var>> =
            known.iter().flat_map(|b| &b.shape).filter_map(PrimExpr::as_var).cloned().collect();
        bound.extend(self.inputs.iter().filter(|(_, b)| b.is_none()).map(|(v, _)| v.clone()));
        bound.extend(known.iter().chain(&self.scratch.iter().collect::<Vec<_>>()).map(|b| b.data.clone()));
        let in_shapes = known.iter().copied().chain(&self.scratch).flat_map(|b| &b.shape).flat_map(free_vars);
        let in_body = self.body.iter().flat_map(undefined_vars);
        let mut scalars = Vec::new();
        let mut arguments = Vec::new();
        for var in in_shapes.chain(in_body) {
            if bound.insert(var.clone()) {
                let (var, argument) = self
                    .dims
                    .iter()
                    .find(|(dim, _)| *dim == var)
                    .ok_or_else(|| MergeError::Unbound(var.name.clone()))?;
                scalars.push(var.clone());
                arguments.push(argument.clone());
            }
        }
        self.arguments.extend(arguments);
        Ok(scalars)
    }
}

/// Puts an argument in the place of a kernel's parameter; the error says why it does not fit.
fn give(copy: &mut Instantiate, param: &Ref<Var>, own: Option<&Ref<Buffer>>, arg: &FusedValue) -> Result<(), Misfit> {
    match (own, arg) {
        (None, FusedValue::Scalar(e) | FusedValue::Literal(e)) => {
            copy.vars.insert(param.clone(), prim::cast(param.dtype(), e));
        }
        (Some(own), FusedValue::Literal(e)) => {
            own.shape.iter().filter_map(PrimExpr::as_var).for_each(|dim| bind(&mut copy.vars, dim, &1.into()));
            copy.literals.insert(own.clone(), prim::cast(own.dtype, e));
        }
        (Some(own), FusedValue::Buffer(given)) => {
            let differs = |what| Misfit::Differs { param: own.name.clone(), given: given.name.clone(), what };
            if own.dtype != given.dtype || own.ndim() != given.ndim() {
                return Err(differs("type"));
            }
            for (dim, value) in own.shape.iter().zip(&given.shape) {
                if dim.as_int().zip(value.as_int()).is_some_and(|(a, b)| a != b) {
                    return Err(differs("shape"));
                }
                dim.as_var().into_iter().for_each(|var| bind(&mut copy.vars, var, value));
            }
            copy.vars.insert(own.data.clone(), PrimExpr::from(&given.data));
            copy.buffers.insert(own.clone(), given.clone());
        }
        _ => return Err(Misfit::Kind(param.name.clone())),
    }
    Ok(())
}

/// The buffers of a result, tuples flattened.
fn results(value: &FusedValue) -> Result<Vec<Ref<Buffer>>, MergeError> {
    match value {
        FusedValue::Buffer(buffer) => Ok(vec![buffer.clone()]),
        FusedValue::Tuple(fields) => {
            let fields = fields.iter().map(results).collect::<Result<Vec<_>, _>>()?;
            Ok(fields.into_iter().flatten().collect())
        }
        _ => Err(MergeError::Type("the result".into())),
    }
}

fn bind(vars: &mut VarMap, dim: &Ref<Var>, value: &PrimExpr) {
    vars.entry(dim.clone()).or_insert_with(|| value.clone());
}

fn misfit(kernel: &str, reason: Misfit) -> MergeError {
    MergeError::Call { kernel: kernel.to_string(), reason }
}

/// The parameter that stands for a buffer.
pub(in crate::transform) fn handle(buffer: &Buffer) -> Ref<Var> {
    Var::new(format!("p_{}", buffer.name), Type::prim(relaxide_ir::DataType::handle()))
}

/// A block that holds scratch buffers and statements.
pub(in crate::transform) fn root(alloc_buffers: Vec<Ref<Buffer>>, body: Stmt) -> Stmt {
    let block = SBlock {
        iter_vars: Vec::new(),
        reads: Vec::new(),
        writes: Vec::new(),
        name: "root".to_string(),
        alloc_buffers,
        match_buffers: Vec::new(),
        annotations: Attrs::new(),
        init: None,
        body,
    };
    Ref::new(SBlockRealize { iter_values: Vec::new(), predicate: prim::boolean(true), block: Ref::new(block) }).into()
}
