//! Programs from end to end, through the public face.

mod cached_kernels;
mod decisions;
mod external_backend;
mod kernel_passes;
mod line_information;
mod linked_models;
// The crate of the example is no member of the workspace; its tests run here as well.
#[path = "../../../../examples/backend/src/lib.rs"]
mod pseudo;
mod weights_apart;
