//! What enters a model that is linked into a program into the process's table of system symbols.
//!
//! Every kernel of the model, its module tree and the slot for its own module get a name there, under which `ffi.SystemLib`
//! finds them; a constructor enters them before `main` begins. The slots that a loader would fill hold the runtime's functions
//! from the start: the linker puts their addresses there.

use std::fmt::Write as _;

use relaxide_runtime::processor::{Needed, SYMBOL as PROCESSOR, variants::SYMBOL as PROCESSORS};

use super::module::{escape, global_name};
use crate::shared::{ENTRY_PREFIX, LIBRARY_CONTEXT};
use crate::target::Architecture;

/// The function that enters the model: the constructor, and a name by which a program can ask for it.
pub(crate) const REGISTER: &str = "relaxide_register";

/// The runtime's function that takes a name and an address.
const ENTER: &str = "TVMFFIEnvModRegisterSystemLibSymbol";

/// The only function of the runtime that others of the same interface lack; kernels do without.
const OWN: &str = "RelaxideParallelFor";

/// What the runtime's functions behind slots take and give. In WebAssembly a function is called by its type.
const FUNCTIONS: &[(&str, &str, &str)] = &[
    ("RelaxideParallelFor", "i32", "ptr, ptr, i64"),
    ("TVMBackendAllocWorkspace", "ptr", "i32, i32, i64, i32, i32"),
    ("TVMBackendFreeWorkspace", "i32", "i32, i32, ptr"),
    ("TVMBackendParallelLaunch", "i32", "ptr, ptr, i32"),
    ("TVMFFIEnvModLookupFromImports", "i32", "ptr, ptr, ptr"),
    ("TVMFFIErrorSetRaisedFromCStr", "void", "ptr, ptr"),
    ("TVMFFIFunctionCall", "i32", "ptr, ptr, i32, ptr"),
    ("TVMFFIHandleInitOnce", "i32", "ptr, ptr"),
];

/// Whether a function may be behind a slot.
pub(super) fn is_known(function: &str) -> bool {
    FUNCTIONS.iter().any(|row| row.0 == function)
}

/// What a library says of the processors that its kernels are for.
#[derive(Debug, Default)]
pub(crate) struct ProcessorTables {
    /// What a processor must have for the first kernels.
    pub(crate) needed: Needed,
    /// The table of those for other processors, if there are.
    pub(crate) variants: Option<String>,
}

/// The module's text. `entries` are kernels without their symbols' prefix, `slots` the runtime's functions that they call, `tree` the symbol of the module
/// tree.
pub(crate) fn registration(
    processors: &ProcessorTables,
    entries: &[String],
    slots: &[String],
    tree: Option<&str>,
    prefix: &str,
) -> String {
    let mut symbols: Vec<(String, String)> =
        entries.iter().map(|e| (format!("{ENTRY_PREFIX}{prefix}{e}"), format!("{ENTRY_PREFIX}{e}"))).collect();
    let mut text = String::new();
    for entry in entries {
        let _ = writeln!(
            text,
            "declare dso_local i32 {}(ptr, ptr, i32, ptr)",
            global_name(&format!("{ENTRY_PREFIX}{entry}"))
        );
    }
    let texts = [(PROCESSOR, Some(processors.needed.to_text())), (PROCESSORS, processors.variants.clone())];
    for (symbol, said) in texts.into_iter().filter_map(|(symbol, said)| Some((symbol, said?))) {
        let (length, said) = (said.len() + 1, escape(&said));
        let _ = writeln!(text, "@{symbol} = internal constant [{length} x i8] c\"{said}\\00\", align 1");
        symbols.push((format!("{prefix}{symbol}"), symbol.to_string()));
    }
    if let Some(tree) = tree {
        symbols.push((format!("{prefix}{tree}"), tree.to_string()));
        let _ = writeln!(text, "{} = external constant i8, align 1", global_name(tree));
    }
    for slot in slots {
        if *slot == LIBRARY_CONTEXT {
            symbols.push((format!("{prefix}{slot}"), slot.clone()));
            let _ = writeln!(text, "@{slot} = dso_local global ptr null, align 8");
        } else if let Some((function, result, params)) =
            FUNCTIONS.iter().find(|row| slot.strip_prefix("__") == Some(row.0))
        {
            let linkage = if *function == OWN { "extern_weak " } else { "" };
            let _ = writeln!(text, "declare {linkage}{result} @{function}({params})");
            let _ = writeln!(text, "@{slot} = dso_local global ptr @{function}, align 8");
        }
    }
    let _ = writeln!(text, "declare i32 @{ENTER}(ptr, ptr)");
    let mut calls = String::new();
    for (index, (name, symbol)) in symbols.iter().enumerate() {
        let (length, name) = (name.len() + 1, escape(name));
        let _ =
            writeln!(text, "@.name{index} = private unnamed_addr constant [{length} x i8] c\"{name}\\00\", align 1");
        let _ = writeln!(calls, "  %v{index} = call i32 @{ENTER}(ptr @.name{index}, ptr {})", global_name(symbol));
    }
    let _ = writeln!(text, "define dso_local void @{REGISTER}() nounwind uwtable {{\nentry:\n{calls}  ret void\n}}");
    if processors.needed.architecture == Architecture::Wasm32.name() {
        let _ = writeln!(
            text,
            "@llvm.global_ctors = appending global [1 x {{ i32, ptr, ptr }}] [{{ i32, ptr, ptr }} {{ i32 65535, ptr \
             @{REGISTER}, ptr null }}]"
        );
        return text;
    }
    // Not as one of LLVM's constructors: its C interface gives those to `.ctors`, which no loader of today reads.
    let _ = writeln!(text, "@enter = internal global ptr @{REGISTER}, section \".init_array\", align 8");
    let _ = writeln!(text, "@llvm.used = appending global [1 x ptr] [ptr @enter], section \"llvm.metadata\"");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slot that is left out would stay empty, and what is behind it would not be called.
    #[test]
    fn functions_are_in_order_and_entered() {
        assert!(FUNCTIONS.is_sorted());
        let slots: Vec<String> = FUNCTIONS.iter().map(|(function, ..)| format!("__{function}")).collect();
        let text = registration(&Default::default(), &["add".into()], &slots, Some("tree"), "mine_");
        for (function, ..) in FUNCTIONS {
            assert!(text.contains(&format!("@__{function} = dso_local global ptr @{function}, align 8")), "{text}");
        }
        assert!(text.contains("c\"__tvm_ffi_mine_add\\00\"") && text.contains("c\"mine_tree\\00\""), "{text}");
    }
}
