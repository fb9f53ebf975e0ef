//! Programs split over two devices by chance.
//!
//! Each call of an operator is given one of two devices, and operands that lie on the other are copied; runs of calls share a
//! device, so that kernels are still fused and packed on both.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::{AttrValue, Attrs, IRModule, Type, VDevice};
use relaxide_relax::rewrite::{Action, Rewrite, rewrite_function};
use relaxide_relax::{AnyVar, BlockBuilder, BuildError, Expr, Function, op};

/// The module over these two devices; its parameters and results lie on the first. Functions that are to become one kernel stay whole.
pub fn split(module: IRModule, devices: [Ref<VDevice>; 2], seed: u32) -> Result<IRModule, BuildError> {
    let mut b = BlockBuilder::with_module(IRModule { vdevices: devices.to_vec(), ..module });
    let mut split = Split { devices, state: seed, current: 0, on: HashMap::new() };
    let functions: Vec<_> = b.module().functions_of::<Function>().map(|(name, f)| (name.to_string(), f)).collect();
    let is_whole = |f: &Function| ["Primitive", "Composite", "Codegen"].iter().any(|attr| f.attrs.get(attr).is_some());
    for (name, func) in functions.into_iter().filter(|(_, func)| !is_whole(func)) {
        let func = rewrite_function(&mut b, &func, &mut split)?;
        b.module_mut().insert(name, func);
    }
    Ok(b.finish())
}

struct Split {
    devices: [Ref<VDevice>; 2],
    state: u32,
    /// The device of the latest call.
    current: usize,
    /// The device of what was bound, by name, as variables whose type changes are made anew; whatever is not here lies on the first.
    on: HashMap<String, usize>,
}

impl Split {
    /// The next call's device: one in three changes it.
    fn next(&mut self) -> usize {
        self.state = self.state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if (self.state >> 16).is_multiple_of(3) {
            self.current = 1 - self.current;
        }
        self.current
    }

    /// An operand as it lies on a device.
    fn moved(&self, b: &mut BlockBuilder, operand: &Expr, to: usize) -> Result<Expr, BuildError> {
        match operand {
            Expr::Tuple(tuple) => {
                let fields = tuple.fields.iter().map(|field| self.moved(b, field, to));
                Ok(Expr::tuple(fields.collect::<Result<Vec<_>, _>>()?))
            }
            _ => match (operand.as_var(), operand.ty()) {
                (Some(var), Type::Tensor(_)) if self.on.get(var.name()).copied().unwrap_or(0) != to => {
                    let attrs =
                        Attrs::new().with("dst_vdevice", AttrValue::Object(self.devices[to].clone().into_object()));
                    b.op("to_vdevice", [operand.clone()], attrs)
                }
                _ => Ok(operand.clone()),
            },
        }
    }
}

impl Rewrite for Split {
    fn value(&mut self, b: &mut BlockBuilder, var: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let Expr::Call(call) = &value else {
            if let Some(source) = value.as_var().and_then(|source| self.on.get(source.name()).copied()) {
                self.on.insert(var.name().to_string(), source);
            }
            return Ok(Action::Bind(value));
        };
        let is_kernel = call.op_name().is_some() && matches!(call.ty, Type::Tensor(_));
        let device = if is_kernel { self.next() } else { 0 };
        let args = call.args.iter().map(|arg| self.moved(b, arg, device)).collect::<Result<Vec<_>, _>>()?;
        let moved = match call.op_name() {
            Some(name) => op::call_typed(name, args, call.attrs.clone(), call.ty_args.clone())?,
            None => call.with_args(args, call.ty.clone()).into(),
        };
        if is_kernel {
            self.on.insert(var.name().to_string(), device);
        }
        Ok(Action::Bind(moved))
    }

    fn result(&mut self, b: &mut BlockBuilder, result: Expr) -> Result<Expr, BuildError> {
        self.moved(b, &result, 0)
    }
}
