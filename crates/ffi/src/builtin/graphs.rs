//! Functions about JSON.

use super::Arity::{Any as Variadic, Exactly};
use super::BuiltinRow;
use crate::json::{from_graph, parse, stringify, to_graph};

pub(super) const TABLE: &[BuiltinRow] = &[
    ("ffi.json.Parse", Variadic, |args| parse(&args.get::<String>(0)?)),
    ("ffi.json.Stringify", Variadic, |args| {
        let indent = args.get::<Option<i64>>(1)?.unwrap_or(0).clamp(0, 64);
        Ok(stringify(&args.any(0), indent as usize)?.into())
    }),
    ("ffi.ToJSONGraph", Exactly(2), |args| to_graph(&args.any(0), &args.any(1))),
    ("ffi.ToJSONGraphString", Exactly(2), |args| Ok(stringify(&to_graph(&args.any(0), &args.any(1))?, 0)?.into())),
    ("ffi.FromJSONGraph", Exactly(1), |args| from_graph(&args.any(0))),
    ("ffi.FromJSONGraphString", Exactly(1), |args| from_graph(&parse(&args.get::<String>(0)?)?)),
];
