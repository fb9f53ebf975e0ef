//! Values of the process to values of the wire, and back.
//!
//! What the other end gave a handle of goes back as that handle. Everything else goes by value or, between two ends of ours, as a
//! handle that this end keeps. TVM's protocol has no form for some values; those are refused before a byte is written, so that the
//! session stays usable.

use std::sync::Arc;

use relaxide_ffi::abi::type_index as index;
use relaxide_ffi::{
    Any, AnyView, Array, Bytes, DataType, Device, Error, ErrorKind, Function, List, Map, Module, Shape, Tensor,
};

use super::addresses::{describe, given_tensor, masked};
use super::peer::Peer;
use super::remote::{RemoteModule, function_handle, object_handle, of_handle, to_receiver};
use crate::wire::value::REMOTE_OBJECT;
use crate::wire::{Dialect, Owner, Value};

/// Containers that stand deeper in each other are refused: the other end refuses them too.
const DEPTH: usize = 60;

/// The arguments of a call of the other end's.
pub fn arguments(peer: &Arc<Peer>, args: &[AnyView<'_>]) -> Result<Vec<Value>, Error> {
    args.iter()
        .enumerate()
        .map(|(position, arg)| to_far(peer, *arg).map_err(|error| refused(&error, position, *arg)))
        .collect()
}

fn refused(error: &Error, position: usize, arg: AnyView<'_>) -> Error {
    let head = format!("Cannot pass argument {position}, type {} (type_index = {})", arg.type_key(), arg.type_index());
    error.context(head)
}

fn no_form(what: &str, help: &str) -> Error {
    Error::new(ErrorKind::ValueError, format!("TVM's protocol has no form for {what}; {help}"))
}

/// A value for the other end.
pub fn to_far(peer: &Arc<Peer>, value: AnyView<'_>) -> Result<Value, Error> {
    to_far_at(peer, value, 0)
}

fn to_far_at(peer: &Arc<Peer>, value: AnyView<'_>, depth: usize) -> Result<Value, Error> {
    let own = peer.dialect() == Dialect::Own;
    Ok(match value.type_index() {
        index::NONE => Value::None,
        index::INT => Value::Int(value.to()?),
        index::BOOL => Value::Bool(value.to()?),
        index::FLOAT => Value::Float(value.to()?),
        index::OPAQUE_PTR => Value::Ptr(value.raw().word() as u64),
        index::DATA_TYPE => Value::DataType(value.to()?),
        index::DEVICE => Value::Device(device(peer, value.to()?)?),
        index::RAW_STR | index::SMALL_STR | index::STR => {
            let text = value.as_str();
            Value::text(text.ok_or_else(|| Error::new(ErrorKind::ValueError, "the text is not UTF-8"))?)
        }
        index::BYTE_ARRAY_PTR | index::SMALL_BYTES | index::BYTES => {
            Value::Bytes(value.as_bytes().unwrap_or_default().to_vec())
        }
        index::TENSOR => tensor(peer, &value.to()?)?,
        index::DL_TENSOR_PTR => {
            return Err(Error::new(ErrorKind::ValueError, "a bare DLTensor* has no owner here; pass a tensor"));
        }
        index::FUNCTION => {
            let function: Function = value.to()?;
            match function_handle(peer, &function) {
                Some(handle) => to_receiver(index::FUNCTION, handle?),
                None if own => given(peer, index::FUNCTION, value),
                None => {
                    return Err(no_form(
                        "functions of this side",
                        "register it on the server, or use Relaxide's protocol",
                    ));
                }
            }
        }
        index::MODULE => {
            let module: Module = value.to()?;
            match module.downcast::<RemoteModule>() {
                Some(remote) => to_receiver(index::MODULE, remote.handle(peer)?),
                None if own => given(peer, index::MODULE, value),
                None => return Err(no_form("modules of this side", "upload the file and load it there")),
            }
        }
        _ => object(peer, value, own, depth)?,
    })
}

fn object(peer: &Arc<Peer>, value: AnyView<'_>, own: bool, depth: usize) -> Result<Value, Error> {
    if let Some(handle) = object_handle(peer, &value.to_owned()) {
        return Ok(to_receiver(REMOTE_OBJECT, handle?));
    }
    if !own {
        return Err(no_form("containers and objects", "pass what is in them one by one, or use Relaxide's protocol"));
    }
    if depth >= DEPTH {
        return Err(Error::new(
            ErrorKind::ValueError,
            format!("containers stand more than {DEPTH} deep in each other"),
        ));
    }
    let all = |values: &[Any]| -> Result<Vec<Value>, Error> {
        values.iter().map(|value| to_far_at(peer, value.as_view(), depth + 1)).collect()
    };
    Ok(match value.type_index() {
        index::SHAPE => Value::Shape(value.to::<Shape>()?.to_vec()),
        index::ARRAY => Value::Array(all(value.to::<Array>()?.as_slice())?),
        index::LIST => Value::Array(all(&value.to::<List>()?.to_vec())?),
        index::MAP => {
            let map: Map = value.to()?;
            let pair = |(key, value): (&Any, &Any)| {
                Ok::<_, Error>((
                    to_far_at(peer, key.as_view(), depth + 1)?,
                    to_far_at(peer, value.as_view(), depth + 1)?,
                ))
            };
            Value::Map(map.iter().map(pair).collect::<Result<_, _>>()?)
        }
        _ => given(peer, REMOTE_OBJECT, value),
    })
}

/// A handle for something that stays here.
fn given(peer: &Arc<Peer>, kind: i32, value: AnyView<'_>) -> Value {
    Value::Object { kind, handle: peer.host().exports().give(value.to_owned()), owner: Owner::Sender }
}

fn device(peer: &Arc<Peer>, device: Device) -> Result<Device, Error> {
    match device.remote() {
        Some((slot, there)) if peer.slot.get() == Some(&slot) => Ok(there),
        Some(_) => Err(Error::new(ErrorKind::ValueError, "Can not pass in device with a different remote session")),
        None if peer.host().shares_memory() => Ok(device),
        None => Err(Error::new(
            ErrorKind::InternalError,
            format!("Can not pass in local device {device}: name the far one, as `session.device(…)` gives it"),
        )),
    }
}

fn tensor(peer: &Arc<Peer>, tensor: &Tensor) -> Result<Value, Error> {
    if tensor.device().remote().is_some() {
        return describe(peer, tensor).map(Value::Tensor);
    }
    if peer.host().shares_memory() {
        let (wire, handle) = peer.host().exports().give_tensor(tensor)?;
        return Ok(Value::OwnTensor(wire, handle));
    }
    Err(Error::new(
        ErrorKind::InternalError,
        format!("Can not pass in local device {}: copy the tensor to the session's device first", tensor.device()),
    ))
}

/// A value of the other end's.
pub fn from_far(peer: &Arc<Peer>, value: Value) -> Result<Any, Error> {
    Ok(match value {
        Value::None => Any::none(),
        Value::Int(value) => value.into(),
        Value::Bool(value) => value.into(),
        Value::Float(value) => value.into(),
        Value::Ptr(address) => Any::from_ptr(std::ptr::without_provenance_mut(address as usize)),
        Value::DataType(dtype) => dtype.into(),
        Value::Device(device) => match peer.slot.get() {
            Some(_) if peer.dialect() == Dialect::Own => masked(peer, device)?.into(),
            _ => device.into(),
        },
        Value::RawStr(text) | Value::Str(text) => {
            let text = String::from_utf8(text);
            text.map_err(|_| Error::new(ErrorKind::ValueError, "text that is not UTF-8"))?.into()
        }
        Value::ByteArray(bytes) | Value::Bytes(bytes) => Bytes::new(&bytes).into(),
        Value::Tensor(wire) => peer.host().exports().tensor(&wire)?.into(),
        Value::OwnTensor(wire, handle) => given_tensor(peer, &wire, handle)?.into(),
        Value::Object { kind, handle, owner: Owner::Receiver } => held(peer, kind, handle)?,
        Value::Object { kind, handle, owner: Owner::Sender } => of_handle(peer, kind, handle),
        Value::Array(values) => {
            let values = values.into_iter().map(|value| from_far(peer, value)).collect::<Result<Vec<_>, _>>()?;
            Array::from_vec(values).into()
        }
        Value::Map(pairs) => {
            let pairs = pairs.into_iter().map(|(key, value)| Ok((from_far(peer, key)?, from_far(peer, value)?)));
            pairs.collect::<Result<Vec<(Any, Any)>, Error>>()?.into_iter().collect::<Map>().into()
        }
        Value::Shape(dims) => Shape::new(&dims).into(),
    })
}

/// What a handle of this end stands for, if it is what the other end takes it for.
fn held(peer: &Arc<Peer>, kind: i32, handle: u64) -> Result<Any, Error> {
    if handle == 0 {
        return Ok(Any::none());
    }
    let object = peer.host().exports().object(handle)?;
    match kind == REMOTE_OBJECT || object.type_index() == kind {
        true => Ok(object),
        false => Err(Error::new(
            ErrorKind::TypeError,
            format!("the handle {handle:#x} is that of a value of type {}", object.type_key()),
        )),
    }
}

/// The values of the reply to a call.
pub fn returned(peer: &Arc<Peer>, value: &Any) -> Result<Vec<Value>, Error> {
    let view = value.as_view();
    if peer.dialect() == Dialect::Own {
        return to_far(peer, view).map(|value| vec![value]);
    }
    let exports = peer.host().exports();
    let kind = value.type_index();
    let tag = Value::Int(kind.into());
    Ok(match kind {
        index::NONE..=index::DATA_TYPE => vec![tag, to_far(peer, view)?],
        index::DEVICE => vec![tag, Value::Device(value.to()?)],
        index::RAW_STR | index::SMALL_STR | index::STR => vec![tag, to_far(peer, view)?],
        index::BYTE_ARRAY_PTR | index::SMALL_BYTES | index::BYTES => {
            vec![tag, Value::ByteArray(value.as_bytes().unwrap_or_default().to_vec())]
        }
        index::TENSOR => {
            let (wire, handle) = exports.give_tensor(&value.to()?)?;
            vec![tag, Value::Tensor(wire), Value::Ptr(handle)]
        }
        index::OBJECT.. => vec![tag, Value::Ptr(exports.give(value.clone()))],
        _ => {
            let message = format!("a value of type {} cannot be returned to a remote caller", value.type_key());
            return Err(Error::new(ErrorKind::ValueError, message));
        }
    })
}

/// The result that the values of a reply to a call are.
pub fn result(peer: &Arc<Peer>, values: Vec<Value>) -> Result<Any, Error> {
    let wrong = |values: &[Value]| {
        let kinds: Vec<&str> = values.iter().map(Value::kind).collect();
        let message = format!("{} returned ({}), which is no result of a call", peer.name(), kinds.join(", "));
        Error::new(ErrorKind::RuntimeError, message)
    };
    let mut values = values.into_iter();
    if peer.dialect() == Dialect::Own {
        return match (values.next(), values.next()) {
            (Some(value), None) => from_far(peer, value),
            (first, _) => Err(wrong(first.as_slice())),
        };
    }
    let tag = match values.next() {
        Some(Value::Int(tag)) => i32::try_from(tag).unwrap_or(i32::MIN),
        other => return Err(wrong(other.as_slice())),
    };
    let rest: Vec<Value> = values.collect();
    match (tag, rest.as_slice()) {
        (index::NONE, _) => Ok(Any::none()),
        (index::TENSOR, [Value::Tensor(wire), Value::Ptr(handle)]) => {
            // The offset of a returned tensor counts, whatever TVM's own client makes of it.
            given_tensor(peer, wire, *handle).map(Any::from)
        }
        (index::STR | index::BYTES | index::SMALL_STR | index::SMALL_BYTES, [value]) => from_far(peer, value.clone()),
        (index::OBJECT.., [Value::Ptr(0)]) => Ok(Any::none()),
        (index::OBJECT.., [Value::Ptr(handle)]) => Ok(of_handle(peer, tag, *handle)),
        (index::INT..=index::DEVICE, [value]) if value.type_index() == Some(tag) => from_far(peer, value.clone()),
        _ => Err(wrong(&rest)),
    }
}

impl Value {
    /// The type index of a plain value.
    fn type_index(&self) -> Option<i32> {
        Some(match self {
            Value::Int(_) => index::INT,
            Value::Bool(_) => index::BOOL,
            Value::Float(_) => index::FLOAT,
            Value::Ptr(_) => index::OPAQUE_PTR,
            Value::DataType(_) => index::DATA_TYPE,
            Value::Device(_) => index::DEVICE,
            _ => return None,
        })
    }

    /// The address or handle that a reply gives.
    pub fn address(&self) -> Result<u64, Error> {
        match self {
            Value::Ptr(address) => Ok(*address),
            Value::None => Ok(0),
            other => Err(Error::type_mismatch("an address", other.kind())),
        }
    }

    /// An integer.
    pub fn int(&self) -> Result<i64, Error> {
        match self {
            Value::Int(value) => Ok(*value),
            Value::Bool(value) => Ok(i64::from(*value)),
            other => Err(Error::type_mismatch("int", other.kind())),
        }
    }

    /// A device.
    pub fn device(&self) -> Result<Device, Error> {
        match self {
            Value::Device(device) => Ok(*device),
            other => Err(Error::type_mismatch("Device", other.kind())),
        }
    }

    /// An element type.
    pub fn dtype(&self) -> Result<DataType, Error> {
        match self {
            Value::DataType(dtype) => Ok(*dtype),
            other => Err(Error::type_mismatch("DataType", other.kind())),
        }
    }
}
