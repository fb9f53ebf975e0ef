//! The steps, one file each: what it does, when it is legal, and its row of the table of kinds.

pub mod fuse;
pub mod get_loops;
pub mod get_sblock;
mod rebind;
pub mod reorder;
pub mod split;
