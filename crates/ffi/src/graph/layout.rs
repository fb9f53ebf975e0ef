//! Objects whose fields a front end lays out at run time.
//!
//! A front end declares a class by its fields, each with a place, a size and a kind of storage; there is no Rust type
//! behind it. Such an object is memory that is zero at first: every kind of storage has zeros for a value.

use std::ffi::{c_int, c_void};

use crate::abi::{RawAny, type_index};
use crate::capi::CFieldInfo;
use crate::object::destroy;
use crate::object::{DESTROY, FREE, ObjectHeader, ObjectRef, allocate_bytes, free_bytes};
use crate::reflect::{Getter, members};
use crate::type_attr::{self, Attr};
use crate::type_info::{key_of, type_info};
use crate::{Any, DataType, Device, Error, ErrorKind, Function, Storage, error_slot};

/// How a field of such a class lies in memory.
fn storage(field: &CFieldInfo) -> Storage {
    match field.static_type_index {
        type_index::ANY if field.size == size_of::<*const ObjectHeader>() as i64 => Storage::Object,
        type_index::ANY => Storage::Any,
        index if index >= type_index::OBJECT => Storage::Object,
        _ => Storage::Plain,
    }
}

/// Gives a class its constructor, its empty object and its shallow copy.
pub(crate) fn declare_class(index: i32, total_size: i64) -> Result<(), Error> {
    let header = size_of::<ObjectHeader>() as i64;
    let inside = |field: &CFieldInfo| {
        field.offset >= header
            && field.size >= 0
            && field.offset.checked_add(field.size).is_some_and(|end| end <= total_size)
    };
    if !(header..=i64::from(i32::MAX)).contains(&total_size) || !members(index).all(inside) {
        let message = format!("the fields of `{}` do not fit {total_size} bytes", key_of(index));
        return Err(Error::new(ErrorKind::ValueError, message));
    }
    let ancestors = type_info(index).map_or(&[][..], |info| info.ancestors());
    let of_rust = ancestors.iter().filter_map(|ancestor| type_info(*ancestor)).flat_map(|info| info.fields());
    if let Some(field) = of_rust.clone().find(|field| field.storage() == Storage::Rust) {
        let message = format!(
            "`{}` cannot refine a type of Rust whose field `{}` only Rust can lay out",
            key_of(index),
            field.name()
        );
        return Err(Error::new(ErrorKind::TypeError, message));
    }
    let size = total_size as usize;
    type_attr::set(Attr::Init.name(), index, super::create::constructor(index)?.into())?;
    let new = Function::new(move |_| Ok(zeroed(index, size).into()));
    type_attr::set(Attr::New.name(), index, new.into())?;
    let copy = Function::new(move |args| {
        let source: ObjectRef = args.first().copied().unwrap_or_default().to()?;
        if source.type_index() != index {
            return Err(Error::type_mismatch(key_of(index), source.type_key()));
        }
        let copy = zeroed(index, size);
        for field in members(index) {
            // SAFETY: both are objects of this class, whose fields lie inside of them.
            unsafe { copy_field(&source, &copy, field) };
        }
        Ok(copy.into())
    });
    type_attr::set(Attr::ShallowCopy.name(), index, copy.into())
}

fn zeroed(index: i32, size: usize) -> ObjectRef {
    let object = allocate_bytes(size, 0, index);
    // SAFETY: the memory has that size, which holds a header.
    unsafe {
        object.as_ptr().cast::<u8>().write_bytes(0, size);
        object.cast::<ObjectHeader>().write(ObjectHeader::new(index, delete));
        ObjectRef::from_header(object.cast())
    }
}

/// # Safety
/// The field is inside of both objects, and the copy's is still zero.
unsafe fn copy_field(source: &ObjectRef, copy: &ObjectRef, field: &CFieldInfo) {
    // SAFETY: the caller's promise.
    unsafe {
        let from = source.as_ptr().cast::<u8>().byte_offset(field.offset as isize);
        let to = copy.as_ptr().cast::<u8>().byte_offset(field.offset as isize);
        match storage(field) {
            Storage::Any => to.cast::<Any>().write((*from.cast::<Any>()).clone()),
            Storage::Object => to.cast::<Option<ObjectRef>>().write((*from.cast::<Option<ObjectRef>>()).clone()),
            Storage::Plain | Storage::Rust => to.copy_from_nonoverlapping(from, field.size.max(0) as usize),
        }
    }
}

/// The deleter of such objects.
unsafe extern "C" fn delete(this: *mut c_void, flags: c_int) {
    // SAFETY: passed on to the caller; `end` is called once.
    unsafe { destroy::nested(this, end, flags) };
}

unsafe extern "C" fn end(this: *mut c_void, flags: c_int) {
    if flags & DESTROY != 0 {
        // SAFETY: the counting rules ask for this once; the fields lie inside of the object.
        unsafe {
            let index = (*this.cast::<ObjectHeader>()).type_index();
            for field in members(index) {
                let place = this.byte_offset(field.offset as isize);
                match storage(field) {
                    Storage::Any => place.cast::<Any>().drop_in_place(),
                    Storage::Object => place.cast::<Option<ObjectRef>>().drop_in_place(),
                    Storage::Plain | Storage::Rust => {}
                }
            }
        }
    }
    if flags & FREE != 0 {
        // SAFETY: `zeroed` allocated the object; nothing refers to the memory any more.
        unsafe { free_bytes(this) };
    }
}

/// The function that reads a field of a kind.
pub(crate) fn getter(index: i32) -> Result<Getter, Error> {
    Ok(match index {
        type_index::INT => read::<i64>,
        type_index::FLOAT => read::<f64>,
        type_index::BOOL => read::<bool>,
        type_index::OPAQUE_PTR => read::<Address>,
        type_index::DATA_TYPE => read::<DataType>,
        type_index::DEVICE => read::<Device>,
        type_index::ANY | type_index::NONE => read::<Any>,
        index if index >= type_index::OBJECT => read::<Option<ObjectRef>>,
        _ => return Err(unsupported("getter", index)),
    })
}

fn unsupported(what: &str, index: i32) -> Error {
    Error::new(ErrorKind::ValueError, format!("Unsupported field type index for {what}: {index}"))
}

/// An address that is only passed on.
#[derive(Clone)]
#[repr(transparent)]
struct Address(*mut c_void);

impl From<Address> for Any {
    fn from(address: Address) -> Any {
        Any::from_ptr(address.0)
    }
}

unsafe extern "C" fn read<T: Clone + Into<Any>>(field: *mut c_void, out: *mut RawAny) -> c_int {
    // SAFETY: the caller passes the address of such a field and a place for the result.
    unsafe { out.write((*field.cast::<T>()).clone().into().into_raw()) };
    0
}

/// A front end's conversion of a value to the type of a field.
type Convert = unsafe extern "C" fn(converter: *mut c_void, value: *const RawAny, result: *mut RawAny) -> c_int;

/// The function that converts a value and writes a field: `(address, value)`.
///
/// # Safety
/// `convert` is null or a function that takes `converter`, for as long as the process lives.
pub(crate) unsafe fn setter(index: i32, converter: *mut c_void, convert: *mut c_void) -> Result<Function, Error> {
    if convert.is_null() {
        return Err(Error::new(ErrorKind::ValueError, "the conversion of a field is null"));
    }
    getter(index).map_err(|_| unsupported("setter", index))?;
    let (converter, convert) = (converter.expose_provenance(), convert.expose_provenance());
    Ok(Function::new(move |args| {
        let [field, value] = args else {
            return Err(Error::new(ErrorKind::TypeError, format!("expected 2 arguments but got {}", args.len())));
        };
        if field.type_index() != type_index::OPAQUE_PTR {
            return Err(Error::type_mismatch("void*", field.type_key()));
        }
        let (raw, mut result) = (value.raw(), RawAny::NONE);
        // SAFETY: the caller of `setter` vouched for the function; on success it leaves an owned value.
        let converted = unsafe {
            let convert = std::mem::transmute::<*mut c_void, Convert>(std::ptr::with_exposed_provenance_mut(convert));
            match convert(std::ptr::with_exposed_provenance_mut(converter), &raw const raw, &raw mut result) {
                0 => Any::from_raw(result),
                code => return Err(error_slot::take_after(code)),
            }
        };
        // SAFETY: the address is that of a field of this kind: setters are called with nothing else.
        unsafe { write(index, field.raw().payload.ptr, converted)? };
        Ok(Any::none())
    }))
}

/// # Safety
/// The address is that of a field of the kind, which nobody else reads now.
unsafe fn write(index: i32, field: *mut c_void, value: Any) -> Result<(), Error> {
    // SAFETY: the caller's promise; replacing a value drops the old one.
    unsafe {
        match index {
            type_index::INT => *field.cast() = value.to::<i64>()?,
            type_index::FLOAT => *field.cast() = value.to::<f64>()?,
            type_index::BOOL => *field.cast() = value.to::<bool>()?,
            type_index::OPAQUE_PTR => {
                let raw = value.as_view().raw();
                let null = raw.type_index == type_index::NONE;
                if !null && raw.type_index != type_index::OPAQUE_PTR {
                    return Err(Error::type_mismatch("void*", value.type_key()));
                }
                *field.cast() = if null { std::ptr::null_mut() } else { raw.payload.ptr };
            }
            type_index::DATA_TYPE => *field.cast() = value.to::<DataType>()?,
            type_index::DEVICE => *field.cast() = value.to::<Device>()?,
            type_index::ANY | type_index::NONE => drop(field.cast::<Any>().replace(value)),
            _ => drop(field.cast::<Option<ObjectRef>>().replace(value.to::<Option<ObjectRef>>()?)),
        }
    }
    Ok(())
}
