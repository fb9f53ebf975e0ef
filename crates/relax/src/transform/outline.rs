//! Making a function of some bindings of a block.
//!
//! What the bindings use from outside becomes parameters, in the order in which it is first used; what is used of them
//! outside becomes the result, a tuple where it is several. Symbolic variables of the new function are its own. Those that
//! no parameter's type says come in a shape behind the other parameters.

use std::collections::HashMap;

use indexmap::IndexMap;
use relaxide_ffi::Ref;
use relaxide_ir::prim::{PrimExpr, VarMap, free_vars};
use relaxide_ir::{Attrs, Type, Var};

use super::bind_symbols::SymbolMutator;
use crate::shape::{defined_vars, vars_of};
use crate::*;

/// What becomes of constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Constants {
    /// They stay in the function.
    Keep,
    /// They become parameters.
    Lift,
}

/// A function, and what it is called with where its bindings stood.
pub(super) struct Outlined {
    pub function: Function,
    pub args: Vec<Expr>,
}

/// Makes a function of bindings whose values are operations of a dataflow block.
pub(super) fn outline(
    members: &[&Ref<VarBinding>],
    outputs: &[AnyVar],
    constants: Constants,
    attrs: Attrs,
) -> Outlined {
    let mut body = OutlinedBody { constants, params: IndexMap::new(), own: HashMap::new() };
    let mut bindings = Vec::with_capacity(members.len());
    for member in members {
        let value = body.mutate_expr(&member.value);
        let (name, ty) = (member.var.name().to_string(), member.var.ty().clone());
        let var = match outputs.contains(&member.var) {
            true => AnyVar::Var(Var::new("gv", ty)),
            false => AnyVar::Dataflow(Ref::new(DataflowVar { name, ty, span: None })),
        };
        body.own.insert(member.var.clone(), var.clone().into());
        bindings.push(Binding::from(Ref::new(VarBinding { var, value })));
    }
    let results: Vec<Expr> = outputs.iter().filter_map(|var| body.own.get(var).cloned()).collect();
    let result = if let [one] = results.as_slice() { one.clone() } else { Expr::tuple(results) };
    let block = Ref::new(BindingBlock { bindings, dataflow: true });
    let seq = Ref::new(SeqExpr { blocks: vec![block], body: result });
    let (mut args, mut params): (Vec<Expr>, Vec<Ref<Var>>) = body.params.into_iter().unzip();
    let ret_ty = seq.body.ty();
    let symbols = symbols_in(&params, &seq);
    let bound = defined_vars(params.iter().map(|p| &p.ty));
    let open: Vec<PrimExpr> = symbols.iter().filter(|s| !bound.contains(s)).map(PrimExpr::from).collect();
    if !open.is_empty() {
        args.push(Expr::shape(open.iter().cloned()));
        params.push(Var::new("shape", Type::shape(open)));
    }
    let own: VarMap =
        symbols.iter().map(|s| (s.clone(), PrimExpr::from(&Var::prim(s.name.clone(), s.dtype())))).collect();
    let function = Ref::new(Function { params, body: seq, ret_ty, pure: true, attrs, span: None });
    let function = SymbolMutator::new(own).function(&function);
    Outlined { function: Function::clone(&function), args }
}

struct OutlinedBody {
    constants: Constants,
    /// What comes from outside, and the parameter for it.
    params: IndexMap<Expr, Ref<Var>>,
    /// The function's own variables for the members.
    own: HashMap<AnyVar, Expr>,
}

impl ExprMutator for OutlinedBody {
    fn mutate_expr(&mut self, e: &Expr) -> Expr {
        let lifted = match e {
            Expr::Var(_) | Expr::DataflowVar(_) => true,
            Expr::Constant(_) => self.constants == Constants::Lift,
            _ => return self.remake_expr(e),
        };
        if let Some(own) = e.as_var().and_then(|v| self.own.get(&v)) {
            return own.clone();
        }
        if !lifted {
            return e.clone();
        }
        let count = self.params.keys().filter(|e| e.as_var().is_none()).count();
        let name = e.as_var().map_or_else(|| format!("param_{count}"), |v| v.name().to_string());
        let fresh = || Var::new(name, e.ty());
        self.params.entry(e.clone()).or_insert_with(fresh).clone().into()
    }
}

/// The symbolic variables that a function mentions, in order.
pub(super) fn symbols_in(params: &[Ref<Var>], body: &SeqExpr) -> Vec<Ref<Var>> {
    let mut symbols = Symbols(Vec::new());
    params.iter().for_each(|p| symbols.ty(&p.ty));
    symbols.visit_seq(body);
    symbols.0
}

struct Symbols(Vec<Ref<Var>>);

impl Symbols {
    fn add(&mut self, vars: Vec<Ref<Var>>) {
        for var in vars {
            if !self.0.contains(&var) {
                self.0.push(var);
            }
        }
    }

    fn ty(&mut self, ty: &Type) {
        self.add(vars_of([ty]));
    }
}

impl ExprVisitor for Symbols {
    fn visit_expr(&mut self, e: &Expr) {
        match e {
            Expr::Shape(shape) => shape.values.iter().for_each(|d| self.add(free_vars(d))),
            Expr::Prim(p) => self.add(free_vars(&p.value)),
            Expr::Call(call) => {
                call.ty_args.iter().for_each(|ty| self.ty(ty));
                self.walk_expr(e);
            }
            _ => self.walk_expr(e),
        }
    }

    fn visit_binding(&mut self, binding: &Binding) {
        self.ty(binding.var().ty());
        self.visit_expr(binding.value());
    }
}
