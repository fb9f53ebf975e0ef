//! The steps, one file each: what it does, when it is legal, and its row of the table of kinds.

pub mod cache_read;
pub mod cache_write;
mod caching;
pub mod compute_at;
pub mod decompose_reduction;
pub mod fuse;
pub mod get_loops;
pub mod get_sblock;
mod moving;
mod places;
mod rebind;
pub mod reorder;
pub mod reverse_compute_at;
pub mod split;
