//! The rules that a module keeps between passes.
//!
//! Every pass may rely on them and leaves them kept; the verifier runs behind each pass in tests, and the parser runs it on
//! what a user wrote.
//!
//! 1. **One binding each.** No variable is bound twice, and none is used before or outside the scope of its binding. A
//!    dataflow variable is visible in its block only, a branch's variables in the branch only.
//! 2. **Normal form.** A binding's value is one operation over operands: variables, literals, and tuples of them.
//! 3. **Symbolic variables** are bound by a parameter, a `match_cast` or a scalar variable before a type or shape uses them.
//! 4. **Dataflow blocks** hold no choice and no impure call.
//! 5. **Purity.** A function that promises to be pure has no impure call, unless it carries `relax.force_pure`, which only such
//!    a function does.
//! 6. **Types agree**: no variable and no result is declared of a type that its value cannot have.
//! 7. **Callees exist**: functions of the module by name, with as many arguments as they take; operators in the registry with
//!    arguments that fit.
//! 8. **Calls fit**: what a kernel or a function of the module is given does not contradict what it takes ([`kernel_calls`]).

mod kernel_calls;

use std::collections::HashSet;

use relaxide_ffi::Ref;
use relaxide_ir::pass::Refusal;
use relaxide_ir::prim::{PrimExpr, free_vars};
use relaxide_ir::span::MaybeSpan;
use relaxide_ir::{Code, IRModule, Type, Var};
use relaxide_tir::PrimFunc;
use relaxide_tir::analysis::effects::effect_of;

use crate::builder::is_pure;
use crate::display::{dim_text, type_text};
use crate::op::{Arity, lookup};
use crate::shape::{contradict, defined_vars, for_each_dim};
use crate::*;

/// One broken rule.
#[derive(Clone, Debug, thiserror::Error)]
#[error("in function `{function}`, {place}: {problem}")]
pub struct Violation {
    /// Which rule.
    pub code: Code,
    /// The function.
    pub function: String,
    /// The binding or parameter.
    pub place: String,
    /// What is wrong with it.
    pub problem: String,
    /// Where the binding or parameter was written.
    pub span: MaybeSpan,
}

impl From<Violation> for Refusal {
    fn from(violation: Violation) -> Refusal {
        let refusal = Refusal::new(violation.code, violation.to_string()).at(violation.span);
        match violation.code {
            Code::Impure => refusal.help(
                "end the dataflow block, or declare the function with @R.function(pure=False); call_pure_packed promises \
                 that a call has no effect",
            ),
            Code::Unbound => refusal.help("bind it first; R.output gives the variables of a dataflow block out"),
            Code::BoundTwice => refusal.help("bind the second value to a variable of its own"),
            Code::NotNormal => refusal.help("the pass Normalize binds computations to variables"),
            Code::FreeSymbol => refusal.help("let the type of a parameter or a match_cast bind it"),
            Code::Contradiction => {
                refusal.help("R.astype converts elements; R.match_cast checks lengths when the program runs")
            }
            Code::Misplaced => refusal.help("end the dataflow block before it"),
            _ => refusal,
        }
    }
}

/// All broken rules of a module; none if it is well formed.
pub fn check_module(module: &IRModule) -> Vec<Violation> {
    module.functions_of::<Function>().flat_map(|(name, func)| check_function(module, name, &func)).collect()
}

/// All broken rules of one function.
pub fn check_function(module: &IRModule, name: &str, func: &Function) -> Vec<Violation> {
    let (place, span) = ("its parameters".into(), func.span.clone());
    let mut check = Check { place, span, ..Check::new(module, name) };
    check.function_body(func);
    check.found
}

/// All broken rules of a function by itself, whatever the module around it has.
pub fn check_alone(name: &str, func: &Function) -> Vec<Violation> {
    let module = IRModule::new();
    let mut check = Check { place: "its parameters".into(), span: func.span.clone(), ..Check::new(&module, name) };
    check.is_alone = true;
    check.function_body(func);
    check.found
}

/// Something that a scope made visible.
enum Added {
    Var(AnyVar),
    Symbol(Ref<Var>),
}

struct Check<'a> {
    module: &'a IRModule,
    function: &'a str,
    place: String,
    span: MaybeSpan,
    found: Vec<Violation>,
    /// Every variable bound so far, in scope or not.
    bound: HashSet<AnyVar>,
    visible: HashSet<AnyVar>,
    symbols: HashSet<Ref<Var>>,
    /// What became visible, in order: a scope takes out at its end what it added, so that its cost is its own size.
    added: Vec<Added>,
    dataflow: bool,
    must_be_pure: bool,
    /// Whether the functions of the module are not known.
    is_alone: bool,
}

impl<'a> Check<'a> {
    fn new(module: &'a IRModule, function: &'a str) -> Self {
        Check {
            module,
            function,
            place: String::new(),
            span: None,
            found: Vec::new(),
            bound: HashSet::new(),
            visible: HashSet::new(),
            symbols: HashSet::new(),
            added: Vec::new(),
            dataflow: false,
            must_be_pure: false,
            is_alone: false,
        }
    }

    fn report(&mut self, code: Code, problem: impl Into<String>) {
        let (function, place, span) = (self.function.to_string(), self.place.clone(), self.span.clone());
        let problem = problem.into();
        // What is wrong with the type that a call says is wrong with its variable's.
        if self.found.last().is_none_or(|last| last.place != place || last.problem != problem) {
            self.found.push(Violation { code, function, place, problem, span });
        }
    }

    fn show(&mut self, var: &AnyVar) {
        if self.visible.insert(var.clone()) {
            self.added.push(Added::Var(var.clone()));
        }
    }

    fn show_symbols(&mut self, symbols: impl IntoIterator<Item = Ref<Var>>) {
        for symbol in symbols {
            if self.symbols.insert(symbol.clone()) {
                self.added.push(Added::Symbol(symbol));
            }
        }
    }

    /// Ends a scope that began when so much was visible.
    fn hide_from(&mut self, begin: usize) {
        for added in self.added.drain(begin..) {
            match added {
                Added::Var(var) => drop(self.visible.remove(&var)),
                Added::Symbol(symbol) => drop(self.symbols.remove(&symbol)),
            }
        }
    }

    fn function_body(&mut self, func: &Function) {
        let forced = func.attrs.bool("relax.force_pure") == Some(true);
        self.must_be_pure = func.pure && !forced;
        if forced && !func.pure {
            self.report(Code::Impure, "it carries `relax.force_pure`, but does not promise to be pure");
        }
        for param in &func.params {
            self.bind(&AnyVar::Var(param.clone()));
        }
        self.show_symbols(defined_vars(func.params.iter().map(|p| &p.ty)));
        for param in &func.params {
            self.check_symbols(&param.ty);
        }
        self.seq(&func.body);
        (self.place, self.span) = ("its result type".into(), func.span.clone());
        self.agree(&func.ret_ty, &func.body.body.ty());
        // What the body finds out, its result may be described with; callers are told no more than what they know themselves.
        let casts = func.body.blocks.iter().flat_map(|block| &block.bindings).filter_map(|binding| match binding {
            Binding::MatchCast(cast) => Some(&cast.ty),
            Binding::Var(_) => None,
        });
        self.show_symbols(defined_vars(casts));
        self.check_symbols(&func.ret_ty);
    }

    /// Checks a declared type against what is there.
    fn agree(&mut self, declared: &Type, found: &Type) {
        if contradict(declared, found) {
            let (declared, found) = (type_text(declared), type_text(found));
            self.report(Code::Contradiction, format!("it is declared as {declared}, but its value is {found}"));
        }
    }

    fn bind(&mut self, var: &AnyVar) {
        if !self.bound.insert(var.clone()) {
            self.report(Code::BoundTwice, format!("variable `{}` is bound twice", var.name()));
        }
        self.show(var);
        if let AnyVar::Var(v) = var
            && matches!(v.ty, Type::Prim(_))
        {
            self.show_symbols([v.clone()]);
        }
    }

    fn seq(&mut self, seq: &SeqExpr) {
        let (begin, outer) = (self.added.len(), (self.place.clone(), self.span.clone()));
        for block in &seq.blocks {
            self.block(block);
        }
        self.place = "its result".into();
        self.operand(&seq.body);
        self.hide_from(begin);
        (self.place, self.span) = outer;
    }

    fn block(&mut self, block: &BindingBlock) {
        let (was, begin) = (std::mem::replace(&mut self.dataflow, block.dataflow), self.added.len());
        for binding in &block.bindings {
            self.place = format!("at `{}`", binding.var().name());
            self.span = binding.var().span().cloned();
            match binding {
                Binding::Var(b) => {
                    // A local function may call itself.
                    if matches!(b.value, Expr::Function(_)) {
                        self.show(&b.var);
                    }
                    self.value(&b.value);
                }
                Binding::MatchCast(cast) => {
                    self.operand(&cast.value);
                    self.show_symbols(defined_vars([&cast.ty]));
                    self.check_symbols(&cast.ty);
                }
            }
            self.agree(binding.var().ty(), &bound_type(binding));
            self.bind(binding.var());
            self.check_symbols(binding.var().ty());
            if !block.dataflow && matches!(binding.var(), AnyVar::Dataflow(_)) {
                self.report(Code::Misplaced, "a dataflow variable is bound outside of a dataflow block");
            }
        }
        if block.dataflow {
            let own: Vec<Added> = self.added.drain(begin..).collect();
            for added in own {
                match added {
                    Added::Var(var @ AnyVar::Dataflow(_)) => drop(self.visible.remove(&var)),
                    other => self.added.push(other),
                }
            }
        }
        self.dataflow = was;
    }

    fn value(&mut self, e: &Expr) {
        match e {
            Expr::Call(call) => self.call(e, call),
            Expr::If(choice) => {
                if self.dataflow {
                    self.report(Code::Misplaced, "a choice stands in a dataflow block");
                }
                self.operand(&choice.condition);
                self.seq(&choice.true_branch);
                self.seq(&choice.false_branch);
            }
            Expr::TupleGetItem(item) => self.operand(&item.tuple),
            Expr::Function(func) => {
                let (begin, outer) = (self.added.len(), (self.must_be_pure, self.dataflow));
                self.dataflow = false;
                self.function_body(func);
                self.hide_from(begin);
                (self.must_be_pure, self.dataflow) = outer;
            }
            Expr::Seq(_) => self.report(Code::NotNormal, "a sequence stands where one operation should"),
            operand => self.operand(operand),
        }
    }

    fn call(&mut self, e: &Expr, call: &Call) {
        match &call.op {
            Expr::Op(op) => match lookup(&op.name) {
                None => self.report(Code::Callee, format!("no operator is called `{}`", op.name)),
                Some(def) => {
                    let required = def.args.iter().filter(|a| a.arity == Arity::Required).count();
                    let variadic = def.args.iter().any(|a| a.arity == Arity::Variadic);
                    if call.args.len() < required || (!variadic && call.args.len() > def.args.len()) {
                        self.report(Code::Callee, format!("`{}` has {} arguments", op.name, call.args.len()));
                    }
                }
            },
            callee => {
                self.operand(callee);
                self.argument_count(callee, call.args.len());
            }
        }
        call.args.iter().for_each(|a| self.operand(a));
        call.ty_args.iter().for_each(|ty| self.check_symbols(ty));
        if let Some(problem) = self.misfit(call) {
            self.report(Code::Contradiction, problem);
        }
        if is_pure(e) || !(self.dataflow || self.must_be_pure) || self.is_pure_direct_call(call) {
            return;
        }
        let place = if self.dataflow { "a dataflow block" } else { "a pure function" };
        let what = call.op_name().map(|name| format!(" of `R.{name}`")).unwrap_or_default();
        self.report(Code::Impure, format!("an impure call{what} stands in {place}"));
    }

    /// How the arguments of a call contradict what the callee takes.
    fn misfit(&self, call: &Call) -> Option<String> {
        match (&call.op, call.op_name()) {
            (Expr::Global(callee), _) => {
                let function = self.module.get_as::<Function>(&callee.name)?;
                kernel_calls::of_function(call, &function)
            }
            (_, Some("call_tir" | "call_tir_inplace" | "call_tir_with_grad")) => {
                let Some(Expr::Global(callee)) = call.args.first() else { return None };
                let kernel = self.module.get_as::<PrimFunc>(&callee.name)?;
                kernel_calls::of_kernel(call, &kernel).map(|why| format!("`{}`: {why}", callee.name))
            }
            _ => None,
        }
    }

    /// Checks how many arguments a function of the module is given; kernels are given their outputs in several ways.
    fn argument_count(&mut self, callee: &Expr, given: usize) {
        let Expr::Global(g) = callee else { return };
        let Some(func) = self.module.get_as::<Function>(&g.name) else { return };
        let takes = func.params.len();
        if given != takes {
            self.report(Code::Callee, format!("`{}` takes {takes} arguments, not {given}", g.name));
        }
    }

    /// A direct call of a function of the module whose type the reference does not carry, and that has no effect.
    fn is_pure_direct_call(&self, call: &Call) -> bool {
        let Expr::Global(g) = &call.op else { return false };
        self.module.get_as::<Function>(&g.name).is_some_and(|f| f.pure)
            || self.module.get_as::<PrimFunc>(&g.name).is_some_and(|f| effect_of(&f).is_none())
    }

    fn operand(&mut self, e: &Expr) {
        match e {
            Expr::Var(_) | Expr::DataflowVar(_) => {
                let Some(var) = e.as_var() else { return };
                let symbolic = matches!(&var, AnyVar::Var(v) if self.symbols.contains(v));
                if !self.visible.contains(&var) && !symbolic {
                    self.report(Code::Unbound, format!("variable `{}` is used where it is not bound", var.name()));
                }
            }
            Expr::Tuple(tuple) => tuple.fields.iter().for_each(|f| self.operand(f)),
            Expr::Global(g) if !self.is_alone && self.module.get(&g.name).is_none() => {
                self.report(Code::Callee, format!("the module has no function `{}`", g.name));
            }
            Expr::Shape(shape) => shape.values.iter().for_each(|d| self.dim(d)),
            Expr::Prim(p) => self.dim(&p.value),
            Expr::Call(_) | Expr::If(_) | Expr::Seq(_) | Expr::TupleGetItem(_) | Expr::Function(_) => {
                self.report(Code::NotNormal, "a computation stands as an operand; bind it to a variable");
            }
            _ => {}
        }
    }

    fn dim(&mut self, e: &PrimExpr) {
        for var in free_vars(e) {
            if !self.symbols.contains(&var) {
                self.report(
                    Code::FreeSymbol,
                    format!("symbolic variable `{}` is used before anything binds it", var.name),
                );
            }
        }
    }

    fn check_symbols(&mut self, ty: &Type) {
        let mut dims = Vec::new();
        for_each_dim(ty, &mut |d| dims.push(d.clone()));
        for dim in &dims {
            self.dim(dim);
            if !dim.dtype().is_integer() {
                let problem =
                    format!("the dimension {} is of type {}: dimensions are integers", dim_text(dim), dim.dtype());
                self.report(Code::Contradiction, problem);
            }
        }
    }
}

/// The type of what a binding binds.
fn bound_type(binding: &Binding) -> Type {
    match binding {
        Binding::Var(bound) => bound.value.ty(),
        Binding::MatchCast(cast) => cast.ty.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use relaxide_ffi::DataType;
    use relaxide_ir::{Attrs, GlobalVar};

    fn function(params: Vec<Ref<Var>>, bindings: Vec<Binding>, dataflow: bool, body: Expr) -> IRModule {
        let blocks = vec![Ref::new(BindingBlock { bindings, dataflow })];
        let ret_ty = body.ty();
        let body = Ref::new(SeqExpr { blocks, body });
        let mut module = IRModule::new();
        module.insert("f", Ref::new(Function { params, body, ret_ty, pure: true, attrs: Attrs::new(), span: None }));
        module
    }

    fn problems(module: &IRModule) -> Vec<String> {
        check_module(module).into_iter().map(|v| v.problem).collect()
    }

    fn bind(var: &Ref<Var>, value: Expr) -> Binding {
        Ref::new(VarBinding { var: AnyVar::Var(var.clone()), value }).into()
    }

    fn vector() -> Type {
        Type::tensor([4i64], DataType::float(32))
    }

    fn exp(x: &Ref<Var>) -> Expr {
        op::call("exp", [Expr::Var(x.clone())], Attrs::new()).expect("the call is right")
    }

    #[test]
    fn a_function_that_keeps_the_rules_has_no_violation() {
        let (x, y) = (Var::new("x", vector()), Var::new("y", vector()));
        let module = function(vec![x.clone()], vec![bind(&y, exp(&x))], false, Expr::Var(y));
        assert_eq!(problems(&module), Vec::<String>::new());
    }

    #[test]
    fn a_variable_is_bound_once_and_before_it_is_used() {
        let (x, y) = (Var::new("x", vector()), Var::new("y", vector()));
        let twice = function(vec![x.clone()], vec![bind(&y, exp(&x)), bind(&y, exp(&x))], false, Expr::Var(y.clone()));
        assert_eq!(problems(&twice), ["variable `y` is bound twice"]);
        let early = function(vec![x.clone()], vec![bind(&x, exp(&y))], false, Expr::Var(x.clone()));
        assert_eq!(problems(&early), ["variable `y` is used where it is not bound", "variable `x` is bound twice"]);
    }

    #[test]
    fn operands_are_not_computations() {
        let (x, y) = (Var::new("x", vector()), Var::new("y", vector()));
        let nested = op::call("exp", [exp(&x)], Attrs::new()).expect("the call is right");
        let module = function(vec![x], vec![bind(&y, nested)], false, Expr::Var(y));
        assert_eq!(problems(&module), ["a computation stands as an operand; bind it to a variable"]);
    }

    #[test]
    fn symbolic_variables_are_bound_before_types_use_them() {
        let n = Var::dim("n");
        let x = Var::new("x", Type::tensor([PrimExpr::from(&n) * 2], DataType::float(32)));
        let module = function(vec![x.clone()], Vec::new(), false, Expr::Var(x));
        let message = "symbolic variable `n` is used before anything binds it".to_string();
        assert_eq!(problems(&module), [message.clone(), message]);
    }

    #[test]
    fn a_dataflow_block_holds_no_impure_call() {
        let (x, y) = (Var::new("x", vector()), Var::new("y", Type::void()));
        let print = op::call("print", [Expr::Var(x.clone())], Attrs::new()).expect("the call is right");
        let module = function(vec![x.clone()], vec![bind(&y, print)], true, Expr::Var(x));
        assert_eq!(problems(&module).len(), 1);
        assert!(problems(&module)[0].contains("a dataflow block"));
    }

    #[test]
    fn a_function_gets_as_many_arguments_as_it_takes() {
        let (x, y) = (Var::new("x", vector()), Var::new("y", vector()));
        let call = |args: Vec<Expr>| {
            let (op, attrs) = (GlobalVar::new("f").into(), Attrs::new());
            Expr::from(Ref::new(Call { op, args, attrs, ty_args: Vec::new(), ty: vector(), span: None }))
        };
        let fits = function(vec![x.clone()], vec![bind(&y, call(vec![x.clone().into()]))], false, Expr::Var(y.clone()));
        assert_eq!(problems(&fits), Vec::<String>::new());
        let two = call(vec![x.clone().into(), x.clone().into()]);
        let more = function(vec![x], vec![bind(&y, two)], false, Expr::Var(y));
        assert_eq!(problems(&more), ["`f` takes 1 arguments, not 2"]);
    }
}
