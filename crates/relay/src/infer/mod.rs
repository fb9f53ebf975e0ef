//! Type inference: unification over types, and relations of operators that wait until what they need is known.
//!
//! What is found goes into a [`Types`] beside the program. A function of the module is inferred when it is met first, so
//! that definitions may stand in any order and need no annotations; type parameters are those that were written, nothing
//! is made general by itself. The type of an operator's call is what its definition computes on arguments of these types
//! ([`crate::op`]), where a dimension that is not known is a variable.

mod call;
mod matching;
mod operator;
mod unify;

use std::collections::HashMap;

use relaxide_ffi::{ObjectRef, Ref};
use relaxide_ir::{Code, Diagnostic, Span};

pub use matching::unmatched;
pub(crate) use unify::raw_text;

use crate::stack::{MAX_DEPTH, deep, depth};
use crate::text::Source;
use crate::*;
use call::PendingRelation;
use unify::Solver;

/// The types of a program's expressions.
#[derive(Default, Debug, Clone)]
pub struct Types {
    by_node: HashMap<usize, Type>,
    /// Keeps the nodes, whose addresses are the keys.
    nodes: Vec<ObjectRef>,
}

impl Types {
    /// The type of an expression, if it was inferred.
    pub fn of(&self, expr: &Expr) -> Option<Type> {
        self.by_node.get(&expr.address()).cloned()
    }

    /// The type of a variable.
    pub fn of_var(&self, var: &Ref<Var>) -> Option<Type> {
        self.by_node.get(&Ref::as_ptr(var).addr()).cloned()
    }

    fn set(&mut self, node: &ObjectRef, ty: Type) {
        self.by_node.insert(node.as_ptr().addr(), ty);
        self.nodes.push(node.clone());
    }
}

/// A contradiction in a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeError {
    /// What is wrong.
    pub message: String,
    /// Where.
    pub span: Option<Ref<Span>>,
}

impl TypeError {
    /// As a diagnostic, with the line if the text is at hand.
    pub fn diagnostic(&self, source: Option<&Source>) -> Diagnostic {
        match source {
            Some(source) => source.diagnostic(Code::Type, self.message.clone(), self.span.as_deref()),
            None => {
                let d = Diagnostic::new(Code::Type, self.message.clone());
                match &self.span {
                    Some(span) => d.with_span(span, None),
                    None => d,
                }
            }
        }
    }
}

/// Infers the types of a module.
pub fn infer(module: &Module) -> Result<Types, Vec<TypeError>> {
    deep(|| {
        let mut inference = Inference::new(module);
        for (name, function) in &module.functions {
            let levels = depth(&function.body);
            if levels > MAX_DEPTH {
                let message = format!("@{name} is an expression of {levels} levels; at most {MAX_DEPTH} are allowed");
                return Err(vec![TypeError { message, span: function.span.clone() }]);
            }
        }
        let names: Vec<String> = module.functions.keys().cloned().collect();
        for name in &names {
            inference.global(name, None);
        }
        inference.finish()
    })
}

/// Infers the type of an expression of a module.
pub fn infer_expr(expr: &Expr, module: &Module) -> Result<Types, Vec<TypeError>> {
    deep(|| {
        let mut inference = Inference::new(module);
        inference.expr(expr);
        inference.finish()
    })
}

/// Reads a module and infers its types; problems are shown with their lines.
pub fn parse_and_infer(source: &Source) -> Result<(Module, Types), Vec<Diagnostic>> {
    let module = crate::text::parse(source).map_err(|d| vec![d])?;
    match infer(&module) {
        Ok(types) => Ok((module, types)),
        Err(errors) => Err(errors.iter().map(|e| e.diagnostic(Some(source))).collect()),
    }
}

/// What is known of a function of the module.
enum GlobalState {
    /// Its body is being inferred, or was.
    Known(Type),
}

struct Inference<'m> {
    module: &'m Module,
    solver: Solver,
    types: Types,
    globals: HashMap<String, GlobalState>,
    waiting: Vec<PendingRelation>,
    errors: Vec<TypeError>,
    checked_matches: Vec<(Ref<Match>, Type)>,
    /// Variables that are names of operators.
    operators: HashMap<usize, Ref<Op>>,
    /// Where the innermost expression stands that has a place: operators have none of their own.
    place: Option<Ref<Span>>,
}

impl<'m> Inference<'m> {
    fn new(module: &'m Module) -> Inference<'m> {
        Inference {
            module,
            solver: Solver::default(),
            types: Types::default(),
            globals: HashMap::new(),
            waiting: Vec::new(),
            errors: Vec::new(),
            checked_matches: Vec::new(),
            operators: HashMap::new(),
            place: None,
        }
    }

    fn finish(mut self) -> Result<Types, Vec<TypeError>> {
        self.solve();
        for waiting in std::mem::take(&mut self.waiting) {
            if self.errors.is_empty() {
                self.error(UNKNOWN, waiting.span());
            }
        }
        for (m, ty) in std::mem::take(&mut self.checked_matches) {
            let ty = self.solver.resolve(&ty);
            let cases = unmatched(self.module, &m, &ty);
            if !cases.is_empty() {
                let list: String = cases.iter().enumerate().map(|(i, case)| format!("case {i}: \n{case}\n")).collect();
                let message = format!("match expression does not handle the following cases: {}", list.trim_end());
                self.error(message, m.span.as_ref());
            }
        }
        if self.errors.is_empty() {
            self.report_open();
        }
        let solver = &mut self.solver;
        for ty in self.types.by_node.values_mut() {
            *ty = closed(&solver.resolve(ty));
        }
        if self.errors.is_empty() { Ok(self.types) } else { Err(self.errors) }
    }

    /// A parameter of a function of the module must have a type; what nothing looks at elsewhere may be anything.
    fn report_open(&mut self) {
        for function in self.module.functions.values() {
            for param in &function.params {
                let ty = self.types.of_var(param);
                if ty.is_some_and(|ty| self.solver.resolve(&ty).is_open()) {
                    return self.error(UNKNOWN, param.span.as_ref());
                }
            }
        }
    }

    fn error(&mut self, message: impl std::fmt::Display, span: Option<&Ref<Span>>) {
        let error = TypeError { message: message.to_string(), span: span.cloned() };
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    /// Makes two types one; the error stands at the span.
    fn unify(&mut self, a: &Type, b: &Type, span: Option<&Ref<Span>>) -> Type {
        match self.solver.unify(a, b) {
            Ok(ty) => ty,
            Err((a, b)) => {
                let message = format!(
                    "The Relay type checker is unable to show the following types match.\nIn particular `{a}` does not \
                     match `{b}`"
                );
                self.error(message, span);
                self.solver.resolve(&b)
            }
        }
    }

    /// The type that was written, checked; or one to be found.
    fn annotated(&mut self, annotation: Option<&Type>, span: Option<&Ref<Span>>) -> Type {
        match annotation {
            None => Type::fresh(),
            Some(ty) => {
                self.check_written(ty, span);
                ty.clone()
            }
        }
    }

    /// A type that was written names types that exist, with as many arguments as they take.
    fn check_written(&mut self, ty: &Type, span: Option<&Ref<Span>>) {
        match ty {
            Type::Call(call) => {
                match self.module.types.get(&call.name) {
                    None if call.name == "Storage" => {}
                    None => {
                        let message = format!("the type variable : `{}` is undefined", call.name);
                        self.error(message, span);
                    }
                    Some(data) if data.type_vars.len() != call.args.len() => {
                        let (name, wanted, got) = (&call.name, data.type_vars.len(), call.args.len());
                        self.error(format!("the type `{name}` takes {wanted} arguments, and {got} are given"), span);
                    }
                    Some(_) => {}
                }
                call.args.iter().for_each(|ty| self.check_written(ty, span));
            }
            Type::Tuple(t) => t.fields.iter().for_each(|ty| self.check_written(ty, span)),
            Type::Func(f) => f.args.iter().chain([&f.ret]).for_each(|ty| self.check_written(ty, span)),
            Type::Ref(r) => self.check_written(&r.value, span),
            Type::Tensor(_) | Type::Var(_) | Type::Incomplete(_) => {}
        }
    }

    fn var(&mut self, var: &Ref<Var>) -> Type {
        if let Some(ty) = self.types.of_var(var) {
            return ty;
        }
        let ty = self.annotated(var.annotation.as_ref(), var.span.as_ref());
        self.types.set(Expr::Var(var.clone()).as_object(), ty.clone());
        ty
    }

    /// The type of a function of the module, which is inferred where it is met first.
    fn global(&mut self, name: &str, span: Option<&Ref<Span>>) -> Type {
        if let Some(GlobalState::Known(ty)) = self.globals.get(name) {
            return ty.clone();
        }
        let Some(function) = self.module.functions.get(name).cloned() else {
            let message = format!("the module has no function `@{name}`");
            self.error(message, span);
            return Type::fresh();
        };
        let ty = self.signature(&function);
        self.globals.insert(name.to_string(), GlobalState::Known(ty.clone()));
        let outer = std::mem::replace(&mut self.place, function.span.clone());
        self.body(&function, &ty);
        self.place = outer;
        self.solve();
        let ty = self.solver.resolve(&ty);
        self.globals.insert(name.to_string(), GlobalState::Known(ty.clone()));
        ty
    }

    /// The type of a function from what was written.
    fn signature(&mut self, function: &Ref<Function>) -> Type {
        let args: Vec<Type> = function.params.iter().map(|p| self.var(p)).collect();
        let ret = self.annotated(function.ret_type.as_ref(), function.span.as_ref());
        let type_params = function.type_params.clone();
        let ty: Type = Ref::new(FuncType { type_params, args, ret }).into();
        self.types.set(Expr::Function(function.clone()).as_object(), ty.clone());
        ty
    }

    fn body(&mut self, function: &Ref<Function>, ty: &Type) {
        let Type::Func(func) = ty else { return };
        let body = self.expr(&function.body);
        self.unify(&body, &func.ret, function.span.as_ref());
    }

    fn function(&mut self, function: &Ref<Function>) -> Type {
        let ty = self.signature(function);
        self.body(function, &ty);
        ty
    }

    /// The type of an expression.
    fn expr(&mut self, expr: &Expr) -> Type {
        if let Expr::Global(g) = expr {
            return self.global(&g.name, None);
        }
        if let Some(op) = self.as_operator(expr) {
            return self.operator(&op);
        }
        if let Some(ty) = self.types.of(expr) {
            return ty;
        }
        let outer = self.place.clone();
        if let Some(span) = expr.span() {
            self.place = Some(span.clone());
        }
        let ty = self.expr_inside(expr);
        self.place = outer;
        self.types.set(expr.as_object(), ty.clone());
        ty
    }

    fn expr_inside(&mut self, expr: &Expr) -> Type {
        let span = expr.span().cloned();
        let span = span.as_ref();
        match expr {
            Expr::Constant(c) => Type::tensor(c.data.shape().to_vec(), c.data.dtype()),
            Expr::Var(v) => self.var(v),
            Expr::Global(g) => self.global(&g.name, span),
            Expr::Tuple(t) => Type::tuple(t.fields.iter().map(|e| self.expr(e)).collect::<Vec<_>>()),
            Expr::Function(f) => self.function(f),
            Expr::Call(c) => self.call(c),
            Expr::Let(_) => self.lets(expr),
            Expr::If(i) => {
                let cond = self.expr(&i.cond);
                let cond_span = i.cond.span().cloned().or_else(|| span.cloned());
                self.unify(&cond, &Type::scalar(relaxide_ffi::DataType::bool()), cond_span.as_ref());
                let (then, other) = (self.expr(&i.then), self.expr(&i.other));
                self.branches(&then, &other, span)
            }
            Expr::TupleGetItem(t) => self.field(t, span),
            Expr::RefCreate(r) => Type::reference(self.expr(&r.value)),
            Expr::RefRead(r) => {
                let (reference, value) = (self.expr(&r.reference), Type::fresh());
                self.unify(&reference, &Type::reference(value.clone()), span);
                value
            }
            Expr::RefWrite(r) => {
                let (reference, value) = (self.expr(&r.reference), self.expr(&r.value));
                self.unify(&reference, &Type::reference(value), span);
                Type::tuple([])
            }
            Expr::Match(m) => self.matching(m),
            Expr::Constructor(c) => self.constructor(c),
            Expr::Op(op) => self.operator(op),
        }
    }

    /// Bindings that follow each other, in a loop.
    fn lets(&mut self, expr: &Expr) -> Type {
        let mut chain = Vec::new();
        let mut expr = expr.clone();
        while let Expr::Let(l) = &expr {
            if let Some(ty) = self.types.of(&expr) {
                return self.close_lets(chain, ty);
            }
            let span = l.var.span.clone().or_else(|| l.span.clone());
            self.place = span.clone().or_else(|| self.place.take());
            match &l.value {
                _ if self.names_operator(l) => {}
                Expr::Function(f) => {
                    // A function is visible in its own body.
                    let (var, ty) = (self.var(&l.var), self.signature(f));
                    self.unify(&var, &ty, span.as_ref());
                    if l.var.annotation.is_none() {
                        self.types.set(Expr::Var(l.var.clone()).as_object(), ty.clone());
                    }
                    self.body(f, &ty);
                }
                value => {
                    let value = self.expr(value);
                    let var = self.var(&l.var);
                    let ty = self.unify(&var, &value, span.as_ref());
                    if l.var.annotation.is_none() {
                        self.types.set(Expr::Var(l.var.clone()).as_object(), ty);
                    }
                }
            }
            let body = l.body.clone();
            chain.push(expr);
            expr = body;
        }
        let ty = self.expr(&expr);
        self.close_lets(chain, ty)
    }

    fn close_lets(&mut self, chain: Vec<Expr>, ty: Type) -> Type {
        for expr in &chain {
            self.types.set(expr.as_object(), ty.clone());
        }
        ty
    }

    /// What both branches are: dimensions in which they differ are not known.
    fn branches(&mut self, a: &Type, b: &Type, span: Option<&Ref<Span>>) -> Type {
        self.solve();
        let (a, b) = (self.solver.resolve(a), self.solver.resolve(b));
        match self.solver.join(&a, &b) {
            Some(ty) => ty,
            None => self.unify(&a, &b, span),
        }
    }

    fn field(&mut self, t: &Ref<TupleGetItem>, span: Option<&Ref<Span>>) -> Type {
        let tuple = self.expr(&t.tuple);
        let mut tuple = self.solver.resolve(&tuple);
        if matches!(tuple, Type::Incomplete(_)) {
            self.solve();
            tuple = self.solver.resolve(&tuple);
        }
        match &tuple {
            Type::Tuple(ty) => {
                let found = usize::try_from(t.index).ok().and_then(|i| ty.fields.get(i)).cloned();
                found.unwrap_or_else(|| {
                    let (index, count) = (t.index, ty.fields.len());
                    self.error(format!("a tuple of {count} fields has no field {index}"), span);
                    Type::fresh()
                })
            }
            Type::Incomplete(_) => {
                let result = Type::fresh();
                self.waiting.push(PendingRelation::Field { get: t.clone(), tuple, result: result.clone() });
                result
            }
            other => {
                let message =
                    format!("TupleGetItem expect input type to be TupleType  get {} instead", raw_text(other));
                self.error(message, span);
                Type::fresh()
            }
        }
    }

    /// The type of a constructor as a function.
    fn constructor(&mut self, c: &Ref<Constructor>) -> Type {
        let vars = self.module.types.get(&c.belong_to).map(|data| data.type_vars.clone()).unwrap_or_default();
        let ret = Type::data(c.belong_to.clone(), vars.iter().map(Type::from).collect::<Vec<_>>());
        Ref::new(FuncType { type_params: vars, args: c.inputs.clone(), ret }).into()
    }

    fn matching(&mut self, m: &Ref<Match>) -> Type {
        let data = self.expr(&m.data);
        let mut result: Option<Type> = None;
        for clause in &m.clauses {
            self.pattern(&clause.pattern, &data, m.span.as_ref());
            let body = self.expr(&clause.body);
            result = Some(match result {
                None => body,
                Some(before) => self.branches(&before, &body, m.span.as_ref()),
            });
        }
        if m.complete {
            self.checked_matches.push((m.clone(), data));
        }
        result.unwrap_or_else(|| {
            self.error("a match needs at least one case", m.span.as_ref());
            Type::fresh()
        })
    }

    fn pattern(&mut self, pattern: &Pattern, ty: &Type, span: Option<&Ref<Span>>) {
        match pattern {
            Pattern::Wildcard(_) => {}
            Pattern::Var(p) => {
                let var = self.var(&p.var);
                let ty = self.unify(ty, &var, p.var.span.as_ref().or(span));
                if p.var.annotation.is_none() {
                    self.types.set(Expr::Var(p.var.clone()).as_object(), ty);
                }
            }
            Pattern::Constructor(p) => {
                let whole = self.constructor(&p.constructor);
                let Type::Func(func) = self.instantiate(&whole) else { return };
                self.unify(ty, &func.ret, span);
                if func.args.len() != p.patterns.len() {
                    let (wanted, got) = (func.args.len(), p.patterns.len());
                    let few = if got < wanted { "Not enough" } else { "Too many" };
                    self.error(format!("{few} inputs for the constructor; expected {wanted}, got {got}"), span);
                    return;
                }
                for (pattern, ty) in p.patterns.iter().zip(&func.args) {
                    self.pattern(pattern, ty, span);
                }
            }
            Pattern::Tuple(p) => {
                let fields: Vec<Type> = p.patterns.iter().map(|_| Type::fresh()).collect();
                self.unify(ty, &Type::tuple(fields.clone()), span);
                for (pattern, ty) in p.patterns.iter().zip(&fields) {
                    self.pattern(pattern, ty, span);
                }
            }
        }
    }

    /// A function's type with types to be found in the place of its parameters.
    fn instantiate(&mut self, ty: &Type) -> Type {
        let Type::Func(func) = ty else { return ty.clone() };
        if func.type_params.is_empty() {
            return ty.clone();
        }
        let fresh: Vec<Type> = func.type_params.iter().map(|_| Type::fresh()).collect();
        let args = func.args.iter().map(|ty| ty.substitute(&func.type_params, &fresh)).collect::<Vec<_>>();
        Type::func(args, func.ret.substitute(&func.type_params, &fresh))
    }
}

/// A type with the empty tuple for what nothing decides.
fn closed(ty: &Type) -> Type {
    ty.map(&mut |part| matches!(part, Type::Incomplete(_)).then(|| Type::tuple([])))
}

const UNKNOWN: &str = "The type inference pass was unable to infer a type for this expression.\nThis usually occurs when an \
                       operator call is under constrained in some way, check other reported errors for hints of what may of \
                       happened.";
