//! A call of a kernel on a device, as host code makes it: parameters, then an extent for each thread axis of its tags, in their order.

use relaxide_ffi::abi::type_index;
use relaxide_ffi::{AnyView, DataType, Device, Error, ErrorKind};

use super::payload::Info;
use super::{current_device, device_api};

/// A direction in which a kernel's threads are laid out: 0 to 2 for x to z.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Of blocks.
    Block(usize),
    /// Of the threads in a block.
    Thread(usize),
}

impl Axis {
    /// The axis of a tag: `blockIdx.x`, `threadIdx.z`. Nothing for others.
    pub fn of(tag: &str) -> Option<Axis> {
        let (kind, axis) = tag.split_once('.')?;
        let axis = ["x", "y", "z"].iter().position(|name| *name == axis)?;
        match kind {
            "blockIdx" => Some(Axis::Block(axis)),
            "threadIdx" => Some(Axis::Thread(axis)),
            _ => None,
        }
    }
}

/// The value of a parameter, as drivers read it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ParamValue {
    Word([u8; 8]),
    Half([u8; 4]),
}

/// Why an argument cannot be passed.
#[derive(Debug, thiserror::Error)]
enum BadArgument {
    #[error("{0} is expected")]
    Kind(&'static str),
    #[error("it is memory of {place}, and the kernel runs on {device}")]
    Elsewhere { place: Device, device: Device },
    #[error("{word:#x} is no memory of {device}")]
    NoMemory { word: i64, device: Device },
    #[error("parameters of type {0} cannot be passed")]
    Type(DataType),
}

impl ParamValue {
    fn of(arg: AnyView<'_>, dtype: DataType, device: Device) -> Result<ParamValue, BadArgument> {
        if dtype == DataType::handle() {
            let word = match arg.type_index() {
                type_index::NONE => 0,
                type_index::OPAQUE_PTR => arg.raw().word(),
                _ => return Err(BadArgument::Kind("the memory of a tensor")),
            };
            // The driver follows what it is given: only what was allocated there may reach it.
            match place_of(device.device_type, word as usize) {
                Some(place) if place == device => {}
                None if word == 0 => {}
                Some(place) => return Err(BadArgument::Elsewhere { place, device }),
                None => return Err(BadArgument::NoMemory { word, device }),
            }
            return Ok(ParamValue::Word(word.to_ne_bytes()));
        }
        let int = || arg.as_int().ok_or(BadArgument::Kind("an integer"));
        let float = || {
            let value = arg.as_float().or_else(|| arg.as_int().map(|value| value as f64));
            value.ok_or(BadArgument::Kind("a number"))
        };
        Ok(match dtype {
            dtype if dtype == DataType::int(64) || dtype == DataType::uint(64) => {
                ParamValue::Word(int()?.to_ne_bytes())
            }
            dtype if dtype == DataType::int(32) || dtype == DataType::uint(32) => {
                ParamValue::Half((int()? as i32).to_ne_bytes())
            }
            dtype if dtype == DataType::float(64) => ParamValue::Word(float()?.to_ne_bytes()),
            dtype if dtype == DataType::float(32) => ParamValue::Half((float()? as f32).to_ne_bytes()),
            other => return Err(BadArgument::Type(other)),
        })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            ParamValue::Word(bytes) => bytes,
            ParamValue::Half(bytes) => bytes,
        }
    }
}

/// The memory that a pointer is, or the handle of it.
pub(crate) fn address(value: AnyView<'_>) -> Option<usize> {
    (value.type_index() == type_index::OPAQUE_PTR).then(|| value.raw().word() as usize)
}

fn place_of(device_type: i32, handle: usize) -> Option<Device> {
    device_api(Device::new(device_type, 0)).ok()?.place_of(handle)
}

/// A call, taken apart.
pub(crate) struct Call {
    /// Where the kernel runs: where its memory is; without any, the thread's device.
    pub device: Device,
    pub values: Vec<ParamValue>,
    /// How many blocks there are in each direction.
    pub blocks: [usize; 3],
    /// How many threads a block has in each direction.
    pub threads: [usize; 3],
    /// How many directions are used.
    pub dimensions: usize,
}

/// An error about a kernel of a kind of device.
pub(crate) fn refused(kind: &str, name: &str, why: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::ValueError, format!("{kind} kernel {name}: {why}"))
}

impl Call {
    /// Takes the arguments of a call apart. `kind` is what errors call the interface to the devices.
    pub(crate) fn of(
        kind: &str,
        device_type: i32,
        name: &str,
        info: &Info,
        args: &[AnyView<'_>],
    ) -> Result<Call, Error> {
        let refused = |why: String| refused(kind, name, why);
        let wanted = info.types.len() + info.tags.len();
        if args.len() != wanted {
            return Err(refused(format!("{wanted} arguments are expected, and there are {}", args.len())));
        }
        let (parameters, extents) = args.split_at(info.types.len());
        let (mut blocks, mut threads, mut dimensions) = ([1_usize; 3], [1_usize; 3], 1);
        for (tag, extent) in info.tags.iter().zip(extents) {
            let axis = Axis::of(tag).ok_or_else(|| refused(format!("{tag} is nothing that {kind} has here")))?;
            let extent = extent.as_int().ok_or_else(|| refused(format!("the extent of {tag} is no integer")))?;
            // Dynamic shapes may give none; kernels guard what they touch.
            let extent = usize::try_from(extent).unwrap_or(1).max(1);
            let (list, at) = match axis {
                Axis::Block(at) => (&mut blocks, at),
                Axis::Thread(at) => (&mut threads, at),
            };
            list[at] = extent;
            dimensions = dimensions.max(at + 1);
        }
        let place = parameters.iter().find_map(|arg| place_of(device_type, address(*arg)?));
        let device = place.unwrap_or_else(|| current_device(device_type));
        let values = parameters.iter().zip(&info.types).enumerate().map(|(at, (arg, dtype))| {
            ParamValue::of(*arg, *dtype, device).map_err(|why| refused(format!("argument {at}: {why}")))
        });
        Ok(Call { device, values: values.collect::<Result<_, _>>()?, blocks, threads, dimensions })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_axes_of_blocks_and_threads() {
        assert_eq!(Axis::of("blockIdx.x"), Some(Axis::Block(0)));
        assert_eq!(Axis::of("threadIdx.z"), Some(Axis::Thread(2)));
        for other in ["vthread.x", "blockIdx.w", "blockIdx", "tensormap", ""] {
            assert_eq!(Axis::of(other), None);
        }
    }
}
