//! Bytes as indices and lengths for operators: what comes out is right or an error, and no kernel leaves its tensors, which lie at
//! pages that fault. The programs are compiled once.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use relaxide_testkit::hostile::{Program, kinds};
use relaxide_testkit::pages::Pages;
use relaxide_tir::testing::Random;

#[global_allocator]
static PAGES: Pages = Pages;

static PROGRAMS: LazyLock<Vec<Program>> =
    LazyLock::new(|| (0..kinds()).map(|kind| Program::new(kind).unwrap_or_else(|e| panic!("{e}"))).collect());

// The programs are compiled before the first input, whose time would not do for all of them.
fuzz_target!(init: LazyLock::force(&PROGRAMS), |bytes: &[u8]| {
    let mut random = Random::from_bytes(bytes);
    let program = &PROGRAMS[random.below(PROGRAMS.len())];
    if let Err(problem) = program.run(&mut random) {
        panic!("{problem}");
    }
});
