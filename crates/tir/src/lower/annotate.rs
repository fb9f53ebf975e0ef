//! Attributes of kernels: which target they are for, and which is the one to call.
//!
//! * `BindTarget(target)` gives each kernel that has none the attribute `target`: the target's text.
//! * `AnnotateEntryFunc` marks the only function of a module, if it is a kernel, with `tirx.is_entry_func`. Of several it marks none.

use relaxide_ffi::Ref;
use relaxide_ir::pass::{ParamKind, PassInfo, PassParam};
use relaxide_ir::{AttrValue, BaseFunc, Target};

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
    match target {
        Some(target) if func.attrs.get("target").is_none() => {
            Target::of_attr(target).map_err(|error| LowerError::Refused(error.to_string()))?;
            Ok(PrimFunc { attrs: func.attrs.clone().with("target", target.clone()), ..func.clone() })
        }
        _ => Ok(func.clone()),
    }
}
