//! Programs in Relay from end to end.

mod memory;
mod programs;
mod random;
mod random_numbers;
mod random_passes;
mod samples;
mod to_relax;
