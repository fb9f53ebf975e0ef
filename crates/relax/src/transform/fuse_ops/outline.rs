//! Making a function of a group.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use relaxide_ffi::{DataType, FreeVars, Ref, structural_equal, structural_key};
use relaxide_ir::prim::{PrimExpr, VarMap, free_vars, substitute};
use relaxide_ir::span::Span;
use relaxide_ir::{Attrs, GlobalVar, IRModule, Type, Var};

use super::PRIMITIVE_ATTR;
use crate::op::core::CallTir;
use crate::shape::{defined_vars, substitute_type, vars_of};
use crate::*;

/// The longest name that is made of the names of kernels.
const MAX_NAME: usize = 255;

/// The module, and the functions that were made so far.
pub(super) struct Outliner {
    pub(super) module: IRModule,
    /// By structural hash.
    made: HashMap<u64, Vec<OutlinedFunction>>,
    /// Whether constants of one element go inside.
    keep_scalars: bool,
}

/// A function that was made, and its name.
type OutlinedFunction = (Ref<Function>, Ref<GlobalVar>);

impl Outliner {
    pub(super) fn new(module: IRModule, keep_scalars: bool) -> Outliner {
        Outliner { module, made: HashMap::new(), keep_scalars }
    }

    /// The members that make one kernel: fields of tuples that the group does not compute stay outside, and a single kernel
    /// is one already.
    pub(super) fn members(block: &BindingBlock, mut members: Vec<usize>) -> Option<Vec<usize>> {
        let held: HashSet<AnyVar> =
            members.iter().filter_map(|m| Some(block.bindings.get(*m)?.var().clone())).collect();
        let is_inside = |m: &usize| match block.bindings.get(*m).map(Binding::value) {
            Some(Expr::TupleGetItem(item)) => item.tuple.as_var().is_some_and(|var| held.contains(&var)),
            _ => true,
        };
        members.retain(is_inside);
        let is_call = |m: &&usize| block.bindings.get(**m).is_some_and(|b| CallTir::of(b.value()).is_some());
        (members.iter().filter(is_call).count() > 1).then_some(members)
    }

    /// The call that takes the place of a group's last binding; `None` where a member is no call of a kernel, nor a field of
    /// what one gives.
    pub(super) fn outline(&mut self, block: &BindingBlock, members: &[usize]) -> Option<Expr> {
        let bindings: Vec<&Ref<VarBinding>> = members
            .iter()
            .map(|m| match block.bindings.get(*m) {
                Some(Binding::Var(b)) => Some(b),
                _ => None,
            })
            .collect::<Option<_>>()?;
        let mut calls: Vec<CallTir> = Vec::with_capacity(bindings.len());
        let mut group = Group { keep_scalars: self.keep_scalars, ..Group::default() };
        for binding in &bindings {
            match (CallTir::of(&binding.value), &binding.value) {
                (Some(call), _) => {
                    group.add(binding, &call)?;
                    calls.push(call);
                }
                (None, Expr::TupleGetItem(item)) => group.add_field(binding, item)?,
                _ => return None,
            }
        }
        let ty = bindings.last()?.var.ty().clone();
        let (func, args) = group.finish()?;
        let name = name_of(&calls);
        let callee = self.add(func, &name);
        let span = Span::of_nodes(bindings.iter().filter_map(|binding| origin(binding)));
        let call = Call { op: callee.into(), args, attrs: Attrs::new(), ty_args: Vec::new(), ty, span };
        Some(Ref::new(call).into())
    }

    /// Adds a function, or finds the one that is equal to it.
    fn add(&mut self, func: Function, name: &str) -> Ref<GlobalVar> {
        let func = Ref::new(func);
        let alike = self.made.entry(structural_key(&func, FreeVars::Mapped)).or_default();
        if let Some((_, var)) = alike.iter().find(|(known, _)| structural_equal(known, &func, FreeVars::Mapped).is_ok())
        {
            return var.clone();
        }
        let var = GlobalVar::typed(self.module.fresh_name(name), func.ty());
        self.module.insert(var.name.clone(), func.clone());
        alike.push((func, var.clone()));
        var
    }
}

/// What a binding was made of.
fn origin(binding: &VarBinding) -> Option<&Ref<Span>> {
    let of_call = match &binding.value {
        Expr::Call(call) => call.span.as_ref(),
        _ => None,
    };
    of_call.or_else(|| binding.var.span())
}

/// `fused_conv2d_add1_relu`: the kernels' names, whole, cut where it grows too long.
fn name_of(calls: &[CallTir]) -> String {
    let mut name = String::from("fused");
    for call in calls {
        name.push('_');
        name.push_str(&call.func.name);
    }
    let end = (0..=MAX_NAME.min(name.len())).rev().find(|i| name.is_char_boundary(*i)).unwrap_or(0);
    name.truncate(end);
    name
}

/// A function under construction.
#[derive(Default)]
struct Group {
    keep_scalars: bool,
    /// What comes from outside, and the parameter for it.
    params: Vec<(Expr, Ref<Var>)>,
    /// The function's own variables for the members.
    own: HashMap<AnyVar, AnyVar>,
    /// The function's own symbolic variables for those outside, in order.
    symbols: IndexMap<Ref<Var>, Ref<Var>>,
    names: HashSet<String>,
    bindings: Vec<Binding>,
}

impl Group {
    /// Adds a member.
    fn add(&mut self, binding: &VarBinding, call: &CallTir) -> Option<()> {
        let args = call.args.iter().map(|a| self.arg(a)).collect::<Option<Vec<Expr>>>()?;
        let ty = self.ty(binding.var.ty());
        let value = op::core::call_tir(call.func.clone(), args, ty.clone()).ok()?;
        self.bind(binding, ty, value);
        Some(())
    }

    /// Adds a field of what a member gives.
    fn add_field(&mut self, binding: &VarBinding, item: &TupleGetItem) -> Option<()> {
        let tuple = item.tuple.as_var().and_then(|var| self.own.get(&var))?;
        let value = Expr::field(tuple.clone(), usize::try_from(item.index).ok()?);
        let ty = self.ty(binding.var.ty());
        self.bind(binding, ty, value);
        Some(())
    }

    fn bind(&mut self, binding: &VarBinding, ty: Type, value: Expr) {
        let name = self.name(binding.var.name());
        let var = AnyVar::Dataflow(Ref::new(DataflowVar { name, ty, span: None }));
        self.bindings.push(Ref::new(VarBinding { var: var.clone(), value }).into());
        self.own.insert(binding.var.clone(), var);
    }

    /// The function, and what it is called with.
    fn finish(mut self) -> Option<(Function, Vec<Expr>)> {
        let Some(Binding::Var(last)) = self.bindings.pop() else { return None };
        let ty = last.var.ty().clone();
        self.names.remove(last.var.name());
        let output = Var::new(self.name("gv"), ty.clone());
        self.bindings.push(Ref::new(VarBinding { var: output.clone().into(), value: last.value.clone() }).into());
        let mut params: Vec<Ref<Var>> = self.params.iter().map(|(_, param)| param.clone()).collect();
        let mut args: Vec<Expr> = self.params.iter().map(|(arg, _)| arg.clone()).collect();
        let types: Vec<Type> = params.iter().map(|p| p.ty.clone()).collect();
        let bound = defined_vars(&types);
        let open: Vec<_> = self.symbols.iter().filter(|(_, own)| !bound.contains(own)).collect();
        if !open.is_empty() {
            let shape = Type::shape(open.iter().map(|(_, own)| PrimExpr::from(*own)));
            args.push(Expr::shape(open.iter().map(|(outer, _)| PrimExpr::from(*outer))));
            let name = unique(&mut self.names, "shape");
            params.push(Var::new(name, shape));
        }
        let block = Ref::new(BindingBlock { bindings: self.bindings, dataflow: true });
        let body = Ref::new(SeqExpr { blocks: vec![block], body: output.into() });
        let attrs = Attrs::new().with(PRIMITIVE_ATTR, true);
        Some((Function { params, body, ret_ty: ty, pure: true, attrs, span: None }, args))
    }

    /// An argument of a member inside the function; `None` where it is a scalar that no shape can carry.
    fn arg(&mut self, arg: &Expr) -> Option<Expr> {
        if let Some(own) = arg.as_var().and_then(|v| self.own.get(&v)) {
            return Some(own.clone().into());
        }
        match arg {
            Expr::Prim(p) if free_vars(&p.value).iter().all(is_dim) => return Some(Expr::prim(self.prim(&p.value))),
            Expr::Prim(_) => return None,
            Expr::Constant(c) if self.keep_scalars && c.value.numel() == 1 => return Some(arg.clone()),
            Expr::Constant(_) => return Some(self.param(arg, &format!("p{}", self.constants()))),
            // A scalar variable of the caller is a symbolic variable like any other.
            Expr::Var(v) if is_dim(v) => return Some(Expr::prim(self.symbol(v))),
            _ => {}
        }
        if let Some((_, param)) = self.params.iter().find(|(known, _)| known == arg) {
            return Some(param.clone().into());
        }
        let hint = arg.as_var().map_or_else(|| "param".to_string(), |v| v.name().to_string());
        Some(self.param(arg, &hint))
    }

    /// A parameter for an argument.
    fn param(&mut self, arg: &Expr, hint: &str) -> Expr {
        let param = Var::new(self.name(hint), self.ty(&arg.ty()));
        self.params.push((arg.clone(), param.clone()));
        param.into()
    }

    /// How many constants are passed.
    fn constants(&self) -> usize {
        self.params.iter().filter(|(arg, _)| matches!(arg, Expr::Constant(_))).count()
    }

    fn symbol(&mut self, outer: &Ref<Var>) -> Ref<Var> {
        let fresh = || Var::prim(outer.name.clone(), outer.dtype());
        self.symbols.entry(outer.clone()).or_insert_with(fresh).clone()
    }

    fn prim(&mut self, e: &PrimExpr) -> PrimExpr {
        let map = self.map(free_vars(e));
        substitute(e, &map)
    }

    fn ty(&mut self, ty: &Type) -> Type {
        let map = self.map(vars_of([ty]));
        substitute_type(ty, &map)
    }

    fn map(&mut self, vars: Vec<Ref<Var>>) -> VarMap {
        vars.into_iter().map(|v| (v.clone(), PrimExpr::from(&self.symbol(&v)))).collect()
    }

    fn name(&mut self, hint: &str) -> String {
        unique(&mut self.names, hint)
    }
}

/// Whether a variable is a scalar as dimensions are.
fn is_dim(var: &Ref<Var>) -> bool {
    var.dtype() == DataType::int(64)
}

/// A name that is not taken yet.
fn unique(taken: &mut HashSet<String>, hint: &str) -> String {
    let numbered = (1..).map(|i| format!("{hint}_{i}"));
    let name = std::iter::once(hint.to_string()).chain(numbered).find(|n| !taken.contains(n)).unwrap_or_default();
    taken.insert(name.clone());
    name
}
