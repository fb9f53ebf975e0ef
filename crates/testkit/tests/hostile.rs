//! No index and no length makes a kernel touch memory that is not its own. Every tensor of this binary lies at a page that faults.
//!
//! 20,000 runs; a million under `RELAXIDE_DEEP=1`. The same generator is a fuzz target (`fuzz/fuzz_targets/hostile.rs`).

use relaxide_testkit::hostile::{Program, kinds};
use relaxide_testkit::pages::{Pages, allocated};
use relaxide_tir::testing::Random;

#[global_allocator]
static PAGES: Pages = Pages;

fn runs() -> usize {
    if std::env::var_os("RELAXIDE_DEEP").is_some() { 1_000_000 } else { 20_000 }
}

#[test]
fn hostile_indices_and_lengths_are_errors_or_answers() {
    let programs: Vec<Program> = (0..kinds()).map(|kind| Program::new(kind).unwrap()).collect();
    let before = allocated();
    let runs = runs();
    for seed in 0..runs {
        let mut random = Random::new(seed as u64);
        if let Err(problem) = programs[seed % programs.len()].run(&mut random) {
            panic!("seed {seed}: {problem}");
        }
    }
    let tensors = allocated() - before;
    println!("{runs} runs of {} programs, {tensors} tensors at pages that fault", programs.len());
    assert!(tensors > 2 * runs, "{tensors} tensors of {runs} runs lie at such pages");
}
