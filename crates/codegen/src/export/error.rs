//! What can go wrong while a shared library is written, and whose fault it is.

/// Why no shared library could be written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// An input is not a relocatable ELF object that this writer can read. The producer of the object is at fault.
    #[error("object `{object}` cannot be read: {reason}")]
    BadObject {
        /// The name under which the object was given.
        object: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An object was compiled for another machine than the library is for.
    #[error("object `{object}` is for machine {found}, the library is for {expected}")]
    WrongMachine {
        /// The name under which the object was given.
        object: String,
        /// The ELF machine number found.
        found: u16,
        /// The library's machine.
        expected: super::Machine,
    },
    /// Two objects define the same (not weak) symbol.
    #[error("symbol `{symbol}` is defined in `{first}` and again in `{second}`")]
    DuplicateSymbol {
        /// The symbol's name.
        symbol: String,
        /// The object that defined it first.
        first: String,
        /// The object that defines it again.
        second: String,
    },
    /// A symbol is used that neither the objects nor the libraries known to be present define.
    #[error(
        "object `{object}` uses `{symbol}`, which no object defines and which neither libc, libm nor the runtime offers"
    )]
    UndefinedSymbol {
        /// The symbol's name.
        symbol: String,
        /// The object that uses it.
        object: String,
    },
    /// A symbol is used that the runtime inside a WebAssembly module does not offer. A kernel calls a function of C that is not
    /// among those that come with the runtime.
    #[error("object `{object}` uses `{symbol}`, which the WebAssembly runtime does not offer")]
    NotInRuntime {
        /// The symbol's name.
        symbol: String,
        /// The object that uses it.
        object: String,
    },
    /// A relocation of a kind that a shared library cannot hold or that this writer does not know. Code compiled without
    /// position independence ends here.
    #[error("object `{object}`, section `{section}`: relocation type {kind} against `{symbol}` {reason}")]
    Relocation {
        /// The object's name.
        object: String,
        /// The section that the relocation patches.
        section: String,
        /// The ELF relocation number.
        kind: u32,
        /// The symbol that it refers to.
        symbol: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Files of the instruction set are of another format than the one that is written here. The user asks for too much.
    #[error("no library is written for {0}, whose files are not ELF (models for WebAssembly are modules, `.wasm`)")]
    NotElf(crate::target::Architecture),
    /// An object that this program made cannot be written or read back: our bug.
    #[error("the object cannot be written: {0}")]
    Object(String),
    /// The library would need more address space, sections or symbols than the format allows. A limit of the format.
    #[error("the library is too large: {0}")]
    TooLarge(&'static str),
    /// The bytes could not be written.
    #[error("cannot write the library: {0}")]
    Io(#[from] std::io::Error),
    /// The file could not be written. Its place is at fault: the path, the permissions, the space that is left.
    #[error("cannot write {}: {source}", path.display())]
    File {
        /// Which.
        path: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
}
