//! RealizeVDevice, UpdateVDevice: where tensors live, before and after.
//!
//! ```text
//! lv = R.hint_on_device(x, cuda(0))        lv: R.Tensor((2, 4), "float32", "cuda:0") = x
//! gv = R.add(lv, lv)                 →     gv: R.Tensor((2, 4), "float32", "cuda:0") = R.add(lv, lv)
//! ```
//!
//! `RealizeVDevice` gives every tensor the device that hints, types and copies (`to_vdevice`) say: the operands and the
//! result of an operator live on one device, so what is known of one holds for all, forwards and backwards, through tuples, branches and
//! calls of the module's functions ([`places`]). Then it makes the crossings that are needed, and no others ([`crossings`]): a hint for a
//! device where the value is already is the value; else it is a copy. A value is copied to a device once, as long as the copy can be
//! seen. Constants are copied to the devices that use them; the machine does that when it is made.
//!
//! `UpdateVDevice` puts another device in the place of one of the module's, everywhere.
//!
//! **Refuses** values that would have to live on two devices (`to_vdevice` copies between them), a hint for a device
//! that the module does not list, and an index that it does not have.
//!
//! **Differs from TVM**: places are found through calls and tuples; two devices for one value are an error that names both places,
//! whatever the operator; copies are not repeated; devices are compared by what they say.

mod crossings;
mod device_groups;
mod retype;

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::pass::{ParamKind, PassError, PassInfo, PassParam, PassResult};
use relaxide_ir::target::TargetError;
use relaxide_ir::{AttrValue, IRModule, Target, Type, VDevice};

use crate::rewrite::in_function;
use crate::*;

use crossings::Crossings;
use device_groups::DeviceGroups;
use retype::{Retype, on};

pub(super) const REALIZE: PassInfo =
    PassInfo::new("RealizeVDevice", "Every tensor gets the device that hints and copies say.", |module, _, _| {
        realize(module)
    });

const UPDATE_NAME: &str = "UpdateVDevice";

pub(super) const UPDATE: PassInfo =
    PassInfo::new(UPDATE_NAME, "Another device takes the place of one of the module's.", |module, _, args| {
        let device = match args.get("new_vdevice") {
            Some(AttrValue::Object(object)) => object.clone().downcast::<VDevice>().ok(),
            Some(AttrValue::Str(target)) => {
                let target: Target = target
                    .parse()
                    .map_err(|error: TargetError| PassError::arguments(UPDATE_NAME, error.to_string()))?;
                Some(VDevice::new(target, 0, "global"))
            }
            _ => None,
        };
        let Some(device) = device else {
            return Err(PassError::arguments("UpdateVDevice", "new_vdevice is a device, or the text of a target"));
        };
        update(module, device, args.int("index").unwrap_or(0))
    })
    .params(&[
        PassParam::required("new_vdevice", ParamKind::Any, "The device, or the text of a target."),
        PassParam::required("index", ParamKind::Int, "Which of the module's devices it replaces."),
    ]);

fn realize(module: IRModule) -> PassResult {
    let places = DeviceGroups::of(&module).map_err(|(name, why)| in_function(REALIZE.name, &name, why.to_string()))?;
    if places.is_silent() {
        return Ok(module);
    }
    let main = module.vdevices.first().cloned();
    super::emit::map_functions(module.clone(), |name, func| {
        let mut crossings = Crossings::new(&places, main.as_ref());
        let crossed = crossings.mutate_function(func);
        crossings.outcome().map_err(|why| in_function(REALIZE.name, name, why.to_string()))?;
        let place = |var: &AnyVar, ty: &Type| at_places(&places, var, ty, &mut Vec::new());
        Ok(Retype { place: &place, vars: HashMap::new(), replaced: None }.whole(&crossed))
    })
}

/// A variable's type with the devices that were found.
fn at_places(places: &DeviceGroups<'_>, var: &AnyVar, ty: &Type, path: &mut Vec<usize>) -> Type {
    match ty {
        Type::Tensor(tensor) => {
            let known = tensor.vdevice.clone().filter(|device| device.target.is_some());
            on(ty, &|_| known.clone().or_else(|| places.found(var, path)))
        }
        Type::Tuple(tuple) => {
            let field = |(index, field): (usize, &Type)| {
                path.push(index);
                let placed = at_places(places, var, field, path);
                path.pop();
                placed
            };
            let fields: Vec<Type> = tuple.fields.iter().enumerate().map(field).collect();
            if fields == tuple.fields { ty.clone() } else { Type::tuple(fields) }
        }
        _ => ty.clone(),
    }
}

fn update(module: IRModule, device: Ref<VDevice>, index: i64) -> PassResult {
    let mut vdevices = module.vdevices.clone();
    let Some(slot) = usize::try_from(index).ok().and_then(|i| vdevices.get_mut(i)) else {
        let message = format!("the module has {} devices, and none of index {index}", module.vdevices.len());
        return Err(PassError::arguments(UPDATE.name, message));
    };
    let old = std::mem::replace(slot, device.clone());
    let module = IRModule { vdevices, ..module };
    let place = |_: &AnyVar, ty: &Type| on(ty, &|d| if d.as_ref() == Some(&old) { Some(device.clone()) } else { d });
    super::emit::map_functions(module, |_, func| {
        let mut retype = Retype { place: &place, vars: HashMap::new(), replaced: Some((&old, &device)) };
        Ok(retype.whole(func))
    })
}
