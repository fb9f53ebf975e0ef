//! Programs over several devices: where each value is, and the copies between.
//!
//! A program says of some values where they are (`on_device`), and of some that they are carried over (`device_copy`).
//! [`plan_devices`] finds the device of every other value, and turns what was said into copies; [`placement`] tells the
//! compiler, of a program that was planned, where each value is.
//!
//! | what | where |
//! | --- | --- |
//! | [`domain`] | devices that are not known yet, and which of them are one |
//! | [`collect`] | what each expression says of the devices of its parts |
//! | [`plan`] | the pass: copies are written, devices are noted |
//!
//! A value of a data type, a tuple or a reference is on one device with all that it holds: the machine's objects are the
//! host's, their tensors are where the value is said to be.
//!
//! Source: `PlanDevices` of TVM 0.16, as it behaves; see [`plan`] for where this one makes fewer copies.

mod collect;
mod domain;
mod plan;

use indexmap::IndexMap;
use relaxide_ffi::Object;
use relaxide_ir::{AttrValue, Attrs};
use relaxide_relay_vm::VirtualDevice as MachineDevice;

pub use collect::{Placement, placement};
pub use plan::{mentions_devices, plan_devices};

/// Why an attribute names no device.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DeviceError {
    /// A value of another kind.
    #[error("{0} is no device")]
    NoDevice(String),
    /// A field that is no number.
    #[error("{name} of a device is {value}")]
    Field {
        /// The field.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// A copy whose source or target is not given.
    #[error("device_copy needs {0}")]
    NoEnd(&'static str),
    /// A copy whose source or target is no device.
    #[error("{0} of a device_copy names no device")]
    UnknownEnd(&'static str),
}

/// A device that a program names.
#[derive(Object, Debug, Clone, PartialEq, Eq)]
#[object(key = "VirtualDevice")]
pub struct VirtualDevice {
    /// The kind, as DLPack numbers it.
    pub device_type: i64,
    /// Which of several.
    pub id: i64,
    /// The memory.
    pub scope: String,
}

impl VirtualDevice {
    /// A device of a kind.
    pub fn new(device_type: i64, id: i64) -> VirtualDevice {
        VirtualDevice { device_type, id, scope: String::new() }
    }

    /// The host.
    pub fn cpu() -> VirtualDevice {
        VirtualDevice::new(1, 0)
    }

    /// The device of an attribute: a map as TVM saves it, or the number of a kind, as releases before 0.9 had it. A map that says
    /// nothing names no device.
    pub fn of_attr(value: &AttrValue) -> Result<Option<VirtualDevice>, DeviceError> {
        let map = match value {
            AttrValue::None => return Ok(None),
            AttrValue::Int(kind) => return Ok((*kind > 0).then(|| VirtualDevice::new(*kind, 0))),
            AttrValue::Map(map) => map,
            AttrValue::Object(object) => {
                let device = object.downcast_ref::<VirtualDevice>();
                return device
                    .map(|device| Some(VirtualDevice::clone(device)))
                    .ok_or_else(|| DeviceError::NoDevice(object.type_key().to_string()));
            }
            other => return Err(DeviceError::NoDevice(format!("{other:?}"))),
        };
        let number = |name: &'static str| match map.get(name) {
            None => Ok(-1),
            Some(AttrValue::Int(v)) => Ok(*v),
            Some(AttrValue::Str(text)) => {
                text.parse::<i64>().map_err(|_| DeviceError::Field { name, value: text.clone() })
            }
            Some(other) => Err(DeviceError::Field { name, value: format!("{other:?}") }),
        };
        let (kind, id) = (number("device_type_int")?, number("virtual_device_id")?);
        let scope = match map.get("memory_scope") {
            Some(AttrValue::Str(scope)) => scope.clone(),
            _ => String::new(),
        };
        let known = |v: i64| i32::try_from(v).map(drop).map_err(|_| DeviceError::NoDevice(v.to_string()));
        known(kind).and_then(|()| known(id))?;
        Ok((kind > 0).then(|| VirtualDevice { device_type: kind, id: id.max(0), scope }))
    }

    /// As an attribute, in the form in which TVM saves devices.
    pub fn to_attr(&self) -> AttrValue {
        let fields = [
            ("device_type_int", self.device_type.to_string()),
            ("memory_scope", self.scope.clone()),
            ("target", "0".to_string()),
            ("type_key", "VirtualDevice".to_string()),
            ("virtual_device_id", self.id.to_string()),
        ];
        let fields = fields.into_iter().map(|(name, value)| (name.to_string(), AttrValue::Str(value)));
        AttrValue::Map(fields.collect::<IndexMap<_, _>>())
    }

    pub(crate) fn for_machine(&self) -> MachineDevice {
        MachineDevice { device_type: self.device_type as i32, device_id: self.id as i32, scope: self.scope.clone() }
    }
}

impl std::fmt::Display for VirtualDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let device = relaxide_ffi::Device { device_type: self.device_type as i32, device_id: self.id as i32 };
        write!(f, "{device}")?;
        if self.scope.is_empty() { Ok(()) } else { write!(f, " ({})", self.scope) }
    }
}

/// What is known of devices beside the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceConfig {
    /// Where shapes and conditions are.
    pub host: VirtualDevice,
    /// Where a value is of which nothing is said.
    pub default: VirtualDevice,
}

impl Default for DeviceConfig {
    fn default() -> DeviceConfig {
        DeviceConfig { host: VirtualDevice::cpu(), default: VirtualDevice::cpu() }
    }
}

/// The name of the attribute of functions that says where their results are.
pub(crate) const RESULT: &str = "virtual_device";

/// What `on_device` says.
pub(crate) struct OnDevice {
    pub device: Option<VirtualDevice>,
    pub constrain_result: bool,
    pub constrain_body: bool,
}

impl OnDevice {
    pub fn of(attrs: &Attrs) -> Result<OnDevice, DeviceError> {
        let device = attrs.get("virtual_device").map_or(Ok(None), VirtualDevice::of_attr)?;
        Ok(OnDevice {
            device,
            constrain_result: attrs.bool("constrain_result").unwrap_or(false),
            constrain_body: attrs.bool("constrain_body").unwrap_or(true),
        })
    }
}

/// The source and the target of a `device_copy`.
pub(crate) fn copy_ends(attrs: &Attrs) -> Result<(VirtualDevice, VirtualDevice), DeviceError> {
    let end = |name: &'static str| {
        let value = attrs.get(name).ok_or(DeviceError::NoEnd(name))?;
        VirtualDevice::of_attr(value)?.ok_or(DeviceError::UnknownEnd(name))
    };
    Ok((end("src_virtual_device")?, end("dst_virtual_device")?))
}
