//! RunCodegen: functions that carry `Codegen` are compiled by the backend of that name.
//!
//! ```text
//! gv = cls.fused_conv2d_dnnl(x, w)   →   gv = R.call_dps_packed("fused_conv2d_dnnl", (x, w), out_ty=R.Tensor(…))
//! ```
//!
//! A backend is a registered function `relax.ext.<name>(functions, options, names of constants)` that returns runtime
//! modules. They go into the module's attribute `external_mods`, which the build imports; the functions leave the module.
//! A call of a function without a tensor result stays a call of an external function that returns it.
//!
//! **Refuses** a module that names a backend which is not registered.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::{Any, Array, Map, ObjectRef, Ref, get_global};
use relaxide_ir::pass::{ParamKind, PassError, PassInfo, PassParam, PassResult};
use relaxide_ir::{AttrValue, IRModule};

use super::fuse_by_pattern::{CODEGEN_ATTR, strings};
use crate::*;

const NAME: &str = "RunCodegen";

/// The attribute of a module that holds compiled modules.
pub const EXTERNAL_MODULES_ATTR: &str = "external_mods";

pub(super) const PASS: PassInfo = PassInfo::new(
    NAME,
    "Functions that carry `Codegen` are compiled by the backend of that name.",
    |module, _, args| run(module, args.get("target_options"), &strings(args.get("entry_functions"))),
)
.params(&[
    PassParam::optional("target_options", ParamKind::Map, "Options by the names of backends."),
    PassParam::optional(
        "entry_functions",
        ParamKind::Strs,
        "The functions whose calls count; all, where nothing is said.",
    ),
]);

fn run(mut module: IRModule, options: Option<&AttrValue>, entries: &[String]) -> PassResult {
    let reached = reachable(&module, entries);
    let mut by_backend: indexmap::IndexMap<String, Vec<(String, Ref<Function>)>> = indexmap::IndexMap::new();
    for (name, func) in module.functions_of::<Function>().filter(|(name, _)| reached.contains(*name)) {
        if let Some(backend) = func.attrs.str(CODEGEN_ATTR) {
            by_backend.entry(backend.to_string()).or_default().push((name.to_string(), func.clone()));
        }
    }
    if by_backend.is_empty() {
        return Ok(module);
    }
    let mut modules: Vec<AttrValue> = match module.attrs.get(EXTERNAL_MODULES_ATTR) {
        Some(AttrValue::List(known)) => known.clone(),
        _ => Vec::new(),
    };
    for (backend, functions) in &by_backend {
        modules.extend(compile(backend, functions, options)?);
    }
    let taken: HashSet<String> = by_backend.into_values().flatten().map(|(name, _)| name).collect();
    let symbols: HashMap<String, String> = taken.iter().map(|name| (name.clone(), symbol_of(&module, name))).collect();
    module.functions.retain(|name, _| !taken.contains(name));
    let mut calls = ExternalCalls { symbols: &symbols };
    let functions: Vec<_> = module.functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    for (name, func) in functions {
        let new = calls.mutate_function(&func);
        module.insert(name, new);
    }
    module.attrs = module.attrs.with(EXTERNAL_MODULES_ATTR, AttrValue::List(modules));
    Ok(module)
}

fn symbol_of(module: &IRModule, name: &str) -> String {
    let func = module.get_as::<Function>(name);
    func.and_then(|f| f.attrs.str("global_symbol").map(str::to_string)).unwrap_or_else(|| name.to_string())
}

/// The functions that entry functions call, directly or not; all, where there are no entries.
fn reachable(module: &IRModule, entries: &[String]) -> HashSet<String> {
    if entries.is_empty() {
        return module.functions.keys().cloned().collect();
    }
    let graph = crate::analysis::call_graph(module);
    graph.reachable(entries.iter().map(String::as_str))
}

/// What a backend makes of functions.
fn compile(
    backend: &str,
    functions: &[(String, Ref<Function>)],
    options: Option<&AttrValue>,
) -> Result<Vec<AttrValue>, PassError> {
    let name = format!("relax.ext.{backend}");
    let Some(compiler) = get_global(&name) else {
        return Err(PassError::new(
            NAME,
            format!(
                "function `{}` is for the backend {backend:?}, which is not registered; register a function {name:?} that \
                 takes functions, options and names of constants and returns modules",
                functions.first().map(|(name, _)| name.as_str()).unwrap_or_default()
            ),
        ));
    };
    let list: Array = functions.iter().map(|(_, f)| Any::from(ObjectRef::from(f.clone()))).collect();
    let chosen = match options {
        Some(AttrValue::Map(by_backend)) => by_backend.get(backend).map(relaxide_ffi::Field::to_any),
        _ => None,
    };
    let options = chosen.unwrap_or_else(|| Any::from(Map::from_iter(Vec::<(Any, Any)>::new())));
    let result = compiler
        .call(&[
            Any::from(list).as_view(),
            options.as_view(),
            Any::from(Map::from_iter(Vec::<(Any, Any)>::new())).as_view(),
        ])
        .map_err(|e| PassError::caused(NAME, e))?;
    let modules =
        result.to::<Array>().map_err(|_| PassError::new(NAME, format!("{name} returns no array of modules")))?;
    let module = |any: &Any| any.to::<ObjectRef>().map(AttrValue::Object);
    modules
        .iter()
        .map(|m| module(m).map_err(|_| PassError::new(NAME, format!("{name} returns something that is no module"))))
        .collect()
}

struct ExternalCalls<'a> {
    symbols: &'a HashMap<String, String>,
}

impl ExprMutator for ExternalCalls<'_> {
    fn mutate_expr(&mut self, e: &Expr) -> Expr {
        let Expr::Call(call) = e else { return self.remake_expr(e) };
        let Expr::Global(g) = &call.op else { return self.remake_expr(e) };
        let Some(symbol) = self.symbols.get(&g.name) else { return self.remake_expr(e) };
        let args = self.mutate_exprs(&call.args);
        let (callee, ty) = (Expr::external(symbol.clone()), call.ty.clone());
        if !op::core::output_types(&ty).iter().all(|t| t.as_tensor().is_some()) {
            return Ref::new(Call { op: callee, ty_args: vec![ty], ..call.rebuilt(call.op.clone(), args) }).into();
        }
        super::emit::call_dps_packed(callee, args, ty, call.span.clone())
    }
}
