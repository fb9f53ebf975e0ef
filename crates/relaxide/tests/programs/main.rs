//! Programs from end to end, through the public face.

mod cached_kernels;
mod external_backend;
mod linked_models;
