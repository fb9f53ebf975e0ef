//! The `relaxide` command.

fn main() {}
