//! [`Module`]: a set of functions by name that may import other modules.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::fmt;
use std::path::Path;
use std::sync::{Mutex, PoisonError, RwLock};

use crate::abi::{ByteArray, RawAny, type_index};
use crate::capi::CFieldInfo;
use crate::handle::{exact_from_any, object_handle};
use crate::object::{ObjectHeader, Ref};
use crate::reflect::flags;
use crate::{Any, Array, Error, ErrorKind, Function, Handle, SavedBytes, get_global};

/// What can be done with a module, as the bits that the interface gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleProperties(pub i32);

impl ModuleProperties {
    /// It can be saved to bytes and loaded from them.
    pub const BINARY_SERIALIZABLE: ModuleProperties = ModuleProperties(1);
    /// Its functions can be called.
    pub const RUNNABLE: ModuleProperties = ModuleProperties(2);
    /// It is compiled code that an export links in.
    pub const COMPILATION_EXPORTABLE: ModuleProperties = ModuleProperties(4);

    /// The properties of both.
    pub const fn and(self, other: ModuleProperties) -> ModuleProperties {
        ModuleProperties(self.0 | other.0)
    }

    /// True if these include the others.
    pub const fn contains(self, other: ModuleProperties) -> bool {
        self.0 & other.0 == other.0
    }
}

/// What a kind of module does. Everything but its name and its functions is optional.
pub trait ModuleImpl: std::any::Any + Send + Sync {
    /// The name of the kind, such as `library`.
    fn kind(&self) -> &str;

    /// The function of a name. Whatever the function needs, it must keep alive itself.
    fn get_function(&self, name: &str) -> Option<Function>;

    /// Whether there is a function of that name that cannot be called yet: in code that is linked first.
    fn declares(&self, _name: &str) -> bool {
        false
    }

    /// The function of a name, for kinds whose functions need the module itself, or its imports.
    fn get_bound_function(&self, module: &Module, name: &str) -> Option<Function> {
        let _ = module;
        self.get_function(name)
    }

    /// What can be done with the module.
    fn properties(&self) -> ModuleProperties {
        ModuleProperties::RUNNABLE
    }

    /// The module as bytes, without its imports.
    fn save_to_bytes(&self) -> Result<Vec<u8>, Error> {
        Err(self.cannot("be saved to bytes"))
    }

    /// The same bytes in pieces, for kinds that hold weights.
    fn save(&self) -> Result<SavedBytes, Error> {
        self.save_to_bytes().map(SavedBytes::from)
    }

    /// Writes the module to a file in one of its formats.
    fn write_to_file(&self, _path: &str, _format: &str) -> Result<(), Error> {
        Err(self.cannot("be written to a file"))
    }

    /// The formats that [`ModuleImpl::write_to_file`] knows.
    fn write_formats(&self) -> Vec<String> {
        Vec::new()
    }

    /// The module as text: source or assembly, as the format says.
    fn inspect_source(&self, _format: &str) -> Result<String, Error> {
        Err(self.cannot("be shown as source"))
    }

    /// What is known of a function, as JSON.
    fn function_metadata(&self, _name: &str) -> Option<String> {
        None
    }

    /// A function's documentation.
    fn function_doc(&self, _name: &str) -> Option<String> {
        None
    }

    /// Is told which file the module was loaded from, as an absolute path.
    fn loaded_from(&self, _file: &Path) {}

    /// The error of an operation that this kind lacks.
    #[doc(hidden)]
    fn cannot(&self, what: &str) -> Error {
        Error::new(ErrorKind::RuntimeError, format!("a module of kind `{}` cannot {what}", self.kind()))
    }
}

/// The object behind a [`Module`].
pub(crate) struct ModuleObj {
    body: Box<dyn ModuleImpl>,
    imports: RwLock<Vec<Module>>,
    /// What lookups through the imports found. Compiled code keeps the addresses, so nothing ever leaves.
    found: Mutex<HashMap<String, Function>>,
}

/// The field that front ends read a module's imports by. It has no memory of its own: reading it makes the array.
pub(crate) fn imports_field() -> CFieldInfo {
    unsafe extern "C" fn get(module: *mut c_void, out: *mut RawAny) -> c_int {
        // SAFETY: the field's offset is that of the module behind its header, and the caller gives a place.
        unsafe {
            let imports = (*module.cast::<ModuleObj>()).imports.read().unwrap_or_else(PoisonError::into_inner);
            out.write(Any::from(imports.iter().map(Any::from).collect::<Array>()).into_raw());
        }
        0
    }
    let nothing = ByteArray::new(b"");
    CFieldInfo {
        name: ByteArray::new(b"imports_"),
        doc: nothing,
        metadata: ByteArray::new(br#"{"type_schema":"{\"type\":\"ffi.Array\",\"args\":[{\"type\":\"Any\"}]}"}"#),
        flags: flags::INIT_OFF,
        size: 0,
        alignment: 1,
        offset: size_of::<ObjectHeader>() as i64,
        getter: Some(get),
        setter: std::ptr::null_mut(),
        default: RawAny::NONE,
        static_type_index: type_index::ARRAY,
    }
}

/// A set of functions by name. Copies are the same module.
#[derive(Clone, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Module(Ref<ModuleObj>);

object_handle!(Module, ModuleObj, "ffi.Module", type_index::MODULE);
exact_from_any!(Module);

impl Module {
    /// A module of that kind without imports.
    pub fn new(body: impl ModuleImpl) -> Module {
        Module(Ref::new(ModuleObj { body: Box::new(body), imports: RwLock::default(), found: Mutex::default() }))
    }

    /// The name of the module's kind.
    pub fn kind(&self) -> &str {
        self.0.body.kind()
    }

    /// What the kind does.
    pub fn body(&self) -> &dyn ModuleImpl {
        &*self.0.body
    }

    /// The module's own Rust value, if its kind is `T`.
    pub fn downcast<T: ModuleImpl>(&self) -> Option<&T> {
        let body: &dyn std::any::Any = &*self.0.body;
        body.downcast_ref()
    }

    /// The modules that this one imports, in order.
    pub fn imports(&self) -> Vec<Module> {
        self.0.imports.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds an import; an error if that module imports this one.
    pub fn import(&self, module: Module) -> Result<(), Error> {
        if module.reaches(self) {
            let message = format!("module `{}` cannot import `{}`, which imports it", self.kind(), module.kind());
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        self.0.imports.write().unwrap_or_else(PoisonError::into_inner).push(module);
        Ok(())
    }

    /// Drops all imports.
    pub fn clear_imports(&self) {
        let imports = std::mem::take(&mut *self.0.imports.write().unwrap_or_else(PoisonError::into_inner));
        drop(imports);
    }

    fn reaches(&self, target: &Module) -> bool {
        self == target || self.imports().iter().any(|import| import.reaches(target))
    }

    /// The function of a name, from this module or, if asked for, from the first of its imports that has it.
    pub fn get_function(&self, name: &str, query_imports: bool) -> Option<Function> {
        if let Some(function) = self.0.body.get_bound_function(self, name) {
            return Some(function);
        }
        if !query_imports {
            return None;
        }
        self.imports().iter().find_map(|import| import.get_function(name, true))
    }

    /// True if the module, or with `query_imports` one of its imports, has a function of that name, be it in code that is
    /// still to be linked.
    pub fn implements_function(&self, name: &str, query_imports: bool) -> bool {
        self.0.body.declares(name)
            || self.get_function(name, false).is_some()
            || query_imports && self.imports().iter().any(|import| import.implements_function(name, true))
    }

    /// The function that compiled code in this module means by a name: from the imports, else from the global table. The
    /// module keeps it, so that compiled code may keep its address.
    pub fn lookup_from_imports(&self, name: &str) -> Result<Function, Error> {
        if let Some(function) = self.0.found.lock().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Ok(function.clone());
        }
        // The lock is not held while searching: modules are free to call back.
        let found = self.imports().iter().find_map(|import| import.get_function(name, true));
        let Some(function) = found.or_else(|| get_global(name)) else {
            let message = format!("Cannot find function {name} in the imported modules or global registry.");
            return Err(Error::new(ErrorKind::RuntimeError, message));
        };
        let mut kept = self.0.found.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(kept.entry(name.to_string()).or_insert(function).clone())
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Module({}, {:p})", self.kind(), self.as_object().as_ptr())
    }
}
