//! Programs from end to end, through the public face.

mod cached_kernels;
mod decisions;
mod external_backend;
mod line_information;
mod linked_models;
mod weights_apart;
