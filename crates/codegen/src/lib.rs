//! Native code from lowered TIR, and its export as one shared library.
//!
//! [`compile`] takes kernels as lowering leaves them: no blocks, flat buffers (or compact ones with an index per dimension),
//! vectors written as ramps and broadcasts, a `global_symbol` each. It gives relocatable objects. [`export_library`] makes
//! these, and the serialized module tree, one shared library; [`export`] says how.
//!
//! What is not here: lowering, which is the tensor IR's, and loading, which is the runtime's.

mod compile;
pub mod error;
pub mod export;
mod llvm;
mod rejection;
mod shards;
mod target;

use std::path::Path;

pub use compile::{CompiledLib, assembly, compile, compile_with, llvm_text};
pub use error::{CodegenError, TargetPart};
use export::{ExtraSection, SharedLibrary};
pub use target::NativeTarget;

impl CompiledLib {
    /// The kernels as a library to which sections can still be added.
    pub fn library(&self) -> Result<SharedLibrary<'_>, CodegenError> {
        let mut library = SharedLibrary::new(self.machine);
        for (index, object) in self.objects.iter().enumerate() {
            library.object(format!("kernels{index}.o"), object)?;
        }
        for function in &self.foreign {
            library.host_symbol(function);
        }
        Ok(library)
    }
}

/// Writes kernels and the serialized module tree (without its length; empty for kernels alone) as one shared library.
pub fn export_library(tree: &[u8], kernels: &CompiledLib, path: &Path) -> Result<(), CodegenError> {
    let mut library = kernels.library()?;
    if !tree.is_empty() {
        library.section(ExtraSection::module_tree([tree]));
    }
    Ok(library.write_file(path)?)
}
