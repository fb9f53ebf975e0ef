//! The tests of this crate: one program, which is linked once and runs them beside each other.

mod local;
mod recorded;
mod schedules;
mod secure;
mod tvm_server;
