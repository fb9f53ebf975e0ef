//! Programs from end to end, through the public face.

mod cached_kernels;
mod decisions;
mod external_backend;
mod kernel_passes;
mod line_information;
mod linked_models;
// The crates of these examples are no members of the workspace; their tests run here as well.
#[path = "../../../../examples/backend/src/lib.rs"]
mod pseudo;
#[path = "../../../../examples/frontend/src/lib.rs"]
mod steps;
mod tune;
mod weights_apart;
