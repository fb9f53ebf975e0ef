//! Writes files whole or not at all.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use super::error::ExportError;

/// Writes a file: first beside it, then renamed, so that a failure leaves no half file and a process that has the old one
/// mapped is not disturbed. `mode` are the permissions of a new file.
pub fn write_file(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut dyn Write) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    let file_name = path
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, format!("`{}` names no file", path.display())))?;
    let mut temporary = file_name.to_os_string();
    temporary.push(format!(".{}.part", std::process::id()));
    let temporary = path.with_file_name(temporary);
    let written = write_new(&temporary, mode, write).and_then(|()| Ok(fs::rename(&temporary, path)?));
    if written.is_err() {
        // The first error is the one to report; a leftover file is not worth a second.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn write_new(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut dyn Write) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    let mut file = io::BufWriter::with_capacity(1 << 16, options.open(path)?);
    write(&mut file)?;
    file.flush()?;
    Ok(())
}
