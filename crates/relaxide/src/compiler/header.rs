//! The C header of a model that is linked into a program.
//!
//! For a function `main(x: R.Tensor((n, 4), "float32"))` of the model `digits` it declares
//!
//! ```c
//! static inline int digits_open(RelaxideModel **model);
//! static inline int digits_main(const RelaxideModel *model, const RelaxideTensor *x, RelaxideTensor **outputs);
//! ```
//!
//! with the signature in comments. The functions are defined in the header itself, over the interface of `relaxide.h`, so that
//! the object holds nothing but the model. `digits_open` mentions a symbol of the object, which makes linkers take it out of an
//! archive.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::compiler::signature::{FunctionSignature, Signature};

/// Words that cannot be names in C or C++, and names that the functions use themselves.
const TAKEN: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "asm",
    "auto",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "const",
    "continue",
    "default",
    "delete",
    "do",
    "double",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "inputs",
    "int",
    "long",
    "model",
    "mutable",
    "namespace",
    "new",
    "not",
    "nullptr",
    "num_outputs",
    "operator",
    "or",
    "outputs",
    "private",
    "protected",
    "public",
    "register",
    "restrict",
    "result",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "template",
    "this",
    "throw",
    "true",
    "try",
    "typedef",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "while",
    "xor",
];

/// A text as a part of a name in C.
pub(crate) fn identifier(text: &str) -> String {
    let letters = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    let name: String = letters.collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) || name.is_empty() { format!("_{name}") } else { name }
}

/// The header of a model; `prefix` is in front of its names in the process's table, `register` is its function that enters it.
pub(crate) fn header(signature: &Signature, prefix: &str, register: &str) -> String {
    let name = match prefix.trim_end_matches('_') {
        "" => "model".to_string(),
        name => identifier(name),
    };
    let guard = format!("{}_H_", name.to_uppercase());
    let compiler = match (&signature.compiler, &signature.target) {
        (Some(version), Some(target)) => format!(" Compiled by Relaxide {version} for {}.", comment(target)),
        _ => String::new(),
    };
    let mut out = format!(
        "/* {name}: a model that is linked into the program, with librelaxide_runtime.{compiler} */\n\
         #ifndef {guard}\n#define {guard}\n\n#include \"relaxide.h\"\n\n\
         #ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n\
         /* Enters the model's functions into the process; runs by itself when the program starts. */\n\
         void {register}(void);\n\n\
         #ifdef __cplusplus\n}}\n#endif\n\n\
         /* Makes the model ready to run. It is the caller's to free, with relaxide_model_free. */\n\
         static inline int {name}_open(RelaxideModel **model) {{\n    \
         {register}();\n    return relaxide_model_linked(\"{prefix}\", model);\n}}\n"
    );
    let mut names = HashSet::from(["open".to_string()]);
    for function in &signature.functions {
        out.push('\n');
        write_function(&name, &unused(&function.name, &mut names), function, &mut out);
    }
    let _ = writeln!(out, "\n#endif /* {guard} */");
    out
}

/// A name of C for a name of the program, different from those before it.
fn unused(name: &str, names: &mut HashSet<String>) -> String {
    let mut name = identifier(name);
    while TAKEN.contains(&name.as_str()) || !names.insert(name.clone()) {
        name.push('_');
    }
    name
}

fn write_function(model: &str, name: &str, function: &FunctionSignature, out: &mut String) {
    let _ = writeln!(out, "/* {}", comment(&function.name));
    for param in &function.params {
        let _ = writeln!(out, " *   {}: {}", comment(&param.name), comment(&param.ty));
    }
    let _ = write!(out, " * returns {}", comment(&function.result));
    if !function.outputs.is_empty() {
        let _ = write!(out, ": {}", comment(&function.outputs.join(", ")));
    }
    out.push_str(" */\n");
    let mut names = HashSet::new();
    let params: Vec<String> = function.params.iter().map(|param| unused(&param.name, &mut names)).collect();
    let of_tensors = function.params.iter().all(|param| param.ty.starts_with("R.Tensor"));
    let kind = if of_tensors { "RelaxideTensor" } else { "RelaxideValue" };
    let mut head = format!("static inline int {model}_{name}(const RelaxideModel *model");
    params.iter().for_each(|param| _ = write!(head, ", const {kind} *{param}"));
    let (inputs, count) = (params.join(", "), params.len());
    let (array, list) = match count {
        0 => (String::new(), "NULL"),
        _ => (format!("    const {kind} *const inputs[] = {{{inputs}}};\n"), "inputs"),
    };
    let called = format!("model, \"{}\", {list}, {count}", function.name.replace('\\', "\\\\").replace('"', "\\\""));
    let _ = match (of_tensors, tensors_of(&function.result)) {
        (true, Some(results)) => write!(
            out,
            "{head}, RelaxideTensor **outputs /* {results} */) {{\n{array}    size_t num_outputs = {results};\n    \
             return relaxide_model_run({called}, outputs, &num_outputs);\n}}\n"
        ),
        (true, None) => write!(
            out,
            "{head}, RelaxideTensor **outputs, size_t *num_outputs) {{\n{array}    \
             return relaxide_model_run({called}, outputs, num_outputs);\n}}\n"
        ),
        (false, _) => write!(
            out,
            "{head}, RelaxideValue **result) {{\n{array}    return relaxide_model_call({called}, result);\n}}\n"
        ),
    };
}

/// How many tensors a result of that type is; `None` if it is anything else, or not known.
fn tensors_of(ty: &str) -> Option<usize> {
    let ty = ty.trim();
    if ty.starts_with("R.Tensor") {
        return Some(1);
    }
    let fields = ty.strip_prefix("R.Tuple(")?.strip_suffix(')')?;
    let (mut depth, mut field, mut fields_found) = (0i32, String::new(), Vec::new());
    for letter in fields.chars() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                fields_found.push(std::mem::take(&mut field));
                continue;
            }
            _ => {}
        }
        field.push(letter);
    }
    fields_found.push(field);
    let tensors = fields_found.iter().filter(|field| !field.trim().is_empty());
    tensors.clone().all(|field| field.trim().starts_with("R.Tensor")).then(|| tensors.count())
}

/// A text inside of a comment.
fn comment(text: &str) -> String {
    text.replace("*/", "* /").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::signature::ParamSignature;

    fn param(name: &str, ty: &str) -> ParamSignature {
        ParamSignature { name: name.into(), ty: ty.into(), dtype: None, dims: Vec::new(), below: None }
    }

    fn function(name: &str, params: Vec<ParamSignature>, result: &str) -> FunctionSignature {
        FunctionSignature { name: name.into(), params, result: result.into(), outputs: Vec::new(), ranges: Vec::new() }
    }

    #[test]
    fn functions_of_tensors_and_others_are_declared() {
        let tensor = "R.Tensor((n, 4), dtype=\"float32\")";
        let mut functions = vec![
            function("main", vec![param("x", tensor), param("default", tensor)], tensor),
            function("split-it", vec![], "R.Tuple(R.Tensor((n,)), R.Tensor((m, 2), dtype=\"int8\"))"),
            function("count", vec![param("n", "R.Prim(\"int64\")")], "R.Any"),
        ];
        functions[0].outputs = vec!["scores*/".into()];
        let text = header(&Signature { functions, ..Signature::default() }, "digits_", "digits_relaxide_register");
        assert!(text.contains(
            "int digits_main(const RelaxideModel *model, const RelaxideTensor *x, const RelaxideTensor *default_, \
             RelaxideTensor **outputs /* 1 */)"
        ));
        assert!(text.contains(" *   x: R.Tensor((n, 4), dtype=\"float32\")\n"));
        assert!(text.contains(" * returns R.Tensor((n, 4), dtype=\"float32\"): scores* / */\n"));
        assert!(text.contains("int digits_split_it(const RelaxideModel *model, RelaxideTensor **outputs /* 2 */)"));
        assert!(text.contains("relaxide_model_run(model, \"split-it\", NULL, 0, outputs, &num_outputs)"));
        assert!(
            text.contains(
                "int digits_count(const RelaxideModel *model, const RelaxideValue *n, RelaxideValue **result)"
            )
        );
        assert!(text.contains("return relaxide_model_linked(\"digits_\", model);"));
    }

    #[test]
    fn names_and_texts_cannot_break_out() {
        assert_eq!(identifier("3d conv/é"), "_3d_conv__");
        let odd = function("a*/b\"", vec![param("x", "R.Any"), param("x", "R.Any")], "R.Any");
        let text = header(&Signature { functions: vec![odd], ..Signature::default() }, "", "relaxide_register");
        assert!(
            text.contains("/* a* /b\"\n")
                && text.contains("\"a*/b\\\"\"")
                && text.contains("*x, const RelaxideValue *x_")
        );
        assert!(text.contains("int model_open("));
    }
}
