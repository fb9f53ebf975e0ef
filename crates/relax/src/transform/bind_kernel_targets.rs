//! BindKernelTargets: a kernel is made for the device that its tensors are on.
//!
//! ```text
//! a = R.call_tir(cls.exp, (x,), R.Tensor((n,), vdevice="opencl:0"))     def exp(…):      # {"target": "opencl"}
//! c = R.call_tir(cls.add, (b, b), R.Tensor((n,), vdevice="llvm:0"))     def add(…):      # as the program's
//! ```
//!
//! A call whose tensors are on a device of another kind than the program is compiled for gets a kernel with that device's target. A kernel
//! that is called on devices of two kinds becomes two. What says no device is for the program's own target, and so is what says its kind.
//!
//! Needs: devices in types (`RealizeVDevice`), kernels (`LegalizeOps`). Does nothing for programs that list no devices.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::pass::{PassInfo, PassResult};
use relaxide_ir::target::TargetKind;
use relaxide_ir::{GlobalVar, IRModule, Target, Type};
use relaxide_tir::PrimFunc;

use crate::op::core::{CallTir, output_types};
use crate::rewrite::{Action, Rewrite, rewrite_module};
use crate::*;

const NAME: &str = "BindKernelTargets";

/// The attribute that says what a kernel is for.
const TARGET_ATTR: &str = "target";

pub(super) const PASS: PassInfo =
    PassInfo::new(NAME, "Kernels are for the devices that their tensors are on.", |module, context, _| {
        run(module, context.target.kind)
    });

fn run(module: IRModule, own: TargetKind) -> PassResult {
    if module.vdevices.is_empty() {
        return Ok(module);
    }
    rewrite_module(NAME, module, &mut Bind { own, made: HashMap::new() })
}

struct Bind {
    /// What the program is compiled for.
    own: TargetKind,
    /// The kernels that were made, by the kernel and the target.
    made: HashMap<(String, String), Ref<GlobalVar>>,
}

impl Rewrite for Bind {
    fn value(&mut self, b: &mut BlockBuilder, _: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let (Some(call), Expr::Call(node)) = (CallTir::of(&value), &value) else { return Ok(Action::Bind(value)) };
        let types = output_types(&node.ty).into_iter().chain(call.args.iter().map(Expr::ty));
        let Some(target) = types.filter_map(|ty| target_of(&ty)).next() else { return Ok(Action::Bind(value)) };
        if target.kind == self.own {
            return Ok(Action::Bind(value));
        }
        let name = &call.func.name;
        let Some(kernel) = b.module().get_as::<PrimFunc>(name) else { return Ok(Action::Bind(value)) };
        if kernel.attrs.get(TARGET_ATTR).is_some() {
            return Ok(Action::Bind(value));
        }
        let key = (name.clone(), target.to_string());
        let callee = match self.made.get(&key) {
            Some(callee) => callee.clone(),
            None => {
                let mut new = PrimFunc::clone(&kernel);
                new.attrs = new.attrs.with(TARGET_ATTR, key.1.clone());
                new.attrs.0.shift_remove("global_symbol");
                let own = b.module().fresh_name(&format!("{name}_{}", target.kind));
                b.module_mut().insert(own.clone(), Ref::new(new));
                let callee = GlobalVar::new(own);
                self.made.insert(key, callee.clone());
                callee
            }
        };
        let args = std::iter::once(Expr::Global(callee)).chain(node.args.iter().skip(1).cloned()).collect();
        Ok(Action::Bind(Ref::new(node.rebuilt(node.op.clone(), args)).into()))
    }
}

/// The target of a tensor's device.
pub(super) fn target_of(ty: &Type) -> Option<Ref<Target>> {
    let Type::Tensor(tensor) = ty else { return None };
    tensor.vdevice.as_ref()?.target.clone()
}
