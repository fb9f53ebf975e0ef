//! Reflection: the fields of object types by name, for front ends, printers and the C ABI.
//!
//! A type that Rust declares lists its fields at compile time ([`FieldInfo`]); one that C or a front end declares does so
//! at run time. Both end in the same tables, which is what everything that walks objects reads ([`members`]).

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;

use crate::abi::RawAny;
use crate::builtin::FRONT_ENDS;
use crate::capi::CFieldInfo;
use crate::object::{ObjectHeader, ObjectRef};
use crate::type_info::type_info;
use crate::{Any, AnyView, Error, ErrorKind, Field, FromAny, Storage, error_slot};

/// Reads a field, given its address; returns 0 on success.
pub type Getter = unsafe extern "C" fn(field: *mut c_void, out: *mut RawAny) -> c_int;
/// Writes a field, given its address; returns 0 on success.
pub type Setter = unsafe extern "C" fn(field: *mut c_void, value: *const RawAny) -> c_int;

/// How a field takes part in structural equality and hashing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldRole {
    /// It is compared.
    Compared,
    /// It is left out, as a source location is.
    Ignored,
    /// It defines the free variables in it, as a parameter list does.
    Defines,
}

/// The bits of a field's flags in the interface.
pub mod flags {
    /// Front ends may set it.
    pub const WRITABLE: i64 = 1;
    /// It has a default.
    pub const HAS_DEFAULT: i64 = 1 << 1;
    /// A method takes no object.
    pub const STATIC_METHOD: i64 = 1 << 2;
    /// Structural equality leaves it out.
    pub const IGNORED: i64 = 1 << 3;
    /// It defines the variables in it, and in what those hold.
    pub const DEFINES: i64 = 1 << 4;
    /// The default is a function that makes one.
    pub const DEFAULT_IS_FACTORY: i64 = 1 << 5;
    /// Printing leaves it out.
    pub const REPR_OFF: i64 = 1 << 6;
    /// Comparing leaves it out.
    pub const COMPARE_OFF: i64 = 1 << 7;
    /// Hashing leaves it out.
    pub const HASH_OFF: i64 = 1 << 8;
    /// It is not an argument of the constructor.
    pub const INIT_OFF: i64 = 1 << 9;
    /// It is an argument by name only.
    pub const KEYWORD_ONLY: i64 = 1 << 10;
    /// The setter is a function object.
    pub const SETTER_IS_FUNCTION: i64 = 1 << 11;
    /// It defines the variables in it, but not those that they hold.
    pub const DEFINES_SIMPLE: i64 = 1 << 12;
}

/// One reflected field of a type that Rust declares.
#[derive(Clone, Copy, Debug)]
pub struct FieldInfo {
    name: &'static str,
    offset: usize,
    size: usize,
    align: usize,
    role: FieldRole,
    storage: Storage,
    static_index: i32,
    getter: Getter,
    setter: Option<Setter>,
    writable: bool,
    in_constructor: bool,
    /// Tells the type, if there are front ends that may ask.
    schema: Option<fn() -> String>,
}

impl FieldInfo {
    /// Describes a field of type `F` that lies `offset` bytes into its struct. Called by `#[derive(Object)]`.
    ///
    /// # Safety
    /// The struct that the description is attached to has an `F` at that offset.
    #[doc(hidden)]
    pub const unsafe fn new<F: Field>(
        name: &'static str,
        offset: usize,
        role: FieldRole,
        setter: Option<Setter>,
    ) -> FieldInfo {
        FieldInfo {
            name,
            offset,
            size: size_of::<F>(),
            align: align_of::<F>(),
            role,
            storage: F::STORAGE,
            static_index: F::STATIC_INDEX,
            getter: get::<F>,
            setter: if F::SETTER.is_some() { F::SETTER } else { setter },
            writable: F::SETTER.is_some(),
            in_constructor: true,
            schema: if FRONT_ENDS { Some(F::schema) } else { None },
        }
    }

    /// The same field, but not an argument of the constructor.
    #[doc(hidden)]
    pub const fn without_init(self) -> FieldInfo {
        FieldInfo { in_constructor: false, ..self }
    }

    /// The type of the field as the interface's tools read it; empty if nobody may ask.
    pub fn schema(&self) -> String {
        self.schema.map_or(String::new(), |schema| schema())
    }

    /// True if front ends make the field an argument of the constructor.
    pub fn in_constructor(&self) -> bool {
        self.in_constructor
    }

    /// The field's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// How many bytes lie between the object's address and the field.
    pub fn offset(&self) -> usize {
        size_of::<ObjectHeader>() + self.offset
    }

    /// The size of the field in memory.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The alignment of the field in memory.
    pub fn align(&self) -> usize {
        self.align
    }

    /// How structural equality treats the field.
    pub fn role(&self) -> FieldRole {
        self.role
    }

    /// How the field lies in memory.
    pub fn storage(&self) -> Storage {
        self.storage
    }

    /// The type index that front ends may rely on.
    pub fn static_index(&self) -> i32 {
        self.static_index
    }

    /// The function that reads the field from C.
    pub fn getter(&self) -> Getter {
        self.getter
    }

    /// The function that writes the field from C: while an object is made, or, if it is writable, at any time.
    pub fn setter(&self) -> Option<Setter> {
        self.setter
    }

    /// True if the field may be set while others hold the object.
    pub fn writable(&self) -> bool {
        self.writable
    }
}

/// Gives the fields of an object that is being made, by name.
pub type FieldReader<'a> = &'a mut dyn FnMut(&'static str) -> Result<Any, Error>;

/// What can be found out about a field's type while the program is compiled. Each answer is an inherent constant if the
/// type allows it, and else the constant of [`Unable`], which has the same name and yields to it.
#[doc(hidden)]
pub struct Probe<F>(std::marker::PhantomData<F>);

/// Turns a value into a field.
#[doc(hidden)]
pub type Read<F> = fn(AnyView<'_>) -> Result<F, Error>;

impl<F: Field + FromAny> Probe<F> {
    #[doc(hidden)]
    pub const READ: Option<Read<F>> = Some(F::from_any);
    #[doc(hidden)]
    pub const SETTER: Option<Setter> = match F::STORAGE {
        Storage::Rust => None,
        _ => Some(set::<F>),
    };
}

impl<F: Default> Probe<F> {
    #[doc(hidden)]
    pub const EMPTY: Option<fn() -> F> = Some(F::default);
}

/// The answers for types that cannot.
#[doc(hidden)]
pub trait Unable<F> {
    /// No value turns into the type.
    const READ: Option<Read<F>> = None;
    /// The field cannot be written.
    const SETTER: Option<Setter> = None;
    /// The type has no default.
    const EMPTY: Option<fn() -> F> = None;
}

impl<F> Unable<F> for Probe<F> {}

/// Makes a field of the value that `fields` has for it. Called by `#[derive(Object)]`.
#[doc(hidden)]
pub fn read_field<F>(
    how: Option<Read<F>>,
    key: &'static str,
    name: &'static str,
    fields: FieldReader<'_>,
) -> Result<F, Error> {
    let how = how.ok_or_else(|| cannot_create(key))?;
    let value = fields(name)?;
    how(value.as_view()).map_err(|error| error.context(format_args!("field `{name}` of `{key}`")))
}

/// Makes a field that is not reflected. Called by `#[derive(Object)]`.
#[doc(hidden)]
pub fn empty_field<F>(how: Option<fn() -> F>, key: &'static str) -> Result<F, Error> {
    how.map(|how| how()).ok_or_else(|| cannot_create(key))
}

pub(crate) fn cannot_create(key: &str) -> Error {
    let message = format!("Type `{key}` does not support reflection creation: not every field can be made of a value");
    Error::new(ErrorKind::RuntimeError, message)
}

/// The names of an object's reflected fields: those of the types that its type refines first.
pub fn field_names(object: &ObjectRef) -> Vec<String> {
    members(object.type_index()).map(|field| name_of(field).to_string()).collect()
}

/// The value of an object's field; `None` if its type has no field of that name or it cannot be read.
pub fn field_of(object: &ObjectRef, name: &str) -> Option<Any> {
    get_field(object, members(object.type_index()).find(|field| name_of(field) == name)?).ok()
}

/// Sets an object's field; an error if the type has no such field, or it cannot be set to that value or at all.
pub fn set_field(object: &ObjectRef, name: &str, value: AnyView<'_>) -> Result<(), Error> {
    let no_field = || {
        let message = format!("a `{}` has no field `{name}`", object.type_key());
        Error::new(ErrorKind::AttributeError, message)
    };
    let field = members(object.type_index()).find(|field| name_of(field) == name).ok_or_else(no_field)?;
    if field.flags & flags::WRITABLE == 0 {
        let message = format!("the field `{name}` of `{}` is read-only", object.type_key());
        return Err(Error::new(ErrorKind::AttributeError, message));
    }
    // SAFETY: the field is writable, so its setter may run while others hold the object.
    unsafe { write_field(object, field, value) }
}

/// All fields of a type: those of the types that it refines first.
pub(crate) fn members(index: i32) -> impl Iterator<Item = &'static CFieldInfo> {
    let info = type_info(index);
    let ancestors = info.map_or(&[][..], |info| info.ancestors());
    let types = ancestors.iter().filter_map(|ancestor| type_info(*ancestor)).chain(info);
    types.flat_map(|info| info.reflected().fields())
}

/// The name of a field.
pub(crate) fn name_of(field: &CFieldInfo) -> &'static str {
    // SAFETY: names in the tables live for ever.
    std::str::from_utf8(unsafe { field.name.as_slice() }).unwrap_or("")
}

/// The value of a field that is a member of the object's type.
pub(crate) fn get_field(object: &ObjectRef, field: &CFieldInfo) -> Result<Any, Error> {
    let Some(getter) = field.getter else {
        let message = format!("the field `{}` of `{}` cannot be read", name_of(field), object.type_key());
        return Err(Error::new(ErrorKind::RuntimeError, message));
    };
    let mut out = RawAny::NONE;
    // SAFETY: whoever registered the field vouches that it lies there in objects of the type; on success the getter
    // leaves an owned value.
    unsafe {
        let address = object.as_ptr().cast::<c_void>().byte_offset(field.offset as isize);
        match getter(address, &raw mut out) {
            0 => Ok(Any::from_raw(out)),
            code => Err(error_slot::take_after(code)),
        }
    }
}

/// Sets a field that is a member of the object's type.
///
/// # Safety
/// Nobody else reads the object now, or the field is writable.
pub(crate) unsafe fn write_field(object: &ObjectRef, field: &CFieldInfo, value: AnyView<'_>) -> Result<(), Error> {
    // SAFETY: whoever registered the field vouches for its place and its setter.
    let address = unsafe { object.as_ptr().cast::<c_void>().byte_offset(field.offset as isize) };
    if field.flags & flags::SETTER_IS_FUNCTION != 0 {
        // SAFETY: the flag says that the setter is a function object, which the table keeps.
        let function = unsafe { crate::capi::borrow::<crate::Function>(field.setter)? };
        return function.call(&[Any::from_ptr(address).as_view(), value]).map(drop);
    }
    if field.setter.is_null() {
        let message = format!("the field `{}` of `{}` cannot be set", name_of(field), object.type_key());
        return Err(Error::new(ErrorKind::TypeError, message));
    }
    // SAFETY: without the flag, the setter is a C function.
    let setter = unsafe { std::mem::transmute::<*mut c_void, Setter>(field.setter) };
    let raw = value.raw();
    // SAFETY: as above.
    match unsafe { setter(address, &raw const raw) } {
        0 => Ok(()),
        code => Err(error_slot::take_after(code)),
    }
}

unsafe extern "C" fn get<F: Field>(field: *mut c_void, out: *mut RawAny) -> c_int {
    // SAFETY: the caller passes the address of an `F` in a live object and a place for the result. In objects that
    // front ends lay out, an address that is not set yet is null, whatever `F` says.
    unsafe {
        if F::STORAGE == Storage::Object && field.cast::<*const c_void>().read().is_null() {
            out.write(RawAny::NONE);
        } else {
            out.write((*field.cast::<F>()).to_any().into_raw());
        }
    }
    0
}

unsafe extern "C" fn set<F: Field + FromAny>(field: *mut c_void, value: *const RawAny) -> c_int {
    error_slot::guard(|| {
        // SAFETY: the caller passes the address of an `F` that nobody else reads, and a value that lives for the call.
        unsafe {
            let new = F::from_any(AnyView::from_raw(*value))?;
            let unset = F::STORAGE == Storage::Object && field.cast::<*const c_void>().read().is_null();
            let place = field.cast::<MaybeUninit<F>>();
            let old = place.replace(MaybeUninit::new(new));
            if !unset {
                drop(old.assume_init());
            }
        }
        Ok(())
    })
}
