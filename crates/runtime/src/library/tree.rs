//! The modules of a library: rebuilding them from its bytes, and making the bytes.

use relaxide_ffi::{AnyView, Error, ErrorKind, Module, ModuleProperties, SavedBytes, get_global};

use super::blob::{self, LIBRARY_KIND, ModuleNode};

/// Makes the modules that the bytes describe and connects them; `library` takes the place of the library's own code.
pub(super) fn rebuild(bytes: &[u8], library: &Module) -> Result<Module, Error> {
    let nodes = blob::decode(bytes).map_err(|error| Error::new(ErrorKind::ValueError, error.to_string()))?;
    let modules = nodes.iter().map(|node| make(node, library)).collect::<Result<Vec<_>, _>>()?;
    for (module, node) in modules.iter().zip(&nodes) {
        for import in node.imports.iter().filter_map(|index| modules.get(*index)) {
            module.import(import.clone())?;
        }
    }
    // A tree that was decoded has a root.
    modules.into_iter().next().ok_or_else(|| Error::new(ErrorKind::ValueError, blob::BlobError::Empty.to_string()))
}

fn make(node: &ModuleNode<&[u8]>, library: &Module) -> Result<Module, Error> {
    let Some(payload) = node.payload else { return Ok(library.clone()) };
    let loader = format!("ffi.Module.load_from_bytes.{}", node.kind);
    let function = get_global(&loader).ok_or_else(|| {
        let message = format!("the file holds a module of kind {}, and no loader is registered as {loader}", node.kind);
        Error::new(ErrorKind::RuntimeError, message)
    })?;
    AnyView::with_bytes(payload, |bytes| function.call(&[bytes]))?.to()
}

/// A module tree, ready to be written into a library.
#[derive(Debug)]
pub struct SavedTree {
    /// The content of the symbol `__tvm_ffi__library_bin`; empty if the tree is nothing but compiled code.
    pub bytes: SavedBytes,
    /// The modules whose code belongs into the library, in the order in which they were met.
    pub compiled: Vec<Module>,
}

/// Turns a module and what it imports into bytes. Modules that are compiled code are not saved: they become the library.
pub fn save_module_tree(root: &Module) -> Result<SavedTree, Error> {
    let mut tree = Tree { modules: Vec::new(), compiled: Vec::new(), library_at: None };
    tree.collect(root);
    let is_only_code = tree.modules.len() == 1 && tree.library_at == Some(0);
    let nodes = (0..tree.modules.len()).map(|at| tree.node(at)).collect::<Result<Vec<_>, _>>()?;
    let bytes = if is_only_code { SavedBytes::default() } else { blob::encode(nodes) };
    Ok(SavedTree { bytes, compiled: tree.compiled })
}

struct Tree {
    /// Each module once, the root first; one entry stands for all compiled code.
    modules: Vec<Module>,
    compiled: Vec<Module>,
    library_at: Option<usize>,
}

impl Tree {
    fn is_compiled(module: &Module) -> bool {
        module.body().properties().contains(ModuleProperties::COMPILATION_EXPORTABLE)
    }

    fn place_of(&self, module: &Module) -> Option<usize> {
        if Self::is_compiled(module) { self.library_at } else { self.modules.iter().position(|other| other == module) }
    }

    fn collect(&mut self, root: &Module) {
        // Breadth first, so that the root is module 0 whatever the shape of the tree.
        let mut queue = std::collections::VecDeque::from([root.clone()]);
        while let Some(module) = queue.pop_front() {
            if Self::is_compiled(&module) {
                if self.compiled.contains(&module) {
                    continue;
                }
                self.compiled.push(module.clone());
                if self.library_at.is_none() {
                    self.library_at = Some(self.modules.len());
                    self.modules.push(module.clone());
                }
            } else {
                if self.modules.contains(&module) {
                    continue;
                }
                self.modules.push(module.clone());
            }
            queue.extend(module.imports());
        }
    }

    fn node(&self, at: usize) -> Result<ModuleNode<SavedBytes>, Error> {
        let is_library = self.library_at == Some(at);
        let sources = if is_library { self.compiled.as_slice() } else { self.modules.get(at..=at).unwrap_or_default() };
        let mut imports: Vec<usize> = Vec::new();
        for import in sources.iter().flat_map(Module::imports) {
            // Compiled modules that import each other are one library, which does not import itself.
            if let Some(place) = self.place_of(&import).filter(|place| *place != at && !imports.contains(place)) {
                imports.push(place);
            }
        }
        let Some(module) = sources.first().filter(|_| !is_library) else {
            return Ok(ModuleNode { kind: LIBRARY_KIND.to_owned(), payload: None, imports });
        };
        let kind = module.kind().to_owned();
        let payload = module.body().save().map_err(|error| error.context(format!("cannot save {kind}")))?;
        Ok(ModuleNode { kind, payload: Some(payload), imports })
    }
}
