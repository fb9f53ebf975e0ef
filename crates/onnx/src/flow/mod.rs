//! Control flow: operators with graphs inside, as branches and functions of the program.
//!
//! | operator | becomes |
//! | --- | --- |
//! | `If` | one branch where the condition is known at import, otherwise Relax's `if` ([`branch`]) |
//! | `Loop`, `Scan` | a function that calls itself last ([`relaxide_frontend::loops`]), which the compiler makes a jump |
//! | `SequenceAt`, `SequenceInsert` … | nothing where the length is known at import, otherwise calls of the runtime ([`sequence`]) |
//! | `SequenceMap` | the graph once for each value where the length is known at import, otherwise a loop ([`map`]) |
//! | `Optional`, `OptionalHasElement` … | nothing where it is known at import whether there is a value, otherwise a check for null ([`optional`]) |
//!
//! What loops read from outside is handed to them ([`Captures`](relaxide_frontend::Captures)).

pub mod branch;
mod captures;
mod carried;
pub mod loops;
pub mod map;
pub mod optional;
pub mod rows;
pub mod scan;
pub mod sequence;
mod state;

pub use captures::capture;
