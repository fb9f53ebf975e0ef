//! The files that a compiled program is written to.
//!
//! | ending | what it is | who uses it |
//! | --- | --- | --- |
//! | `.o` | a relocatable object, and a header of the same name | programs that the model is linked into |
//! | `.a` | a static archive of that object, and a header | the same |
//! | `.c` | one file of C, and a header: for the target `c`, which has no other form | the same, and its compiler |
//! | `.wasm` | a WebAssembly module with the runtime in it: for the target `wasm` | browsers, Node |
//! | any other | a shared library | [`load_module`](crate::load_module), and TVM |
//!
//! Endings that say that a file is something else (`.onnx`, `.dll`) are refused.
//!
//! Weights are in the file, or in another beside it ([`WeightsIn::Safetensors`]): `model.so` has `model.safetensors`. Whoever
//! loads the one looks for the other in the same folder; what is linked into a program, in the program's folder.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use relaxide_codegen::export::{ExportError, write_archive, write_file};
use relaxide_codegen::{Architecture, Artifact, CSource, CompiledLib, LinkedObject, StaticLibrary, register_symbol};
use relaxide_ffi::{Error as FfiError, ErrorKind, Module};
use relaxide_runtime::SavedTree;
use relaxide_runtime::file;
use relaxide_runtime::weights::{ALIGNMENT, Written, write_tensors};
use relaxide_vm::executable::weights::{Parted, WeightsApart};

use super::webassembly;
use crate::compiler::compile::{KERNELS, no_kernels};
use crate::compiler::header::{header, identifier};
use crate::{Error, Executable, signature_of_file};

/// What a file is, by its ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileKind {
    SharedLibrary,
    Object,
    Archive,
    Source,
    WebAssembly,
}

/// Endings of what is no ELF library, and what to do instead.
const OTHER_ENDINGS: &[(&str, &str)] = &[
    (
        "dll exe lib",
        "files of Windows are not written: write a shared library (.so), or a file of C with the target `c`",
    ),
    ("dylib", "files of macOS are not written: write a file of C with the target `c`, and compile it there"),
    ("tar zip gz", "write a shared library (.so), and pack it yourself"),
    ("onnx pb py relax rly relay txt json", "it is what a program is compiled from: write a shared library (.so)"),
    ("npy npz safetensors h hpp", "it holds something else: write a shared library (.so)"),
];

impl FileKind {
    /// The form of a file, or why a file of that ending is not written.
    fn for_output(path: &Path) -> Result<FileKind, Error> {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
        let other = OTHER_ENDINGS.iter().find(|(endings, _)| endings.split(' ').any(|other| other == ending));
        other.map_or_else(|| Ok(FileKind::of(path)), |(_, why)| Err(unfit(path, why)))
    }

    fn of(path: &Path) -> FileKind {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("o" | "obj") => FileKind::Object,
            Some("a") => FileKind::Archive,
            Some("c") => FileKind::Source,
            Some("wasm") => FileKind::WebAssembly,
            _ => FileKind::SharedLibrary,
        }
    }
}

impl FileKind {
    /// Whether a program of C includes a header to use it.
    fn has_header(self) -> bool {
        matches!(self, FileKind::Object | FileKind::Archive | FileKind::Source)
    }
}

/// Where the weights of an exported program are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WeightsIn {
    /// In its one file.
    #[default]
    Library,
    /// In a safetensors file beside it, which is mapped into memory where the program is loaded.
    Safetensors,
}

impl FromStr for WeightsIn {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        match name {
            "library" => Ok(WeightsIn::Library),
            "safetensors" => Ok(WeightsIn::Safetensors),
            _ => Err(Error::Unknown {
                what: "place for weights",
                name: name.to_string(),
                known: vec!["library".into(), "safetensors".into()],
            }),
        }
    }
}

/// How a program is exported.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExportOptions<'a> {
    /// What stands in front of the names of functions where it is linked into a program; `None`: the program's attribute
    /// `system_lib_prefix`, or else the file's name.
    pub prefix: Option<&'a str>,
    /// Where its weights are.
    pub weights: WeightsIn,
    /// A folder with the runtime for WebAssembly, besides that of the program that runs.
    pub wasm_runtime: Option<&'a Path>,
}

/// Says whether a program can be written to a path: nothing is destroyed that is not the last export to it. What a name says
/// of a file is no reason to overwrite what lies there: a header or weights of somebody else stay.
pub fn check_output(path: &Path, weights: WeightsIn) -> Result<(), Error> {
    let form = FileKind::for_output(path)?;
    let place = |path: &Path| {
        file::check_place(path)
            .map_err(|source| Error::Io { context: format!("cannot write {}", path.display()), source })
    };
    place(path)?;
    let mut beside = Vec::new();
    if form.has_header() {
        beside.push((header_path(path), HEADER_MARK.as_bytes(), "header"));
    }
    if weights == WeightsIn::Safetensors {
        beside.push((weights_path(path), WEIGHTS_MARK.as_bytes(), "file of weights"));
    }
    for (file, mark, what) in beside {
        place(&file)?;
        if file.exists() && !begins_with_mark(&file, mark) {
            let message = format!(
                "{} would be replaced by the {what} of {}, and was not written by Relaxide: choose another name for the \
                 output, or move that file away",
                file.display(),
                path.display()
            );
            return Err(FfiError::new("FileExistsError", message).into());
        }
    }
    Ok(())
}

/// Stands in the headers that are written here.
const HEADER_MARK: &str = "a model that is linked into the program, with librelaxide_runtime";
/// Stands in the weights' description of themselves.
const WEIGHTS_MARK: &str = "{\"__metadata__\":{\"producer\":\"relaxide ";

/// Whether what stands at the beginning of a file shows that it was written here. A file that cannot be read was not.
fn begins_with_mark(file: &Path, mark: &[u8]) -> bool {
    let mut head = Vec::new();
    let read =
        std::fs::File::open(file).and_then(|file| io::Read::read_to_end(&mut io::Read::take(file, 1 << 16), &mut head));
    read.is_ok() && head.windows(mark.len()).any(|found| found == mark)
}

impl Executable {
    /// Writes it as a file of the kind that the path's ending says: a shared library, or an object (`.o`) or a static archive
    /// (`.a`) with a C header beside it; for the target `c`, a file of C (`.c`) and the header. No compiler or linker is called.
    pub fn export_library(&self, path: &Path) -> Result<(), Error> {
        self.export(path, None)
    }

    /// The same; what is linked into a program enters its functions there with `prefix` in front of their names. Without one
    /// it is the program's attribute `system_lib_prefix`, or else the file's name.
    pub fn export(&self, path: &Path, prefix: Option<&str>) -> Result<(), Error> {
        self.export_with(path, ExportOptions { prefix, ..ExportOptions::default() })
    }

    /// The same, with weights where the options say.
    pub fn export_with(&self, path: &Path, options: ExportOptions<'_>) -> Result<(), Error> {
        check_output(path, options.weights)?;
        self.refuse_for_relay(path, options.weights)?;
        let prefix = options.prefix;
        let module = match options.weights {
            WeightsIn::Library => self.module.clone(),
            WeightsIn::Safetensors => self.without_weights(path)?,
        };
        let form = FileKind::of(path);
        let saved = relaxide_runtime::save_module_tree(&module)?;
        let linked = linked_objects(&saved);
        let tree = match self.code_alone().filter(|_| form == FileKind::SharedLibrary) {
            Some(code) => relaxide_runtime::save_module_tree(&code)?.bytes,
            None => saved.bytes,
        };
        let (without_kernels, with_linked);
        let library = match (&self.kernels, form) {
            (Artifact::Source(_), _) if !linked.is_empty() => return Err(unfit(path, OBJECTS_TO_C)),
            (Artifact::Source(source), FileKind::Source) => {
                return self.export_source(source, &tree.into_bytes(), path, prefix);
            }
            (Artifact::Source(_), _) => return Err(unfit(path, C_TO_OTHERS)),
            (Artifact::Library(_), FileKind::Source) => return Err(unfit(path, OTHERS_TO_C)),
            (Artifact::Library(library), _) => library.as_ref(),
            (Artifact::Functions(_), FileKind::SharedLibrary) => {
                without_kernels = no_kernels()?;
                &without_kernels
            }
            (Artifact::Functions(_), _) => return Err(unfit(path, FUNCTIONS_TO_OTHERS)),
        };
        with_linked = library_with(library, linked);
        let library = &*with_linked;
        match (library.target.architecture == Architecture::Wasm32, form) {
            (true, FileKind::WebAssembly) => {
                let bytes = webassembly::module_of(&module, library, tree, options.wasm_runtime)?;
                let write =
                    |out: &mut dyn std::io::Write| Ok(bytes.pieces().try_for_each(|piece| out.write_all(piece))?);
                return write_file(path, 0o644, write).map_err(native);
            }
            (true, _) => return Err(unfit(path, WASM_TO_OTHERS)),
            (false, FileKind::WebAssembly) => return Err(unfit(path, OTHERS_TO_WASM)),
            (false, _) => {}
        }
        if form == FileKind::SharedLibrary {
            return Ok(relaxide_codegen::export_library(&tree, library, path)?);
        }
        let prefix = self.prefix(path, prefix)?;
        let object = library.linked_object(&tree.into_bytes(), &prefix)?;
        let member = format!("{}.o", identifier(prefix.trim_end_matches('_')).chars().take(12).collect::<String>());
        let write = |out: &mut dyn std::io::Write| match form {
            FileKind::Archive => write_archive(&member, &object, out),
            _ => Ok(out.write_all(&object)?),
        };
        write_file(path, 0o644, write).map_err(native)?;
        self.write_header(path, &prefix)
    }

    /// The kernels, where there is nothing else: a library of them is code, which no virtual machine has to read.
    fn code_alone(&self) -> Option<Module> {
        let mut imports = self.module.imports();
        imports.retain(|import| import.downcast::<StaticLibrary>().is_none());
        let [only] = &imports[..] else { return None };
        (!self.has_functions() && only.kind() == KERNELS).then(|| only.clone())
    }

    /// Writes the kernels alone as one object, under their own names: what [`StaticLibrary`] reads.
    pub fn write_object(&self, path: &Path) -> Result<(), Error> {
        let Artifact::Library(library) = &self.kernels else {
            return Err(unfit(path, "its kernels are not native code"));
        };
        let linked = linked_objects(&relaxide_runtime::save_module_tree(&self.module)?);
        let object = library_with(library, linked).plain_object()?;
        write_file(path, 0o644, |out| Ok(out.write_all(&object)?)).map_err(native)
    }

    /// A program of the Relay VM is a shared library with its constants in it.
    fn refuse_for_relay(&self, path: &Path, weights: WeightsIn) -> Result<(), Error> {
        if relaxide_relay_vm::Executable::of_module(&self.module).is_none() {
            return Ok(());
        }
        let what = match weights {
            WeightsIn::Safetensors => "keeps its weights in the one file",
            WeightsIn::Library if FileKind::of(path) != FileKind::SharedLibrary => {
                "is written as a shared library (.so)"
            }
            WeightsIn::Library => return Ok(()),
        };
        let message =
            format!("cannot write {}: a program of the Relay VM {what}; Relax's machine has this", path.display());
        Err(FfiError::new(ErrorKind::ValueError, message).into())
    }

    /// Writes the weights to a file of their own. The module without them; as it is, where there are none.
    fn without_weights(&self, path: &Path) -> Result<Module, Error> {
        let executable = relaxide_vm::Executable::of_module(&self.module);
        // Whatever is smaller than the alignment is no weight, but a number that the program computes with.
        let Some(Parted { mut rest, described, tensors }) = executable.and_then(|e| e.without_weights(ALIGNMENT))
        else {
            return Ok(self.module.clone());
        };
        let (file, mut written) = (weights_path(path), None::<Written>);
        let producer = concat!("relaxide ", env!("CARGO_PKG_VERSION"));
        let write = |out: &mut dyn std::io::Write| {
            written = Some(write_tensors(&tensors, producer, out)?);
            Ok(())
        };
        write_file(&file, 0o644, write).map_err(native)?;
        let Some(written) = written else { return Ok(self.module.clone()) };
        let weights = WeightsApart {
            file: file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
            bytes: written.bytes,
            checksum: written.checksum,
            tensors: described,
        };
        rest.set_trailer(signature_of_file(&self.module)?.to_trailer_with(&weights));
        let module = rest.into_module();
        self.module.imports().into_iter().try_for_each(|import| module.import(import))?;
        Ok(module)
    }

    /// The kernels and the rest of the program as one file of C.
    fn export_source(&self, source: &CSource, blob: &[u8], path: &Path, prefix: Option<&str>) -> Result<(), Error> {
        let prefix = self.prefix(path, prefix)?;
        let text = source.text(blob, &prefix);
        write_file(path, 0o644, |out| Ok(out.write_all(text.as_bytes())?)).map_err(native)?;
        self.write_header(path, &prefix)
    }

    fn write_header(&self, path: &Path, prefix: &str) -> Result<(), Error> {
        let signature = signature_of_file(&self.module)?;
        let text = header(&signature, prefix, &register_symbol(prefix));
        write_file(&header_path(path), 0o644, |out| Ok(out.write_all(text.as_bytes())?)).map_err(native)
    }

    fn prefix(&self, path: &Path, asked: Option<&str>) -> Result<String, Error> {
        let Some(prefix) = asked.or(self.prefix.as_deref()) else {
            let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            return Ok(format!("{}_", identifier(stem.strip_prefix("lib").unwrap_or(&stem))));
        };
        if prefix.is_empty() || identifier(prefix) == prefix {
            return Ok(prefix.to_string());
        }
        let message =
            format!("the prefix {prefix:?} of linked names is no name of C: letters, digits and _ are expected");
        Err(FfiError::new(ErrorKind::ValueError, message).into())
    }
}

/// The objects of the static libraries among what a program imports.
pub(crate) fn linked_objects(tree: &SavedTree) -> Vec<LinkedObject> {
    let libraries = tree.compiled.iter().filter_map(Module::downcast::<StaticLibrary>);
    libraries.flat_map(StaticLibrary::objects).cloned().collect()
}

/// Native code with the objects beside it.
pub(crate) fn library_with(library: &CompiledLib, linked: Vec<LinkedObject>) -> Cow<'_, CompiledLib> {
    if linked.is_empty() { Cow::Borrowed(library) } else { Cow::Owned(CompiledLib { linked, ..library.clone() }) }
}

const C_TO_OTHERS: &str = "the target `c` makes C: write a file that ends in .c and compile it, for a library that is loaded with \
                           `cc -shared -fPIC -DRELAXIDE_SHARED_LIBRARY`";

const OBJECTS_TO_C: &str =
    "the program imports a static library, which C has no place for: import none, and link it to the compiled file";

const FUNCTIONS_TO_OTHERS: &str =
    "the kernels are functions of a module, not code: write a shared library, which carries the module";

const OTHERS_TO_C: &str = "C is what the target `c` makes: compile for it";

const WASM_TO_OTHERS: &str = "kernels for WebAssembly are in a module: write a file that ends in .wasm";

const OTHERS_TO_WASM: &str = "a WebAssembly module has kernels for it: compile for the target `wasm`";

/// The error of a file whose ending does not fit what the kernels were translated to.
fn unfit(path: &Path, why: &str) -> Error {
    FfiError::new(ErrorKind::ValueError, format!("cannot write {}: {why}", path.display())).into()
}

fn native(error: ExportError) -> Error {
    Error::Native(error.into())
}

/// Where the weights of an exported program are written if they are not in it.
pub fn weights_path(path: &Path) -> PathBuf {
    path.with_extension("safetensors")
}

/// Where the header of an exported object or archive is written.
pub fn header_path(path: &Path) -> PathBuf {
    path.with_extension("h")
}

/// Whether a header is written beside the file.
pub fn has_header(path: &Path) -> bool {
    FileKind::of(path).has_header()
}
