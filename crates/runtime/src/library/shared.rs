//! A shared library as a module.

use std::ffi::{CString, OsString, c_void};
use std::path::Path;
use std::sync::Arc;

use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};
use relaxide_ffi::abi::SafeCall;
use relaxide_ffi::{Error, ErrorKind, Function, Handle, Module, ModuleImpl, ModuleProperties};

use super::symbols::{self, ensure_symbols_global};
use super::{bind, blob, tree};

/// In front of the name of every function that a library exports to the runtime.
const FUNCTION_PREFIX: &str = "__tvm_ffi_";
/// The slot that holds the library's own module, for code that looks functions up.
const CONTEXT_SYMBOL: &str = "__tvm_ffi__library_ctx";

/// The functions of a shared library: `get_function("add")` finds the symbol `__tvm_ffi_add`.
pub struct LibraryModule {
    library: Arc<Library>,
}

/// The kind of a [`LibraryModule`].
pub const KIND: &str = "library";

impl LibraryModule {
    /// The address of a symbol.
    fn symbol(&self, name: &str) -> Option<*mut c_void> {
        let name = CString::new(name).ok()?;
        // SAFETY: only the address is taken, as a plain pointer, and only used while the library is kept.
        let symbol = unsafe { self.library.get::<*mut c_void>(name.as_bytes_with_nul()) };
        symbol.ok().map(|symbol| symbol.into_raw()).filter(|address| !address.is_null())
    }
}

/// What a function of a library keeps alive: the library itself and the module whose imports its code looks through.
struct Keep {
    _library: Arc<Library>,
    _module: Option<Module>,
}

impl LibraryModule {
    fn function(&self, name: &str, module: Option<&Module>) -> Option<Function> {
        let address = self.symbol(&format!("{FUNCTION_PREFIX}{name}"))?;
        // SAFETY: symbols with this prefix are functions of the interface's calling convention.
        let call = unsafe { std::mem::transmute::<*mut c_void, SafeCall>(address) };
        let keep = Keep { _library: Arc::clone(&self.library), _module: module.cloned() };
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
}

/// Opens a library and rebuilds the modules in it.
pub(super) fn load(path: &Path) -> Result<Module, Error> {
    let visible = ensure_symbols_global();
    // Without a slash the dynamic linker would search its own places.
    let file = if path.components().count() == 1 { Path::new(".").join(path) } else { path.to_owned() };
    // SAFETY: loading a library runs its initialisers; that is what the caller of `load_module` asks for.
    let opened = unsafe { Library::open(Some(OsString::from(&file)), RTLD_LAZY | RTLD_LOCAL) };
    let library = opened.map_err(|error| {
        // What the dynamic linker says is the source; the error itself only names the call.
        let said = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
        let hint = visible.err().filter(|_| said.contains("undefined symbol"));
        let hint = hint.map(|error| format!("; {}", error.message())).unwrap_or_default();
        Error::new(ErrorKind::RuntimeError, format!("cannot load {}: {error}{said}{hint}", path.display()))
    })?;
    let handle = library.into_raw();
    // SAFETY: the handle is live, and nothing of the library runs yet.
    unsafe { bind::bind_imports(handle) };
    // SAFETY: the handle came from `into_raw` just above.
    let library = LibraryModule { library: Arc::new(unsafe { Library::from_raw(handle) }) };

    fill_context_slots(&library);
    let blob = library.symbol(blob::SYMBOL).map(|address| {
        // SAFETY: the symbol is a length and as many bytes behind it; the copy is made before anybody can unload it.
        unsafe {
            let length = u64::from_le(address.cast::<u64>().read_unaligned());
            std::slice::from_raw_parts(address.cast::<u8>().add(8), length as usize).to_vec()
        }
    });
    let context = library.symbol(CONTEXT_SYMBOL);
    let module = Module::new(library);
    if let Some(slot) = context {
        // SAFETY: the slot is one pointer. It is read only by functions of the library, which keep the module.
        unsafe { slot.cast::<*mut c_void>().write(module.as_object().as_ptr().cast()) };
    }
    match blob {
        None => Ok(module),
        Some(bytes) => tree::rebuild(&bytes, &module),
    }
}

fn fill_context_slots(library: &LibraryModule) {
    for (name, symbol) in symbols::context_symbols() {
        if let Some(slot) = library.symbol(&name) {
            // SAFETY: a slot is an exported pointer that only the loader writes, before any of the code runs.
            unsafe { slot.cast::<*mut c_void>().write(symbol) };
        }
    }
}
