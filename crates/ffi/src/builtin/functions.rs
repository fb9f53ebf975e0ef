//! Functions about functions, types, and values that stand for something.

use std::ffi::c_void;
use std::sync::LazyLock;

use super::Arity::{Any as Variadic, Exactly};
use super::{Arguments, BuiltinRow};
use crate::abi::{SafeCall, type_index};
use crate::object::ObjectRef;
use crate::{
    Any, Array, Bytes, Error, ErrorKind, Function, Shape, Str, describe_global, global_names, remove_global, type_info,
};

pub(super) const TABLE: &[BuiltinRow] = &[
    ("ffi.GetRegisteredTypeKeys", Exactly(0), |_| {
        Ok(type_info::keys().into_iter().map(Any::from).collect::<Array>().into())
    }),
    ("ffi.GetInvalidObject", Exactly(0), |_| Ok((&*MISSING).into())),
    ("ffi.GetKwargsObject", Exactly(0), |_| Ok((&*KEYWORDS).into())),
    ("ffi.FunctionRemoveGlobal", Exactly(1), |args| Ok(remove_global(&args.get::<String>(0)?).is_some().into())),
    ("ffi.FunctionListGlobalNamesFunctor", Exactly(0), list_names),
    ("ffi.String", Exactly(1), |args| Ok(args.get::<Str>(0)?.into())),
    ("ffi.Bytes", Exactly(1), |args| Ok(args.get::<Bytes>(0)?.into())),
    ("ffi.GetGlobalFuncMetadata", Exactly(1), metadata),
    ("ffi.FunctionFromExternC", Exactly(3), from_callback),
    ("ffi.Shape", Variadic, shape),
];

/// What stands for a value that is not there, where None would be one.
static MISSING: LazyLock<ObjectRef> = LazyLock::new(crate::object::bare);
/// What stands before the arguments by name.
static KEYWORDS: LazyLock<ObjectRef> = LazyLock::new(crate::object::bare);

/// True if the object stands for a value that is not there.
pub(crate) fn is_missing(object: &ObjectRef) -> bool {
    *object == *MISSING
}

/// What stands for a value that is not there.
pub(super) fn missing() -> Any {
    (&*MISSING).into()
}

/// True if the object stands before the arguments by name.
pub(crate) fn is_keywords(object: &ObjectRef) -> bool {
    *object == *KEYWORDS
}

fn list_names(_: Arguments<'_, '_>) -> Result<Any, Error> {
    let names = global_names();
    let list = Function::new(move |args| {
        let index = args.first().map_or(Ok(-1), |index| index.to::<i64>())?;
        match usize::try_from(index) {
            Err(_) => Ok(names.len().into()),
            Ok(index) => names.get(index).map(Any::from).ok_or_else(|| {
                Error::new(ErrorKind::IndexError, format!("Index {index} out of bounds {}", names.len()))
            }),
        }
    });
    Ok(list.into())
}

fn metadata(args: Arguments<'_, '_>) -> Result<Any, Error> {
    let name: String = args.get(0)?;
    let missing = || Error::new(ErrorKind::RuntimeError, format!("Global Function is not found: {name}"));
    Ok(describe_global(&name).ok_or_else(missing)?.metadata.into())
}

/// An address, where null may come as None.
fn address(args: Arguments<'_, '_>, position: usize) -> Result<*mut c_void, Error> {
    let raw = args.view(position).raw();
    match raw.type_index {
        type_index::NONE => Ok(std::ptr::null_mut()),
        // SAFETY: the type index says that the payload is an address.
        type_index::OPAQUE_PTR => Ok(unsafe { raw.payload.ptr }),
        _ => Err(Error::type_mismatch("void*", args.view(position).type_key())),
    }
}

fn from_callback(args: Arguments<'_, '_>) -> Result<Any, Error> {
    let (resource, call, release) = (address(args, 0)?, address(args, 1)?, address(args, 2)?);
    if call.is_null() {
        return Err(Error::new(ErrorKind::ValueError, "the callback is null"));
    }
    // SAFETY: who passes addresses as functions vouches that they are; a null one is none.
    unsafe {
        let call = std::mem::transmute::<*mut c_void, SafeCall>(call);
        let release = std::mem::transmute::<*mut c_void, Option<unsafe extern "C" fn(*mut c_void)>>(release);
        Ok(Function::from_callback(resource, call, release).into())
    }
}

fn shape(args: Arguments<'_, '_>) -> Result<Any, Error> {
    let dims = args.all().iter().map(|dim| dim.as_int());
    let dims = dims
        .collect::<Option<Vec<i64>>>()
        .ok_or_else(|| Error::new(ErrorKind::ValueError, "Expect shape to take list of int arguments"))?;
    Ok(Shape::new(&dims).into())
}
