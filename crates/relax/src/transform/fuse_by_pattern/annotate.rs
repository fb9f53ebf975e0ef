//! Wrapping composite functions for a backend.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::{Attrs, GlobalVar, IRModule, Var};

use super::{CODEGEN_ATTR, COMPOSITE_ATTR, PRIMITIVE_ATTR};
use crate::transform::fresh::fresh_copy;
use crate::*;

/// The backend of a composite function: what stands before the first point of its name.
pub(in crate::transform) fn backend_of(func: &Function) -> Option<String> {
    let name = func.attrs.str(COMPOSITE_ATTR)?;
    Some(name.split('.').next().unwrap_or(name).to_string())
}

/// A composite function as it stands inside the function of a backend: its variables are its own.
pub(in crate::transform) fn local(func: &Ref<Function>) -> Expr {
    let func = fresh_copy(func);
    let mut attrs = func.attrs.clone();
    for name in [PRIMITIVE_ATTR, "global_symbol"] {
        attrs.0.shift_remove(name);
    }
    Ref::new(Function { attrs, ..Function::clone(&func) }).into()
}

/// Attributes of a function that a backend compiles.
pub(in crate::transform) fn backend_attrs(backend: &str, symbol: &str) -> Attrs {
    Attrs::new().with(CODEGEN_ATTR, backend).with("global_symbol", symbol)
}

/// Every composite function that is called becomes a local function of one that carries `Codegen`.
pub(super) fn wrap(mut module: IRModule) -> IRModule {
    let mut wrapped: HashMap<String, Ref<GlobalVar>> = HashMap::new();
    let functions: Vec<_> = module.functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    for (name, func) in &functions {
        let Some(backend) = backend_of(func) else { continue };
        let symbol = module.fresh_name(&format!("{name}_{backend}"));
        let outer = Ref::new(wrapper(func, &backend, &symbol));
        wrapped.insert(name.clone(), GlobalVar::typed(symbol.clone(), outer.ty()));
        module.insert(symbol, outer);
    }
    let mut rename = Rename { wrapped: &wrapped, still_used: HashSet::new() };
    for (name, func) in functions.iter().filter(|(_, f)| f.attrs.get(COMPOSITE_ATTR).is_none()) {
        let new = rename.mutate_function(func);
        if new != *func {
            module.insert(name.clone(), new);
        }
    }
    let still_used = rename.still_used;
    module.functions.retain(|name, _| !wrapped.contains_key(name) || still_used.contains(name));
    module
}

fn wrapper(func: &Ref<Function>, backend: &str, symbol: &str) -> Function {
    let copy = |p: &Ref<Var>| Var::new(p.name.clone(), p.ty.clone());
    let params: Vec<Ref<Var>> = func.params.iter().map(copy).collect();
    let inner = Var::new("local_func", func.ty());
    let args = params.iter().map(|p| Expr::Var(p.clone())).collect();
    let (attrs, ty_args, ty) = (Attrs::new(), Vec::new(), func.ret_ty.clone());
    let call = Ref::new(Call { op: inner.clone().into(), args, attrs, ty_args, ty, span: None });
    let output = Var::new("output", func.ret_ty.clone());
    let bindings = vec![
        Ref::new(VarBinding { var: inner.into(), value: local(func) }).into(),
        Ref::new(VarBinding { var: output.clone().into(), value: call.into() }).into(),
    ];
    let block = Ref::new(BindingBlock { bindings, dataflow: false });
    let body = Ref::new(SeqExpr { blocks: vec![block], body: output.into() });
    let attrs = backend_attrs(backend, symbol);
    Function { params, body, ret_ty: func.ret_ty.clone(), pure: func.pure, attrs, span: None }
}

struct Rename<'a> {
    wrapped: &'a HashMap<String, Ref<GlobalVar>>,
    still_used: HashSet<String>,
}

impl ExprMutator for Rename<'_> {
    fn mutate_expr(&mut self, e: &Expr) -> Expr {
        match e {
            Expr::Call(call) => match &call.op {
                Expr::Global(g) if self.wrapped.contains_key(&g.name) => {
                    let args = self.mutate_exprs(&call.args);
                    let callee = self.wrapped.get(&g.name).cloned().map_or_else(|| call.op.clone(), Expr::Global);
                    Ref::new(call.rebuilt(callee, args)).into()
                }
                _ => self.remake_expr(e),
            },
            Expr::Global(g) if self.wrapped.contains_key(&g.name) => {
                self.still_used.insert(g.name.clone());
                e.clone()
            }
            _ => self.remake_expr(e),
        }
    }
}
