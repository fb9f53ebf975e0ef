//! Attributes of kernels: which target they are for, and which is the one to call.
//!
//! * `BindTarget(target)` gives each kernel that has none the attribute `target`: the target's text. A host is what kernels that are
//!   called from outside (`global_symbol`) have beside it; one of those that has a target without a host gets the host.
//! * `AnnotateEntryFunc` marks the only function of a module, if it is a kernel, with `tirx.is_entry_func`. Of several it marks none.

use relaxide_ffi::Ref;
use relaxide_ir::pass::{ParamKind, PassInfo, PassParam};
use relaxide_ir::{AttrValue, BaseFunc, Target, TargetError};

use super::{LowerError, kernel_pass_with};
use crate::PrimFunc;

pub(super) const TARGET: PassInfo =
    kernel_pass_with!("tirx.transform.BindTarget", "Kernels that name no target are for this one.", |func, _, args| {
        bind_target(func, args.get("target"))
    })
    .params(&[PassParam::required("target", ParamKind::Str, "The target, such as `llvm -mcpu=skylake`.")]);

pub(super) const ENTRY: PassInfo = PassInfo::new(
    "tirx.transform.AnnotateEntryFunc",
    "The only function of a module is the one to call.",
    |mut module, _, _| {
        let alone = module.functions.len() == 1;
        for func in module.functions.values_mut().filter(|_| alone) {
            let Some(kernel) = func.downcast::<PrimFunc>() else { continue };
            let attrs = kernel.attrs.clone().with("tirx.is_entry_func", true);
            *func = BaseFunc::from(Ref::new(PrimFunc { attrs, ..(*kernel).clone() }));
        }
        Ok(module)
    },
);

/// A kernel for a target.
fn bind_target(func: &PrimFunc, target: Option<&AttrValue>) -> Result<PrimFunc, LowerError> {
    let Some(text) = target else { return Ok(func.clone()) };
    let refused = |error: TargetError| LowerError::Refused(error.to_string());
    let target = Target::of_attr(text).map_err(refused)?;
    let is_called_from_outside = func.global_symbol().is_some();
    let bound = match func.target().map_err(refused)? {
        None if is_called_from_outside || target.host.is_none() => text.clone(),
        None => AttrValue::Str(Target { host: None, ..target }.to_string()),
        Some(own) if is_called_from_outside && own.host.is_none() && target.host.is_some() => {
            AttrValue::Str(Target { host: target.host, ..own }.to_string())
        }
        Some(_) => return Ok(func.clone()),
    };
    Ok(PrimFunc { attrs: func.attrs.clone().with("target", bound), ..func.clone() })
}
