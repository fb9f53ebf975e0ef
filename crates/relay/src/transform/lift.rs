//! LambdaLift: functions inside of functions become functions of the module.
//!
//! ```text
//! let %f = fn (%x) { %x + %y }; …    becomes    def @lifted_name0(%y) { fn (%x, Closure=1) { %x + %y } }
//!                                                let %f = @lifted_name0(%y); …
//! ```
//!
//! A function that captures nothing is called by its name; one that captures becomes a function that makes the closure, as
//! the reference writes it. A local function that calls itself calls the lifted one.

use relaxide_ffi::Ref;

use super::simplify::substitute;
use super::table::TransformError;
use crate::rewrite::rewrite;
use crate::*;

/// The module without functions inside of functions, but for those that are one kernel.
pub fn lambda_lift(module: &Module) -> Result<Module, TransformError> {
    let module = &super::eta_expand(module);
    let types = infer(&prelude::with_prelude(module).map_err(TransformError::Value)?).map_err(TransformError::Types)?;
    let mut out = module.clone();
    let names: Vec<String> = module.functions.keys().cloned().collect();
    for name in names {
        let function = module.functions[&name].clone();
        let body = lift(&function.body, &types, &mut out);
        out.functions.insert(name, function.with_body(body));
    }
    Ok(out)
}

fn lift(body: &Expr, types: &Types, module: &mut Module) -> Expr {
    // Functions that a name binds know themselves by it.
    let mut own: std::collections::HashMap<usize, Ref<Var>> = std::collections::HashMap::new();
    visit::each(body, |expr| {
        if let Expr::Let(l) = expr
            && matches!(l.value, Expr::Function(_))
        {
            own.insert(l.value.address(), l.var.clone());
        }
    });
    rewrite(body, &mut |new, old| {
        let Expr::Function(f) = new else { return None };
        if f.is_primitive() || f.attrs.int("Closure").is_some() {
            return None;
        }
        let itself = own.get(&old.address());
        let free: Vec<Ref<Var>> =
            visit::free_vars(new).into_iter().filter(|v| itself.is_none_or(|own| !Ref::ptr_eq(own, v))).collect();
        let index = (0..).find(|i| !module.functions.contains_key(&format!("lifted_name{i}")))?;
        let name = format!("lifted_name{index}");
        let call = |args: Vec<Expr>| match args.is_empty() {
            true => Expr::global(name.clone()),
            false => Expr::call(Expr::global(name.clone()), args),
        };
        let captured: Vec<Expr> = free.iter().map(Expr::from).collect();
        let mut inner = f.body.clone();
        if let Some(own) = itself {
            inner = substitute(&inner, own, &call(captured.clone()));
        }
        // What is lifted has variables of its own in the place of those that it captures.
        let params: Vec<Ref<Var>> =
            free.iter().map(|v| Var::new(v.name.clone(), v.annotation.clone().or_else(|| types.of_var(v)))).collect();
        for (var, param) in free.iter().zip(&params) {
            inner = substitute(&inner, var, &param.into());
        }
        let mut attrs = f.attrs.clone();
        if !params.is_empty() {
            attrs = attrs.with("Closure", 1i64);
        }
        let lifted = Ref::new(Function {
            type_params: f.type_params.clone(),
            params: f.params.clone(),
            body: inner,
            ret_type: f.ret_type.clone(),
            attrs,
            span: f.span.clone(),
        });
        let lifted = if params.is_empty() { lifted } else { Function::new(params, lifted.into(), None) };
        module.functions.insert(name.clone(), lifted);
        Some(call(captured))
    })
}
