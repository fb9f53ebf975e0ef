//! AppendInPlace: what reads a lengthened tensor reads memory with room behind it.
//!
//! ```text
//! keys = R.call_packed("vm.builtin.append", past, new, 2)      memory = append_in_place(past, new, 2)
//! y = R.call_tir(cls.attention, (q, keys), …)             →    memory1 = R.match_cast(memory, R.Tensor((n, 8, capacity, 64)))
//! gv = (y, keys)                                               y = R.call_tir(cls.attention1, (q, memory1, capacity), …)
//!                                                              keys = appended(memory1, (n, 8, p + 1, 64)); gv = (y, keys)
//!
//! def attention(q, K: Buffer((n, 8, p + 1, 64)), …)       →    def attention1(q, K: Buffer((n, 8, max(p + 1, capacity), 64)), capacity, …)
//! ```
//!
//! Kernels run over what they ran over before: only the distance between the rows of two heads is another. That their indices stay inside is proved
//! by the greater of both lengths. Reshapes of what stands in front of the axis are reshapes of the memory.
//!
//! **Leaves alone** tensors that anything but kernels, such reshapes and the function's result use, kernels that take the address of an element, and
//! those that know the length from this tensor only: the tensor stays compact there.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::pass::{PassInfo, PassResult};
use relaxide_ir::prim::{self, PrimExpr, PrimMutator, PrimVisitor};
use relaxide_ir::{Attrs, Buffer, GlobalVar, IRModule, Type, Var};
use relaxide_tir::{PrimFunc, StmtMutator, StmtVisitor};

use super::{APPEND, APPEND_IN_PLACE, APPENDED};
use crate::functor::used_vars;
use crate::op::core::CallTir;
use crate::rewrite::{Action, Rewrite, in_function, rewrite_function};
use crate::shape::{dims, dims_of, same_dims};
use crate::transform::callees::drop_uncalled;
use crate::*;

pub(in crate::transform) const PASS: PassInfo = PassInfo::new(
    "AppendInPlace",
    "What a program appends to a parameter is written behind it, and kernels read it with room behind it.",
    |module, _, _| run(module),
);

fn run(module: IRModule) -> PassResult {
    let mut b = BlockBuilder::with_module(module);
    let functions: Vec<_> = b.module().functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    let mut replaced = HashSet::new();
    for (name, func) in functions {
        let appends = AppendUses::of(&func, b.module()).in_place();
        if !appends.is_empty() {
            let mut grow = Grow { appends, roomy: HashMap::new(), kernels: HashMap::new() };
            let new = rewrite_function(&mut b, &func, &mut grow).map_err(|e| in_function(PASS.name, &name, e))?;
            b.module_mut().insert(name, new);
            replaced.extend(grow.kernels.into_keys().map(|(kernel, _)| kernel));
        }
    }
    let mut module = b.finish();
    drop_uncalled(&mut module, &replaced);
    Ok(module)
}

/// A call that appends.
#[derive(Clone)]
struct Append {
    past: Expr,
    new: Expr,
    axis: usize,
}

impl Append {
    fn of(value: &Expr) -> Option<Append> {
        let Expr::Call(call) = value else { return None };
        let (Expr::Extern(callee), [past, new, axis]) = (&call.op, call.args.as_slice()) else { return None };
        let axis = match axis {
            Expr::Prim(axis) if callee.global_symbol == APPEND => axis.value.as_int()?,
            _ => return None,
        };
        Some(Append { past: past.clone(), new: new.clone(), axis: usize::try_from(axis).ok()? })
    }
}

/// What a variable is of a tensor that was lengthened.
#[derive(Clone)]
struct GrownPart {
    /// The variable of the tensor itself.
    root: AnyVar,
    /// The axis along which it grew.
    axis: usize,
}

/// How a function uses what it lengthens.
struct AppendUses<'a> {
    module: &'a IRModule,
    parts: HashMap<AnyVar, GrownPart>,
    appended: HashSet<AnyVar>,
    /// Tensors that are used in some way that wants them compact.
    compact: HashSet<AnyVar>,
}

impl<'a> AppendUses<'a> {
    fn of(func: &Ref<Function>, module: &'a IRModule) -> AppendUses<'a> {
        let (parts, appended, compact) = Default::default();
        let mut uses = AppendUses { module, parts, appended, compact };
        uses.scan(&func.body, true);
        uses
    }

    /// The tensors that may grow where they are.
    fn in_place(self) -> HashSet<AnyVar> {
        self.appended.difference(&self.compact).cloned().collect()
    }

    fn scan(&mut self, seq: &SeqExpr, is_whole: bool) {
        let result = seq.body.as_var().filter(|_| is_whole);
        for binding in seq.blocks.iter().flat_map(|block| &block.bindings) {
            let (var, value) = (binding.var(), binding.value());
            match value {
                Expr::If(choice) => {
                    self.want_compact(&choice.condition);
                    self.scan(&choice.true_branch, false);
                    self.scan(&choice.false_branch, false);
                }
                Expr::Tuple(_) if result.as_ref() == Some(var) => {}
                _ if matches!(binding, Binding::MatchCast(_)) => self.want_compact(value),
                _ => self.value(var, value, is_whole),
            }
        }
        match &seq.body {
            Expr::Tuple(_) | Expr::Var(_) if is_whole => {}
            body => self.want_compact(body),
        }
    }

    fn value(&mut self, var: &AnyVar, value: &Expr, is_whole: bool) {
        if let Some(append) = Append::of(value).filter(|_| is_whole) {
            self.want_compact(&append.past);
            self.want_compact(&append.new);
            self.appended.insert(var.clone());
            self.parts.insert(var.clone(), GrownPart { root: var.clone(), axis: append.axis });
        } else if let Some(part) = self.reshaped(value) {
            self.parts.insert(var.clone(), part);
        } else if let Some(call) = CallTir::of(value) {
            let kernel = self.module.get_as::<PrimFunc>(&call.func.name);
            for (position, part) in self.parts_of(&call.args) {
                if !kernel.as_ref().is_some_and(|kernel| takes_room(kernel, position, part.axis)) {
                    self.compact.insert(part.root);
                }
            }
        } else {
            self.want_compact(value);
        }
    }

    fn parts_of(&self, args: &[Expr]) -> Vec<(usize, GrownPart)> {
        let part = |arg: &Expr| self.parts.get(&arg.as_var()?).cloned();
        args.iter().enumerate().filter_map(|(position, arg)| Some((position, part(arg)?))).collect()
    }

    /// What a reshape is that leaves the axis and what stands behind it as they are.
    fn reshaped(&self, value: &Expr) -> Option<GrownPart> {
        let call = as_reshape(value)?;
        let data = call.args.first()?;
        let part = self.parts.get(&data.as_var()?)?;
        let (before, after) = (dims(data)?, dims_of(&call.ty)?);
        let tail = before.get(part.axis..)?;
        let axis = after.len().checked_sub(tail.len())?;
        same_dims(tail, &after[axis..]).then(|| GrownPart { root: part.root.clone(), axis })
    }

    fn want_compact(&mut self, e: &Expr) {
        let roots = used_vars(e).into_iter().filter_map(|var| self.parts.get(&var).map(|part| part.root.clone()));
        self.compact.extend(roots.collect::<Vec<_>>());
    }
}

/// Whether a kernel reads a parameter by its indices only, and knows how long it is without it.
fn takes_room(kernel: &PrimFunc, position: usize, axis: usize) -> bool {
    let Some(Some(buffer)) = kernel.buffers.get(position) else { return false };
    let Some(length) = buffer.shape.get(axis) else { return false };
    let others = kernel.buffers.iter().enumerate().filter(|(i, _)| *i != position);
    let mut known: HashSet<Ref<Var>> = kernel.params.iter().cloned().collect();
    known.extend(
        others.filter_map(|(_, b)| b.as_ref()).flat_map(|b| b.shape.iter().filter_map(PrimExpr::as_var).cloned()),
    );
    let mut address = Mentions { var: buffer.data.clone(), found: false };
    address.visit_stmt(&kernel.body);
    buffer.strides.is_empty() && !address.found && prim::free_vars(length).iter().all(|var| known.contains(var))
}

/// Finds a variable that stands for itself.
struct Mentions {
    var: Ref<Var>,
    found: bool,
}

impl PrimVisitor for Mentions {
    fn visit_prim(&mut self, e: &PrimExpr) {
        self.found |= e.as_var() == Some(&self.var);
        self.walk_prim(e);
    }
}

impl StmtVisitor for Mentions {}

/// Which parameters of a kernel have room, each along an axis.
type Room = Vec<(usize, usize)>;

/// Memory with room behind what has elements.
#[derive(Clone)]
struct Roomy {
    capacity: Ref<Var>,
    axis: usize,
    /// The dimensions of what has elements.
    dims: Vec<PrimExpr>,
}

struct Grow {
    appends: HashSet<AnyVar>,
    /// By the variables that hold such memory.
    roomy: HashMap<AnyVar, Roomy>,
    /// Kernels that read it, by those they were made of and which parameters have room along which axis.
    kernels: HashMap<(String, Room), Ref<GlobalVar>>,
}

impl Rewrite for Grow {
    fn value(&mut self, b: &mut BlockBuilder, var: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        if self.appends.contains(var)
            && let Some(append) = Append::of(&value)
        {
            return self.append(b, &append, &value.ty()).map(Action::Replace);
        }
        if let Some(call) = as_reshape(&value)
            && let Some(roomy) = call.args.first().and_then(|data| self.roomy(data))
        {
            return self.reshape(b, call, roomy).map(Action::Replace);
        }
        match (&value, CallTir::of(&value)) {
            (Expr::Call(node), Some(call)) => self.kernel_call(b, node, &call).map(Action::Bind),
            (Expr::Tuple(_), _) => self.shown(b, value).map(Action::Bind),
            _ => Ok(Action::Bind(value)),
        }
    }

    fn result(&mut self, b: &mut BlockBuilder, result: Expr) -> Result<Expr, BuildError> {
        self.shown(b, result)
    }
}

fn as_reshape(value: &Expr) -> Option<&Ref<Call>> {
    value.as_op_call().filter(|(_, name)| *name == "reshape").map(|(call, _)| call)
}

impl Grow {
    fn roomy(&self, e: &Expr) -> Option<Roomy> {
        self.roomy.get(&e.as_var()?).cloned()
    }

    fn append(&mut self, b: &mut BlockBuilder, append: &Append, ty: &Type) -> Result<Expr, BuildError> {
        let (Some(dims), Some(tensor)) = (dims_of(ty), ty.as_tensor()) else {
            return Err(BuildError::Program("what is appended to a tensor of unknown shape is not known".into()));
        };
        let args = Expr::tuple([append.past.clone(), append.new.clone(), Expr::prim(append.axis as i64)]);
        let open = Type::tensor_ndim(dims.len() as i64, tensor.dtype);
        let callee = Expr::external(APPEND_IN_PLACE);
        let call = op::call_typed("call_builtin_with_ctx", [callee, args], Attrs::new(), vec![open])?;
        let memory = b.emit_named("memory", call)?;
        let capacity = Var::new("capacity", Type::prim(DataType::int(64)));
        let mut long = dims.clone();
        long[append.axis] = PrimExpr::Var(capacity.clone());
        let memory = b.match_cast(memory, Type::tensor(long, tensor.dtype))?;
        self.note(&memory, Roomy { capacity, axis: append.axis, dims });
        Ok(memory)
    }

    fn note(&mut self, memory: &Expr, roomy: Roomy) {
        if let Some(var) = memory.as_var() {
            self.roomy.insert(var, roomy);
        }
    }

    /// The memory in another shape of what stands in front of the axis.
    fn reshape(&mut self, b: &mut BlockBuilder, call: &Call, roomy: Roomy) -> Result<Expr, BuildError> {
        let (Some(dims), Some(memory)) = (call.args.get(1).and_then(shape_values), call.args.first()) else {
            return Err(BuildError::Program("the shape of a reshape is not known".into()));
        };
        let axis = dims.len() - (roomy.dims.len() - roomy.axis);
        let mut long = dims.clone();
        long[axis] = PrimExpr::Var(roomy.capacity.clone());
        let view = b.op("reshape", [memory.clone(), Expr::shape(long)], Attrs::new())?;
        self.note(&view, Roomy { axis, dims, ..roomy });
        Ok(view)
    }

    /// A call whose kernel knows of the room.
    fn kernel_call(&mut self, b: &mut BlockBuilder, node: &Ref<Call>, call: &CallTir) -> Result<Expr, BuildError> {
        let found = call.args.iter().enumerate().filter_map(|(i, arg)| Some((i, self.roomy(arg)?)));
        let found: Vec<(usize, Roomy)> = found.collect();
        if found.is_empty() {
            return Ok(node.clone().into());
        }
        let key = (call.func.name.clone(), found.iter().map(|(i, roomy)| (*i, roomy.axis)).collect::<Vec<_>>());
        let callee = match self.kernels.get(&key) {
            Some(callee) => callee.clone(),
            None => {
                let kernel = b
                    .module()
                    .get_as::<PrimFunc>(&call.func.name)
                    .ok_or_else(|| BuildError::Program(format!("the module has no kernel {:?}", call.func.name)))?;
                let callee = b.add_kernel(with_room(&kernel, &key.1, call.args.len()), &call.func.name);
                self.kernels.insert(key, callee.clone());
                callee
            }
        };
        let capacities = found.into_iter().map(|(_, roomy)| Expr::prim(PrimExpr::Var(roomy.capacity)));
        let args = Expr::tuple(call.args.iter().cloned().chain(capacities).collect::<Vec<_>>());
        Ok(Ref::new(node.rebuilt(node.op.clone(), vec![Expr::Global(callee), args])).into())
    }

    /// A result, with the parts that have elements in the place of memory.
    fn shown(&self, b: &mut BlockBuilder, result: Expr) -> Result<Expr, BuildError> {
        match &result {
            Expr::Tuple(tuple) if tuple.fields.iter().any(|field| self.roomy(field).is_some()) => {
                let fields = tuple.fields.iter().map(|field| self.shown(b, field.clone()));
                Ok(Expr::tuple(fields.collect::<Result<Vec<_>, _>>()?))
            }
            _ => match self.roomy(&result) {
                Some(roomy) => {
                    let dtype = result.ty().as_tensor().map_or(DataType::void(), |tensor| tensor.dtype);
                    let (shape, ty) = (Expr::shape(roomy.dims.clone()), Type::tensor(roomy.dims, dtype));
                    let attrs = Attrs::new();
                    let call = Call {
                        op: Expr::external(APPENDED),
                        args: vec![result, shape],
                        attrs,
                        ty_args: vec![ty.clone()],
                        ty,
                        span: None,
                    };
                    b.emit_named("appended", Ref::new(call))
                }
                None => Ok(result),
            },
        }
    }
}

fn shape_values(e: &Expr) -> Option<Vec<PrimExpr>> {
    match e {
        Expr::Shape(shape) => Some(shape.values.clone()),
        _ => None,
    }
}

/// A kernel whose parameters have room along axes, and which is told how long they are there behind its first `inputs` parameters.
fn with_room(kernel: &PrimFunc, room: &[(usize, usize)], inputs: usize) -> PrimFunc {
    let mut new = kernel.clone();
    let mut longer = Longer(HashMap::new());
    for (count, (position, axis)) in room.iter().enumerate() {
        let Some(Some(buffer)) = kernel.buffers.get(*position) else { continue };
        let capacity = Var::new("capacity", Type::prim(DataType::int(64)));
        let mut own = Buffer::clone(buffer);
        own.shape[*axis] = prim::max(&own.shape[*axis], PrimExpr::Var(capacity.clone()));
        let own = Ref::new(own);
        longer.0.insert(buffer.clone(), own.clone());
        new.buffers[*position] = Some(own);
        new.params.insert(inputs + count, capacity);
        new.buffers.insert(inputs + count, None);
    }
    new.attrs.0.shift_remove("global_symbol");
    new.body = longer.mutate_stmt(&kernel.body);
    new
}

/// Puts longer buffers in the place of others.
struct Longer(HashMap<Ref<Buffer>, Ref<Buffer>>);

impl PrimMutator for Longer {
    fn mutate_buffer_use(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        self.0.get(buffer).unwrap_or(buffer).clone()
    }
}

impl StmtMutator for Longer {}
