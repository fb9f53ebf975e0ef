//! Which kernel, and which statement, LLVM's complaint is about.
//!
//! LLVM names a line of the text that it was given, or prints an instruction. Kernels are compiled several at a time and their
//! text says nothing of statements, since nobody reads it as a rule. So when LLVM has refused a text, each kernel is written
//! again alone, with its statements as comments between the instructions, until LLVM refuses one; the last comment above the
//! line is the statement.

use inkwell::{context::Context, support::LLVMString};
use relaxide_ir::Ref;
use relaxide_tir::PrimFunc;

use crate::{
    compile::parse,
    error::CodegenError,
    llvm::{self, ModuleText, NOTE},
    target::NativeTarget,
};

/// The error of kernels that LLVM refused together, with the kernel and the statement that are to blame.
pub(crate) fn locate<'k>(
    kernels: impl Iterator<Item = (&'k str, &'k Ref<PrimFunc>)>,
    native: &NativeTarget,
    complaint: LLVMString,
) -> CodegenError {
    for (name, func) in kernels {
        let mut text = ModuleText::new(native.architecture).with_notes();
        if let Err(error) = llvm::write_kernel(name, func, None, native, &mut text) {
            return error;
        }
        let text = text.finish(&native.triple, "");
        let context = Context::create();
        let complaint = match parse(&context, &text).and_then(|module| module.verify()) {
            Ok(()) => continue,
            Err(complaint) => complaint.to_string_lossy().into_owned(),
        };
        let (message, line) = read_complaint(&complaint, &text);
        let statement = line.and_then(|line| statement_above(&text, line));
        return CodegenError::Rejected { kernel: name.to_string(), message, statement };
    }
    // Each is accepted alone: two of them contradict each other.
    CodegenError::Llvm(complaint.to_string_lossy().into_owned())
}

/// The sentence in LLVM's complaint, and the line of the text that it is about, counted from 0.
///
/// The reader of texts says `kernels:12:8: error: expected type`, and shows the line. The verifier says a sentence, and prints
/// the instruction on a line of its own.
fn read_complaint(complaint: &str, text: &str) -> (String, Option<usize>) {
    if let Some((place, rest)) = complaint.split_once(": error: ") {
        let line = place.split(':').nth(1).and_then(|line| line.parse::<usize>().ok());
        let message = rest.lines().next().unwrap_or_default();
        return (message.to_string(), line.and_then(|line| line.checked_sub(1)));
    }
    let message = complaint.lines().next().unwrap_or_default().to_string();
    let mentioned = complaint.lines().skip(1).find_map(|mentioned| {
        let mentioned = mentioned.trim();
        // A function is mentioned by its name: its first call is shown.
        let wanted = mentioned.strip_prefix("ptr @").map_or_else(|| mentioned.to_string(), |name| format!("@{name}("));
        let calls = |line: &str| line.starts_with(' ') && line.contains(&wanted);
        text.lines().position(calls).filter(|_| !mentioned.is_empty())
    });
    (message, mentioned)
}

fn statement_above(text: &str, line: usize) -> Option<String> {
    let above: Vec<&str> = text.lines().take(line + 1).collect();
    let inside = above.iter().rev().take_while(|line| !line.starts_with("define "));
    inside.filter_map(|line| line.strip_prefix(NOTE)).map(str::to_string).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_lead_to_statements() {
        let text = "declare float @f(float)\ndefine void @k() {\n  ; A[i] = f(i)\n  %v0 = call float @f(i32 1)\n}\n";
        let (message, line) = read_complaint("kernels:4:20: error: bad type\n  %v0 = …\n", text);
        assert_eq!((message.as_str(), line), ("bad type", Some(3)));
        assert_eq!(statement_above(text, 3).as_deref(), Some("A[i] = f(i)"));
        let (message, line) = read_complaint("Incorrect argument type!\nptr @f\n", text);
        assert_eq!((message.as_str(), line), ("Incorrect argument type!", Some(3)));
        assert_eq!(read_complaint("Something else", text), ("Something else".into(), None));
        assert_eq!(statement_above(text, 1), None);
    }
}
