//! What is decided of pieces that share rows, before they are laid out.

use relaxide_ffi::Ref;
use relaxide_ir::Var;

use super::super::Machine;
use super::super::parameters::{Choices, Domain, Guess, Parameter};
use super::super::rules::threads_from;

/// Elements that one task takes.
const TASK: i64 = 16 << 10;
/// Vectors of a row up to which its loops are unrolled.
const UNROLLED: i64 = 12;
/// Rows that are taken together at most.
const MOST: i64 = 16;
/// Elements of the rows that are taken together.
const ELEMENTS: i64 = 1024;
/// Elements of a row up to which it is short: two rows at least are taken together.
const SHORT: i64 = ELEMENTS / 2;
/// The same for norms, which have little to compute: alone, a row's first sum asks for what comes next.
const SHORT_NORM: i64 = SHORT / 8;

/// Short rows taken together: each piece goes through all of them before the next piece, so that the processor need not wait
/// for the end of a row, where the lanes of a vector become one number.
#[derive(Clone, Debug)]
pub struct RowBatch {
    /// How many.
    pub count: Ref<Var>,
    /// Which of them a row is, and its place in scratch.
    pub slot: Ref<Var>,
    /// How many at most.
    pub most: i64,
    /// How many elements they have together at most.
    pub elements: i64,
}

/// What is decided besides.
#[derive(Clone, Debug)]
pub struct Decided {
    /// Elements that one task takes.
    pub task: i64,
    /// Vectors of a row up to which its loops are unrolled.
    pub unrolled: i64,
    /// Whether the next row is asked for.
    pub ask_next: bool,
    /// From which work on threads share it.
    pub threads_from: Option<i64>,
    /// The name under which it is noted.
    pub key: String,
    /// All parameters.
    pub parameters: Vec<Parameter>,
}

/// Elements of a row up to which it is short.
pub(super) fn short(choices: &mut Choices<'_>, is_norm: bool) -> i64 {
    choices.choose(Guess {
        name: "short",
        value: if is_norm { SHORT_NORM } else { SHORT },
        domain: Domain::steps(0, 4096, 16),
        reason: match is_norm {
            true => "norms have little to compute: a row alone asks for what comes next while it is summed",
            false => "two rows at least of such elements go together, so that neither waits for the end of the other",
        },
        limit: "0 takes no rows together; longer rows wait too seldom for their ends",
    })
}

/// How short rows are taken together.
pub(super) fn row_batch(choices: &mut Choices<'_>, short: i64) -> RowBatch {
    let least = (short.max(256) as u64).next_power_of_two() as i64;
    let elements = choices.choose(Guess {
        name: "group_elements",
        value: ELEMENTS.max(least),
        domain: Domain::powers_of_two(least, 16 << 10),
        reason: "what lies between the pieces of so many elements stays in the first-level cache",
        limit: "a group holds a short row at least, and larger ones leave the first-level cache",
    });
    let most = choices.choose(Guess {
        name: "together",
        value: MOST,
        domain: Domain::range(1, 64),
        reason: "with so many rows nobody waits for the end of one",
        limit: "each row has a place in scratch, and more rows bring nothing",
    });
    RowBatch { count: Var::dim("together"), slot: Var::dim("slot"), most, elements }
}

/// What does not depend on the rows' length.
pub(super) fn rest(machine: &Machine, choices: &mut Choices<'_>) -> Decided {
    let task = choices.choose(Guess {
        name: "task",
        value: TASK,
        domain: Domain::powers_of_two(1 << 10, 1 << 18),
        reason: "so many elements hide the start of a task and its allocation",
        limit: "smaller tasks cost more than they do, and of larger ones there are too few",
    });
    let unrolled = choices.choose(Guess {
        name: "unrolled",
        value: UNROLLED,
        domain: Domain::range(0, 32),
        reason: "what one piece makes of so many vectors reaches the next one in registers",
        limit: "registers hold no more vectors than that",
    });
    let ask_next = choices.choose(Guess {
        name: "ask_next",
        value: 1,
        domain: Domain::flag(),
        reason: "pieces that compute ask for the next row, so that the first one does not wait for memory",
        limit: "it is no (0) or yes (1)",
    });
    let threads_from = threads_from(machine, choices);
    Decided { task, unrolled, ask_next: ask_next == 1, threads_from, key: String::new(), parameters: Vec::new() }
}
