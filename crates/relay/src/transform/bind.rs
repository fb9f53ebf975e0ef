//! Weights in the place of a function's parameters.

use std::collections::HashMap;

use relaxide_ffi::{Ref, Tensor};
use relaxide_ir::diagnostic::closest;

use super::simplify::renamed;
use crate::rewrite::rewrite;
use crate::*;

/// Why weights cannot be put in the place of parameters.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BindError {
    /// What is to get them is no function.
    #[error("a function is expected")]
    NoFunction,
    /// A name that no parameter has.
    #[error("the function has no parameter `{name}`{}", .guess.as_ref().map_or(String::new(), |guess| format!("; did you mean `{guess}`?")))]
    Unknown {
        /// The name.
        name: String,
        /// The parameter that may be meant.
        guess: Option<String>,
    },
    /// A tensor of another type than the parameter's.
    #[error("the parameter `{name}` is of type {wanted}, and a tensor of type {given} is given")]
    Unfit {
        /// The parameter.
        name: String,
        /// Its type.
        wanted: Type,
        /// The tensor's.
        given: Type,
    },
}

/// The function with constants in the place of parameters of those names. Names that no parameter has are an error, as is a
/// tensor of another type than the parameter's.
pub fn bind_params(function: &Ref<Function>, tensors: &[(String, Tensor)]) -> Result<Ref<Function>, BindError> {
    // Parameters are told apart by name here: the function gets variables of its own first.
    let Expr::Function(function) = renamed(&Expr::Function(function.clone())) else {
        return Err(BindError::NoFunction);
    };
    let mut constants: HashMap<usize, Expr> = HashMap::new();
    for (name, tensor) in tensors {
        let Some(param) = function.params.iter().find(|p| p.name == *name) else {
            let guess = closest(name, function.params.iter().map(|p| p.name.as_str()));
            return Err(BindError::Unknown { name: name.clone(), guess: guess.map(str::to_string) });
        };
        if let Some(Type::Tensor(ty)) = &param.annotation {
            let fits = ty.shape.len() == tensor.shape().len()
                && ty.shape.iter().zip(tensor.shape()).all(|(want, have)| *want == ANY || want == have)
                && ty.dtype == tensor.dtype();
            if !fits {
                let given = Type::tensor(tensor.shape().to_vec(), tensor.dtype());
                let wanted = Type::Tensor(ty.clone());
                return Err(BindError::Unfit { name: name.clone(), wanted, given });
            }
        }
        constants.insert(Ref::as_ptr(param).addr(), Expr::constant(tensor.clone()));
    }
    let body = rewrite(&function.body, &mut |new, _| match new {
        Expr::Var(v) => constants.get(&Ref::as_ptr(v).addr()).cloned(),
        _ => None,
    });
    let is_left = |p: &&Ref<Var>| !constants.contains_key(&Ref::as_ptr(p).addr());
    Ok(Ref::new(Function {
        type_params: function.type_params.clone(),
        params: function.params.iter().filter(is_left).cloned().collect(),
        body,
        ret_type: function.ret_type.clone(),
        attrs: function.attrs.clone(),
        span: function.span.clone(),
    }))
}
