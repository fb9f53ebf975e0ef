//! SpecializePrimFuncBasedOnCallSite: kernels learn where their tensors live and how large they are from who calls them.
//!
//! ```text
//! x: R.Tensor((2, 3), vdevice="opencl:0:global.texture")
//! gv = R.call_tir(cls.add, (x, y), …)
//!
//! def add(x: T.Buffer((n, 3)), …)      →      def add(x: T.Buffer((2, 3), scope="global.texture"), …):  # {"scoped": 1}
//! ```
//!
//! The buffer of a tensor gets the memory scope of the tensor's device, and the kernel's symbolic dimensions the numbers that
//! the call has in their place. A tensor without a device leaves its buffer where it is.
//!
//! **Refuses** a call whose tensors do not fit the kernel. **Differs from TVM**: two calls that differ get a kernel each (TVM
//! keeps what the last one says for both), and a kernel that nothing is new to is left alone.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::pass::{PassInfo, PassResult};
use relaxide_ir::prim::{PrimExpr, PrimMutator, VarMap};
use relaxide_ir::{Buffer, GlobalVar, IRModule, Type, Var};
use relaxide_tir::{PrimFunc, Stmt, StmtMutator};

use crate::op::core::{CallTir, output_types};
use crate::rewrite::{Action, Rewrite, rewrite_module};
use crate::*;

const NAME: &str = "SpecializePrimFuncBasedOnCallSite";

/// The attribute of a kernel that was specialized.
const SCOPED_ATTR: &str = "scoped";

pub(super) const PASS: PassInfo = PassInfo::new(
    NAME,
    "Kernels get the memory scopes and dimensions of what they are called with.",
    |module, _, _| run(module),
);

fn run(module: IRModule) -> PassResult {
    rewrite_module(NAME, module, &mut Specialize { made: HashMap::new() })
}

/// What a call says of a parameter: the scope of its memory, and its dimensions.
type Said = (String, Vec<PrimExpr>);

/// What a call says of each parameter.
type Site = Vec<Option<Said>>;

struct Specialize {
    /// For each kernel, what calls said, and the kernel that came of it.
    made: HashMap<String, Vec<(Site, Ref<GlobalVar>)>>,
}

impl Rewrite for Specialize {
    fn value(&mut self, b: &mut BlockBuilder, _: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let (Some(call), Expr::Call(node)) = (CallTir::of(&value), &value) else { return Ok(Action::Bind(value)) };
        let name = &call.func.name;
        let known = self.made.get(name);
        let Some(kernel) = b.module().get_as::<PrimFunc>(name) else { return Ok(Action::Bind(value)) };
        let types: Vec<Type> = call.args.iter().map(Expr::ty).chain(output_types(&node.ty)).collect();
        let Some(site) = site(&types, &kernel) else { return Ok(Action::Bind(value)) };
        if let Some((_, callee)) = known.into_iter().flatten().find(|(said, _)| *said == site) {
            return Ok(Action::Bind(if callee.name == *name { value } else { with_callee(node, callee) }));
        }
        let misfit = |why: Misfit| BuildError::Program(format!("the call of `{name}` does not fit it: {why}"));
        if types.len() > kernel.params.len() {
            return Err(misfit(Misfit::Count { takes: kernel.params.len(), gets: types.len() }));
        }
        let Some(new) = specialized(&kernel, &site).map_err(misfit)? else { return Ok(Action::Bind(value)) };
        let first = known.is_none();
        let callee = if first {
            b.module_mut().insert(name.clone(), Ref::new(new));
            call.func.clone()
        } else {
            let mut new = new;
            new.attrs.0.shift_remove("global_symbol");
            let own = b.module().fresh_name(name);
            b.module_mut().insert(own.clone(), Ref::new(new));
            GlobalVar::new(own)
        };
        self.made.entry(name.clone()).or_default().push((site, callee.clone()));
        Ok(Action::Bind(if first { value } else { with_callee(node, &callee) }))
    }
}

/// The same call of another kernel.
fn with_callee(call: &Ref<Call>, callee: &Ref<GlobalVar>) -> Expr {
    let args = std::iter::once(Expr::Global(callee.clone())).chain(call.args.iter().skip(1).cloned()).collect();
    Ref::new(call.rebuilt(call.op.clone(), args)).into()
}

/// What a call says; `None` where it says of no tensor on which device it is.
fn site(types: &[Type], kernel: &PrimFunc) -> Option<Site> {
    let on_device = types.iter().any(|ty| matches!(ty, Type::Tensor(t) if t.vdevice.is_some()));
    let of = |(ty, buffer): (&Type, &Option<Ref<Buffer>>)| match (ty, buffer) {
        (Type::Tensor(t), Some(buffer)) => {
            let scope = t.vdevice.as_ref().map_or_else(|| buffer.scope.clone(), |device| device.scope.clone());
            Some((scope, t.shape.clone()?))
        }
        _ => None,
    };
    on_device.then(|| types.iter().zip(&kernel.buffers).map(of).collect())
}

/// Why a call is not one of its kernel.
#[derive(Debug, thiserror::Error)]
enum Misfit {
    #[error("it takes {takes} tensors and scalars and gets {gets}")]
    Count { takes: usize, gets: usize },
    #[error("`{buffer}` has {has} dimensions, not {given}")]
    Rank { buffer: String, has: usize, given: usize },
    #[error("`{buffer}` has the dimension {has}, not {given}")]
    Dimension { buffer: String, has: i64, given: i64 },
}

/// The kernel with what a call says; `None` where that is nothing new.
fn specialized(kernel: &PrimFunc, site: &Site) -> Result<Option<PrimFunc>, Misfit> {
    let mut respec = Respec { vars: VarMap::new(), buffers: HashMap::new() };
    let pairs = kernel.buffers.iter().zip(site);
    let said: Vec<(Ref<Buffer>, Said)> =
        pairs.filter_map(|(buffer, said)| Some((buffer.clone()?, said.clone()?))).collect();
    for (buffer, (_, dims)) in &said {
        if buffer.ndim() != dims.len() {
            return Err(Misfit::Rank { buffer: buffer.name.clone(), has: buffer.ndim(), given: dims.len() });
        }
        for (dim, given) in buffer.shape.iter().zip(dims) {
            match (dim.as_var(), dim.as_int(), given.as_int()) {
                (Some(var), _, Some(number)) => {
                    let number = relaxide_ir::prim::int_of(var.dtype(), number);
                    respec.vars.insert(var.clone(), number);
                }
                (_, Some(has), Some(given)) if has != given => {
                    return Err(Misfit::Dimension { buffer: buffer.name.clone(), has, given });
                }
                _ => {}
            }
        }
    }
    let scoped = said.iter().any(|(buffer, (scope, _))| buffer.scope != *scope);
    if respec.vars.is_empty() && !scoped && kernel.attrs.get(SCOPED_ATTR).is_some() {
        return Ok(None);
    }
    for (buffer, (scope, _)) in &said {
        let data = Var::new(buffer.data.name.clone(), Type::pointer(buffer.dtype, scope));
        let new = Buffer { scope: scope.clone(), ..respec.remake_buffer(buffer, data.clone()) };
        respec.vars.insert(buffer.data.clone(), PrimExpr::Var(data));
        respec.buffers.insert(buffer.clone(), Ref::new(new));
    }
    let own = |buffer: &Option<Ref<Buffer>>| {
        let buffer = buffer.as_ref()?;
        Some(respec.buffers.get(buffer).unwrap_or(buffer).clone())
    };
    let buffers = kernel.buffers.iter().map(own).collect();
    let attrs = kernel.attrs.clone().with(SCOPED_ATTR, 1);
    let body: Stmt = respec.mutate_stmt(&kernel.body);
    Ok(Some(PrimFunc { buffers, attrs, body, params: kernel.params.clone(), ret_type: kernel.ret_type.clone() }))
}

/// Puts new buffers and dimensions in the place of old ones.
struct Respec {
    vars: VarMap,
    buffers: HashMap<Ref<Buffer>, Ref<Buffer>>,
}

impl PrimMutator for Respec {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Var(var) => self.vars.get(var).cloned().unwrap_or_else(|| e.clone()),
            _ => self.remake_prim(e),
        }
    }

    fn mutate_buffer_use(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        self.buffers.get(buffer).unwrap_or(buffer).clone()
    }
}

impl StmtMutator for Respec {
    fn mutate_buffer_def(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        let new = self.remake_buffer(buffer, buffer.data.clone());
        if new.shape == buffer.shape {
            return buffer.clone();
        }
        let new = Ref::new(new);
        self.buffers.insert(buffer.clone(), new.clone());
        new
    }
}
