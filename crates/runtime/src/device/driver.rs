//! Libraries of drivers, opened at run time.

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// Why there is no driver.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoDriver {
    #[error("{name} cannot be opened: {why}")]
    Open { name: &'static str, why: String },
    #[error("{name}: it has no function {function}: {why}")]
    Function { name: &'static str, function: &'static str, why: libloading::Error },
    #[error("its driver does not start: {0}")]
    Start(String),
}

/// The first of some libraries that can be opened, and its name; else why the last cannot.
pub(crate) fn open_first(names: &[&'static str]) -> Result<(&'static str, Library), NoDriver> {
    let mut failed = NoDriver::Open { name: "the driver", why: "it has no name".into() };
    for name in names {
        // SAFETY: the driver's initialisers run, which is what opening it is for.
        match unsafe { Library::open(Some(*name), RTLD_NOW | RTLD_LOCAL) } {
            Ok(library) => return Ok((name, library)),
            Err(error) => {
                let said = std::error::Error::source(&error).map_or_else(|| error.to_string(), |e| e.to_string());
                failed = NoDriver::Open { name, why: said };
            }
        }
    }
    Err(failed)
}
