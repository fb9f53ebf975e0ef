//! UpdateParamType: parameters of functions get other types.
//!
//! A closure says the new type of a parameter, or nothing. What the parameters' users are is typed anew; results of a
//! function keep their types where they leave it, which is an error if they cannot.

use std::sync::Arc;

use relaxide_ffi::Ref;
use relaxide_ir::pass::Pass;
use relaxide_ir::{Type, Var};

use crate::rewrite::{Action, ExprMap, Rewrite, in_function, rewrite_seq};
use crate::*;

const NAME: &str = "UpdateParamType";

/// The pass over every Relax function of a module. Calls of functions of the module are not adapted.
pub fn update_param_type(new_type: impl Fn(&Ref<Var>) -> Option<Type> + Send + Sync + 'static) -> Pass {
    let new_type = Arc::new(new_type);
    Pass::new(NAME, move |module, _| {
        let mut b = BlockBuilder::with_module(module);
        let functions: Vec<_> = b.module().functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
        for (name, func) in functions {
            let new = update(&mut b, &func, &*new_type).map_err(|e| in_function(NAME, &name, e))?;
            b.module_mut().insert(name, new);
        }
        Ok(b.finish())
    })
}

struct Retype;

impl Rewrite for Retype {
    fn value(&mut self, _: &mut BlockBuilder, _: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        Ok(Action::Bind(value))
    }
}

fn update(
    b: &mut BlockBuilder,
    func: &Ref<Function>,
    new_type: &dyn Fn(&Ref<Var>) -> Option<Type>,
) -> Result<Ref<Function>, BuildError> {
    let mut replaced = ExprMap::new();
    let mut params = func.params.clone();
    for param in &mut params {
        if let Some(ty) = new_type(param) {
            let new = Var::new(param.name.clone(), ty);
            replaced.insert(param.clone().into(), new.clone().into());
            *param = new;
        }
    }
    if replaced.is_empty() {
        return Ok(func.clone());
    }
    functor::bound_names(&func.body).iter().for_each(|n| b.reserve(n));
    let body = rewrite_seq(b, &func.body, &mut Retype, &mut replaced)?;
    Ok(Ref::new(Function { ret_ty: body.body.ty(), params, body, ..Function::clone(func) }))
}
