//! The repository keeps the rules of the house.

use xtask::{root, tidy};

#[test]
fn the_repository_is_tidy() {
    let problems: Vec<String> = tidy::check(&root()).iter().map(ToString::to_string).collect();
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}
