//! Names for long expressions of lengths.
//!
//! A slice of a slice of a named length has a length that mentions the first one several times, and the next slice mentions that
//! several times again. What a node gives therefore gets a name where its length has grown long: the program binds the name when it
//! runs, and all that follows is said in short.
//!
//! ```text
//! y[max(min(n + 1, max(1, n)) - min(1, n) - 1, 0), …]      →      y[d0, …], d0 bound by a cast
//! ```
//!
//! The same expression gets the same name again within a graph, so that what has been equal stays equal.

use relaxide_ir::Type;
use relaxide_relax::BlockBuilder;

use crate::dims;
use crate::error::NodeError;
use crate::names::Names;
use crate::scope::Scope;
use crate::value::Value;

/// What a node gives, with names for those lengths that are long.
pub fn named(names: &mut Names, builder: &mut BlockBuilder, value: Value) -> Result<Value, NodeError> {
    let Value::Computed(tensor) = &value else { return Ok(value) };
    let ty = tensor.ty();
    let Some((ty, shape)) = ty.as_tensor().and_then(|ty| Some((ty, ty.shape.as_ref()?))) else { return Ok(value) };
    if !shape.iter().any(dims::is_long) {
        return Ok(value);
    }
    let short = shape.iter().map(|dim| if dims::is_long(dim) { names.length(dim) } else { dim.clone() });
    let ty = Type::tensor(short, ty.dtype);
    Ok(Value::Computed(Scope::new(builder).bind_type(tensor.clone(), ty)?))
}
