//! What takes the place of the dynamic linker where there is none, as in WebAssembly.
//!
//! Models are linked into the program there ([`system_library`](super::system_library)); files of them are refused.

use relaxide_ffi::Error;

/// Nothing looks for symbols where nothing is opened.
pub fn ensure_symbols_global() -> Result<(), Error> {
    Ok(())
}

/// Opening shared libraries, which is refused.
pub(super) mod shared {
    use std::path::Path;

    use relaxide_ffi::fork::Held;
    use relaxide_ffi::{Error, ErrorKind, Module};

    /// Fails: there is nothing that opens a library.
    pub(in super::super) fn load(path: &Path) -> Result<Module, Error> {
        let message = format!(
            "cannot load {}: this runtime is built for {}, which has no shared libraries; link the model into the program",
            path.display(),
            std::env::consts::ARCH
        );
        Err(Error::new(ErrorKind::RuntimeError, message))
    }

    /// Nothing is held across a fork.
    pub(in super::super) fn hold() -> Option<Held> {
        None
    }
}

/// Reading the heads of shared libraries, of which there are none.
pub(super) mod extent {
    use std::path::Path;

    /// Nothing is a library.
    pub(in super::super) fn is_library(_path: &Path) -> bool {
        false
    }
}

/// The table of functions for shared libraries, which is empty.
pub(super) mod symbols {
    use relaxide_ffi::fork::Held;

    /// Nothing is held across a fork.
    pub(in super::super) fn hold() -> Option<Held> {
        None
    }
}
