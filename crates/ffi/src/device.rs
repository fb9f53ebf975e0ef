//! [`Device`]: a kind of device and which one of that kind.

use std::fmt;
use std::str::FromStr;

use crate::{Error, ErrorKind};

/// `DLDevice`: where data lives or code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(C)]
pub struct Device {
    /// The kind of device, in DLPack's numbering.
    pub device_type: i32,
    /// Which one of its kind.
    pub device_id: i32,
}

/// DLPack's numbers and the names that go with them; the first name of a number is the one that is printed.
const NAMES: &[(i32, &str)] = &[
    (1, "cpu"),
    (1, "llvm"),
    (1, "c"),
    (2, "cuda"),
    (2, "nvptx"),
    (3, "cuda_host"),
    (4, "opencl"),
    (7, "vulkan"),
    (8, "metal"),
    (9, "vpi"),
    (10, "rocm"),
    (11, "rocm_host"),
    (12, "ext_dev"),
    (13, "cuda_managed"),
    (14, "oneapi"),
    (15, "webgpu"),
    (16, "hexagon"),
    (17, "maia"),
    (18, "trn"),
];

impl Device {
    /// The number of the host's processor.
    pub const CPU: i32 = 1;
    /// The number of NVIDIA devices.
    pub const CUDA: i32 = 2;
    /// The number of OpenCL devices.
    pub const OPENCL: i32 = 4;

    /// What a device of a remote session adds to the number of its kind, once more for each session before it.
    pub const SESSION_STRIDE: i32 = 128;

    /// The host's processor.
    pub const fn cpu(device_id: i32) -> Device {
        Device { device_type: Device::CPU, device_id }
    }

    /// The device of that kind and number.
    pub const fn new(device_type: i32, device_id: i32) -> Device {
        Device { device_type, device_id }
    }

    /// The session that a remote device is reached through, and the device as that session's far side knows it; `None` for a
    /// device of this process.
    pub const fn remote(self) -> Option<(usize, Device)> {
        match self.device_type / Device::SESSION_STRIDE {
            session @ 1.. => {
                let there = Device::new(self.device_type % Device::SESSION_STRIDE, self.device_id);
                Some((session as usize - 1, there))
            }
            _ => None,
        }
    }

    /// The name of the kind; `None` for a number that DLPack does not list.
    pub fn type_name(self) -> Option<&'static str> {
        NAMES.iter().find(|(number, _)| *number == self.device_type).map(|(_, name)| *name)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((session, there)) = self.remote() {
            return write!(f, "remote[{session}]:{there}");
        }
        match self.type_name() {
            Some(name) => write!(f, "{name}:{}", self.device_id),
            None => write!(f, "device{}:{}", self.device_type, self.device_id),
        }
    }
}

impl FromStr for Device {
    type Err = Error;

    /// Reads `cpu`, `cuda:1`, `opencl(0)`.
    fn from_str(text: &str) -> Result<Device, Error> {
        let unknown = || Error::new(ErrorKind::ValueError, format!("unknown device `{text}`; write it like `cpu:0`"));
        let (name, id) = match (text.split_once(':'), text.split_once('(')) {
            (Some((name, id)), _) => (name, Some(id)),
            (None, Some((name, rest))) => (name, Some(rest.strip_suffix(')').ok_or_else(unknown)?)),
            (None, None) => (text, None),
        };
        let device_id = id.map_or(Ok(0), str::parse).map_err(|_| unknown())?;
        let device_type = NAMES.iter().find(|(_, known)| *known == name).ok_or_else(unknown)?.0;
        Ok(Device { device_type, device_id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_device_reads_back_what_it_prints() {
        for (number, _) in NAMES {
            let device = Device::new(*number, 3);
            assert_eq!(device.to_string().parse::<Device>().unwrap(), device);
        }
        assert_eq!("opencl(2)".parse::<Device>().unwrap(), Device::new(4, 2));
        assert_eq!("cpu".parse::<Device>().unwrap(), Device::cpu(0));
    }

    #[test]
    fn a_remote_device_says_through_which_session() {
        let device = Device::new(4 + 2 * Device::SESSION_STRIDE, 1);
        assert_eq!(device.remote(), Some((1, Device::new(4, 1))));
        assert_eq!(device.to_string(), "remote[1]:opencl:1");
        assert_eq!(Device::cpu(0).remote(), None);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "gpu", "cpu:", "cpu:x", "cpu(1", "cpu:99999999999"] {
            assert!(text.parse::<Device>().is_err(), "{text}");
        }
    }
}
