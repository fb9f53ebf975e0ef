//! Functions of a program as values.

use std::sync::Weak;

use relaxide_ffi::{Any, AnyView, Error, ErrorKind, Object, Ref};

use crate::host::Host;

/// A function of a virtual machine with values that are bound behind its arguments. It does not keep the machine.
#[derive(Object)]
#[object(key = "relax.vm.Closure")]
pub struct Closure {
    /// The function's name.
    func_name: String,
    #[field(hidden)]
    index: usize,
    #[field(hidden)]
    host: Weak<dyn Host>,
    #[field(hidden)]
    bound: Vec<Any>,
}

impl Closure {
    pub(crate) fn new(name: &str, index: usize, host: Weak<dyn Host>) -> Ref<Self> {
        Ref::new(Self { func_name: name.to_owned(), index, host, bound: Vec::new() })
    }

    /// The function's name.
    pub fn name(&self) -> &str {
        &self.func_name
    }

    /// The function's index in the table of its machine.
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// The values that follow the arguments of each call.
    pub(crate) fn bound(&self) -> &[Any] {
        &self.bound
    }

    /// Whether it is a function of that machine.
    pub(crate) fn is_of(&self, host: &dyn Host) -> bool {
        std::ptr::addr_eq(self.host.as_ptr(), host)
    }

    /// The closure with more values bound, in front of those that are bound already.
    pub(crate) fn bind_last(&self, values: &[AnyView<'_>]) -> Ref<Self> {
        let bound = values.iter().map(|value| value.to_owned()).chain(self.bound.iter().cloned()).collect();
        Ref::new(Self { func_name: self.func_name.clone(), index: self.index, host: self.host.clone(), bound })
    }

    /// Calls it from a machine, which need not be its own.
    pub(crate) fn call(&self, from: &dyn Host, args: &[AnyView<'_>]) -> Result<Any, Error> {
        let all: Vec<AnyView<'_>> = args.iter().copied().chain(self.bound.iter().map(Any::as_view)).collect();
        if self.is_of(from) {
            return from.invoke(self.index, &all);
        }
        let gone = || Error::new(ErrorKind::RuntimeError, format!("the machine of closure {} is gone", self.func_name));
        self.host.upgrade().ok_or_else(gone)?.invoke(self.index, &all)
    }
}

impl std::fmt::Debug for Closure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Closure({}, {} bound)", self.func_name, self.bound.len())
    }
}
