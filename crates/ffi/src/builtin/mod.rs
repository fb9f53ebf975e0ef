//! What front ends find in the tables from the start: the types of this crate, their methods and attributes, and the
//! global functions `ffi.*`.
//!
//! A function is a plain Rust function over views of its arguments, in a table with its name and its number of
//! arguments; [`Arguments`] takes the arguments apart.

mod containers;
mod enumeration;
mod functions;
mod graphs;
mod modules;
mod objects;
mod paths;
mod traversal;

pub(crate) use enumeration::{Enum, enum_member, is_enum, is_int_enum};
pub(crate) use functions::{is_keywords, is_missing};
pub(crate) use modules::hold;

use crate::abi::ByteArray;
use crate::capi::CMethodInfo;
use crate::field::schema_of;
use crate::reflect::flags;
use crate::reflected::schema_metadata;
use crate::type_attr::Attr;
use crate::type_info::{Table, TypeInfo};
use crate::{Any, AnyView, Error, ErrorKind, FromAny, Function};

/// Whether the tables have anything in them. A deployed runtime, which no front end uses, is half as large without what
/// they lead to: JSON graphs, structural comparison, printing, creation by reflection.
pub(crate) const FRONT_ENDS: bool = cfg!(feature = "front-ends");

/// A function of the tables.
type Native = fn(Arguments<'_, '_>) -> Result<Any, Error>;

/// How many arguments a function takes.
#[derive(Clone, Copy)]
enum Arity {
    Exactly(usize),
    Any,
}

/// A row of a table: name, arguments, function.
type BuiltinRow = (&'static str, Arity, Native);

/// The arguments of a call, as many as the table says.
#[derive(Clone, Copy)]
struct Arguments<'a, 'v> {
    views: &'a [AnyView<'v>],
}

impl<'a, 'v> Arguments<'a, 'v> {
    /// The argument at a position, converted.
    fn get<T: FromAny>(&self, position: usize) -> Result<T, Error> {
        self.view(position).to().map_err(|error: Error| error.context(format_args!("argument #{position}")))
    }

    fn any(&self, position: usize) -> Any {
        self.view(position).to_owned()
    }

    fn view(&self, position: usize) -> AnyView<'v> {
        self.views.get(position).copied().unwrap_or_default()
    }

    fn position(&self, position: usize, size: usize) -> Result<usize, Error> {
        let index: i64 = self.get(position)?;
        let out_of_range = || Error::new(ErrorKind::IndexError, format!("Index {index} out of bounds {size}"));
        usize::try_from(index).ok().filter(|index| *index < size).ok_or_else(out_of_range)
    }

    fn all(&self) -> &'a [AnyView<'v>] {
        self.views
    }
}

fn function(row: BuiltinRow) -> Function {
    let (name, arity, body) = row;
    Function::new(move |views| match arity {
        Arity::Exactly(count) if views.len() != count => {
            let message = format!(
                "Mismatched number of arguments when calling: `{name}`. Expected {count} but got {} arguments",
                views.len()
            );
            Err(Error::new(ErrorKind::TypeError, message))
        }
        _ => body(Arguments { views }),
    })
}

/// All global functions of this crate.
pub(crate) fn global_functions(enter: &mut dyn FnMut(&'static str, Function)) {
    if !FRONT_ENDS {
        return;
    }
    let tables: [&[BuiltinRow]; 6] =
        [functions::TABLE, containers::TABLE, objects::TABLE, graphs::TABLE, modules::TABLE, traversal::TABLE];
    for row in tables.into_iter().flatten() {
        enter(row.0, function(*row));
    }
}

/// Enters the types of this crate that front ends may ask for by name, with their methods.
pub(crate) fn declare_types(table: &mut Table) {
    if !FRONT_ENDS {
        return;
    }
    enumeration::declare(table);
    table.declare::<crate::structural::StructuralKeyObj>();
    paths::declare(table);
    traversal::declare(table);
}

/// The attributes of this crate's types.
pub(crate) fn attributes(set: &mut dyn FnMut(i32, Attr, Any)) {
    if !FRONT_ENDS {
        return;
    }
    objects::attributes(set);
    enumeration::attributes(set);
    paths::attributes(set);
    traversal::attributes(set);
}

/// What tells a type.
type Schema = fn() -> String;

/// Adds methods to a type, each with the types of its result and its arguments. Those without arguments need no object.
fn add_methods(info: &TypeInfo, methods: &[(BuiltinRow, &[Schema])]) {
    for (row, types) in methods {
        let types: Vec<String> = types.iter().map(|schema| schema()).collect();
        let method = CMethodInfo {
            name: ByteArray::new(row.0.as_bytes()),
            doc: ByteArray::new(b""),
            metadata: schema_metadata(&schema_of("ffi.Function", &types)),
            flags: if types.len() == 1 { flags::STATIC_METHOD } else { 0 },
            // The table keeps the function for ever.
            method: Any::from(function(*row)).into_raw(),
        };
        info.reflected().add_method(method);
    }
}

/// No value: what functions return that only do something.
fn nothing() -> Result<Any, Error> {
    Ok(Any::none())
}

/// The bits of a hash as front ends see them.
fn signed(hash: u64) -> Any {
    (hash as i64).into()
}
