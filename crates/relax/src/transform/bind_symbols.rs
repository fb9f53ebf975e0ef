//! BindSymbolicVars: symbolic dimensions take given values.
//!
//! ```text
//! x: R.Tensor((n, 4))   with n = 8   →   x: R.Tensor((8, 4))
//! ```
//!
//! Every type, shape and scalar of the function is rewritten, parameters included, so that later passes see constants.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::pass::{ParamKind, PassError, PassInfo, PassParam, PassResult};
use relaxide_ir::prim::{PrimExpr, VarMap, substitute};
use relaxide_ir::{AttrValue, IRModule, Var};

use crate::functor::ExprMutator;
use crate::shape::{substitute_type, vars_of};
use crate::*;

const NAME: &str = "BindSymbolicVars";

pub(super) const PASS: PassInfo = PassInfo::new(NAME, "Symbolic dimensions take given values.", |module, _, args| {
    let Some(AttrValue::Map(given)) = args.get("binding_map") else { return Ok(module) };
    let integer = |(name, value): (&String, &AttrValue)| match value {
        AttrValue::Int(value) => Ok((name.clone(), *value)),
        _ => Err(PassError::arguments(NAME, format!("the value of {name} is no integer"))),
    };
    let values = given.iter().map(integer).collect::<Result<HashMap<_, _>, _>>()?;
    let bind = |module: &IRModule, name: &str, values: &HashMap<String, i64>| {
        bind_symbolic_vars(module, name, values).map_err(|e| PassError::new(NAME, e.to_string()))
    };
    if let Some(name) = args.str("func_name") {
        return bind(&module, name, &values);
    }
    everywhere(module, &values, bind)
})
.params(&[
    PassParam::required("binding_map", ParamKind::Map, "Integers by the names of symbolic variables."),
    PassParam::optional("func_name", ParamKind::Str, "The function; all, where nothing is said."),
]);

/// Binds in every function what the function has. A name that no function has is an error.
fn everywhere(
    mut module: IRModule,
    values: &HashMap<String, i64>,
    bind: impl Fn(&IRModule, &str, &HashMap<String, i64>) -> PassResult,
) -> PassResult {
    let mut seen = HashSet::new();
    let functions: Vec<_> = module.functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    for (name, func) in functions {
        let names: HashSet<String> =
            vars_of(func.params.iter().map(|p| &p.ty)).iter().map(|v| v.name.clone()).collect();
        let here = values.iter().filter(|(n, _)| names.contains(*n)).map(|(n, v)| (n.clone(), *v)).collect();
        module = bind(&module, &name, &here)?;
        seen.extend(names);
    }
    match values.keys().find(|name| !seen.contains(*name)) {
        Some(name) => Err(PassError::arguments(NAME, format!("no function has a symbolic variable `{name}`"))),
        None => Ok(module),
    }
}

/// Binds symbolic variables of the function `name` by their names. Names that the function does not have are an error.
pub fn bind_symbolic_vars(
    module: &IRModule,
    name: &str,
    values: &HashMap<String, i64>,
) -> Result<IRModule, BuildError> {
    let func = module
        .get_as::<Function>(name)
        .ok_or_else(|| BuildError::Program(format!("the module has no Relax function `{name}`")))?;
    let vars = vars_of(func.params.iter().map(|p| &p.ty));
    if let Some(unknown) = values.keys().find(|n| vars.iter().all(|v| v.name != **n)) {
        let known: Vec<_> = vars.iter().map(|v| v.name.as_str()).collect();
        return Err(BuildError::Program(format!(
            "function `{name}` has no symbolic variable `{unknown}`; it has: {}",
            known.join(", ")
        )));
    }
    let bound = vars.iter().filter_map(|v| Some((v.clone(), PrimExpr::from(*values.get(&v.name)?)))).collect();
    let mut module = module.clone();
    module.insert(name, SymbolMutator::new(bound).function(&func));
    Ok(module)
}

/// Puts expressions in the place of symbolic variables throughout a function.
pub(super) struct SymbolMutator {
    symbols: VarMap,
    vars: HashMap<AnyVar, AnyVar>,
    /// Whether variables become new ones even where no type changes.
    renew: bool,
}

impl SymbolMutator {
    pub fn new(symbols: VarMap) -> Self {
        SymbolMutator { symbols, vars: HashMap::new(), renew: false }
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
        substitute_type(ty, &self.symbols)
    }

    fn dim(&self, dim: &PrimExpr) -> PrimExpr {
        substitute(dim, &self.symbols)
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
                    Expr::Var(v) if self.symbols.contains_key(v) => Expr::prim(self.dim(&PrimExpr::Var(v.clone()))),
                    _ => e.clone(),
                },
            },
            Expr::Prim(p) => Expr::prim(self.dim(&p.value)),
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
