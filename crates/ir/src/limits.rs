//! How many of a thing a program may ask for by one number, where each of them becomes code of its own while it is compiled.
//!
//! A number in a text or a file costs a few bytes, and what it asks for may not fit into memory: such a program is refused.

/// Dimensions of a tensor.
pub const MOST_DIMENSIONS: usize = 256;

/// Parts that a tensor is divided into, and elements of a tensor that are read one by one.
pub const MOST_PARTS: usize = 1 << 20;

/// A count that a program gives, if it is from 0 to a limit.
pub fn listed(count: i64, most: usize) -> Option<usize> {
    usize::try_from(count).ok().filter(|count| *count <= most)
}
