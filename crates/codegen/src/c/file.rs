//! The file as a whole: kernels, the module tree as data, and what enters both into the process's table of system symbols.

use std::fmt::Write as _;

use relaxide_ir::{Ref, Target, target::TargetKind};
use relaxide_tir::PrimFunc;

use super::{
    code::{comment, string},
    entry::write_kernel,
    source::Source,
};
use crate::{
    compile::{called_main, names_of},
    error::CodegenError,
    export::LIBRARY_BIN_SYMBOL,
    register_symbol,
    shards::originals,
    shared::{ENTRY_PREFIX, LIBRARY_CONTEXT},
};

/// Kernels in C: what a file is made of.
#[derive(Debug)]
pub struct CSource {
    source: Source,
    /// The kernels' names, without the prefix that their symbols carry.
    pub kernels: Vec<String>,
}

/// Translates lowered kernels to C.
pub fn compile_to_c(funcs: &[Ref<PrimFunc>], target: &Target) -> Result<CSource, CodegenError> {
    check_target(target)?;
    let (kernels, originals) = (names_of(funcs)?, originals(funcs));
    let mut source = Source::default();
    for (index, func) in funcs.iter().enumerate() {
        let shared = (originals[index] != index).then(|| kernels[originals[index]].as_str());
        write_kernel(&kernels[index], func, shared, &mut source)?;
    }
    Ok(CSource { source, kernels })
}

/// Refuses what a target of C cannot mean.
pub(super) fn check_target(target: &Target) -> Result<(), CodegenError> {
    if target.kind != TargetKind::C {
        return Err(CodegenError::UnsupportedTarget(target.to_string()));
    }
    if !(target.mcpu().is_empty() && target.mattr().is_empty() && target.mtriple().is_empty()) {
        return Err(CodegenError::ProcessorOfC(target.to_string()));
    }
    Ok(())
}

impl CSource {
    /// The text of the file, with the module tree as `save_module_tree` gives it (empty for kernels alone). Linked into a
    /// program, it enters all of them into the process's table of system symbols when the program starts, under their names
    /// with `prefix` in front.
    pub fn text(&self, tree: &[u8], prefix: &str) -> String {
        let mut out = self.head(prefix);
        let (helpers, functions) = self.source.parts();
        for helper in helpers {
            let _ = write!(out, "\n{helper}");
        }
        out.push('\n');
        for (_, name) in self.source.entries() {
            let _ = writeln!(out, "int RX_NAME({name})({ENTRY_PARAMETERS});");
        }
        for declaration in self.source.declarations() {
            let _ = writeln!(out, "{declaration}");
        }
        out.push_str(functions);
        self.main(&mut out);
        if !tree.is_empty() {
            write_tree(&mut out, tree);
        }
        self.write_registration(&mut out, tree, prefix);
        out
    }

    fn head(&self, prefix: &str) -> String {
        let (version, room) = (env!("CARGO_PKG_VERSION"), self.source.message_room());
        let kernels: Vec<String> = self.kernels.iter().map(|name| format!(" *   {}\n", comment(name))).collect();
        let mut out =
            format!("/* Kernels in C11, made by Relaxide {version}:\n *\n{} *\n{HOW} */\n\n", kernels.concat());
        out.push_str(INCLUDES);
        let _ = writeln!(out, "\n/* The longest message of an error. */\n#define RX_LONGEST_MESSAGE {room}\n");
        if prefix.is_empty() {
            let _ = writeln!(out, "#define RX_NAME(name) {ENTRY_PREFIX}##name");
        } else {
            let _ = writeln!(
                out,
                "#if defined(RELAXIDE_SHARED_LIBRARY)\n#define RX_NAME(name) {ENTRY_PREFIX}##name\n#else\n\
                 #define RX_NAME(name) {ENTRY_PREFIX}{prefix}##name\n#endif"
            );
        }
        out
    }

    /// A library of one kernel can be called by the name `main`.
    fn main(&self, out: &mut String) {
        let Some(only) = called_main(&self.kernels) else { return };
        if let Some((_, name)) = self.source.entries().find(|(kernel, _)| *kernel == only) {
            let _ = write!(
                out,
                "\nint RX_NAME(main)({ENTRY_PARAMETERS});\n\nint RX_NAME(main)({ENTRY_PARAMETERS}) {{\n    \
                 return RX_NAME({name})(self, args, count, result);\n}}\n"
            );
        }
    }

    fn write_registration(&self, out: &mut String, tree: &[u8], prefix: &str) {
        let register = register_symbol(prefix);
        out.push_str("\n#if !defined(RELAXIDE_SHARED_LIBRARY) && !defined(RELAXIDE_NO_RUNTIME)\n");
        out.push_str("int TVMFFIEnvModRegisterSystemLibSymbol(const char *name, void *symbol);\n");
        if !self.kernels.is_empty() {
            let _ = write!(out, "\n{ENTER}");
        }
        let _ = write!(
            out,
            "\nvoid {register}(void);\n\n/* Enters all of it into the process; runs by itself if the compiler can. */\n"
        );
        let _ = writeln!(out, "#if defined(__GNUC__)\n__attribute__((constructor))\n#endif\nvoid {register}(void) {{");
        let mut enter = |kernel: &str, name: &str| {
            let symbol = string(&format!("{ENTRY_PREFIX}{prefix}{kernel}"));
            let _ = writeln!(out, "    rx_enter({symbol}, RX_NAME({name}));");
        };
        for (kernel, name) in self.source.entries().filter(|(kernel, _)| self.kernels.iter().any(|own| own == kernel)) {
            enter(kernel, name);
        }
        if called_main(&self.kernels).is_some() {
            enter("main", "main");
        }
        let mut data = Vec::new();
        if !tree.is_empty() {
            data.push((LIBRARY_BIN_SYMBOL, "(void *)"));
        }
        if self.source.has("rx_call") {
            data.push((LIBRARY_CONTEXT, "&"));
        }
        for (symbol, take) in data {
            let name = string(&format!("{prefix}{symbol}"));
            let _ = writeln!(out, "    TVMFFIEnvModRegisterSystemLibSymbol({name}, {take}{symbol});");
        }
        out.push_str("}\n#endif\n");
    }
}

/// The tree as words, which take a compiler a fraction of the time that bytes take.
fn write_tree(out: &mut String, tree: &[u8]) {
    out.push_str(TREE);
    let _ = writeln!(out, "const uint64_t {LIBRARY_BIN_SYMBOL}[] = {{");
    for line in tree.chunks(32) {
        out.push_str("   ");
        for word in line.chunks(8) {
            let mut bytes = [0; 8];
            bytes[..word.len()].copy_from_slice(word);
            let _ = write!(out, " RX_WORD(0x{:016x}),", u64::from_le_bytes(bytes));
        }
        out.push('\n');
    }
    out.push_str("};\n#endif\n");
}

const ENTRY_PARAMETERS: &str = "void *self, const rx_value *args, int32_t count, rx_value *result";

const HOW: &str = " * A program that librelaxide_runtime is linked into compiles the file as it is. For a library that is loaded, compile it
 * with -shared -fPIC -DRELAXIDE_SHARED_LIBRARY; for a program without a runtime, with -DRELAXIDE_NO_RUNTIME: there, memory
 * comes from malloc, loops are executed by one thread, and other functions are out of reach.
";

/// What compilers warn of because people rarely mean it, and what kernels have where that is what they compute.
const INCLUDES: &str = "#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#pragma GCC diagnostic ignored \"-Wtype-limits\"
#pragma GCC diagnostic ignored \"-Wtautological-compare\"
#pragma GCC diagnostic ignored \"-Wunused-function\"
#pragma GCC diagnostic ignored \"-Wunused-variable\"
#pragma GCC diagnostic ignored \"-Wunused-but-set-variable\"
#if !defined(__clang__)
#pragma GCC diagnostic ignored \"-Wbool-compare\"
#pragma GCC diagnostic ignored \"-Wmaybe-uninitialized\"
#endif
#endif
";

const ENTER: &str =
    "static void rx_enter(const char *name, int (*entry)(void *, const rx_value *, int32_t, rx_value *)) {
    void *symbol;
    memcpy(&symbol, &entry, sizeof symbol);
    TVMFFIEnvModRegisterSystemLibSymbol(name, symbol);
}
";

const TREE: &str = "
#if !defined(RELAXIDE_NO_RUNTIME)
/* The program around the kernels, for the virtual machine: bytes, eight in each number, the first one last. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define RX_WORD(x) __builtin_bswap64(x)
#else
#define RX_WORD(x) x
#endif
#if !defined(RELAXIDE_SHARED_LIBRARY)
static
#endif
";
