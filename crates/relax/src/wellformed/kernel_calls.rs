//! Whether a call fits the function that it calls: the kernel of a `call_tir`, or a function of the module.
//!
//! A kernel's dimensions are names of its own, which its arguments give a meaning; a name that two arguments give different
//! lengths is a contradiction. Only what is sure is one: a length that is not known is checked when the program runs.

use std::collections::HashMap;

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::{PrimExpr, substitute};
use relaxide_ir::{Type, Var};
use relaxide_tir::PrimFunc;

use crate::display::type_text;
use crate::op::core::output_types;
use crate::shape::contradict;
use crate::*;

/// What is wrong with the arguments of a call of a kernel in destination-passing style.
pub(super) fn of_kernel(call: &Call, kernel: &PrimFunc) -> Option<String> {
    let Some(Expr::Tuple(inputs)) = call.args.get(1) else {
        return Some("the kernel's arguments are given as a tuple that is written out, `(x, y)`".into());
    };
    let inputs: Vec<Type> = inputs.fields.iter().map(Expr::ty).collect();
    if let Some(at) = inputs.iter().position(|ty| matches!(ty, Type::Tuple(_))) {
        return Some(format!("argument {at} is a tuple, and kernels take tensors and scalars: write its fields out"));
    }
    let outputs = output_types(&call.ty);
    let inplace = call.attrs.ints("inplace_indices").unwrap_or_default();
    // What a result is read as must be what its argument is: the memory is the argument's.
    let unlike = outputs.iter().zip(&inplace).enumerate().find_map(|(at, (output, index))| {
        let input = inputs.get(usize::try_from(*index).ok()?)?;
        contradict(input, output).then(|| {
            let (output, input) = (type_text(output), type_text(input));
            format!("output {at} is {output}, and argument {index}, whose place it takes, is {input}")
        })
    });
    if unlike.is_some() {
        return unlike;
    }
    let is_fresh = |at: usize| inplace.get(at).is_none_or(|index| *index < 0);
    let fresh = outputs.iter().enumerate().filter(|(at, _)| is_fresh(*at)).map(|(_, ty)| ty.clone());
    let given: Vec<(String, Type)> = inputs
        .into_iter()
        .enumerate()
        .map(|(at, ty)| (format!("argument {at}"), ty))
        .chain(fresh.enumerate().map(|(at, ty)| (format!("output {at}"), ty)))
        .collect();
    // The older form gives scalars behind the outputs.
    let scalars = match call.args.get(2).map(Expr::ty) {
        Some(Type::Shape(shape)) => shape.values.as_ref().map(Vec::len),
        Some(_) => None,
        None => Some(0),
    };
    let takes = kernel.params.len();
    if let Some(scalars) = scalars.filter(|scalars| given.len() + scalars != takes) {
        let what = if scalars == 0 { String::new() } else { format!(" and {scalars} scalars") };
        return Some(format!(
            "the kernel takes {takes} arguments, outputs among them, and is given {}{what}",
            given.len()
        ));
    }
    let mut names = CalleeLengths::default();
    let params = kernel.params.iter().zip(&kernel.buffers);
    given.iter().zip(params).find_map(|((what, ty), (param, buffer))| {
        let wanted = match buffer {
            Some(buffer) => Type::tensor(buffer.shape.clone(), buffer.dtype),
            None => param.ty.clone(),
        };
        names.mismatch(&wanted, ty).map(|why| format!("{what} of the kernel {why}"))
    })
}

/// What is wrong with the arguments of a call of a function.
pub(super) fn of_function(call: &Call, function: &Function) -> Option<String> {
    let mut names = CalleeLengths::default();
    let params = function.params.iter().zip(&call.args);
    params.enumerate().find_map(|(at, (param, arg))| {
        names.mismatch(&param.ty, &arg.ty()).map(|why| format!("argument {at} (`{}`) {why}", param.name))
    })
}

/// What the callee's names of lengths stand for.
#[derive(Default)]
struct CalleeLengths(HashMap<Ref<Var>, PrimExpr>);

impl CalleeLengths {
    /// Why a value of one type is no argument for a parameter of another; names get their meaning on the way.
    fn mismatch(&mut self, wanted: &Type, given: &Type) -> Option<String> {
        let error = || Some(format!("is {}, and {} is expected", type_text(given), type_text(wanted)));
        match (wanted, given) {
            (Type::Prim(wanted), Type::Prim(given)) => {
                // Numbers without a type of their own fit where their kind does.
                let kind = |dtype: DataType| (dtype.is_float(), dtype.is_bool());
                (kind(wanted.dtype) != kind(given.dtype)).then(error).flatten()
            }
            (Type::Prim(_), Type::Tensor(_)) | (Type::Tensor(_), Type::Prim(_)) => error(),
            _ if contradict(wanted, given) => error(),
            (Type::Tensor(wanted), Type::Tensor(given)) => {
                let (Some(wanted), Some(given)) = (&wanted.shape, &given.shape) else { return None };
                wanted.iter().zip(given).find_map(|(wanted, given)| self.length(wanted, given))
            }
            _ => None,
        }
    }

    /// Why a length cannot be that of a dimension.
    fn length(&mut self, wanted: &PrimExpr, given: &PrimExpr) -> Option<String> {
        if let Some(name) = wanted.as_var()
            && !self.0.contains_key(name)
        {
            self.0.insert(name.clone(), given.clone());
            return None;
        }
        let meant = substitute(wanted, &self.0);
        let (meant, given) = (meant.as_int()?, given.as_int()?);
        (meant != given).then(|| format!("has the length {given} where `{wanted}` is {meant}"))
    }
}
