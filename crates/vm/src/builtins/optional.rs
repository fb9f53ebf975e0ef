//! Builtins that few programs call, and that take much room: texts, sequences, sampling, caches of keys and
//! values, what appends to tensors, printing.
//!
//! A runtime that is a library has them all. The runtime inside a WebAssembly module is as large as what it has, so there are
//! two of it: one that has these builtins, and one where nobody asks for them by `enter_optional_builtins`, so that its
//! linker leaves them out. The compiler takes the first for programs that call one of them ([`is_optional`]).

use super::{Builtin, append, debug, kv_cache, kv_state, list, python, rows, sampling, sequence, text, unique};

const TABLES: &[&[&[Builtin]]] = &[OTHERS, text::TABLES];

const OTHERS: &[&[Builtin]] = &[
    append::TABLE,
    debug::TABLE,
    kv_cache::TABLE,
    kv_state::TABLE,
    list::TABLE,
    python::TABLE,
    rows::TABLE,
    sampling::TABLE,
    sequence::TABLE,
    unique::TABLE,
];

/// Whether a function is a builtin that a runtime may lack.
pub fn is_optional(name: &str) -> bool {
    TABLES.iter().copied().flatten().copied().flatten().any(|builtin| builtin.name == name)
}

/// The tables that this runtime has.
#[cfg(not(target_family = "wasm"))]
pub(super) fn tables() -> impl Iterator<Item = &'static &'static [Builtin]> {
    TABLES.iter().copied().flatten()
}

#[cfg(target_family = "wasm")]
pub use entered::enter_optional_builtins;
#[cfg(target_family = "wasm")]
pub(super) use entered::tables;

#[cfg(target_family = "wasm")]
mod entered {
    use std::sync::OnceLock;

    use super::{Builtin, TABLES};

    static ENTERED: OnceLock<&'static [&'static [&'static [Builtin]]]> = OnceLock::new();

    /// Enters the optional builtins, before any builtin is looked for.
    pub fn enter_optional_builtins() {
        let _ = ENTERED.set(TABLES);
    }

    /// The tables that were entered.
    pub(in super::super) fn tables() -> impl Iterator<Item = &'static &'static [Builtin]> {
        ENTERED.get().copied().unwrap_or_default().iter().copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_any_program_calls_is_not_optional() {
        assert!(is_optional("relaxide.vm.texts") && is_optional("relax.run.print"));
        assert!(!is_optional("vm.builtin.match_shape") && !is_optional("vm.builtin.alloc_storage"));
    }
}
