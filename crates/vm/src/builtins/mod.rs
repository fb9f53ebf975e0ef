//! The functions that the VM itself provides, `vm.builtin.*`.
//!
//! Each is one Rust function; [`find`] finds it by name. There are two ways to call one. A bytecode instruction that
//! names a builtin calls the Rust function directly: the VM recognises the name once, when a program is linked. Compiled
//! code and front ends find it among the global functions ([`register`]), as they find anything else; then a builtin
//! that needs the VM gets it from its first argument, the handle that the VM passes for `%vm`.
//!
//! Argument orders are TVM's, and so are the texts of errors that users of a model see: they begin with the text that
//! the compiler passed as last argument, which names function, parameter and annotation.

mod alloc;
mod append;
mod args;
mod check;
mod closure;
mod debug;
mod device;
mod inspect;
mod kv_cache;
mod kv_state;
mod list;
mod mismatch;
mod optional;
mod python;
mod reference;
mod rows;
mod sampling;
mod sequence;
mod shape;
mod tensor_cache;
mod text;
mod tuple;
mod unique;
mod weights;

use std::sync::LazyLock;

use relaxide_ffi::fork::Held;
use relaxide_ffi::{Any, AnyView, Device, Error, Function, get_global, register_global};

pub(crate) use alloc::{ALLOC_STORAGE, ALLOC_TENSOR, impossible_storage, is_plain_scope, storage_bytes};
pub(crate) use append::APPEND_IN_PLACE;
pub(crate) use args::Args;
pub(crate) use check::{CHECK_TENSOR, tensor_info};
pub(crate) use closure::{CALL_TIR_DYN, INVOKE_CLOSURE};
pub(crate) use device::TO_DEVICE;
pub use mismatch::{GUARD_NOTE, SHAPE_GUARD_ERROR};
#[cfg(target_family = "wasm")]
pub use optional::enter_optional_builtins;
pub use optional::is_optional;
pub(crate) use shape::{
    ALLOC_SHAPE_HEAP, Coded, MAKE_SHAPE, MATCH_SHAPE, MAX_HEAP, SHAPE_OF, are_made_dims, match_dims, with_made_dims,
};
pub(crate) use tuple::{COPY, NULL_VALUE, READ_IF_COND, truth};

use crate::FRONT_ENDS;
use crate::host::{self, Host};

/// Holds the tables of this module across a fork.
pub(crate) fn hold() -> impl Iterator<Item = Held> {
    [tensor_cache::hold(), python::hold()].into_iter().flatten()
}

/// What a builtin runs.
#[derive(Clone, Copy)]
pub(crate) enum Body {
    /// A function of its arguments.
    Plain(fn(&Args<'_, '_>) -> Result<Any, Error>),
    /// A function of its arguments which do not say where its tensors are to be, and what brings those to the VM's first device: a
    /// pointer, so that programs without such builtins are linked without it.
    Placed(fn(&Args<'_, '_>) -> Result<Any, Error>, fn(Any, Device) -> Result<Any, Error>),
    /// A function of the machine and its arguments; the first of these is the machine's handle.
    WithHost(fn(&dyn Host, &Args<'_, '_>) -> Result<Any, Error>),
}

/// A builtin: its name and what it runs.
pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    pub(crate) body: Body,
}

impl Builtin {
    const fn plain(name: &'static str, body: fn(&Args<'_, '_>) -> Result<Any, Error>) -> Self {
        Self { name, body: Body::Plain(body) }
    }

    const fn placed(name: &'static str, body: fn(&Args<'_, '_>) -> Result<Any, Error>) -> Self {
        Self { name, body: Body::Placed(body, device::placed) }
    }

    const fn with_host(name: &'static str, body: fn(&dyn Host, &Args<'_, '_>) -> Result<Any, Error>) -> Self {
        Self { name, body: Body::WithHost(body) }
    }

    /// Runs it for a machine.
    #[inline]
    pub(crate) fn run(&self, host: &dyn Host, args: &[AnyView<'_>]) -> Result<Any, Error> {
        let args = Args::new(self.name, args);
        match self.body {
            Body::Plain(body) => body(&args),
            Body::Placed(body, place) => place(body(&args)?, host.main_device()),
            Body::WithHost(body) => body(host, &args),
        }
    }

    /// It as a function for everybody.
    fn to_function(&'static self) -> Function {
        match self.body {
            Body::Plain(body) | Body::Placed(body, _) => Function::new(move |args| body(&Args::new(self.name, args))),
            Body::WithHost(body) => Function::new(move |args| {
                let args = Args::new(self.name, args);
                let host = host::find(args.view(0, "vm")?).map_err(|error| error.context(self.name))?;
                body(&*host, &args)
            }),
        }
    }
}

/// Those that any program may call.
const OWN: &[&[Builtin]] = &[
    alloc::TABLE,
    check::TABLE,
    closure::TABLE,
    device::TABLE,
    inspect::TABLE,
    reference::TABLE,
    shape::TABLE,
    if FRONT_ENDS { tensor_cache::TABLE } else { &[] },
    tuple::TABLE,
    weights::TABLE,
];

/// The builtins with the functions under which they are registered.
static FUNCTIONS: LazyLock<Vec<(&'static Builtin, Function)>> = LazyLock::new(|| {
    let tables = OWN.iter().chain(optional::tables()).copied();
    tables.flatten().map(|builtin| (builtin, builtin.to_function())).collect()
});

/// The builtin of a name, with its function.
pub(crate) fn find(name: &str) -> Option<&'static (&'static Builtin, Function)> {
    FUNCTIONS.iter().find(|(builtin, _)| builtin.name == name)
}

/// Enters all builtins into the table of global functions. A name that is taken stays as it is: a front end may have
/// put its own there.
pub(crate) fn register() {
    for (builtin, function) in FUNCTIONS.iter() {
        if get_global(builtin.name).is_none() {
            // Lost to a thread that registers the same function at the same time.
            let _ = register_global(builtin.name, function.clone());
        }
    }
}
