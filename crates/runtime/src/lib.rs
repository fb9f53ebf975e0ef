//! Devices, memory, threads and module loading: what a deployed model stands on.
