//! AllocateWorkspace: functions of backends that need temporary memory get it from their callers.
//!
//! ```text
//! @R.function                                    @R.function
//! def ext(q):  # {"Codegen": "cutlass",          def ext1(q, workspace: R.Tensor((65536,), "uint8")):
//!              #  "WorkspaceSize": 65536}            …
//!     …                                      →
//! lv = cls.ext(x)                                workspace_main = R.builtin.alloc_tensor(R.shape([65536]), …)
//! lv1 = cls.ext(lv)                              lv = cls.ext1(x, workspace_main)
//!                                                lv1 = cls.ext1(lv, workspace_main)
//! ```
//!
//! One workspace a calling function serves all its calls: it is as large as the largest that any function of the module asks
//! for. Functions whose signature changes get a new name; local functions in them that ask for a
//! workspace, as composite functions do, get the outer one's.
//!
//! **Differs from TVM**: the workspace is also made for calls outside dataflow blocks and in several of them, where TVM fails,
//! and only where a function calls one that needs it.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::pass::{PassError, PassInfo, PassResult};
use relaxide_ir::{Attrs, GlobalVar, IRModule, Type, Var};

use super::callees::callees;
use super::fuse_by_pattern::{CODEGEN_ATTR, COMPOSITE_ATTR};
use crate::rewrite::in_function;
use crate::*;

const NAME: &str = "AllocateWorkspace";

/// How many bytes of temporary memory a function needs.
const SIZE_ATTR: &str = "WorkspaceSize";

/// The name by which the world outside knows a function.
const SYMBOL_ATTR: &str = "global_symbol";

pub(super) const PASS: PassInfo =
    PassInfo::new(NAME, "Functions of backends get the temporary memory that they ask for.", |module, _, _| {
        run(module)
    });

fn run(mut module: IRModule) -> PassResult {
    let functions: Vec<_> = module.functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    let mut size = None;
    for (name, func) in functions.iter().filter(|(_, f)| f.attrs.get(SIZE_ATTR).is_some()) {
        let wrong = || PassError::new(NAME, format!("in function `{name}`: `{SIZE_ATTR}` must be a number of bytes"));
        let own = func.attrs.int(SIZE_ATTR).filter(|size| *size >= 0).ok_or_else(wrong)?;
        size = size.max(Some(own));
    }
    let Some(size) = size else { return Ok(module) };
    let mut renamed = HashMap::new();
    for (name, func) in functions.iter().filter(|(_, f)| f.attrs.get(SIZE_ATTR).is_some()) {
        let mut new = extended(func, size);
        let own = module.fresh_name(name);
        if func.attrs.get(SYMBOL_ATTR).is_some() {
            new.attrs = new.attrs.with(SYMBOL_ATTR, own.clone());
        }
        let new = Ref::new(new);
        let callee = GlobalVar::typed(own, new.ty());
        module.insert(callee.name.clone(), new);
        module.functions.shift_remove(name);
        renamed.insert(name.clone(), callee);
    }
    let is_caller = |f: &Function| f.attrs.get(CODEGEN_ATTR).is_none() && f.attrs.get(COMPOSITE_ATTR).is_none();
    for (name, func) in functions.iter().filter(|(name, f)| is_caller(f) && !renamed.contains_key(name)) {
        let new = provide(func, size, &renamed).map_err(|e| in_function(NAME, name, e))?;
        if new != *func {
            module.insert(name.clone(), new);
        }
    }
    Ok(module)
}

fn workspace_type(size: i64) -> Type {
    Type::tensor([size], DataType::uint(8))
}

/// A function with a workspace as its last parameter.
fn extended(func: &Function, size: i64) -> Function {
    let workspace = Var::new("workspace", workspace_type(size));
    let mut inner = Inner { workspace: workspace.clone(), size, locals: HashMap::new() };
    let body = inner.mutate_seq(&func.body);
    let params = func.params.iter().cloned().chain([workspace]).collect();
    Function { params, body, attrs: plain_attrs(&func.attrs, &[SIZE_ATTR, SYMBOL_ATTR]), ..func.clone() }
}

fn plain_attrs(attrs: &Attrs, without: &[&str]) -> Attrs {
    let mut attrs = attrs.clone();
    without.iter().for_each(|name| drop(attrs.0.shift_remove(*name)));
    attrs
}

/// Gives the workspace on to local functions that ask for one.
struct Inner {
    workspace: Ref<Var>,
    size: i64,
    /// Local functions with a workspace, by the variables that held them.
    locals: HashMap<AnyVar, AnyVar>,
}

impl ExprMutator for Inner {
    fn mutate_binding(&mut self, binding: &Binding, out: &mut Vec<Binding>) {
        match (binding, binding.value()) {
            (Binding::Var(bound), Expr::Function(func)) if func.attrs.get(SIZE_ATTR).is_some() => {
                let own = Var::new("workspace", workspace_type(self.size));
                let params = func.params.iter().cloned().chain([own]).collect();
                let attrs = plain_attrs(&func.attrs, &[SIZE_ATTR]);
                let func = Ref::new(Function { params, attrs, ..Function::clone(func) });
                let var = bound.var.with_type(func.ty());
                self.locals.insert(bound.var.clone(), var.clone());
                out.push(Ref::new(VarBinding { var, value: func.into() }).into());
            }
            _ => out.push(self.remake_binding(binding)),
        }
    }

    fn mutate_expr(&mut self, e: &Expr) -> Expr {
        match e {
            Expr::Call(call) => match call.op.as_var().and_then(|var| self.locals.get(&var)).cloned() {
                Some(local) => {
                    let mut args = self.mutate_exprs(&call.args);
                    args.push(self.workspace.clone().into());
                    Ref::new(call.rebuilt(local.into(), args)).into()
                }
                None => self.remake_expr(e),
            },
            _ => match e.as_var().and_then(|var| self.locals.get(&var)) {
                Some(local) => local.clone().into(),
                None => self.remake_expr(e),
            },
        }
    }
}

/// A function that makes a workspace and passes it, if it calls a function that takes one.
fn provide(
    func: &Ref<Function>,
    size: i64,
    renamed: &HashMap<String, Ref<GlobalVar>>,
) -> Result<Ref<Function>, BuildError> {
    let calls = |names: &HashSet<String>| names.iter().any(|name| renamed.contains_key(name));
    if !calls(&callees(&func.body)) {
        return Ok(func.clone());
    }
    let in_block = |block: &&Ref<BindingBlock>| {
        let body = Expr::tuple([]);
        calls(&callees(&SeqExpr { blocks: vec![(*block).clone()], body }))
    };
    let users: Vec<&Ref<BindingBlock>> = func.body.blocks.iter().filter(in_block).collect();
    let only = match users.as_slice() {
        [one] if one.dataflow => Some((*one).clone()),
        _ => None,
    };
    let args = [Expr::shape([size]), Expr::dtype(DataType::uint(8)), Expr::prim(0), Expr::string("global")];
    let value = op::call("builtin.alloc_tensor", args, Attrs::new())?;
    let (name, ty) = ("workspace_main".to_string(), workspace_type(size));
    let var: AnyVar = match only {
        Some(_) => AnyVar::Dataflow(Ref::new(DataflowVar { name, ty, span: None })),
        None => AnyVar::Var(Var::new(name, ty)),
    };
    let alloc = Binding::from(Ref::new(VarBinding { var: var.clone(), value }));
    let mut pass = Pass { renamed, workspace: var, error: None };
    let new = pass.mutate_function(func);
    pass.error.map_or(Ok(()), Err)?;
    let mut blocks = Vec::with_capacity(new.body.blocks.len() + 1);
    if only.is_none() {
        blocks.push(Ref::new(BindingBlock { bindings: vec![alloc.clone()], dataflow: false }));
    }
    for (old, block) in func.body.blocks.iter().zip(&new.body.blocks) {
        if only.as_ref() != Some(old) {
            blocks.push(block.clone());
            continue;
        }
        let bindings = std::iter::once(alloc.clone()).chain(block.bindings.iter().cloned()).collect();
        blocks.push(Ref::new(BindingBlock { bindings, dataflow: true }));
    }
    let body = Ref::new(SeqExpr { blocks, body: new.body.body.clone() });
    Ok(Ref::new(Function { body, ..Function::clone(&new) }))
}

/// Passes the workspace to functions that take one.
struct Pass<'a> {
    renamed: &'a HashMap<String, Ref<GlobalVar>>,
    workspace: AnyVar,
    error: Option<BuildError>,
}

impl ExprMutator for Pass<'_> {
    fn mutate_expr(&mut self, e: &Expr) -> Expr {
        match e {
            Expr::Call(call) => match &call.op {
                Expr::Global(g) if self.renamed.contains_key(&g.name) => {
                    let mut args = self.mutate_exprs(&call.args);
                    args.push(self.workspace.clone().into());
                    let callee = self.renamed.get(&g.name).cloned().map_or_else(|| call.op.clone(), Expr::Global);
                    Ref::new(call.rebuilt(callee, args)).into()
                }
                _ => self.remake_expr(e),
            },
            Expr::Global(g) if self.renamed.contains_key(&g.name) => {
                self.error = Some(BuildError::Program(format!(
                    "`{}` needs a workspace, but it is used as a value, so that others call it without one",
                    g.name
                )));
                e.clone()
            }
            _ => self.remake_expr(e),
        }
    }
}
