//! Native code as a module, wherever it came from.

#[cfg(all(unix, feature = "loader"))]
use std::ffi::CString;
use std::ffi::c_void;
#[cfg(all(unix, feature = "loader"))]
use std::fs::File;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, OnceLock};

#[cfg(all(unix, feature = "loader"))]
use libloading::os::unix::Library;
use relaxide_ffi::abi::SafeCall;
use relaxide_ffi::{Error, Function, Handle, Module, ModuleImpl, ModuleProperties, env};

use super::context::Context;
use super::{blob, tree};
use crate::processor::{self, variants};

/// In front of the name of every function that a library exports to the runtime.
const FUNCTION_PREFIX: &str = "__tvm_ffi_";
/// The slot that holds the library's own module, for code that looks functions up.
const CONTEXT_SYMBOL: &str = "__tvm_ffi__library_ctx";

/// Where the symbols of a module are.
pub(super) enum Code {
    /// In a library that was opened, by the name of an open file if there is one.
    #[cfg(all(unix, feature = "loader"))]
    Shared(Library, #[expect(dead_code, reason = "kept open, so that its name stays its own")] Option<File>),
    /// In the program itself, which entered them into the process's table when it started. Several libraries may be
    /// linked into one program; what they enter is told apart by a prefix.
    Linked {
        /// In front of the names of this library.
        prefix: String,
    },
}

impl Code {
    /// The address of what the library as a whole has under this name, such as its module tree.
    pub(super) fn symbol(&self, name: &str) -> Option<*mut c_void> {
        match self {
            #[cfg(all(unix, feature = "loader"))]
            Code::Shared(library, _) => exported(library, name),
            Code::Linked { prefix } => {
                env::system_symbol(&format!("{prefix}{name}")).or_else(|| env::system_symbol(name))
            }
        }
    }

    /// The address of a function that is offered under this name.
    fn function(&self, name: &str) -> Option<*mut c_void> {
        match self {
            #[cfg(all(unix, feature = "loader"))]
            Code::Shared(library, _) => exported(library, &format!("{FUNCTION_PREFIX}{name}")),
            Code::Linked { prefix } => env::system_symbol(&format!("{FUNCTION_PREFIX}{prefix}{name}"))
                .or_else(|| env::system_symbol(&format!("{FUNCTION_PREFIX}{name}"))),
        }
    }
}

#[cfg(all(unix, feature = "loader"))]
fn exported(library: &Library, name: &str) -> Option<*mut c_void> {
    let name = CString::new(name).ok()?;
    // SAFETY: only the address is taken, as a plain pointer, and only used while the library is kept.
    let symbol = unsafe { library.get::<*mut c_void>(name.as_bytes_with_nul()) };
    symbol.ok().map(|symbol| symbol.into_raw()).filter(|address| !address.is_null())
}

/// The functions of a library: `get_function("add")` finds the symbol `__tvm_ffi_add`.
pub struct LibraryModule {
    /// Ends first: the slot is in the library.
    context: OnceLock<Context>,
    code: Arc<Code>,
    /// Behind the names of the kernels that were chosen for this processor; nothing behind those of the first or only one.
    suffix: String,
}

/// The kind of a [`LibraryModule`].
pub const KIND: &str = "library";

/// What a function of a library keeps alive: the library itself and the module whose imports its code looks through.
struct Keep {
    _code: Arc<Code>,
    _module: Option<Module>,
}

impl LibraryModule {
    /// What the library says about one of its functions, which it does in a function beside it.
    fn described(&self, what: &str, name: &str) -> Option<String> {
        self.function(&format!("{what}{name}"), None)?.call(&[]).ok()?.to().ok()
    }

    fn function(&self, name: &str, module: Option<&Module>) -> Option<Function> {
        // What is not made for each processor has its plain name.
        let own = (!self.suffix.is_empty()).then(|| self.code.function(&format!("{name}{}", self.suffix))).flatten();
        let address = own.or_else(|| self.code.function(name))?;
        // SAFETY: symbols with this prefix are functions of the interface's calling convention.
        let call = unsafe { std::mem::transmute::<*mut c_void, SafeCall>(address) };
        let keep = Keep { _code: Arc::clone(&self.code), _module: module.cloned() };
        // SAFETY: the symbol is callable as long as the library is loaded, which `keep` sees to.
        Some(unsafe { Function::from_symbol(call, keep) })
    }
}

impl ModuleImpl for LibraryModule {
    fn kind(&self) -> &str {
        KIND
    }

    fn get_function(&self, name: &str) -> Option<Function> {
        self.function(name, None)
    }

    fn get_bound_function(&self, module: &Module, name: &str) -> Option<Function> {
        self.function(name, Some(module))
    }

    fn properties(&self) -> ModuleProperties {
        ModuleProperties::RUNNABLE
    }

    fn function_metadata(&self, name: &str) -> Option<String> {
        self.described("_metadata_", name)
    }

    fn function_doc(&self, name: &str) -> Option<String> {
        self.described("_doc_", name)
    }
}

/// Writes an address into a slot of a library. The dynamic linker gives a library that is loaded already once more, so other
/// threads may be filling the slot with the same address, or call through it.
///
/// # Safety
/// The slot is a writable pointer, aligned as one.
pub(super) unsafe fn fill(slot: *mut *mut c_void, address: *mut c_void) {
    // SAFETY: the caller's promise; all writers come by here.
    let slot = unsafe { AtomicPtr::from_ptr(slot) };
    if slot.load(Ordering::Relaxed) != address {
        slot.store(address, Ordering::Relaxed);
    }
}

/// What is behind the names of the kernels that this processor runs; an error where it runs none.
fn suffix_for_host(code: &Code) -> Result<String, Error> {
    if let Some(address) = code.symbol(variants::SYMBOL) {
        // SAFETY: the compiler writes a text with a zero byte behind it under this symbol, which is never changed.
        let table = unsafe { variants::read(address.cast()) }?;
        let chosen = table.choose()?;
        let name = table.rows().get(chosen).filter(|_| chosen > 0).map(|row| variants::suffix(&row.name));
        return Ok(name.unwrap_or_default());
    }
    if let Some(address) = code.symbol(processor::SYMBOL) {
        // SAFETY: as above.
        unsafe { processor::read(address.cast()) }.map_or(Ok(()), |needed| needed.check())?;
    }
    Ok(String::new())
}

/// Makes a module of a library's code, and rebuilds the modules in it, of which the first is given back.
pub(super) fn assemble(code: Code) -> Result<Module, Error> {
    let suffix = suffix_for_host(&code)?;
    let (blob, slot) = (code.symbol(blob::SYMBOL), code.symbol(CONTEXT_SYMBOL));
    let module = Module::new(LibraryModule { code: Arc::new(code), context: OnceLock::new(), suffix });
    if let (Some(slot), Some(library)) = (slot, module.downcast::<LibraryModule>()) {
        // SAFETY: the slot is one pointer; the module keeps the context, and the library longer than it.
        let context = unsafe { Context::enter(slot, module.as_object().as_ptr().cast()) };
        // The module was made just now: nobody has set it.
        let _ = library.context.set(context);
    }
    let Some(address) = blob else { return Ok(module) };
    // SAFETY: the symbol is a length and as many bytes behind it, which the module keeps loaded during the call.
    let bytes = unsafe {
        let length = u64::from_le(address.cast::<u64>().read_unaligned());
        std::slice::from_raw_parts(address.cast::<u8>().add(8), length as usize)
    };
    tree::rebuild(bytes, &module)
}
