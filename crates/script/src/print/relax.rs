//! Relax functions, bindings and expressions.

use std::collections::HashSet;

use relaxide_ffi::{ObjectRef, Ref};
use relaxide_ir::{Type, Var};
use relaxide_relax::shape::vars_of;
use relaxide_relax::{AnyVar, Binding, BindingBlock, Expr, ExprVisitor, Function, If, MatchCast, SeqExpr};

use super::Printer;
use super::names::{identifier, standing_alone};
use super::ty::tuple_text;
use crate::number::quoted;

impl Printer<'_> {
    /// A function with its decorator.
    pub(super) fn function(&mut self, name: &str, func: &Function) {
        self.bare_int = relaxide_ir::DataType::int(64);
        self.uses_relax = true;
        let private = func.attrs.get("global_symbol").is_none();
        self.function_as(name, func, private);
    }

    fn function_as(&mut self, name: &str, func: &Function, private: bool) {
        let mut options = Vec::new();
        if !func.pure {
            options.push("pure=False");
        }
        if private {
            options.push("private=True");
        }
        collect_uses(func, &mut self.used);
        self.line(if options.is_empty() {
            "@R.function".into()
        } else {
            format!("@R.function({})", options.join(", "))
        });
        self.names.push();
        let params: Vec<_> = func
            .params
            .iter()
            .map(|p| {
                let ty = if p.ty.is_missing() { String::new() } else { format!(": {}", self.ty(&p.ty)) };
                format!("{}{ty}", self.names.define(p.clone().into(), &p.name))
            })
            .collect();
        let ret = if func.ret_ty.is_missing() { String::new() } else { format!(" -> {}", self.ty(&func.ret_ty)) };
        self.line(format!("def {}({}){ret}:", identifier(name), params.join(", ")));
        self.indent += 1;
        self.declare_symbols();
        let hidden: &[&str] = if func.attrs.str("global_symbol") == Some(name) { &["global_symbol"] } else { &[] };
        if func.attrs.0.keys().any(|k| !hidden.contains(&k.as_str())) {
            let attrs = self.attr_map(&func.attrs.0, hidden);
            self.line(format!("R.func_attr({attrs})"));
        }
        // The alias is written only where it is used, which is known once the body is.
        self.declare(&cast_symbols(&func.body));
        let start = self.out.len();
        self.blocks(&func.body);
        let result = self.expr(&func.body.body);
        self.line(format!("return {result}"));
        if self.indent <= 2 && self.out.get(start..).is_some_and(mentions_module) {
            let alias = format!("{}cls = Module\n", "    ".repeat(self.indent));
            self.insert(start, &alias);
        }
        self.indent -= 1;
        self.names.pop();
    }

    pub(super) fn blocks(&mut self, seq: &SeqExpr) {
        seq.blocks.iter().for_each(|block| self.block(block));
    }

    pub(super) fn block(&mut self, block: &BindingBlock) {
        if !block.dataflow {
            block.bindings.iter().for_each(|b| self.binding(b));
            return;
        }
        self.line("with R.dataflow():");
        self.indent += 1;
        block.bindings.iter().for_each(|b| self.binding(b));
        let outputs: Vec<String> = block
            .bindings
            .iter()
            .filter_map(|b| match b.var() {
                AnyVar::Var(v) => Some(self.names.get(&v.clone().into()).unwrap_or(&v.name).to_string()),
                AnyVar::Dataflow(_) => None,
            })
            .collect();
        self.line(format!("R.output({})", outputs.join(", ")));
        self.indent -= 1;
    }

    pub(super) fn binding(&mut self, binding: &Binding) {
        let start = self.out.len();
        self.binding_lines(binding);
        self.watch_since(start, || binding.clone().into());
    }

    fn binding_lines(&mut self, binding: &Binding) {
        let var = binding.var();
        match binding {
            Binding::MatchCast(cast) => self.match_cast(cast),
            Binding::Var(b) => match &b.value {
                Expr::If(branch) => self.branches(branch, var),
                Expr::Function(func) => self.local_function(func, var),
                value => {
                    let text = self.value(value);
                    let is_void = matches!(var.ty(), Type::Tuple(t) if t.fields.is_empty());
                    if is_void && !self.used.contains(&Expr::from(var.clone()).into()) {
                        self.line(text);
                        return;
                    }
                    let target = self.define(var);
                    let ty = if var.ty().is_missing() || is_call_with_out_type(value) {
                        String::new()
                    } else {
                        format!(": {}", self.ty(var.ty()))
                    };
                    self.line(format!("{target}{ty} = {text}"));
                }
            },
        }
    }

    /// Writes definitions of symbolic variables that have no name yet.
    fn declare(&mut self, vars: &[Ref<Var>]) {
        for var in vars {
            if self.names.get(&var.clone().into()).is_none() {
                let name = self.names.define(var.clone().into(), &var.name);
                self.uses_tir = true;
                self.line(format!("{name} = T.{}()", var.dtype()));
            }
        }
    }

    fn match_cast(&mut self, cast: &MatchCast) {
        let value = self.expr(&cast.value);
        self.declare(&vars_of([&cast.ty]));
        let ty = self.ty(&cast.ty);
        let target = self.define(&cast.var);
        let annotation = if cast.var.ty().is_missing() { ty.clone() } else { self.ty(cast.var.ty()) };
        self.line(format!("{target}: {annotation} = R.match_cast({value}, {ty})"));
    }

    /// A choice is an `if` statement whose branches both bind the variable.
    fn branches(&mut self, branch: &If, var: &AnyVar) {
        let condition = self.expr(&branch.condition);
        let name = self.names.reserve(var.name());
        self.line(format!("if {condition}:"));
        self.branch(&branch.true_branch, var, &name);
        self.line("else:");
        self.branch(&branch.false_branch, var, &name);
        self.names.alias(relaxide_ffi::ObjectRef::from(Expr::from(var.clone())), name);
    }

    fn branch(&mut self, seq: &SeqExpr, var: &AnyVar, name: &str) {
        self.indent += 1;
        self.names.push();
        self.blocks(seq);
        let result = self.value(&seq.body);
        let ty = if var.ty().is_missing() { String::new() } else { format!(": {}", self.ty(var.ty())) };
        self.line(format!("{name}{ty} = {result}"));
        self.names.pop();
        self.indent -= 1;
    }

    fn local_function(&mut self, func: &Function, var: &AnyVar) {
        let name = self.define(var);
        // A function of its own: being private says nothing here.
        self.function_as(&name, func, false);
        self.line("");
    }

    fn define(&mut self, var: &AnyVar) -> String {
        match var {
            AnyVar::Var(v) => self.names.define(v.clone().into(), &v.name),
            AnyVar::Dataflow(v) => self.names.define(v.clone().into(), &v.name),
        }
    }

    /// What stands right of `=`; a tuple needs no parentheses there.
    fn value(&mut self, value: &Expr) -> String {
        match value {
            Expr::Tuple(tuple) if tuple.fields.len() > 1 => {
                tuple.fields.iter().map(|f| self.expr(f)).collect::<Vec<_>>().join(", ")
            }
            _ => self.expr(value),
        }
    }

    /// An expression in one line.
    pub(super) fn expr(&mut self, expr: &Expr) -> String {
        let text = self.expr_text(expr);
        self.watch(|| expr.clone().into(), text)
    }

    fn expr_text(&mut self, expr: &Expr) -> String {
        match expr {
            Expr::Var(v) if matches!(v.ty, Type::Prim(_)) => self.scalar_var(v),
            Expr::Var(v) => self.names.get(&v.clone().into()).map_or_else(|| standing_alone(&v.name), str::to_string),
            Expr::DataflowVar(v) => {
                self.names.get(&v.clone().into()).map_or_else(|| standing_alone(&v.name), str::to_string)
            }
            // A part of a program stands in no module.
            Expr::Global(v) if self.is_part => identifier(&v.name),
            Expr::Global(v) => format!("cls.{}", identifier(&v.name)),
            Expr::Extern(f) => self.external(f),
            Expr::Op(op) => format!("R.{}", op.name),
            Expr::Constant(c) => self.constant(c),
            Expr::Prim(p) => self.prim(&p.value),
            Expr::Str(s) => format!("R.str({})", quoted(&s.value)),
            Expr::DType(d) => format!("R.dtype({})", quoted(&d.value.to_string())),
            Expr::Shape(s) => format!("R.shape([{}])", self.prims(&s.values)),
            Expr::Tuple(t) if t.fields.is_empty() => "R.tuple()".into(),
            Expr::Tuple(t) => {
                let fields: Vec<_> = t.fields.iter().map(|f| self.expr(f)).collect();
                tuple_text(&fields)
            }
            Expr::TupleGetItem(t) => format!("{}[{}]", self.expr(&t.tuple), t.index),
            Expr::Call(call) => self.call(call),
            Expr::If(_) | Expr::Seq(_) | Expr::Function(_) => self.nested(expr),
        }
    }

    fn scalar_var(&mut self, v: &relaxide_ffi::Ref<relaxide_ir::Var>) -> String {
        match self.names.get(&v.clone().into()) {
            Some(name) => name.to_string(),
            None => standing_alone(&v.name),
        }
    }

    /// Control flow inside an expression is not A-normal and has no statement to stand for it; it is shown, for debugging.
    fn nested(&mut self, expr: &Expr) -> String {
        match expr {
            Expr::If(b) => {
                let condition = self.expr(&b.condition);
                let (t, f) = (self.expr(&b.true_branch.body), self.expr(&b.false_branch.body));
                format!("({t} if {condition} else {f})")
            }
            Expr::Seq(seq) => self.expr(&seq.body),
            _ => "lambda: ...".into(),
        }
    }
}

/// Adds the variables that a function uses.
fn collect_uses(func: &Function, used: &mut HashSet<ObjectRef>) {
    struct Uses<'u>(&'u mut HashSet<ObjectRef>);
    impl ExprVisitor for Uses<'_> {
        fn visit_expr(&mut self, e: &Expr) {
            if let Expr::Var(_) | Expr::DataflowVar(_) = e {
                self.0.insert(e.clone().into());
            }
            self.walk_expr(e);
        }
    }
    Uses(used).visit_seq(&func.body);
}

/// Whether text refers to a function of the module.
fn mentions_module(text: &str) -> bool {
    text.contains("cls.")
}

/// Whether a call says its own result type, which then is not repeated.
fn is_call_with_out_type(value: &Expr) -> bool {
    let Expr::Call(call) = value else { return false };
    matches!(&call.op, Expr::Op(op) if matches!(op.name.as_str(), "call_tir" | "call_dps_packed"))
}

/// The symbolic variables of the casts of a function's body, in order; nested functions have their own.
fn cast_symbols(body: &SeqExpr) -> Vec<Ref<Var>> {
    struct Casts(Vec<Type>);
    impl ExprVisitor for Casts {
        fn visit_expr(&mut self, e: &Expr) {
            if !matches!(e, Expr::Function(_)) {
                self.walk_expr(e);
            }
        }

        fn visit_binding(&mut self, binding: &Binding) {
            if let Binding::MatchCast(cast) = binding {
                self.0.push(cast.ty.clone());
            }
            self.visit_expr(binding.value());
        }
    }
    let mut casts = Casts(Vec::new());
    casts.visit_seq(body);
    vars_of(&casts.0)
}
