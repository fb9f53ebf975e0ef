//! Writes the files of an export, whole or not at all.

use std::{io::Write, path::Path};

use relaxide_runtime::file;

use super::error::ExportError;

/// Writes a file, and names it in errors. `mode` are the permissions of a new file.
pub fn write_file(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut dyn Write) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    file::write_whole(path, mode, write).map_err(|error| match error {
        ExportError::Io(source) => ExportError::File { path: path.to_path_buf(), source },
        other => other,
    })
}
