//! Native code from lowered TIR, and its export as one shared library; or C from the same, as one file.
//!
//! [`compile`] takes kernels as lowering leaves them: no blocks, flat buffers (or compact ones with an index per dimension),
//! vectors written as ramps and broadcasts, a `global_symbol` each. It gives relocatable objects. [`export_library`] makes
//! these, and the serialized module tree, one shared library, and [`CompiledLib::linked_object`] one object to link;
//! [`export`] says how.
//!
//! What is not here: lowering, which is the tensor IR's, and loading, which is the runtime's.

mod backend;
mod c;
mod cache;
mod compile;
mod cuda;
mod devices;
pub mod error;
pub mod export;
mod flat_index;
mod llvm;
mod memo;
mod on_device;
mod opencl;
mod packed_call;
mod processors;
mod rejection;
mod shards;
mod shared;
mod signature;
mod stack;
mod static_library;
mod target;
mod uses;

use std::path::Path;

pub use backend::{Artifact, Backend, DeviceCode, Processor, Profile, backend, check_target, register_backend};
pub use c::{CSource, compile_to_c};
pub use cache::{CACHE_VARIABLE, Cache, CacheUse};
pub use compile::{CompileSettings, CompiledLib, Share, assembly, compile, compile_with, llvm_text};
pub use devices::{Emitted, emit, host_of};
pub use error::{CodegenError, TargetPart};
use export::{ExtraSection, LIBRARY_BIN_SYMBOL, RelocatableObject, SharedLibrary, WebAssemblyModule};
pub use llvm::DebugInfo;
use llvm::REGISTER;
pub use processors::{ForProcessor, in_order, parse_targets};
use relaxide_ffi::SavedBytes;
use relaxide_runtime::processor;
use shared::ENTRY_PREFIX;
pub use static_library::{LinkedObject, STATIC_LIBRARY, StaticLibrary};
pub use target::{Architecture, Facts, NativeTarget, known_architectures, llvm_version};

impl CompiledLib {
    /// The kernels as a library to which sections can still be added.
    pub fn library(&self) -> Result<SharedLibrary<'_>, CodegenError> {
        let mut library = SharedLibrary::new(self.target.architecture.elf()?);
        for (index, object) in self.objects.iter().enumerate() {
            library.object(format!("kernels{index}.o"), object)?;
        }
        for object in &self.linked {
            library.object(&object.name, &object.bytes)?;
        }
        for function in &self.foreign {
            library.host_symbol(function);
        }
        Ok(library)
    }

    /// The kernels alone as one relocatable object, under the names that libraries have for them: nothing is entered anywhere
    /// when a program with it starts.
    pub fn plain_object(&self) -> Result<Vec<u8>, CodegenError> {
        let mut object = RelocatableObject::new(self.target.architecture.elf()?).for_libraries();
        self.add_objects(&mut object)?;
        // The other name of an only kernel is the library's to give.
        let is_own = |entry: &&String| *entry != "main" || self.kernels.contains(*entry);
        for entry in self.entries().iter().filter(is_own) {
            object.offer(format!("{ENTRY_PREFIX}{entry}"), format!("{ENTRY_PREFIX}{entry}"));
        }
        let mut bytes = Vec::new();
        object.write_to(&mut bytes)?;
        Ok(bytes)
    }

    fn add_objects<'a>(&'a self, object: &mut RelocatableObject<'a>) -> Result<(), CodegenError> {
        for (index, kernels) in self.objects.iter().enumerate() {
            object.object(format!("kernels{index}.o"), kernels)?;
        }
        for linked in &self.linked {
            object.object(&linked.name, &linked.bytes)?;
        }
        Ok(())
    }

    /// An object that enters the kernels, and the module tree if it is under that symbol, into the process's table of system
    /// symbols when the program that it is linked into starts.
    pub fn registration(&self, tree: Option<&str>, prefix: &str) -> Result<Vec<u8>, CodegenError> {
        self.compile_beside(&llvm::registration(&self.processors(), &self.entries(), &self.slots, tree, prefix))
    }

    /// The kernels, and the module tree as `save_module_tree` gives it (empty for kernels alone), as one relocatable object for
    /// programs to link. When the program starts, it enters all of them into the process's table of system symbols, under
    /// their names with `prefix` in front.
    pub fn linked_object(&self, tree: &[u8], prefix: &str) -> Result<Vec<u8>, CodegenError> {
        let mut object = RelocatableObject::new(self.target.architecture.elf()?);
        let (entries, tree_symbol) = (self.entries(), (!tree.is_empty()).then_some(LIBRARY_BIN_SYMBOL));
        let registration = self.registration(tree_symbol, prefix)?;
        object.object("registration.o", &registration)?;
        self.add_objects(&mut object)?;
        if !tree.is_empty() {
            object.data(LIBRARY_BIN_SYMBOL, tree).offer(LIBRARY_BIN_SYMBOL, format!("{prefix}{LIBRARY_BIN_SYMBOL}"));
        }
        object.offer(REGISTER, register_symbol(prefix));
        for entry in &entries {
            object.offer(format!("{ENTRY_PREFIX}{entry}"), format!("{ENTRY_PREFIX}{prefix}{entry}"));
        }
        let mut bytes = Vec::with_capacity(tree.len() + (1 << 16));
        object.write_to(&mut bytes)?;
        Ok(bytes)
    }
}

impl CompiledLib {
    /// The kernels and the module tree as one WebAssembly module with the runtime that is given. The program is linked in under the empty
    /// prefix.
    pub fn webassembly_module(
        &self,
        runtime: &[u8],
        tree: SavedBytes,
        parts: WebAssemblyParts,
    ) -> Result<SavedBytes, CodegenError> {
        let mut module = WebAssemblyModule::new(runtime)?;
        let registration = self.registration((!tree.is_empty()).then_some(LIBRARY_BIN_SYMBOL), "")?;
        module.object("registration.o", &registration)?;
        for (index, kernels) in self.objects.iter().enumerate() {
            module.object(format!("kernels{index}.o"), kernels)?;
        }
        for linked in &self.linked {
            module.object(&linked.name, &linked.bytes)?;
        }
        if !tree.is_empty() {
            module.data(LIBRARY_BIN_SYMBOL, tree);
        }
        module.begin_with("relaxide_start");
        if parts.has_optional_builtins {
            module.begin_with("relaxide_optional_builtins");
        }
        module.offer("relaxide_");
        if !parts.takes_weights {
            module.withhold("relaxide_weights_");
        }
        Ok(module.link()?)
    }
}

/// What of the runtime a WebAssembly module has besides what every one has.
#[derive(Clone, Copy, Debug, Default)]
pub struct WebAssemblyParts {
    /// The builtins that few programs call. The runtime has to be the one with them.
    pub has_optional_builtins: bool,
    /// The functions that take weights from whoever loads the module.
    pub takes_weights: bool,
}

/// The function of a linked model that enters it into the process's table, with its prefix; it runs by itself when the program
/// starts. A program that calls it makes sure that its linker takes the model out of an archive.
pub fn register_symbol(prefix: &str) -> String {
    format!("{prefix}{REGISTER}")
}

/// Writes kernels and the serialized module tree (empty for kernels alone) as one shared library.
pub fn export_library(tree: &SavedBytes, kernels: &CompiledLib, path: &Path) -> Result<(), CodegenError> {
    let mut library = kernels.library()?;
    let processors = kernels.processors();
    let section = ExtraSection::new(".rodata.relaxide").symbol(processor::SYMBOL);
    library.section(section.piece(processors.needed.to_text().into_bytes()).piece(&b"\0"[..]));
    if let Some(table) = processors.variants {
        let section = ExtraSection::new(".rodata.relaxide.processors").symbol(processor::variants::SYMBOL);
        library.section(section.piece(table.into_bytes()).piece(&b"\0"[..]));
    }
    if !tree.is_empty() {
        library.section(ExtraSection::module_tree(tree.pieces()));
    }
    Ok(library.write_file(path)?)
}
