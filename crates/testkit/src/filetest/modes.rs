//! What a file test can be.

use std::sync::OnceLock;

use relaxide_ffi::{Any, Array, FreeVars, Function, Ref, register_global, structural_equal};
use relaxide_ir::pass::{Pass, PassContext, PassError, Refusal, parse_value};
use relaxide_ir::{AttrValue, Attrs, IRModule, Target};
use relaxide_relax::transform::Rewriter;
use relaxide_relax::{BuildError, ExecMode, transform, wellformed};
use relaxide_script::{ParseOptions, PrintOptions, parse_module, parse_module_with, print_module, print_module_with};
use relaxide_tir::{PrimFunc, lower, schedule};
use relaxide_vm::NATIVE_PREFIX;

use super::values::run_calls;
use super::{FileTest, difference};

/// What stands behind each rule of a test of rewriting rules.
const RULE_END: &str = "# ====\n";

/// The backend `filetest` of `RunCodegen`, which gives no module for the functions that it compiles.
fn register_backend() -> Result<(), String> {
    static ENTERED: OnceLock<Result<(), String>> = OnceLock::new();
    let enter = || {
        let backend = Function::new(|_| Ok(Any::from(Vec::<Any>::new().into_iter().collect::<Array>())));
        register_global("relax.ext.filetest", backend).map_err(|e| e.to_string())
    };
    ENTERED.get_or_init(enter).clone()
}

/// Does what `mode` says; the text to compare, if there is one.
pub(super) fn run(test: &FileTest, mode: &str) -> Result<Option<String>, String> {
    let (kind, rest) = mode.split_once(' ').unwrap_or((mode, ""));
    if kind == "error" {
        return match parse_module(&test.input, &test.name()) {
            Ok(_) => Err("the text is accepted, but it should not be".into()),
            Err(diagnostic) => Ok(Some(diagnostic.to_string())),
        };
    }
    match kind {
        "rewrite" => return rewrite(test)?.map(|module| Some(body(&print_module(&module)))),
        "refuse-rewrite" => {
            return match rewrite(test)? {
                Ok(_) => Err("the rules are accepted, but they should not be".into()),
                Err(refusal) => Ok(Some(refusal)),
            };
        }
        _ => {}
    }
    let options =
        ParseOptions { check_well_formed: !matches!(kind, "verify" | "roundtrip"), ..ParseOptions::default() };
    register_backend()?;
    let module = parse_module_with(&test.input, &test.name(), options).map_err(|e| e.to_string())?;
    match kind {
        "roundtrip" => roundtrip(test, &module).map(|()| None),
        "print" => {
            reparsed(&module)?;
            Ok(Some(body(&print_module(&module))))
        }
        "pass" => {
            let passed = run_passes(test, module, rest)?;
            Ok(Some(body(&print_module(&passed))))
        }
        "refuse" => match run_passes(test, module, rest) {
            Ok(_) => Err("the passes accept the program, but one of them should refuse it".into()),
            Err(refusal) => Ok(Some(refusal)),
        },
        "refuse-target" => refuse_target(test, &module).map(Some),
        "verify" => {
            let problems: Vec<String> = wellformed::check_module(&module)
                .into_iter()
                .map(|violation| Refusal::from(violation).diagnostic(|_| Some(test.input.clone())).to_string())
                .collect();
            Ok(Some(if problems.is_empty() { "well-formed".into() } else { problems.join("\n") }))
        }
        "lower" => for_targets(test, TARGET, |target| lowered(test, kernels(test, &module, target)?, target)).map(Some),
        "schedule" => for_targets(test, TARGET, |target| scheduled(kernels(test, &module, target)?, target)).map(Some),
        "code" => for_targets(test, TARGET, |target| code(test, kernels(test, &module, target)?, target)).map(Some),
        "llvm" => for_targets(test, TARGET, |target| code_of(kind, test, &module, target)).map(Some),
        "c" => for_targets(test, "c", |target| code_of(kind, test, &module, target)).map(Some),
        "bytecode" => {
            let (executable, _) =
                relaxide_relax::vm_codegen(&pipeline(test, module)?, ExecMode::Bytecode).map_err(|e| e.to_string())?;
            executable.as_text().map(Some).map_err(|e| e.to_string())
        }
        "native" => {
            let lowered = relaxide_relax::vm_codegen(&pipeline(test, module)?, ExecMode::Compiled);
            let (_, mut rest) = lowered.map_err(|e| e.to_string())?;
            rest.functions.retain(|name, _| name.starts_with(NATIVE_PREFIX));
            Ok(Some(body(&print_module(&rest))))
        }
        "run" => run_calls(&module, test.options("call"), test.option("pipeline")).map(Some),
        _ => Err(format!("there are no tests of kind `{kind}`")),
    }
}

/// What compilation for the test's target says: the target is written in a way, or the program asks for something, that there
/// is no code for.
fn refuse_target(test: &FileTest, module: &IRModule) -> Result<String, String> {
    let text = test.option("target").ok_or("the test names no target")?;
    let compiled = text
        .parse::<Target>()
        .map_err(relaxide::Error::from)
        .and_then(|target| relaxide::compile(module, &mut relaxide::CompileOptions { target, ..Default::default() }));
    match compiled {
        Ok(_) => Err("the program is compiled, but it should not be".into()),
        Err(error) => Ok(error.diagnostic(|_| Some(test.input.clone())).to_string()),
    }
}

/// Options of a test: its target is fixed, so that expectations do not depend on the machine.
fn context(test: &FileTest) -> Result<PassContext, String> {
    context_for(test, target(test)?)
}

fn context_for(test: &FileTest, target: Target) -> Result<PassContext, String> {
    let mut context = PassContext { target, ..PassContext::default() };
    for option in test.options("config") {
        let (key, value) = option.split_once('=').ok_or("an option is written `# config: key=value`")?;
        let value = parse_value(value).map_err(|e| e.to_string())?;
        context.config.set(key, value).map_err(|e| e.to_string())?;
    }
    Ok(context)
}

/// The target of a test that names none.
const TARGET: &str = "llvm -mcpu=x86-64-v3 -mtriple=x86_64-unknown-linux-gnu";

fn target(test: &FileTest) -> Result<Target, String> {
    test.option("target").unwrap_or(TARGET).parse().map_err(|e| format!("{e}"))
}

/// What comes out for each target that the test names, below the target's name where there are several; for `default` where it names none.
fn for_targets(
    test: &FileTest,
    default: &str,
    make: impl Fn(&Target) -> Result<String, String>,
) -> Result<String, String> {
    let targets: Vec<&str> = test.options("target").collect();
    let made = |text: &&str| make(&text.parse().map_err(|e| format!("{e}"))?);
    match targets.as_slice() {
        [] => made(&default),
        [one] => made(one),
        several => several.iter().map(|text| Ok(format!("# ==== {text}\n{}", made(text)?))).collect(),
    }
}

/// The kernels of a test, behind the passes that it names (`# passes: LegalizeOps`), which may make them of operators.
fn kernels(test: &FileTest, module: &IRModule, target: &Target) -> Result<IRModule, String> {
    let Some(text) = test.option("passes") else { return Ok(module.clone()) };
    let passes = transform::parse_passes(text).map_err(|e| e.to_string())?;
    let context = context_for(test, target.clone())?;
    let module = Pass::sequential("passes", passes).run(module.clone(), &context).map_err(|e| e.to_string())?;
    let mut kernels = IRModule::new();
    module.functions_of::<PrimFunc>().for_each(|(name, func)| kernels.insert(name, func));
    Ok(kernels)
}

fn pipeline(test: &FileTest, module: IRModule) -> Result<IRModule, String> {
    let name = test.option("pipeline").unwrap_or("default");
    let pipeline = transform::pipeline(name).ok_or_else(|| format!("no pipeline is called `{name}`"))?;
    pipeline.run(module, &context(test)?).map_err(|e| e.to_string())
}

/// Runs passes as the command line does, and the verifier behind each.
fn run_passes(test: &FileTest, module: IRModule, text: &str) -> Result<IRModule, String> {
    let refused = |e: PassError| e.diagnostic(|_| Some(test.input.clone())).to_string();
    let passes = transform::parse_passes(text).map_err(refused)?;
    let context = PassContext { instruments: vec![transform::verify()], ..context(test)? };
    Pass::sequential("passes", passes).run(module, &context).map_err(refused)
}

/// What rules make of a program, or why they refuse: the input is a module for each rule, then the program.
fn rewrite(test: &FileTest) -> Result<Result<IRModule, String>, String> {
    let mut modules = test
        .input
        .split(RULE_END)
        .map(|text| parse_module(text, &test.name()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| e.to_string())?;
    let program = modules.pop().ok_or("there is no program")?;
    let rewritten = || {
        let mut rules = modules.iter().map(Rewriter::from_module);
        let first = rules.next().unwrap_or_else(|| Err(BuildError::Program("there is no rule".into())))?;
        rules.try_fold(first, |all, rule| rule.map(|rule| all.or(rule)))?.apply_module(program)
    };
    let rewritten: Result<IRModule, BuildError> = rewritten();
    if let Ok(module) = &rewritten {
        let problems = transform::broken_rules(module);
        if !problems.is_empty() {
            return Err(problems.join("\n"));
        }
    }
    Ok(rewritten.map_err(|e| e.to_string()))
}

fn map_kernels(
    mut module: IRModule,
    mut f: impl FnMut(&PrimFunc) -> Result<PrimFunc, String>,
) -> Result<IRModule, String> {
    let kernels: Vec<(String, Ref<PrimFunc>)> =
        module.functions_of::<PrimFunc>().map(|(name, func)| (name.to_string(), func)).collect();
    for (name, func) in kernels {
        let mapped = f(&func).map_err(|e| format!("{name}: {e}"))?;
        module.insert(name, Ref::new(mapped));
    }
    Ok(module)
}

/// Which rule took each stage, then the loop nests.
fn scheduled(module: IRModule, target: &Target) -> Result<String, String> {
    let mut notes = String::new();
    let module = map_kernels(module, |func| {
        let scheduled = schedule::apply(func, target).map_err(|e| e.to_string())?;
        // What serves rows that turn out to be short is the same once more.
        for note in scheduled.notes.iter().filter(|note| !note.is_of_short_rows) {
            let text = note.to_string();
            text.lines().for_each(|line| notes.push_str(&format!("# {line}\n")));
        }
        Ok(scheduled.func)
    })?;
    Ok(format!("{notes}{}", body(&print_module(&module))))
}

/// The kernels behind all lowering passes. Those of a test that names targets are lowered for them.
fn lowered(test: &FileTest, module: IRModule, target: &Target) -> Result<String, String> {
    let is_bound = test.option("target").is_some();
    let module = map_kernels(module, |func| {
        let attrs = func.attrs.clone().with("target", AttrValue::Str(target.to_string()));
        let bound = if is_bound { PrimFunc { attrs, ..func.clone() } } else { func.clone() };
        lowered_for(&bound, target)
    })?;
    Ok(body(&print_module(&module)))
}

/// A kernel as the target's back end takes it.
fn lowered_for(func: &PrimFunc, target: &Target) -> Result<PrimFunc, String> {
    let profile = relaxide::codegen::backend(target).map_err(|e| e.to_string())?.profile();
    let options = lower::LowerOptions { keep_loops: profile.keep_loops, ..Default::default() };
    lower::lower_with(func, options).map_err(|e| e.to_string())
}

/// The kernels in the language of one back end, whose targets the test may name.
fn code_of(kind: &str, test: &FileTest, module: &IRModule, target: &Target) -> Result<String, String> {
    match target.kind.name() == kind {
        true => code(test, kernels(test, module, target)?, target),
        false => Err(format!("a test of kind `{kind}` is for targets of that kind, and `{target}` is none")),
    }
}

/// The kernels in the language of the target's back end: the functions that the test names (`# functions: main.body`), or the whole text.
fn code(test: &FileTest, module: IRModule, target: &Target) -> Result<String, String> {
    let lowered = map_kernels(module, |func| {
        let scheduled = schedule::apply(func, target).map_err(|e| e.to_string())?;
        lowered_for(&scheduled.func, target)
    })?;
    let context = context_for(test, target.clone())?;
    let split = lower::SPLIT_HOST_DEVICE.make(&Attrs::new()).and_then(|split| split.run(lowered, &context));
    let lowered = split.map_err(|e| e.to_string())?;
    let kernels: Vec<Ref<PrimFunc>> = lowered.functions_of::<PrimFunc>().map(|(_, func)| func).collect();
    let backend = relaxide::codegen::backend(target).map_err(|e| e.to_string())?;
    let text = backend.text(&kernels, target, "").ok_or("the back end has no text")?.map_err(|e| e.to_string())?;
    Ok(match test.option("functions") {
        Some(names) => functions_of(&text, &names.split(' ').collect::<Vec<_>>()),
        None => text,
    })
}

/// Functions of a text in C or LLVM's language: from a line that names one and opens it to the line that closes it.
fn functions_of(text: &str, names: &[&str]) -> String {
    let opens = |line: &str| {
        let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.').collect();
        !line.starts_with(' ') && line.ends_with('{') && names.iter().any(|name| words.contains(name))
    };
    let (mut inside, mut out) = (false, String::new());
    for line in text.lines() {
        inside |= opens(line);
        if inside {
            out.push_str(line);
            out.push('\n');
        }
        inside &= line != "}";
    }
    out
}

/// A print without the imports above it.
fn body(text: &str) -> String {
    let lines = text.lines().skip_while(|line| line.starts_with("# from ") || line.is_empty());
    lines.map(|line| format!("{line}\n")).collect()
}

/// Checks that the print of a module parses to an equal module.
fn reparsed(module: &IRModule) -> Result<String, String> {
    let text = print_module_with(module, PrintOptions { show_meta: true });
    let options = ParseOptions { check_well_formed: false, ..ParseOptions::default() };
    let again =
        parse_module_with(&text, "its own print", options).map_err(|e| format!("the print does not parse:\n{e}"))?;
    let twice = print_module_with(&again, PrintOptions { show_meta: true });
    if text != twice {
        return Err(format!("the print of the print differs:\n{}", difference(&text, &twice)));
    }
    for (name, func) in &module.functions {
        let other = again.get(name).ok_or_else(|| format!("`{name}` is lost in the print"))?;
        structural_equal(&func.0, &other.0, FreeVars::Mapped)
            .map_err(|e| format!("`{name}` differs once printed and parsed: {e:?}"))?;
    }
    Ok(text)
}

/// The print is the input, and it parses to an equal module.
fn roundtrip(test: &FileTest, module: &IRModule) -> Result<(), String> {
    let printed = reparsed(module)?;
    let (expected, actual) = (essence(&test.input), essence(&printed));
    if expected == actual { Ok(()) } else { Err(difference(&expected, &actual)) }
}

/// A text without comments, blank lines and metadata.
fn essence(text: &str) -> String {
    let mut in_metadata = false;
    let mut out = String::new();
    for line in text.lines() {
        in_metadata |= line.starts_with("metadata = ");
        let skip = in_metadata || line.trim().is_empty() || line.trim_start().starts_with('#');
        in_metadata &= !line.ends_with("\"\"\")");
        if !skip {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}
