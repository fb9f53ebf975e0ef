//! Code that somebody else compiled, to be linked into a library.
//!
//! A file `mine.o` (or `mine.a`, all objects of which are taken) defines functions in the packed convention under the symbols
//! `__tvm_ffi_<name>`. As a module it is imported by a program; where that is exported or loaded, [`crate::CompiledLib::linked`] has its
//! objects, and its functions are the library's.
//!
//! What is read is code, as trusted as a shared library; a file that is no object, or lacks a function that it is said to have, is
//! refused when it is loaded, and not first when a program is exported.
//!
//! Left out: what the linker leaves out ([`crate::export`]), so that objects of C++ with exceptions or thread-local variables are
//! refused, with their symbol, where they are linked.

use std::{collections::HashSet, fs, path::Path, sync::Arc};

use object::read::archive::ArchiveFile;
use relaxide_ffi::{Error, ErrorKind, Function, Module, ModuleImpl, ModuleProperties};

use crate::{export::global_definitions, shared::ENTRY_PREFIX};

/// The kind of the modules.
pub const STATIC_LIBRARY: &str = "static_library";

/// How archives begin.
const ARCHIVE: &[u8] = b"!<arch>\n";

/// One object that is linked with kernels.
#[derive(Debug, Clone)]
pub struct LinkedObject {
    /// What errors call it.
    pub name: String,
    /// The object.
    pub bytes: Arc<[u8]>,
    /// The functions that it is there for, without the prefix that their symbols carry.
    pub functions: Vec<String>,
}

/// An object file, or an archive, as a module whose functions can be called once it is linked.
#[derive(Debug)]
pub struct StaticLibrary {
    /// The file as it was read.
    bytes: Vec<u8>,
    functions: Vec<String>,
    objects: Vec<LinkedObject>,
}

impl StaticLibrary {
    /// Reads a file that implements `functions`.
    pub fn load(path: &Path, functions: Vec<String>) -> Result<Module, Error> {
        let bytes = fs::read(path).map_err(|error| {
            let kind = if error.kind() == std::io::ErrorKind::NotFound { "FileNotFoundError" } else { "OSError" };
            Error::new(kind, format!("cannot read the static library {}: {error}", path.display()))
        })?;
        let objects = objects_of(path, &bytes)?;
        let mut library = StaticLibrary { bytes, functions: functions.clone(), objects };
        library.place(path, functions)?;
        Ok(Module::new(library))
    }

    /// Says of each function which of the objects it is in.
    fn place(&mut self, path: &Path, functions: Vec<String>) -> Result<(), Error> {
        let refused =
            |why: String| Error::new(ErrorKind::ValueError, format!("the static library {} {why}", path.display()));
        let mut defined = Vec::new();
        for object in &self.objects {
            let names =
                global_definitions(&object.bytes).map_err(|error| refused(format!("cannot be read: {error}")))?;
            defined.push(names.into_iter().map(<[u8]>::to_vec).collect::<HashSet<_>>());
        }
        for function in functions {
            let symbol = format!("{ENTRY_PREFIX}{function}");
            let place = defined.iter().position(|names| names.contains(symbol.as_bytes()));
            let missing =
                || refused(format!("does not define the function {function:?}: the symbol `{symbol}` is expected"));
            self.objects[place.ok_or_else(missing)?].functions.push(function);
        }
        Ok(())
    }

    /// The objects to link.
    pub fn objects(&self) -> &[LinkedObject] {
        &self.objects
    }
}

/// The objects of a file, which is one itself or an archive of some.
fn objects_of(path: &Path, bytes: &[u8]) -> Result<Vec<LinkedObject>, Error> {
    let object = |name: String, bytes: &[u8]| LinkedObject { name, bytes: bytes.into(), functions: Vec::new() };
    let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if !bytes.starts_with(ARCHIVE) {
        return Ok(vec![object(file, bytes)]);
    }
    let bad = |error: object::Error| {
        Error::new(ErrorKind::ValueError, format!("the archive {} cannot be read: {error}", path.display()))
    };
    let archive = ArchiveFile::parse(bytes).map_err(bad)?;
    let member = |member: object::Result<object::read::archive::ArchiveMember<'_>>| {
        let member = member.map_err(bad)?;
        let name = format!("{file}({})", String::from_utf8_lossy(member.name()));
        Ok(object(name, member.data(bytes).map_err(bad)?))
    };
    archive.members().map(member).collect()
}

impl ModuleImpl for StaticLibrary {
    fn kind(&self) -> &str {
        STATIC_LIBRARY
    }

    fn get_function(&self, _: &str) -> Option<Function> {
        None
    }

    fn declares(&self, name: &str) -> bool {
        self.functions.iter().any(|function| function == name)
    }

    fn properties(&self) -> ModuleProperties {
        ModuleProperties::COMPILATION_EXPORTABLE
    }

    /// Writes the file as it was read.
    fn write_to_file(&self, path: &str, _format: &str) -> Result<(), Error> {
        relaxide_runtime::file::write_whole(Path::new(path), 0o644, |out| out.write_all(&self.bytes))
            .map_err(|error| Error::new("OSError", format!("cannot write {path}: {error}")))
    }
}
