//! Programs from end to end, through the public face.

mod external_backend;
mod linked_models;
