//! The steps, one file each: what it does, when it is legal, and its row of the table of kinds.

pub mod add_unit_loop;
pub mod annotate;
pub mod cache_read;
pub mod cache_write;
mod caching;
pub mod compute_at;
pub mod compute_inline;
pub mod decompose_reduction;
pub mod enter_postproc;
pub mod for_kind;
pub mod fuse;
pub mod get_loops;
pub mod get_sblock;
mod inline;
mod moving;
pub mod neighbours;
mod places;
mod rebind;
pub mod reorder;
pub mod reorder_block_iter_var;
pub mod reverse_compute_at;
pub mod reverse_compute_inline;
pub mod sample;
pub mod split;
