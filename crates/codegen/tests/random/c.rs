//! Random kernels by way of C, all of them in one file, so that its compiler runs once.

use super::{Make, check_compiled, count, programs, schedules};
use crate::harness::{Kernels, has_c_compiler};

/// Few enough that a compiler has memory for them.
const IN_ONE_FILE: usize = 250;

fn check(quick: u64, deep: u64, make: Make) {
    if has_c_compiler() {
        check_compiled(count(quick, deep), IN_ONE_FILE, make, Kernels::compile_c);
    }
}

#[test]
fn random_programs_in_c_give_the_same_results() {
    check(60, 5000, programs::make);
}

#[test]
fn accesses_outside_of_buffers_are_errors_in_c_where_bounds_are_checked() {
    check(25, 2000, programs::make_checked);
}

#[test]
fn random_schedules_in_c_give_the_same_results() {
    check(20, 2000, schedules::make);
}
