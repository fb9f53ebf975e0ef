//! The prelude: lists, options and trees, and the functions over them.

use std::collections::HashSet;
use std::sync::LazyLock;

use relaxide_ffi::Ref;

use crate::text::{Source, parse};
use crate::{Function, Module, TypeData};

/// The prelude's text.
pub const TEXT: &str = include_str!("prelude.rly");

static MODULE: LazyLock<Result<Module, relaxide_ir::Diagnostic>> =
    LazyLock::new(|| parse(&Source::new("prelude.rly", TEXT)));

/// The prelude as a module.
pub fn prelude() -> Result<&'static Module, relaxide_ffi::Error> {
    MODULE.as_ref().map_err(|why| relaxide_ffi::Error::new(relaxide_ffi::ErrorKind::InternalError, why.to_string()))
}

/// A module with the prelude's types and functions, of which it may define some itself.
pub fn with_prelude(module: &Module) -> Result<Module, relaxide_ffi::Error> {
    let mut whole = module.clone();
    whole.import(prelude()?);
    Ok(whole)
}

/// Reads a module that may use the prelude's types and functions without defining them.
pub fn parse_with_prelude(source: &Source) -> Result<Module, relaxide_ir::Diagnostic> {
    let missing = |e: &relaxide_ffi::Error| relaxide_ir::Diagnostic::new(relaxide_ir::Code::Outside, e.message());
    let known = prelude().map_err(|e| missing(&e))?;
    crate::text::parse_in(source, known)
}

/// A module without what it has of the prelude and does not use.
pub fn without_unused(module: &Module) -> Result<Module, relaxide_ffi::Error> {
    let known = prelude()?;
    let own = |name: &str, f: &Ref<Function>| known.functions.get(name).is_none_or(|k| !Ref::ptr_eq(k, f));
    let entries: Vec<&str> =
        module.functions.iter().filter(|(name, f)| own(name, f)).map(|(name, _)| name.as_str()).collect();
    let mut out = match entries.is_empty() {
        true => Module { functions: indexmap::IndexMap::new(), ..module.clone() },
        false => crate::transform::remove_unused_functions(module, &entries),
    };
    let mut used: HashSet<String> = out.functions.values().flat_map(crate::visit::data_types).collect();
    // A type that a type of the program's own mentions is used, as are those that it mentions.
    let own_type = |ty: &Ref<TypeData>| known.types.get(&ty.name).is_none_or(|k| !Ref::ptr_eq(k, ty));
    used.extend(out.types.values().filter(|ty| own_type(ty)).map(|ty| ty.name.clone()));
    let mut work: Vec<String> = used.iter().cloned().collect();
    while let Some(name) = work.pop() {
        let mut inner = HashSet::new();
        for constructor in out.types.get(&name).into_iter().flat_map(|ty| &ty.constructors) {
            constructor.inputs.iter().for_each(|ty| crate::visit::of_type(Some(ty), &mut inner));
        }
        work.extend(inner.into_iter().filter(|name| used.insert(name.clone())));
    }
    out.types.retain(|name, _| used.contains(name));
    Ok(out)
}
