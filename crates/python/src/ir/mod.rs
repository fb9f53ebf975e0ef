//! Programs from Python: what makes their nodes.
//!
//! A node's fields are reflected, so Python reads them without a word here. What is here makes nodes: global functions by
//! the names that TVM has for them, in tables, which check what they are given.

mod analysis;
pub mod args;
pub mod builder;
pub mod dpl;
mod expr;
pub mod fuse_by_pattern;
mod index_map;
mod kernels;
mod layout;
pub mod module;
pub mod op;
pub mod pass_functions;
mod prim;
pub mod relay;
pub mod rewriter;
pub mod schedule;
mod stmt;
pub mod sym;
mod target;
pub mod te;
pub mod tensor_intrin;
pub mod transform;
mod types;

use relaxide::ffi::{Any, AnyView, Error, ErrorKind, Function, Tensor, register_global, type_attr};
use relaxide::script::{tensor_from_text, tensor_to_text};

pub use args::Args;

/// A constructor: its global name, and what it does with its arguments.
type Row = (&'static str, fn(&Args<'_>) -> Result<Any, Error>);

/// Enters the constructors and the types of nodes.
pub fn register() -> Result<(), Error> {
    for (name, make) in [
        types::TABLE,
        expr::TABLE,
        prim::TABLE,
        stmt::TABLE,
        analysis::TABLE,
        dpl::TABLE,
        index_map::TABLE,
        kernels::TABLE,
        layout::TABLE,
        target::TABLE,
    ]
    .into_iter()
    .chain(relay::TABLES)
    .flatten()
    .copied()
    {
        let call = move |values: &[AnyView<'_>]| make(&Args { function: name, values });
        register_global(name, Function::new(call))?;
    }
    types::enter();
    expr::enter();
    prim::enter();
    dpl::enter();
    index_map::enter();
    layout::enter();
    relay::enter();
    pass_functions::enter();
    enter_json()
}

/// Tensors take part in JSON graphs as TVM writes them.
fn enter_json() -> Result<(), Error> {
    let write = |tensor: Tensor| Ok::<_, Error>(tensor_to_text(&tensor));
    let read = |text: String| tensor_from_text(&text).map_err(|why| Error::new(ErrorKind::ValueError, why.to_string()));
    let index = relaxide::ffi::abi::type_index::TENSOR;
    type_attr::set(type_attr::Attr::DataToJson.name(), index, Function::typed(write).into())?;
    type_attr::set(type_attr::Attr::DataFromJson.name(), index, Function::typed(read).into())?;
    layout::enter_json()
}
