//! Libraries of drivers, opened at run time.

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// The first of some libraries that can be opened, and its name; else why the last cannot.
pub(crate) fn open_first(names: &[&'static str]) -> Result<(&'static str, Library), String> {
    let mut why = String::new();
    for name in names {
        // SAFETY: the driver's initialisers run, which is what opening it is for.
        match unsafe { Library::open(Some(*name), RTLD_NOW | RTLD_LOCAL) } {
            Ok(library) => return Ok((name, library)),
            Err(error) => {
                let said = std::error::Error::source(&error).map_or_else(|| error.to_string(), |e| e.to_string());
                why = format!("{name} cannot be opened: {said}");
            }
        }
    }
    Err(why)
}
