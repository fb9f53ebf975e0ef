//! The project's own chores: `cargo xtask bless`, `cargo xtask tidy`.

fn main() {}
