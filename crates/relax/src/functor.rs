//! Walking and rebuilding Relax expressions.
//!
//! A rebuilding walk replaces expressions one for one with [`ExprMutator::mutate_expr`] and bindings one for many with
//! [`ExprMutator::mutate_binding`]. What comes back unchanged is shared, not copied.

use std::collections::HashMap;

use relaxide_ffi::Ref;

use crate::*;

/// A read-only walk. Override what is of interest and call the `walk_*` function to go on below.
pub trait ExprVisitor: AsExprVisitor {
    /// Visits one expression; the default goes on below.
    fn visit_expr(&mut self, e: &Expr) {
        self.walk_expr(e);
    }

    /// Visits one binding; the default goes on to its value.
    fn visit_binding(&mut self, binding: &Binding) {
        self.visit_expr(binding.value());
    }

    /// Visits a sequence; the default visits its bindings, then its result.
    fn visit_seq(&mut self, seq: &SeqExpr) {
        walk_seq(self.as_expr_visitor(), seq);
    }

    /// Visits what an expression holds.
    fn walk_expr(&mut self, e: &Expr) {
        walk_expr(self.as_expr_visitor(), e);
    }
}

/// Every visitor as one type, so that the walks below it are compiled once and not once for each visitor.
pub trait AsExprVisitor {
    /// The visitor itself.
    fn as_expr_visitor(&mut self) -> &mut dyn ExprVisitor;
}

impl<V: ExprVisitor> AsExprVisitor for V {
    fn as_expr_visitor(&mut self) -> &mut dyn ExprVisitor {
        self
    }
}

/// [`ExprVisitor::visit_seq`], compiled once for all visitors.
fn walk_seq(visitor: &mut dyn ExprVisitor, seq: &SeqExpr) {
    for block in &seq.blocks {
        block.bindings.iter().for_each(|b| visitor.visit_binding(b));
    }
    visitor.visit_expr(&seq.body);
}

/// [`ExprVisitor::walk_expr`], compiled once for all visitors.
fn walk_expr(visitor: &mut dyn ExprVisitor, e: &Expr) {
    match e {
        Expr::Tuple(n) => n.fields.iter().for_each(|f| visitor.visit_expr(f)),
        Expr::TupleGetItem(n) => visitor.visit_expr(&n.tuple),
        Expr::Call(n) => {
            visitor.visit_expr(&n.op);
            n.args.iter().for_each(|a| visitor.visit_expr(a));
        }
        Expr::If(n) => {
            visitor.visit_expr(&n.condition);
            visitor.visit_seq(&n.true_branch);
            visitor.visit_seq(&n.false_branch);
        }
        Expr::Seq(n) => visitor.visit_seq(n),
        Expr::Function(n) => visitor.visit_seq(&n.body),
        Expr::Var(_)
        | Expr::DataflowVar(_)
        | Expr::Global(_)
        | Expr::Extern(_)
        | Expr::Op(_)
        | Expr::Constant(_)
        | Expr::Prim(_)
        | Expr::Str(_)
        | Expr::DType(_)
        | Expr::Shape(_) => {}
    }
}

/// A rebuilding walk.
pub trait ExprMutator: AsExprMutator {
    /// Rebuilds one expression; the default rebuilds what it holds.
    fn mutate_expr(&mut self, e: &Expr) -> Expr {
        self.remake_expr(e)
    }

    /// Rebuilds one binding into any number of them; the default makes one, with the same variable.
    fn mutate_binding(&mut self, binding: &Binding, out: &mut Vec<Binding>) {
        out.push(self.remake_binding(binding));
    }

    /// Rebuilds a block; the default rebuilds its bindings in order.
    fn mutate_block(&mut self, block: &Ref<BindingBlock>) -> Ref<BindingBlock> {
        remake_block(self.as_expr_mutator(), block)
    }

    /// Rebuilds a sequence; blocks that end up empty are dropped.
    fn mutate_seq(&mut self, seq: &Ref<SeqExpr>) -> Ref<SeqExpr> {
        remake_seq(self.as_expr_mutator(), seq)
    }

    /// Rebuilds a function; the default keeps parameters and result type.
    fn mutate_function(&mut self, f: &Ref<Function>) -> Ref<Function> {
        remake_function(self.as_expr_mutator(), f)
    }

    /// Rebuilds the value of a binding.
    fn remake_binding(&mut self, binding: &Binding) -> Binding {
        remake_binding(self.as_expr_mutator(), binding)
    }

    /// Rebuilds every expression of a list.
    fn mutate_exprs(&mut self, list: &[Expr]) -> Vec<Expr> {
        mutate_exprs(self.as_expr_mutator(), list)
    }

    /// Rebuilds what an expression holds.
    fn remake_expr(&mut self, e: &Expr) -> Expr {
        remake_expr(self.as_expr_mutator(), e)
    }
}

/// Every mutator as one type, so that what it rebuilds by default is compiled once and not once for each mutator.
pub trait AsExprMutator {
    /// The mutator itself.
    fn as_expr_mutator(&mut self) -> &mut dyn ExprMutator;
}

impl<M: ExprMutator> AsExprMutator for M {
    fn as_expr_mutator(&mut self) -> &mut dyn ExprMutator {
        self
    }
}

/// [`ExprMutator::mutate_block`], compiled once for all mutators.
fn remake_block(mutator: &mut dyn ExprMutator, block: &Ref<BindingBlock>) -> Ref<BindingBlock> {
    let mut bindings = Vec::with_capacity(block.bindings.len());
    block.bindings.iter().for_each(|b| mutator.mutate_binding(b, &mut bindings));
    if bindings == block.bindings {
        return block.clone();
    }
    Ref::new(BindingBlock { bindings, dataflow: block.dataflow })
}

/// [`ExprMutator::mutate_seq`], compiled once for all mutators.
fn remake_seq(mutator: &mut dyn ExprMutator, seq: &Ref<SeqExpr>) -> Ref<SeqExpr> {
    let mut blocks: Vec<_> = seq.blocks.iter().map(|b| mutator.mutate_block(b)).collect();
    blocks.retain(|b| !b.bindings.is_empty());
    let body = mutator.mutate_expr(&seq.body);
    if blocks == seq.blocks && body == seq.body { seq.clone() } else { Ref::new(SeqExpr { blocks, body }) }
}

/// [`ExprMutator::mutate_function`], compiled once for all mutators.
fn remake_function(mutator: &mut dyn ExprMutator, f: &Ref<Function>) -> Ref<Function> {
    let body = mutator.mutate_seq(&f.body);
    if body == f.body { f.clone() } else { Ref::new(Function { body, ..Function::clone(f) }) }
}

/// [`ExprMutator::remake_binding`], compiled once for all mutators.
fn remake_binding(mutator: &mut dyn ExprMutator, binding: &Binding) -> Binding {
    let value = mutator.mutate_expr(binding.value());
    if value == *binding.value() {
        return binding.clone();
    }
    match binding {
        Binding::Var(b) => Ref::new(VarBinding { var: b.var.clone(), value }).into(),
        Binding::MatchCast(b) => Ref::new(MatchCast { var: b.var.clone(), value, ty: b.ty.clone() }).into(),
    }
}

/// [`ExprMutator::mutate_exprs`], compiled once for all mutators.
fn mutate_exprs(mutator: &mut dyn ExprMutator, list: &[Expr]) -> Vec<Expr> {
    list.iter().map(|e| mutator.mutate_expr(e)).collect()
}

/// [`ExprMutator::remake_expr`], compiled once for all mutators.
fn remake_expr(mutator: &mut dyn ExprMutator, e: &Expr) -> Expr {
    match e {
        Expr::Tuple(n) => {
            let fields = mutator.mutate_exprs(&n.fields);
            if fields == n.fields { e.clone() } else { Ref::new(Tuple { fields }).into() }
        }
        Expr::TupleGetItem(n) => {
            let tuple = mutator.mutate_expr(&n.tuple);
            if tuple == n.tuple { e.clone() } else { Ref::new(TupleGetItem { tuple, index: n.index }).into() }
        }
        Expr::Call(n) => {
            let op = mutator.mutate_expr(&n.op);
            let args = mutator.mutate_exprs(&n.args);
            if op == n.op && args == n.args { e.clone() } else { Ref::new(n.rebuilt(op, args)).into() }
        }
        Expr::If(n) => {
            let condition = mutator.mutate_expr(&n.condition);
            let (true_branch, false_branch) = (mutator.mutate_seq(&n.true_branch), mutator.mutate_seq(&n.false_branch));
            if condition == n.condition && true_branch == n.true_branch && false_branch == n.false_branch {
                return e.clone();
            }
            Ref::new(If { condition, true_branch, false_branch, ty: n.ty.clone() }).into()
        }
        Expr::Seq(n) => mutator.mutate_seq(n).into(),
        Expr::Function(n) => mutator.mutate_function(n).into(),
        Expr::Var(_)
        | Expr::DataflowVar(_)
        | Expr::Global(_)
        | Expr::Extern(_)
        | Expr::Op(_)
        | Expr::Constant(_)
        | Expr::Prim(_)
        | Expr::Str(_)
        | Expr::DType(_)
        | Expr::Shape(_) => e.clone(),
    }
}

/// A map from variables to the expressions that take their place; as a mutator, it puts them there.
#[derive(Clone, Debug, Default)]
pub struct VarReplacer(pub HashMap<AnyVar, Expr>);

impl VarReplacer {
    /// What takes the place of a variable, chains followed.
    fn lookup(&self, var: AnyVar) -> Option<Expr> {
        let mut found = self.0.get(&var)?;
        while let Some(next) = found.as_var().and_then(|v| self.0.get(&v)).filter(|next| *next != found) {
            found = next;
        }
        Some(found.clone())
    }
}

impl ExprMutator for VarReplacer {
    fn mutate_expr(&mut self, e: &Expr) -> Expr {
        match e.as_var() {
            Some(var) => self.lookup(var).unwrap_or_else(|| e.clone()),
            None => self.remake_expr(e),
        }
    }
}

/// The variables that an expression mentions, bound inside it or not, in order.
pub fn used_vars(e: &Expr) -> Vec<AnyVar> {
    struct Collect(Vec<AnyVar>);
    impl ExprVisitor for Collect {
        fn visit_expr(&mut self, e: &Expr) {
            match e.as_var() {
                Some(var) => self.0.push(var),
                None => self.walk_expr(e),
            }
        }
    }
    let mut collect = Collect(Vec::new());
    collect.visit_expr(e);
    collect.0
}

/// The names of all variables that a sequence binds, those of branches included.
pub fn bound_names(seq: &SeqExpr) -> Vec<String> {
    let mut names = Vec::new();
    for binding in seq.blocks.iter().flat_map(|b| &b.bindings) {
        names.push(binding.var().name().to_string());
        if let Expr::If(choice) = binding.value() {
            names.extend(bound_names(&choice.true_branch));
            names.extend(bound_names(&choice.false_branch));
        }
    }
    names
}

impl Call {
    /// The same call of another callee with other arguments.
    pub fn rebuilt(&self, op: Expr, args: Vec<Expr>) -> Call {
        Call {
            op,
            args,
            attrs: self.attrs.clone(),
            ty_args: self.ty_args.clone(),
            ty: self.ty.clone(),
            span: self.span.clone(),
        }
    }

    /// The operator's name, if an operator is called.
    pub fn op_name(&self) -> Option<&str> {
        match &self.op {
            Expr::Op(op) => Some(&op.name),
            _ => None,
        }
    }
}
