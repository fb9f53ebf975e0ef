//! Devices, streams and views of tensors as global functions, for front ends and compiled programs.

use relaxide_ffi::{Any, AnyView, DataType, Device, Error, ErrorKind, FromAny, Function, Shape, Tensor};

use super::{Attribute, Stream, copy_into, device_api, view_at};

type DeviceFunction = fn(&DeviceArgs<'_, '_>) -> Result<Any, Error>;

const FUNCTIONS: &[(&str, DeviceFunction)] = &[
    ("runtime.GetDeviceAttr", attribute),
    ("runtime.Device_StreamCreate", |args| {
        let device = args.device()?;
        device_api(device)?.create_stream(device).map(|stream| (stream.0 as i64).into())
    }),
    ("runtime.Device_StreamFree", |args| {
        let (device, stream) = (args.device()?, args.stream(2)?);
        device_api(device)?.free_stream(device, stream).map(Any::from)
    }),
    ("runtime.Device_SetStream", |args| {
        let (device, stream) = (args.device()?, args.stream(2)?);
        device_api(device)?.set_stream(device, stream).map(Any::from)
    }),
    ("runtime.Device_StreamSync", |args| {
        let (device, stream) = (args.device()?, args.stream(2)?);
        device_api(device)?.synchronize(device, stream).map(Any::from)
    }),
    ("runtime.Device_StreamSyncFromTo", |args| {
        let (device, from, to) = (args.device()?, args.stream(2)?, args.stream(3)?);
        device_api(device)?.order_streams(device, from, to).map(Any::from)
    }),
    ("runtime.TVMTensorCreateView", view),
    ("runtime.TVMTensorCopyFromTo", |args| copy_into(&args.get(0, "source")?, &args.get(1, "target")?).map(Any::from)),
    ("runtime.NumThreads", |_args| Ok((crate::num_threads() as i64).into())),
];

/// All of them, by name.
pub(crate) fn functions() -> impl Iterator<Item = (&'static str, Function)> {
    FUNCTIONS.iter().map(|(name, body)| (*name, Function::new(move |views| body(&DeviceArgs { name, views }))))
}

/// The arguments of a call.
struct DeviceArgs<'a, 'v> {
    name: &'static str,
    views: &'a [AnyView<'v>],
}

impl DeviceArgs<'_, '_> {
    fn get<T: FromAny>(&self, index: usize, name: &str) -> Result<T, Error> {
        let function = self.name;
        let missing = || Error::new(ErrorKind::TypeError, format!("{function}: argument {index} ({name}) is missing"));
        let value: Result<T, Error> = self.views.get(index).ok_or_else(missing)?.to();
        value.map_err(|error| error.context(format_args!("{function}: argument {index} ({name})")))
    }

    /// The device that the first two arguments name.
    fn device(&self) -> Result<Device, Error> {
        Ok(Device { device_type: self.get(0, "device type")?, device_id: self.get(1, "device id")? })
    }

    fn stream(&self, index: usize) -> Result<Stream, Error> {
        Ok(Stream(self.get::<i64>(index, "stream")? as usize))
    }
}

/// `(device type, device id, attribute)`: the attribute, or nothing if the device does not say.
fn attribute(args: &DeviceArgs<'_, '_>) -> Result<Any, Error> {
    let (device, number) = (args.device()?, args.get(2, "attribute")?);
    match (Attribute::from_number(number)?, device_api(device)) {
        (Attribute::Exists, api) => Ok(i64::from(api.is_ok_and(|api| api.exists(device))).into()),
        (_, Err(error)) => Err(error),
        (attribute, Ok(api)) => api.attribute(device, attribute).map(|value| value.unwrap_or_default()),
    }
}

/// `(tensor, shape, dtype, byte offset)`: other elements over the same memory.
fn view(args: &DeviceArgs<'_, '_>) -> Result<Any, Error> {
    let (tensor, shape): (Tensor, Shape) = (args.get(0, "tensor")?, args.get(1, "shape")?);
    let dtype: Option<DataType> = args.get(2, "dtype")?;
    let dtype = dtype.unwrap_or(tensor.dtype());
    let offset: usize = if args.views.len() > 3 { args.get(3, "relative_byte_offset")? } else { 0 };
    let view = view_at(&tensor, &shape, dtype, offset).map_err(|error| error.context(args.name));
    view.map(Any::from)
}

#[cfg(test)]
mod tests {
    use relaxide_ffi::get_global;

    use super::*;

    fn call(name: &str, args: &[Any]) -> Result<Any, Error> {
        crate::register();
        let views: Vec<AnyView<'_>> = args.iter().map(Any::as_view).collect();
        get_global(name).unwrap().call(&views)
    }

    #[test]
    fn devices_say_what_they_know() {
        let attribute = |device: i64, id: i64, number: i64| {
            call("runtime.GetDeviceAttr", &[device.into(), id.into(), number.into()])
        };
        assert_eq!(attribute(1, 0, 0).unwrap().as_int(), Some(1));
        assert_eq!(attribute(2, 0, 0).unwrap().as_int(), Some(0));
        assert!(attribute(1, 0, 5).unwrap().is_none());
        #[cfg(target_os = "linux")]
        assert!(attribute(1, 0, 14).unwrap().as_int().is_some_and(|bytes| bytes > 1 << 26));
        assert!(attribute(8, 0, 5).unwrap_err().message().contains("metal:0 is not available"));
        assert!(attribute(1, 0, 99).unwrap_err().message().contains("number 99"));
        assert!(call("runtime.GetDeviceAttr", &[1_i64.into()]).unwrap_err().message().contains("device id"));
    }

    #[test]
    fn the_cpu_has_one_stream() {
        let device = || [Any::from(1_i64), Any::from(0_i64)];
        let stream = call("runtime.Device_StreamCreate", &device()).unwrap();
        assert_eq!(stream.as_int(), Some(0));
        for name in ["Device_SetStream", "Device_StreamSync", "Device_StreamFree"] {
            let [kind, id] = device();
            call(&format!("runtime.{name}"), &[kind, id, stream.clone()]).unwrap();
        }
        assert!(call("runtime.Device_StreamCreate", &[2_i64.into(), 0_i64.into()]).is_err());
    }

    #[test]
    fn views_lie_in_their_tensor() {
        let tensor = Tensor::from_slice(&[1_i32, 2, 3, 4], &[2, 2]).unwrap();
        let shape = |dims: &[i64]| Any::from(Shape::new(dims));
        let view = |dims: &[i64], dtype: Any, offset: i64| {
            call("runtime.TVMTensorCreateView", &[(&tensor).into(), shape(dims), dtype, offset.into()])
        };
        let part: Tensor = view(&[2], Any::none(), 8).unwrap().to().unwrap();
        assert_eq!(part.to_vec::<i32>().unwrap(), [3, 4]);
        let bytes: Tensor = view(&[16], DataType::uint(8).into(), 0).unwrap().to().unwrap();
        assert_eq!(bytes.data_ptr(), tensor.data_ptr());
        for (dims, offset) in [(&[4][..], 4), (&[5], 0), (&[-1], 0), (&[1 << 62, 4], 0), (&[1], 16)] {
            assert!(view(dims, Any::none(), offset).is_err(), "{dims:?} {offset}");
        }
        assert!(view(&[1], Any::none(), -1).is_err());
    }
}
