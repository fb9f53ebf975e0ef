//! Functions that make, print, copy and compare objects, and that declare the classes of front ends.

use std::cmp::Ordering;
use std::ffi::c_void;

use super::Arity::{Any as Variadic, Exactly};
use super::{Arguments, BuiltinRow, function, nothing, signed};
use crate::Object;
use crate::abi::type_index;
use crate::graph::{compare, copy, create, hash, layout, print};
use crate::object::Ref;
use crate::structural::{AccessPath, CompareOptions, StructuralKey, StructuralKeyObj, first_mismatch, value_hash};
use crate::type_attr::{self, Attr};
use crate::type_info::type_index_of_key;
use crate::{Any, Array, BigInt, Bytes, Dict, Error, ErrorKind, Function, List, Map, Shape, Str, Tensor};

pub(super) const TABLE: &[BuiltinRow] = &[
    ("ffi.MakeObjectFromPackedArgs", Variadic, make_object),
    ("ffi._RegisterFFIInit", Exactly(1), |args| {
        let index = args.get(0)?;
        type_attr::set(Attr::Init.name(), index, create::constructor(index)?.into())?;
        nothing()
    }),
    ("ffi.MakeFieldGetter", Exactly(1), |args| Ok((layout::getter(args.get(0)?)? as usize as i64).into())),
    ("ffi.MakeFieldSetter", Exactly(3), |args| {
        let address = |position| -> Result<*mut c_void, Error> {
            Ok(std::ptr::with_exposed_provenance_mut(args.get::<i64>(position)? as usize))
        };
        // SAFETY: who passes addresses as a converter and its function vouches for them.
        Ok(unsafe { layout::setter(args.get(0)?, address(1)?, address(2)?)? }.into())
    }),
    ("ffi._PyClassRegisterTypeAttrColumns", Exactly(2), |args| {
        layout::declare_class(args.get(0)?, args.get(1)?)?;
        nothing()
    }),
    ("ffi.DeepCopy", Exactly(1), |args| copy::deep_copy(&args.any(0))),
    ("ffi.ReprPrint", Exactly(1), |args| Ok(print::print(&args.any(0))?.into())),
    ("ffi.RecursiveHash", Exactly(1), |args| Ok(signed(hash::recursive_hash(&args.any(0))?))),
    ("ffi.RecursiveEq", Exactly(2), |args| Ok(compare::recursive_equal(&args.any(0), &args.any(1))?.into())),
    ("ffi.RecursiveLt", Exactly(2), |args| ordered(args, Ordering::is_lt)),
    ("ffi.RecursiveLe", Exactly(2), |args| ordered(args, Ordering::is_le)),
    ("ffi.RecursiveGt", Exactly(2), |args| ordered(args, Ordering::is_gt)),
    ("ffi.RecursiveGe", Exactly(2), |args| ordered(args, Ordering::is_ge)),
    ("ffi.StructuralKey", Exactly(1), |args| Ok(StructuralKey::new(args.any(0))?.into())),
    ("ffi.StructuralKeyEqual", Exactly(2), |args| Ok(StructuralKey::same(&args.any(0), &args.any(1))?.into())),
    ("ffi.StructuralEqual", Exactly(4), |args| {
        Ok(first_mismatch(&args.any(0), &args.any(1), switches(args, 2)?)?.is_none().into())
    }),
    ("ffi.GetFirstStructuralMismatch", Exactly(4), |args| {
        let mismatch = first_mismatch(&args.any(0), &args.any(1), switches(args, 2)?)?;
        Ok(mismatch.map_or(Any::none(), |mismatch| {
            let (first, second) = AccessPath::of_mismatch(&mismatch);
            vec![Any::from(first), second.into()].into()
        }))
    }),
    ("ffi.StructuralHash", Exactly(3), |args| Ok(signed(value_hash(&args.any(0), switches(args, 1)?)?))),
];

/// The two switches of a comparison, of which the first is the argument at a place.
fn switches(args: Arguments<'_, '_>, first: usize) -> Result<CompareOptions, Error> {
    Ok(CompareOptions { map_free_vars: args.get(first)?, skip_tensor_content: args.get(first + 1)? })
}

fn ordered(args: Arguments<'_, '_>, holds: fn(Ordering) -> bool) -> Result<Any, Error> {
    Ok(holds(compare::recursive_order(&args.any(0), &args.any(1))?).into())
}

/// Makes an object of its type, by index or key, and of names and values in turn.
fn make_object(args: Arguments<'_, '_>) -> Result<Any, Error> {
    let index = match args.view(0).as_str() {
        Some(key) => type_index_of_key(key)
            .ok_or_else(|| Error::new(ErrorKind::ValueError, format!("Cannot find type `{key}`")))?,
        None => args.get(0)?,
    };
    Ok(create::from_pairs(index, args.all().get(1..).unwrap_or(&[]))?.into())
}

/// A function that turns a value into one of a type, if it is one or converts to it.
macro_rules! convert {
    ($type:ty, $key:literal) => {
        function((concat!($key, ".__ffi_convert__"), Exactly(1), |args| {
            args.view(0).to::<$type>().map(Any::from).map_err(|_| {
                let message = format!("Cannot cast from `{}` to `{}`", args.view(0).type_key(), $key);
                Error::new(ErrorKind::TypeError, message)
            })
        }))
        .into()
    };
}

pub(super) fn attributes(set: &mut dyn FnMut(i32, Attr, Any)) {
    set(type_index::OBJECT, Attr::Convert, convert!(crate::ObjectRef, "ffi.Object"));
    set(type_index::STR, Attr::Convert, convert!(Str, "ffi.String"));
    set(type_index::BYTES, Attr::Convert, convert!(Bytes, "ffi.Bytes"));
    set(type_index::ERROR, Attr::Convert, convert!(Error, "ffi.Error"));
    set(type_index::FUNCTION, Attr::Convert, convert!(Function, "ffi.Function"));
    set(type_index::SHAPE, Attr::Convert, convert!(Shape, "ffi.Shape"));
    set(type_index::TENSOR, Attr::Convert, convert!(Tensor, "ffi.Tensor"));
    set(type_index::ARRAY, Attr::Convert, convert!(Array, "ffi.Array"));
    set(type_index::MAP, Attr::Convert, convert!(Map, "ffi.Map"));
    set(type_index::LIST, Attr::Convert, convert!(List, "ffi.List"));
    set(type_index::DICT, Attr::Convert, convert!(Dict, "ffi.Dict"));

    big_int_attributes(set);

    let key = StructuralKeyObj::type_index();
    let new =
        function(("ffi.StructuralKey.__ffi_init__", Exactly(1), |args| Ok(StructuralKey::new(args.any(0))?.into())));
    set(key, Attr::Init, new.into());
    let hash = function(("ffi.StructuralKey.__any_hash__", Exactly(1), |args| {
        let hash = StructuralKey::hash_of(&args.any(0));
        hash.map(Any::from).ok_or_else(|| Error::type_mismatch("ffi.StructuralKey", args.view(0).type_key()))
    }));
    set(key, Attr::AnyHash, hash.into());
    let equal = function(("ffi.StructuralKey.__any_equal__", Exactly(2), |args| {
        Ok(StructuralKey::same(&args.any(0), &args.any(1))?.into())
    }));
    set(key, Attr::AnyEqual, equal.into());
    let copy = function(("__ffi_shallow_copy__", Exactly(1), |args| {
        Ok(Ref::new(args.get::<Ref<StructuralKeyObj>>(0)?.copy()).into())
    }));
    set(key, Attr::ShallowCopy, copy.into());
}

fn big_int_attributes(set: &mut dyn FnMut(i32, Attr, Any)) {
    let content_hash = |args: Arguments<'_, '_>| -> Result<Any, Error> {
        Ok(signed(crate::structural::bytes_hash(BigInt::words_of(&args.any(0)).unwrap_or(&[]))))
    };
    let equal = |args: Arguments<'_, '_>| -> Result<Any, Error> {
        Ok((args.get::<BigInt>(0)? == args.get::<BigInt>(1)?).into())
    };
    let rows: [(Attr, BuiltinRow); 7] = [
        (Attr::AnyHash, ("ffi.BigInt.__any_hash__", Exactly(1), content_hash)),
        (Attr::AnyEqual, ("ffi.BigInt.__any_equal__", Exactly(2), equal)),
        (Attr::Eq, ("ffi.BigInt.__ffi_eq__", Exactly(3), equal)),
        (
            Attr::Compare,
            ("ffi.BigInt.__ffi_compare__", Exactly(3), |args| {
                Ok((args.get::<BigInt>(0)?.cmp(&args.get::<BigInt>(1)?) as i8).into())
            }),
        ),
        (Attr::Hash, ("ffi.BigInt.__ffi_hash__", Exactly(2), content_hash)),
        (
            Attr::DataToJson,
            ("ffi.BigInt.__data_to_json__", Exactly(1), |args| Ok(args.get::<BigInt>(0)?.to_string().into())),
        ),
        (
            Attr::DataFromJson,
            ("ffi.BigInt.__data_from_json__", Exactly(1), |args| BigInt::parse(&args.get::<String>(0)?)),
        ),
    ];
    for (attr, row) in rows {
        set(type_index::BIG_INT, attr, function(row).into());
    }
}
