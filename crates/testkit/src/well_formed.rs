//! What must hold of every Relax function, whatever pass made it.
//!
//! **Structure** holds at every stage: a variable is bound once and before it is used, a dataflow variable ends with its
//! block, operands are variables, constants or tuples of those, and a dataflow block holds no control flow. **Meaning**
//! holds until passes give it up on purpose: a pure function and a dataflow block call nothing that has effects, and every
//! symbolic dimension comes from a parameter or a `match_cast`.

use std::collections::HashSet;

use relaxide_ffi::{ObjectRef, Ref};
use relaxide_ir::{IRModule, Type, Var, prim::free_vars};
use relaxide_relax::shape::{defined_vars, vars_of};
use relaxide_relax::{AnyVar, Binding, BindingBlock, Call, Expr, Function, If, SeqExpr};

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Bindings, scopes and operands.
    Structure,
    /// Effects and symbolic dimensions as well.
    Meaning,
}

/// All problems of a module's Relax functions, each with the function's name.
pub fn problems(module: &IRModule, level: Level) -> Vec<String> {
    let mut found = Vec::new();
    for (name, func) in module.functions_of::<Function>() {
        let mut check = Check {
            level,
            pure: false,
            in_dataflow: false,
            scopes: Vec::new(),
            bound: HashSet::new(),
            symbols: HashSet::new(),
            found: Vec::new(),
        };
        check.function(&func);
        found.extend(check.found.into_iter().map(|problem| format!("{name}: {problem}")));
    }
    found
}

struct Check {
    level: Level,
    pure: bool,
    in_dataflow: bool,
    scopes: Vec<HashSet<ObjectRef>>,
    bound: HashSet<ObjectRef>,
    symbols: HashSet<Ref<Var>>,
    found: Vec<String>,
}

impl Check {
    fn function(&mut self, func: &Function) {
        let forced = func.attrs.bool("relax.force_pure") == Some(true);
        let outer_pure = std::mem::replace(&mut self.pure, func.pure && !forced);
        let outer_dataflow = std::mem::replace(&mut self.in_dataflow, false);
        let outer_symbols = self.symbols.clone();
        self.symbols.extend(defined_vars(func.params.iter().map(|p| &p.ty)));
        self.symbols.extend(func.params.iter().filter(|p| matches!(p.ty, Type::Prim(_))).cloned());
        self.scopes.push(HashSet::new());
        for param in &func.params {
            self.bind(&AnyVar::Var(param.clone()));
        }
        self.seq(&func.body);
        self.scopes.pop();
        self.symbols = outer_symbols;
        (self.pure, self.in_dataflow) = (outer_pure, outer_dataflow);
    }

    fn seq(&mut self, seq: &SeqExpr) {
        seq.blocks.iter().for_each(|block| self.block(block));
        self.operand(&seq.body);
    }

    fn block(&mut self, block: &BindingBlock) {
        let outer = std::mem::replace(&mut self.in_dataflow, block.dataflow);
        self.scopes.push(HashSet::new());
        block.bindings.iter().for_each(|b| self.binding(b));
        let inner = self.scopes.pop().unwrap_or_default();
        // What is no dataflow variable lives on behind the block.
        let kept = inner.into_iter().filter(|v| !v.is::<relaxide_relax::DataflowVar>());
        if let Some(scope) = self.scopes.last_mut() {
            scope.extend(kept);
        }
        self.in_dataflow = outer;
    }

    fn binding(&mut self, binding: &Binding) {
        match binding {
            Binding::Var(b) => {
                // A local function may call itself.
                if matches!(b.value, Expr::Function(_)) {
                    self.bind(&b.var);
                    self.value(&b.value);
                } else {
                    self.value(&b.value);
                    self.bind(&b.var);
                }
            }
            Binding::MatchCast(b) => {
                self.operand(&b.value);
                self.symbols.extend(vars_of([&b.ty]));
                self.bind(&b.var);
            }
        }
        self.dims(binding.var().ty(), binding.var().name());
    }

    fn bind(&mut self, var: &AnyVar) {
        if matches!(var, AnyVar::Dataflow(_)) && !self.in_dataflow {
            self.found.push(format!("the dataflow variable `{}` is bound outside of a dataflow block", var.name()));
        }
        let node = ObjectRef::from(Expr::from(var.clone()));
        if !self.bound.insert(node.clone()) {
            self.found.push(format!("`{}` is bound twice", var.name()));
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(node);
        }
    }

    fn value(&mut self, value: &Expr) {
        match value {
            Expr::Call(call) => self.call(call),
            Expr::If(branch) => self.branch(branch),
            Expr::Function(func) => self.function(func),
            Expr::TupleGetItem(get) => self.operand(&get.tuple),
            other => self.operand(other),
        }
    }

    fn branch(&mut self, branch: &If) {
        if self.in_dataflow {
            self.found.push("a dataflow block holds control flow".into());
        }
        self.operand(&branch.condition);
        for seq in [&branch.true_branch, &branch.false_branch] {
            self.scopes.push(HashSet::new());
            self.seq(seq);
            self.scopes.pop();
        }
    }

    fn call(&mut self, call: &Call) {
        if !matches!(call.op, Expr::Op(_)) {
            self.operand(&call.op);
        }
        call.args.iter().for_each(|arg| self.operand(arg));
        if self.level == Level::Meaning && (self.pure || self.in_dataflow) && !is_pure(call) {
            let place = if self.in_dataflow { "a dataflow block" } else { "a pure function" };
            self.found.push(format!("{place} calls `{}`, which may have effects", callee(call)));
        }
    }

    /// An operand: a variable in scope, a constant, or a tuple of operands.
    fn operand(&mut self, e: &Expr) {
        match e {
            Expr::Var(v) => self.used(e, &v.name),
            Expr::DataflowVar(v) => self.used(e, &v.name),
            Expr::Tuple(tuple) => tuple.fields.iter().for_each(|f| self.operand(f)),
            Expr::Call(_) | Expr::TupleGetItem(_) | Expr::If(_) | Expr::Seq(_) | Expr::Function(_) => {
                self.found.push(format!("an operand is a computation: {}", relaxide_script::print_expr(e)));
            }
            Expr::Prim(p) => self.known(free_vars(&p.value), "a scalar"),
            Expr::Shape(s) => self.known(s.values.iter().flat_map(free_vars).collect(), "a shape"),
            Expr::Global(_) | Expr::Extern(_) | Expr::Op(_) | Expr::Constant(_) | Expr::Str(_) | Expr::DType(_) => {}
        }
    }

    fn used(&mut self, e: &Expr, name: &str) {
        let node = ObjectRef::from(e.clone());
        if !self.scopes.iter().any(|scope| scope.contains(&node)) {
            self.found.push(format!("`{name}` is used where it is not in scope"));
        }
    }

    fn dims(&mut self, ty: &Type, name: &str) {
        self.known(vars_of([ty]), &format!("the type of `{name}`"));
    }

    fn known(&mut self, vars: Vec<Ref<Var>>, place: &str) {
        if self.level == Level::Structure {
            return;
        }
        for var in vars.iter().filter(|v| !self.symbols.contains(*v)) {
            self.found.push(format!("{place} has the dimension `{}`, which nothing defines", var.name));
        }
    }
}

fn is_pure(call: &Call) -> bool {
    match &call.op {
        Expr::Op(op) => op.def().is_some_and(|def| def.pure),
        Expr::Extern(_) => false,
        other => match other.ty() {
            Type::Func(f) => f.pure,
            _ => false,
        },
    }
}

fn callee(call: &Call) -> String {
    match &call.op {
        Expr::Op(op) => format!("R.{}", op.name),
        Expr::Extern(f) => f.global_symbol.clone(),
        Expr::Global(v) => v.name.clone(),
        other => relaxide_script::print_expr(other),
    }
}
