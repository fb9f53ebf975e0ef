//! LambdaLift: nested functions become functions of the module.
//!
//! ```text
//! def main(x, y):                                    def main(x, y):
//!     @R.function                                        f = R.make_closure(cls.main_f, (y,))
//!     def f(a):                                          return R.invoke_closure(f, (x,))
//!         return R.add(a, y)                   →
//!     return f(x)                                    def main_f(a, y):
//!                                                        return R.add(a, y)
//! ```
//!
//! What a nested function takes from around it becomes parameters behind its own. One that takes nothing becomes a plain
//! name, and calls of it plain calls. A recursive function calls its own name with the captured values behind the others;
//! where it hands itself on, it makes its closure anew inside. A closure is no function of the language, so its variable, and
//! the result of a function that gives one, is `R.Any`.

use relaxide_ffi::Ref;
use relaxide_ir::pass::{PassInfo, PassResult};
use relaxide_ir::{Attrs, IRModule, Type, Var};

use crate::functor::{ExprVisitor, used_vars};
use crate::rewrite::in_function;
use crate::*;

pub(super) const PASS: PassInfo =
    PassInfo::new("LambdaLift", "Nested functions become functions of the module.", |module, _, _| run(module))
        .opt_level(1);

fn run(module: IRModule) -> PassResult {
    let functions: Vec<_> = module.functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    let mut lift = Lift { module, outer: String::new(), makers: Vec::new(), error: None };
    for (name, func) in functions {
        lift.outer = name.clone();
        let new = lift.function(&func);
        if let Some(error) = lift.error.take() {
            return Err(in_function(PASS.name, &name, error));
        }
        lift.module.insert(name, new);
    }
    Ok(lift.module)
}

struct Lift {
    module: IRModule,
    /// The function that is walked, whose name begins those of the lifted ones.
    outer: String,
    /// The lifted functions that give closures.
    makers: Vec<String>,
    error: Option<BuildError>,
}

impl Lift {
    fn function(&mut self, func: &Ref<Function>) -> Ref<Function> {
        let mut known = Replacements::default();
        let body = self.seq(&func.body, &mut known);
        if body == func.body {
            return func.clone();
        }
        let ret_ty = known.result_type(func, &body);
        Ref::new(Function { body, ret_ty, ..(**func).clone() })
    }

    fn seq(&mut self, seq: &Ref<SeqExpr>, known: &mut Replacements) -> Ref<SeqExpr> {
        let mut blocks = Vec::with_capacity(seq.blocks.len());
        for block in &seq.blocks {
            let mut bindings = Vec::with_capacity(block.bindings.len());
            for binding in &block.bindings {
                self.binding(binding, known, &mut bindings);
            }
            if !bindings.is_empty() {
                blocks.push(Ref::new(BindingBlock { bindings, dataflow: block.dataflow }));
            }
        }
        let body = known.apply(&seq.body);
        if blocks == seq.blocks && body == seq.body {
            return seq.clone();
        }
        Ref::new(SeqExpr { blocks, body })
    }

    fn binding(&mut self, binding: &Binding, known: &mut Replacements, out: &mut Vec<Binding>) {
        let Binding::Var(bound) = binding else {
            out.push(known.binding(binding));
            return;
        };
        let value: Expr = match &bound.value {
            Expr::Function(func) => match self.closure(&bound.var, func, known) {
                Lifted::Plain(name) => {
                    known.names.0.insert(bound.var.clone(), name);
                    return;
                }
                Lifted::Closure(closure) => {
                    let var = known.untyped(&bound.var);
                    return out.push(Ref::new(VarBinding { var, value: closure }).into());
                }
            },
            Expr::If(choice) => Ref::new(If {
                condition: known.apply(&choice.condition),
                true_branch: self.seq(&choice.true_branch, known),
                false_branch: self.seq(&choice.false_branch, known),
                ty: choice.ty.clone(),
            })
            .into(),
            _ => {
                let binding = known.binding(binding);
                let gives_closure = matches!(binding.value(), Expr::Call(call)
                    if matches!(&call.op, Expr::Global(g) if self.gives_closure(&g.name)));
                if gives_closure {
                    let (var, value) = (known.untyped(&bound.var), binding.value().clone());
                    return out.push(Ref::new(VarBinding { var, value }).into());
                }
                return out.push(binding);
            }
        };
        out.push(Ref::new(VarBinding { var: bound.var.clone(), value }).into());
    }

    /// Whether a function was lifted and gives a closure.
    fn gives_closure(&self, name: &str) -> bool {
        self.makers.iter().any(|maker| maker == name)
    }

    /// A name in the module for a nested function, in TVM's form where the first choice is taken.
    fn fresh_name(&self, hint: String) -> String {
        if self.module.get(&hint).is_none() {
            return hint;
        }
        (0..).map(|i| format!("{hint}_{i}")).find(|name| self.module.get(name).is_none()).unwrap_or(hint)
    }

    /// Lifts a nested function.
    fn closure(&mut self, var: &AnyVar, func: &Ref<Function>, known: &Replacements) -> Lifted {
        let captured = captured(func, var, known);
        let name = self.fresh_name(format!("{}_{}", self.outer, var.name()));
        let global: Expr = relaxide_ir::GlobalVar::new(name.clone()).into();
        let mut inner = known.clone();
        let mut params = func.params.clone();
        let mut own: Vec<Expr> = Vec::new();
        for outer in &captured {
            let param = Var::new(outer.name(), outer.ty().clone());
            own.push(Expr::Var(param.clone()));
            inner.names.0.insert(outer.clone(), param.clone().into());
            params.push(param);
        }
        let recursive = used_vars(&Expr::Function(func.clone())).contains(var);
        let mut again = Vec::new();
        if recursive && captured.is_empty() {
            inner.names.0.insert(var.clone(), global.clone());
        } else if recursive && only_called(func, var) {
            inner.itself = Some((var.clone(), global.clone(), own));
        } else if recursive {
            let itself = Var::new(var.name(), Type::any());
            match make_closure(&global, own) {
                Ok(value) => {
                    again.push(Ref::new(VarBinding { var: itself.clone().into(), value }).into());
                    inner.names.0.insert(var.clone(), itself.clone().into());
                    inner.closures.push(itself.into());
                }
                Err(e) => self.error = Some(e),
            }
        }
        self.module.insert(name.clone(), func.clone());
        let body = self.seq(&func.body, &mut inner);
        let body = if again.is_empty() { body } else { prefixed(again, &body) };
        let (attrs, ret_ty) = (func.attrs.clone(), inner.result_type(func, &body));
        if inner.is_closure(&body.body) {
            self.makers.push(name.clone());
        }
        let lifted = Ref::new(Function { params, body, attrs, ret_ty, ..(**func).clone() });
        self.module.insert(name, lifted);
        if captured.is_empty() {
            return Lifted::Plain(global);
        }
        let outer: Vec<Expr> = captured.into_iter().map(|v| known.apply(&v.into())).collect();
        match make_closure(&global, outer) {
            Ok(closure) => Lifted::Closure(closure),
            Err(e) => {
                self.error = Some(e);
                Lifted::Plain(global)
            }
        }
    }
}

/// What a nested function became.
enum Lifted {
    Plain(Expr),
    Closure(Expr),
}

/// A sequence with bindings in front.
fn prefixed(bindings: Vec<Binding>, seq: &SeqExpr) -> Ref<SeqExpr> {
    let first = Ref::new(BindingBlock { bindings, dataflow: false });
    let blocks = std::iter::once(first).chain(seq.blocks.iter().cloned()).collect();
    Ref::new(SeqExpr { blocks, body: seq.body.clone() })
}

fn make_closure(func: &Expr, captured: Vec<Expr>) -> Result<Expr, BuildError> {
    Ok(op::call("make_closure", [func.clone(), Expr::tuple(captured)], Attrs::new())?)
}

/// What stands for variables, and which variables hold closures.
#[derive(Default, Clone)]
struct Replacements {
    names: crate::functor::VarReplacer,
    closures: Vec<AnyVar>,
    /// A function within itself: its variable, the name that calls of it take, and what they hand on behind their arguments.
    itself: Option<(AnyVar, Expr, Vec<Expr>)>,
}

impl Replacements {
    /// The variable of a closure, which stands for one that was of the function's type.
    fn untyped(&mut self, var: &AnyVar) -> AnyVar {
        let new = var.with_type(Type::any());
        self.names.0.insert(var.clone(), new.clone().into());
        self.closures.push(new.clone());
        new
    }

    fn is_closure(&self, e: &Expr) -> bool {
        e.as_var().is_some_and(|var| self.closures.contains(&var))
    }

    /// The type of what a function gives, whose body is new.
    fn result_type(&self, func: &Function, body: &SeqExpr) -> Type {
        if self.is_closure(&body.body) { Type::any() } else { func.ret_ty.clone() }
    }

    fn apply(&self, e: &Expr) -> Expr {
        self.names.clone().mutate_expr(e)
    }

    /// A binding with replacements in place; a call of a closure becomes an `invoke_closure`.
    fn binding(&self, binding: &Binding) -> Binding {
        let value = self.apply(binding.value());
        let value = match (&value, &self.itself) {
            (Expr::Call(call), Some((var, name, own))) if call.op.as_var().as_ref() == Some(var) => {
                let args = call.args.iter().chain(own).cloned().collect();
                Ref::new(call.rebuilt(name.clone(), args)).into()
            }
            (Expr::Call(call), _) if call.op.as_var().is_some_and(|v| self.closures.contains(&v)) => {
                // A closure's variable does not say it any more.
                let pure = matches!(binding.value(), Expr::Call(of) if matches!(of.op.ty(), Type::Func(f) if f.pure));
                invoke(call, pure)
            }
            _ => value,
        };
        if value == *binding.value() {
            return binding.clone();
        }
        match binding {
            Binding::Var(b) => Ref::new(VarBinding { var: b.var.clone(), value }).into(),
            Binding::MatchCast(b) => Ref::new(MatchCast { var: b.var.clone(), value, ty: b.ty.clone() }).into(),
        }
    }
}

/// A call of a closure.
fn invoke(call: &Call, pure: bool) -> Expr {
    let args = [call.op.clone(), Expr::tuple(call.args.clone())];
    let ty = call.ty.clone();
    let name = if pure { "invoke_pure_closure" } else { "invoke_closure" };
    let invoke = op::call_typed(name, args, Attrs::new(), vec![ty.clone()]);
    invoke.unwrap_or_else(|_| call.with_args(call.args.clone(), ty).into())
}

/// Whether all that a function does with itself is to call itself, in its own body.
fn only_called(func: &Function, own: &AnyVar) -> bool {
    let mut uses = OwnUses { own, calls: 0, all: 0, nested: false };
    uses.visit_seq(&func.body);
    uses.calls == uses.all && !uses.nested
}

/// The uses of a variable in a body.
struct OwnUses<'a> {
    own: &'a AnyVar,
    calls: usize,
    all: usize,
    /// Whether a function within the body uses it.
    nested: bool,
}

impl ExprVisitor for OwnUses<'_> {
    fn visit_expr(&mut self, e: &Expr) {
        match e {
            Expr::Function(f) => self.nested |= used_vars(&Expr::Function(f.clone())).contains(self.own),
            _ => {
                self.all += usize::from(e.as_var().as_ref() == Some(self.own));
                if let Expr::Call(call) = e {
                    self.calls += usize::from(call.op.as_var().as_ref() == Some(self.own));
                }
                self.walk_expr(e);
            }
        }
    }
}

/// The variables that a nested function takes from around it, each once, in order of use. Functions that were lifted to a
/// plain name are not captured.
fn captured(func: &Ref<Function>, own: &AnyVar, known: &Replacements) -> Vec<AnyVar> {
    let mut inside = Inside(func.params.iter().cloned().map(AnyVar::Var).collect());
    inside.visit_seq(&func.body);
    let mut out: Vec<AnyVar> = Vec::new();
    for var in used_vars(&Expr::Function(func.clone())) {
        let is_name = matches!(known.names.0.get(&var), Some(Expr::Global(_)));
        if var != *own && !inside.0.contains(&var) && !out.contains(&var) && !is_name {
            out.push(var);
        }
    }
    out
}

/// The variables that are bound inside a function.
struct Inside(Vec<AnyVar>);

impl ExprVisitor for Inside {
    fn visit_binding(&mut self, binding: &Binding) {
        self.0.push(binding.var().clone());
        self.visit_expr(binding.value());
    }

    fn visit_expr(&mut self, e: &Expr) {
        if let Expr::Function(f) = e {
            self.0.extend(f.params.iter().cloned().map(AnyVar::Var));
        }
        self.walk_expr(e);
    }
}
