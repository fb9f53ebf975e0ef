//! The command as people and scripts use it: what it prints, what it writes, and how it ends.

mod bench;
mod check;
mod compile;
mod devices;
mod documentation;
mod errors;
mod inspect;
mod opt;
mod pictures;
mod profile;
mod relay;
mod run;
mod tune;
mod workplace;
