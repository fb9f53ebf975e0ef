//! JSON: values as text, and any graph of objects as JSON.
//!
//! JSON values are the interface's own: `Map` for objects, `Array` for arrays, and the plain values. The reader and
//! writer are written here and not taken from a crate because the interface fixes more than JSON does (`NaN` and
//! infinities, floats that keep their point, the texts of errors, values that are built directly as objects) and because
//! what every deployed model carries must stay small.

mod graph;
mod parse;
mod write;

pub use graph::{from_graph, to_graph};
pub use parse::parse;
pub use write::stringify;
