//! Methods and texts of paths into object graphs.

use super::Arity::Exactly;
use super::{Arguments, BuiltinRow, Schema, Table, add_methods, function};
use crate::Object;
use crate::object::Ref;
use crate::structural::{AccessPath, AccessStep};
use crate::type_attr::Attr;
use crate::{Any, Error, Field, Function, Str};

/// The methods of a path, with the types of their results and arguments. The root is found without a path.
const METHODS: &[(BuiltinRow, &[Schema])] = &[
    (("_root", Exactly(0), |_| Ok(AccessPath::root().into())), &[PATH]),
    (
        ("_extend", Exactly(2), |args| Ok(AccessPath::extend(&path(args, 0)?, args.get(1)?).into())),
        &[PATH, PATH, Ref::<AccessStep>::schema],
    ),
    (("_attr", Exactly(2), |args| extend(args, "_attr")), &[PATH, PATH, Str::schema]),
    (("_array_item", Exactly(2), |args| extend(args, "_array_item")), &[PATH, PATH, i64::schema]),
    (("_map_item", Exactly(2), |args| extend(args, "_map_item")), &[PATH, PATH, Any::schema]),
    (("_attr_missing", Exactly(2), |args| extend(args, "_attr_missing")), &[PATH, PATH, Str::schema]),
    (("_array_item_missing", Exactly(2), |args| extend(args, "_array_item_missing")), &[PATH, PATH, i64::schema]),
    (("_map_item_missing", Exactly(2), |args| extend(args, "_map_item_missing")), &[PATH, PATH, Any::schema]),
    (
        ("_is_prefix_of", Exactly(2), |args| Ok(path(args, 0)?.is_prefix_of(&*path(args, 1)?).into())),
        &[bool::schema, PATH, PATH],
    ),
    (
        ("_to_steps", Exactly(1), |args| Ok(path(args, 0)?.steps_array().into())),
        &[Vec::<Ref<AccessStep>>::schema, PATH],
    ),
    (("_path_equal", Exactly(2), |args| Ok(path(args, 0)?.same(&*path(args, 1)?).into())), &[bool::schema, PATH, PATH]),
];

const PATH: Schema = Ref::<AccessPath>::schema;

fn path(args: Arguments<'_, '_>, position: usize) -> Result<Ref<AccessPath>, Error> {
    args.get(position)
}

fn extend(args: Arguments<'_, '_>, method: &str) -> Result<Any, Error> {
    Ok(AccessPath::extend_by(&path(args, 0)?, method, args.any(1))?.into())
}

pub(super) fn declare(table: &mut Table) {
    table.declare::<AccessStep>();
    add_methods(table.declare::<AccessPath>(), METHODS);
}

pub(super) fn attributes(set: &mut dyn FnMut(i32, Attr, Any)) {
    let step = function(("ffi.reflection.AccessStep.__ffi_repr__", Exactly(2), |args| {
        Ok(args.get::<Ref<AccessStep>>(0)?.text(&args.get::<Function>(1)?)?.into())
    }));
    let path = function(("ffi.reflection.AccessPath.__ffi_repr__", Exactly(2), |args| {
        Ok(path(args, 0)?.text(&args.get::<Function>(1)?)?.into())
    }));
    set(AccessStep::type_index(), Attr::Repr, step.into());
    set(AccessPath::type_index(), Attr::Repr, path.into());
}
