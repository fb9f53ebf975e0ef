//! What takes the place of the dynamic linker where there is none, as in WebAssembly, or where it is left out (the feature `loader`).
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
        let why = match cfg!(unix) {
            true => "without the loader of shared libraries (the feature `loader`)".to_owned(),
            false => format!("for {}, which has no shared libraries", std::env::consts::ARCH),
        };
        let path = path.display();
        let message = format!("cannot load {path}: this runtime is built {why}; link the model into the program");
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
