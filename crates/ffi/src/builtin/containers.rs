//! Functions that front ends use containers by.

use std::sync::Mutex;
use std::sync::PoisonError;

use super::Arity::{Any as Variadic, Exactly};
use super::functions::missing;
use super::{Arguments, BuiltinRow, nothing};
use crate::abi::type_index;
use crate::map::same_key;
use crate::{Any, AnyView, Array, Device, Dict, Error, ErrorKind, Function, List, Map, Tensor};

pub(super) const TABLE: &[BuiltinRow] = &[
    ("ffi.Array", Variadic, |args| Ok(args.all().iter().map(AnyView::to_owned).collect::<Array>().into())),
    ("ffi.ArrayGetItem", Exactly(2), |args| {
        let array: Array = args.get(0)?;
        Ok(array.as_slice()[args.position(1, array.len())?].clone())
    }),
    ("ffi.ArraySize", Exactly(1), |args| Ok(args.get::<Array>(0)?.len().into())),
    ("ffi.ArrayContains", Exactly(2), |args| contains(args.get::<Array>(0)?.as_slice(), &args.any(1))),
    ("ffi.List", Variadic, |args| Ok(args.all().iter().map(AnyView::to_owned).collect::<List>().into())),
    ("ffi.ListGetItem", Exactly(2), |args| {
        let list: List = args.get(0)?;
        let values = list.to_vec();
        Ok(values[args.position(1, values.len())?].clone())
    }),
    ("ffi.ListSetItem", Exactly(3), |args| {
        let list: List = args.get(0)?;
        list.set(args.position(1, list.len())?, args.any(2))?;
        nothing()
    }),
    ("ffi.ListSize", Exactly(1), |args| Ok(args.get::<List>(0)?.len().into())),
    ("ffi.ListContains", Exactly(2), |args| contains(&args.get::<List>(0)?.to_vec(), &args.any(1))),
    ("ffi.ListAppend", Exactly(2), |args| {
        args.get::<List>(0)?.push(args.any(1));
        nothing()
    }),
    ("ffi.ListInsert", Exactly(3), |args| {
        let list: List = args.get(0)?;
        list.insert(args.position(1, list.len() + 1)?, args.any(2))?;
        nothing()
    }),
    ("ffi.ListPop", Exactly(2), |args| {
        let list: List = args.get(0)?;
        list.remove(args.position(1, list.len())?)
    }),
    ("ffi.ListErase", Exactly(2), |args| {
        let list: List = args.get(0)?;
        list.remove(args.position(1, list.len())?)?;
        nothing()
    }),
    ("ffi.ListEraseRange", Exactly(3), |args| splice(args, Vec::new())),
    ("ffi.ListReplaceSlice", Exactly(4), |args| splice(args, args.get::<List>(3)?.to_vec())),
    ("ffi.ListReverse", Exactly(1), |args| {
        args.get::<List>(0)?.reverse();
        nothing()
    }),
    ("ffi.ListClear", Exactly(1), |args| {
        args.get::<List>(0)?.clear();
        nothing()
    }),
    ("ffi.Map", Variadic, |args| Ok(pairs(args)?.into_iter().collect::<Map>().into())),
    ("ffi.MapSize", Exactly(1), |args| Ok(args.get::<Map>(0)?.len().into())),
    ("ffi.MapGetItem", Exactly(2), |args| args.get::<Map>(0)?.get(args.any(1)).cloned().ok_or_else(no_key)),
    ("ffi.MapCount", Exactly(2), |args| Ok(i64::from(args.get::<Map>(0)?.get(args.any(1)).is_some()).into())),
    ("ffi.MapForwardIterFunctor", Exactly(1), |args| {
        let map: Map = args.get(0)?;
        Ok(iterate(map.iter().map(|(key, value)| (key.clone(), value.clone())).collect()).into())
    }),
    ("ffi.MapGetItemOrMissing", Exactly(2), |args| {
        Ok(args.get::<Map>(0)?.get(args.any(1)).cloned().unwrap_or_else(missing))
    }),
    ("ffi.Dict", Variadic, |args| Ok(pairs(args)?.into_iter().collect::<Dict>().into())),
    ("ffi.DictSize", Exactly(1), |args| Ok(args.get::<Dict>(0)?.len().into())),
    ("ffi.DictGetItem", Exactly(2), |args| args.get::<Dict>(0)?.get(args.any(1)).ok_or_else(no_key)),
    ("ffi.DictSetItem", Exactly(3), |args| {
        args.get::<Dict>(0)?.insert(args.any(1), args.any(2));
        nothing()
    }),
    ("ffi.DictCount", Exactly(2), |args| Ok(i64::from(args.get::<Dict>(0)?.get(args.any(1)).is_some()).into())),
    ("ffi.DictErase", Exactly(2), |args| {
        args.get::<Dict>(0)?.remove(args.any(1));
        nothing()
    }),
    ("ffi.DictClear", Exactly(1), |args| {
        args.get::<Dict>(0)?.clear();
        nothing()
    }),
    ("ffi.DictForwardIterFunctor", Exactly(1), |args| Ok(iterate(args.get::<Dict>(0)?.to_vec()).into())),
    ("ffi.DictGetItemOrMissing", Exactly(2), |args| Ok(args.get::<Dict>(0)?.get(args.any(1)).unwrap_or_else(missing))),
    ("ffi.ContainerFindFirstNonCPUDevice", Exactly(1), |args| {
        Ok(device_elsewhere(&args.any(0), 0)?.unwrap_or(Device::cpu(0)).into())
    }),
];

fn contains(values: &[Any], value: &Any) -> Result<Any, Error> {
    Ok(values.iter().any(|other| same_key(other, value)).into())
}

fn splice(args: Arguments<'_, '_>, replacement: Vec<Any>) -> Result<Any, Error> {
    let list: List = args.get(0)?;
    let bound = list.len() + 1;
    list.splice(args.position(1, bound)?..args.position(2, bound)?, replacement)?;
    nothing()
}

fn pairs(args: Arguments<'_, '_>) -> Result<Vec<(Any, Any)>, Error> {
    let views = args.all();
    if !views.len().is_multiple_of(2) {
        let message = format!("expected keys and values in turn but got {} arguments", views.len());
        return Err(Error::new(ErrorKind::InternalError, message));
    }
    Ok(views.chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect())
}

fn no_key() -> Error {
    Error::new(ErrorKind::KeyError, "key is not in Map")
}

/// A function that walks entries: 0 is the key where it stands, 1 the value, anything else goes on and tells whether
/// there is more.
fn iterate(entries: Vec<(Any, Any)>) -> Function {
    let place = Mutex::new(0usize);
    Function::new(move |args| {
        let command = args.first().map_or(Ok(2), |command| command.to::<i64>())?;
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = || Error::new(ErrorKind::IndexError, "the iteration is at its end");
        match command {
            0 => entries.get(*place).map(|(key, _)| key.clone()).ok_or_else(ended),
            1 => entries.get(*place).map(|(_, value)| value.clone()).ok_or_else(ended),
            _ => {
                *place = (*place + 1).min(entries.len());
                Ok((*place < entries.len()).into())
            }
        }
    })
}

/// The device of the first tensor that is not in the host's memory.
fn device_elsewhere(value: &Any, depth: usize) -> Result<Option<Device>, Error> {
    crate::graph::check_depth(depth)?;
    let first = |values: Vec<Any>| -> Result<Option<Device>, Error> {
        for value in values {
            if let Some(device) = device_elsewhere(&value, depth + 1)? {
                return Ok(Some(device));
            }
        }
        Ok(None)
    };
    match value.type_index() {
        type_index::TENSOR => {
            let device = value.to::<Tensor>()?.device();
            Ok((device.device_type != Device::CPU).then_some(device))
        }
        type_index::ARRAY => first(value.to::<Array>()?.to_vec()),
        type_index::LIST => first(value.to::<List>()?.to_vec()),
        type_index::MAP | type_index::DICT => {
            first(value.to::<Map>()?.iter().map(|(_, value)| value.clone()).collect())
        }
        _ => Ok(None),
    }
}
