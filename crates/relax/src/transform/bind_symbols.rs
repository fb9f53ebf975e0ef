//! BindSymbolicVars: symbolic dimensions take given values.
//!
//! ```text
//! x: R.Tensor((n, 4))   with n = 8   →   x: R.Tensor((8, 4))
//! ```
//!
//! Every type, shape and scalar of the function is rewritten, parameters included, so that later passes see constants.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::pass::{ParamKind, Pass, PassError, PassInfo, PassParam, PassResult};
use relaxide_ir::prim::{self, PrimExpr, VarMap, free_vars, substitute};
use relaxide_ir::{AttrValue, IRModule, Var};

use crate::functor::ExprMutator;
use crate::shape::{map_dims, vars_of};
use crate::*;

const NAME: &str = "BindSymbolicVars";

pub(super) const PASS: PassInfo = PassInfo::new(NAME, "Symbolic dimensions take given values.", |module, _, args| {
    let Some(AttrValue::Map(given)) = args.get("binding_map") else { return Ok(module) };
    let integer = |(name, value): (&String, &AttrValue)| match value {
        AttrValue::Int(value) => Ok((Symbol::Name(name.clone()), PrimExpr::from(*value))),
        _ => Err(PassError::arguments(NAME, format!("the value of {name} is no integer"))),
    };
    let values = given.iter().map(integer).collect::<Result<Vec<_>, _>>()?;
    bind(module, &values, args.str("func_name"))
})
.params(&[
    PassParam::required("binding_map", ParamKind::Map, "Integers by the names of symbolic variables."),
    PassParam::optional("func_name", ParamKind::Str, "The function; all, where nothing is said."),
]);

/// Which symbolic variable is meant.
#[derive(Clone, Debug)]
pub enum Symbol {
    /// The one of a name, which no other has.
    Name(String),
    /// The variable itself.
    Var(Ref<Var>),
}

impl Symbol {
    fn is(&self, var: &Ref<Var>) -> bool {
        match self {
            Symbol::Name(name) => var.name == *name,
            Symbol::Var(own) => own == var,
        }
    }

    fn name(&self) -> &str {
        match self {
            Symbol::Name(name) => name,
            Symbol::Var(var) => &var.name,
        }
    }
}

/// The pass with values that are expressions, by names or by variables.
pub fn bind_symbols(values: Vec<(Symbol, PrimExpr)>, func_name: Option<String>) -> Pass {
    Pass::new(NAME, move |module, _| bind(module, &values, func_name.as_deref()))
}

fn bind(module: IRModule, values: &[(Symbol, PrimExpr)], func_name: Option<&str>) -> PassResult {
    let Some(name) = func_name else { return everywhere(module, values) };
    bind_symbolic_vars(&module, name, values).map_err(|e| PassError::new(NAME, e.to_string()))
}

/// Binds in every function what the function has. What no function has is an error.
fn everywhere(mut module: IRModule, values: &[(Symbol, PrimExpr)]) -> PassResult {
    let mut seen = vec![false; values.len()];
    let functions: Vec<_> = module.functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    for (name, func) in functions {
        let vars = vars_of(func.params.iter().map(|p| &p.ty));
        let has = |(symbol, _): &(Symbol, PrimExpr)| vars.iter().any(|var| symbol.is(var));
        seen.iter_mut().zip(values).for_each(|(seen, value)| *seen |= has(value));
        let here: Vec<_> = values.iter().filter(|value| has(value)).cloned().collect();
        module = bind(module, &here, Some(&name))?;
    }
    match seen.iter().zip(values).find(|(seen, _)| !**seen) {
        Some((_, (symbol, _))) => {
            let message = format!("no function has a symbolic variable `{}`", symbol.name());
            Err(PassError::arguments(NAME, message))
        }
        None => Ok(module),
    }
}

/// Binds symbolic variables of the function `name`. What the function does not have is an error, and so is a name that several have.
pub fn bind_symbolic_vars(
    module: &IRModule,
    name: &str,
    values: &[(Symbol, PrimExpr)],
) -> Result<IRModule, BuildError> {
    let func = module
        .get_as::<Function>(name)
        .ok_or_else(|| BuildError::Program(format!("the module has no Relax function `{name}`")))?;
    let vars: Vec<Ref<Var>> = vars_of(func.params.iter().map(|p| &p.ty)).into_iter().collect();
    let refuse = |message: String| Err(BuildError::Program(message));
    let mut bound = VarMap::default();
    for (symbol, value) in values {
        let called = symbol.name();
        let meant: Vec<&Ref<Var>> = vars.iter().filter(|var| symbol.is(var)).collect();
        let [var] = meant.as_slice() else {
            let known = vars.iter().map(|v| v.name.as_str()).collect::<Vec<_>>().join(", ");
            return refuse(match (meant.len(), symbol) {
                (0, Symbol::Var(_)) => {
                    format!("function `{name}` has no such symbolic variable `{called}`; it has: {known}")
                }
                (0, _) => format!("function `{name}` has no symbolic variable `{called}`; it has: {known}"),
                _ => format!(
                    "function `{name}` has several symbolic variables `{called}`: give the variable, not its name"
                ),
            });
        };
        let value = value.as_int().map_or_else(|| value.clone(), |number| prim::int_of(var.dtype(), number));
        if bound.insert(Ref::clone(var), value).is_some() {
            return refuse(format!("the symbolic variable `{called}` is given two values"));
        }
    }
    let mut module = module.clone();
    module.insert(name, SymbolMutator { simplifies: true, ..SymbolMutator::new(bound) }.function(&func));
    Ok(module)
}

/// Puts expressions in the place of symbolic variables throughout a function.
pub(super) struct SymbolMutator {
    symbols: VarMap,
    vars: HashMap<AnyVar, AnyVar>,
    /// Whether variables become new ones even where no type changes.
    renew: bool,
    /// Whether dimensions that change are simplified.
    simplifies: bool,
}

impl SymbolMutator {
    pub fn new(symbols: VarMap) -> Self {
        SymbolMutator { symbols, vars: HashMap::new(), renew: false, simplifies: false }
    }

    /// One that makes every variable that is bound a new one, too.
    pub fn renewing(symbols: VarMap) -> Self {
        SymbolMutator { renew: true, ..SymbolMutator::new(symbols) }
    }

    /// A function with parameters of the new types.
    pub fn function(&mut self, func: &Ref<Function>) -> Ref<Function> {
        if self.symbols.is_empty() && !self.renew {
            return func.clone();
        }
        let params = func
            .params
            .iter()
            .map(|p| {
                let new = Ref::new(Var { name: p.name.clone(), ty: self.ty(&p.ty), span: p.span.clone() });
                self.vars.insert(AnyVar::Var(p.clone()), AnyVar::Var(new.clone()));
                new
            })
            .collect();
        let func = Ref::new(Function { params, ..(**func).clone() });
        self.function_body(&func)
    }

    /// A function with its parameters as they are.
    pub fn function_body(&mut self, func: &Ref<Function>) -> Ref<Function> {
        if self.symbols.is_empty() && !self.renew {
            return func.clone();
        }
        let body = self.mutate_seq(&func.body);
        Ref::new(Function { body, ret_ty: self.ty(&func.ret_ty), ..(**func).clone() })
    }

    fn ty(&self, ty: &relaxide_ir::Type) -> relaxide_ir::Type {
        if self.symbols.is_empty() { ty.clone() } else { map_dims(ty, &|dim| self.dim(dim)) }
    }

    /// A dimension of the new variables.
    fn dim(&self, dim: &PrimExpr) -> PrimExpr {
        let new = self.scalar(dim);
        let changes = self.simplifies && free_vars(dim).iter().any(|var| self.symbols.contains_key(var));
        if changes { Analyzer::new().simplify(&new) } else { new }
    }

    /// A scalar that is computed while the program runs.
    fn scalar(&self, e: &PrimExpr) -> PrimExpr {
        substitute(e, &self.symbols)
    }

    fn var(&mut self, var: &AnyVar) -> AnyVar {
        let ty = self.ty(var.ty());
        let new = var.with_type(ty);
        self.vars.insert(var.clone(), new.clone());
        new
    }
}

impl ExprMutator for SymbolMutator {
    fn mutate_expr(&mut self, e: &Expr) -> Expr {
        match e {
            Expr::Var(_) | Expr::DataflowVar(_) => match e.as_var().and_then(|v| self.vars.get(&v)) {
                Some(new) => new.clone().into(),
                None => match e {
                    Expr::Var(v) if self.symbols.contains_key(v) => Expr::prim(self.scalar(&PrimExpr::Var(v.clone()))),
                    _ => e.clone(),
                },
            },
            Expr::Prim(p) => Expr::prim(self.scalar(&p.value)),
            Expr::Shape(s) => Expr::shape(s.values.iter().map(|d| self.dim(d))),
            Expr::Call(c) => {
                let op = self.mutate_expr(&c.op);
                let args = self.mutate_exprs(&c.args);
                let ty_args = c.ty_args.iter().map(|t| self.ty(t)).collect();
                let (attrs, ty, span) = (c.attrs.clone(), self.ty(&c.ty), c.span.clone());
                Ref::new(Call { op, args, attrs, ty_args, ty, span }).into()
            }
            Expr::If(n) => {
                let condition = self.mutate_expr(&n.condition);
                let (true_branch, false_branch) = (self.mutate_seq(&n.true_branch), self.mutate_seq(&n.false_branch));
                Ref::new(If { condition, true_branch, false_branch, ty: self.ty(&n.ty) }).into()
            }
            Expr::Function(f) => self.function(f).into(),
            _ => self.remake_expr(e),
        }
    }

    fn mutate_binding(&mut self, binding: &Binding, out: &mut Vec<Binding>) {
        let value = self.mutate_expr(binding.value());
        let var = self.var(binding.var());
        out.push(match binding {
            Binding::Var(_) => Ref::new(VarBinding { var, value }).into(),
            Binding::MatchCast(cast) => Ref::new(MatchCast { var, value, ty: self.ty(&cast.ty) }).into(),
        });
    }
}
