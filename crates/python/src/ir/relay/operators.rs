//! The operator table to Python, which makes functions of it.

use relaxide::ffi::{Any, Array, Error, Field as _, Map};
use relaxide::ir::AttrValue;
use relaxide::relay::op::{self, AttrKind, Default, Field, Mapping};

use super::super::Row;

pub(in super::super) const TABLE: &[Row] = &[
    ("relay.ir.OpNames", |_| Ok(Array::from_iter(op::all().map(|def| Any::from(def.name))).into())),
    ("relay.ir.OpDefinition", |args| {
        let name: String = args.get(0)?;
        op::lookup(&name).map_or(Ok(Any::none()), definition)
    }),
];

/// `(level, arguments, [(attribute, kind, default or nothing)], how it is executed)`.
fn definition(def: &'static op::OpDef) -> Result<Any, Error> {
    let attrs = def.attrs_def().map_or(&[] as &[Field], |node| node.fields);
    let attrs = attrs.iter().map(|field| {
        Any::from(Array::from_vec(vec![field.name.into(), kind(field.kind).into(), default(field.default)]))
    });
    let how = match def.mapping {
        Mapping::Missing => "missing",
        Mapping::Machine => "machine",
        _ => "kernels",
    };
    let arguments = Array::from_iter(def.args.iter().map(|arg| Any::from(*arg)));
    let parts = vec![i64::from(def.level).into(), arguments.into(), Array::from_iter(attrs).into(), how.into()];
    Ok(Array::from_vec(parts).into())
}

fn kind(kind: AttrKind) -> &'static str {
    match kind {
        AttrKind::Int => "int",
        AttrKind::Float => "float",
        AttrKind::Bool => "bool",
        AttrKind::Str | AttrKind::DType => "str",
        AttrKind::Ints => "list[int]",
        AttrKind::Floats => "list[float]",
        AttrKind::Any => "object",
    }
}

/// A dictionary with the default, empty where a value must be given.
fn default(default: Default) -> Any {
    let value = match default {
        Default::Required => return std::iter::empty::<(Any, Any)>().collect::<Map>().into(),
        Default::Null | Default::Absent => AttrValue::None,
        Default::Void => AttrValue::Str(String::new()),
        Default::DType(dtype) => AttrValue::Str(dtype.to_string()),
        Default::Int(v) => v.into(),
        Default::Float(v) => v.into(),
        Default::Bool(v) => v.into(),
        Default::Str(v) => v.into(),
        Default::Ints(v) => v.to_vec().into(),
        Default::Floats(v) => v.to_vec().into(),
    };
    relaxide::ir::Attrs::new().with("value", value).to_any()
}
