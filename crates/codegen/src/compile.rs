//! Compilation of many kernels: threads, LLVM's passes.

use std::{collections::BTreeSet, sync::Arc};

use inkwell::{
    context::Context,
    memory_buffer::MemoryBuffer,
    module::Module,
    passes::PassBuilderOptions,
    support::LLVMString,
    targets::{FileType, TargetMachine},
};
use relaxide_ir::{Ref, Target, workers};
use relaxide_runtime::processor::variants::{Variant, Variants, suffix};
use relaxide_tir::PrimFunc;

use crate::{
    cache::{Cache, CacheUse, Key},
    error::CodegenError,
    llvm::{self, DebugInfo, Helpers, ModuleText, ProcessorTables, Written, global_name},
    memo::Memo,
    rejection,
    shards::{originals, split},
    shared::ENTRY_PREFIX,
    static_library::LinkedObject,
    target::{Architecture, NativeTarget},
};

/// Kernels as native code: what [`crate::export_library`] makes a library of.
#[derive(Debug, Clone)]
pub struct CompiledLib {
    /// For which machine.
    pub target: NativeTarget,
    /// Relocatable objects.
    pub objects: Vec<Vec<u8>>,
    /// The kernels' names, without the prefix that their symbols carry.
    pub kernels: Vec<String>,
    /// Functions that the loading process must offer because kernels call them by name.
    pub foreign: Vec<String>,
    /// The slots that a loader fills, by the names of their symbols.
    pub slots: Vec<String>,
    /// The processors that it has kernels for, where they are several: `target` is the first, and kernels for others have
    /// a [`suffix`] behind their names.
    pub variants: Option<Variants>,
    /// What others compiled, to be linked with the kernels.
    pub linked: Vec<LinkedObject>,
    /// What came out of a cache.
    pub cached: CacheUse,
}

/// Which of the processors of one library kernels are compiled for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Share<'a> {
    /// The only one.
    #[default]
    Whole,
    /// The first, whose kernels have their plain names.
    First,
    /// Another, by the name that its variant has.
    Other(&'a str),
}

impl Share<'_> {
    /// What stands behind the names of its kernels.
    fn suffix(self) -> String {
        match self {
            Share::Whole | Share::First => String::new(),
            Share::Other(variant) => suffix(variant),
        }
    }
}

/// One part of the kernels, compiled by one thread.
struct Shard {
    text: String,
    foreign: Vec<String>,
    slots: BTreeSet<String>,
    /// How far its kernels' loops are written in vectors.
    written: Written,
}

/// What a thread made of a part.
struct CompiledPart {
    object: Vec<u8>,
    foreign: Vec<String>,
    slots: BTreeSet<String>,
    used: CacheUse,
}

/// What LLVM does to kernels. Schedules have already chosen and unrolled the loops, written the vectors and inlined what
/// should be, so that most of LLVM's usual pipeline finds nothing to do, at several times the price: no inliner, no unroller,
/// no interprocedural pass.
const PASSES: &str = "globaldce,function(\
    simplifycfg,sroa<modify-cfg>,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,\
    loop-mssa(loop-rotate,licm),loop(indvars),gvn,simplifycfg)";

/// The same for kernels that no schedule rule took, wholly or in part: whose loops are to be made into vectors.
const PASSES_FOR_SCALARS: &str = "globaldce,function(\
    simplifycfg,sroa<modify-cfg>,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,\
    loop-mssa(loop-rotate,licm,simple-loop-unswitch<no-nontrivial;trivial>),\
    loop(indvars,loop-idiom,loop-deletion),\
    gvn,instcombine<no-verify-fixpoint>,dse,loop-mssa(licm),\
    loop-vectorize,slp-vectorizer,\
    instcombine<no-verify-fixpoint>,loop-mssa(licm),simplifycfg)";

/// The passes that are of use. And as far as this LLVM can be trusted with them: the loop vectorizer of LLVM 19 groups loads of
/// `a[(3 * i) % 64]` as if their index never wrapped around, and computes wrong results.
fn passes(native: &NativeTarget, written: Written) -> String {
    if native.opt_level == 0 {
        return "default<O0>".to_owned();
    }
    let mut passes = match written {
        Written::Vectors => PASSES.to_owned(),
        Written::Mixed => PASSES_FOR_SCALARS.replace("slp-vectorizer,", ""),
        Written::Scalar => PASSES_FOR_SCALARS.to_owned(),
    };
    if cfg!(feature = "llvm19") {
        passes = passes.replace("loop-vectorize,", "");
    }
    passes
}

/// How kernels are compiled, apart from the target.
#[derive(Debug, Clone, Copy, Default)]
pub struct CompileSettings<'a> {
    /// Where objects are kept for other compilations.
    pub cache: Option<&'a Cache>,
    /// Which lines of a text the instructions come from; without it they do not know.
    pub debug: Option<&'a Arc<DebugInfo>>,
    /// Which of a library's processors this is.
    pub share: Share<'a>,
}

/// Compiles lowered kernels for a target.
pub fn compile(funcs: &[Ref<PrimFunc>], target: &Target) -> Result<CompiledLib, CodegenError> {
    compile_with(funcs, target, CompileSettings::default(), &mut |_, _| {})
}

/// The same; takes from the cache what is there and keeps there what is not, and tells `progress` after each part how many of
/// how many are done.
pub fn compile_with(
    funcs: &[Ref<PrimFunc>],
    target: &Target,
    settings: CompileSettings<'_>,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<CompiledLib, CodegenError> {
    let native = NativeTarget::resolve(target)?;
    let kernels = Kernels::of(funcs, settings.share)?;
    // Objects of WebAssembly are not joined here: there is one.
    let is_joined = matches!(native.architecture, Architecture::X86_64 | Architecture::Aarch64);
    let mut shards = if is_joined { split(funcs, &kernels.originals) } else { vec![(0..funcs.len()).collect()] };
    // What the entries of all parts call is a part of its own, without kernels: that of the first processor, whose instructions
    // all have.
    let has_common = is_joined && !funcs.is_empty();
    if has_common && !matches!(settings.share, Share::Other(_)) {
        shards.push(Vec::new());
    }
    let compile_shard = |_: usize, indices: &Vec<usize>| -> Result<CompiledPart, CodegenError> {
        let helpers = match has_common {
            true if indices.is_empty() => Helpers::ForAll,
            true => Helpers::Elsewhere,
            false => Helpers::Here,
        };
        let shard = write_shard(&kernels, indices, helpers, &native, settings.debug)?;
        let named = || indices.iter().map(|&index| (kernels.names[index].as_str(), &funcs[index]));
        let make = || emit(&shard, named(), &native, FileType::Object);
        let (object, used) = reuse(settings.cache, &shard, &native, || match helpers {
            Helpers::ForAll => COMMON.get(key_of(&shard, &native), make),
            Helpers::Here | Helpers::Elsewhere => make(),
        })?;
        Ok(CompiledPart { object, foreign: shard.foreign, slots: shard.slots, used })
    };
    let (mut objects, mut foreign, mut slots) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    let mut cached = CacheUse::default();
    let died = || Err(CodegenError::Llvm("a compiling thread ended early".into()));
    for result in workers::map(&shards, compile_shard, |done| progress(done, shards.len())) {
        let part = result.unwrap_or_else(died)?;
        objects.push(part.object);
        foreign.extend(part.foreign);
        slots.extend(part.slots);
        cached.found += part.used.found;
        cached.kept += part.used.kept;
        cached.problem = cached.problem.or(part.used.problem);
    }
    let (foreign, slots) = (foreign.into_iter().collect(), slots.into_iter().collect());
    Ok(CompiledLib {
        target: native,
        objects,
        kernels: names_of(funcs)?,
        foreign,
        slots,
        variants: None,
        linked: Vec::new(),
        cached,
    })
}

/// What the object of a part is found under.
fn key_of(shard: &Shard, native: &NativeTarget) -> Key {
    Key::of(&shard.text, native, &passes(native, shard.written))
}

/// The parts without kernels that this process has made.
static COMMON: Memo<Key, Vec<u8>> = Memo::new();

/// The object of a part: from the cache, or made and kept there.
fn reuse(
    cache: Option<&Cache>,
    shard: &Shard,
    native: &NativeTarget,
    make: impl FnOnce() -> Result<Vec<u8>, CodegenError>,
) -> Result<(Vec<u8>, CacheUse), CodegenError> {
    let Some(cache) = cache else { return Ok((make()?, CacheUse::default())) };
    let key = key_of(shard, native);
    if let Some(object) = cache.find(&key) {
        return Ok((object, CacheUse { found: 1, ..CacheUse::default() }));
    }
    let object = make()?;
    // What cannot be kept is made again another time.
    let problem = cache.keep(&key, &object).err().map(|error| error.to_string());
    Ok((object, CacheUse { kept: usize::from(problem.is_none()), problem, found: 0 }))
}

/// Runs LLVM on a part's text, and gives what it makes of it.
fn emit<'k>(
    shard: &Shard,
    kernels: impl Iterator<Item = (&'k str, &'k Ref<PrimFunc>)>,
    native: &NativeTarget,
    form: FileType,
) -> Result<Vec<u8>, CodegenError> {
    let (machine, context) = (native.machine()?, Context::create());
    let module = read(&context, shard).map_err(|error| rejection::locate(kernels, native, error))?;
    optimize(&module, &machine, &passes(native, shard.written))?;
    write(&module, &machine, form)
}

/// The kernels in LLVM's text form as they leave this crate, before LLVM's passes.
pub fn llvm_text(funcs: &[Ref<PrimFunc>], target: &Target) -> Result<String, CodegenError> {
    let native = NativeTarget::resolve(target)?;
    let all: Vec<usize> = (0..funcs.len()).collect();
    Ok(write_shard(&Kernels::of(funcs, Share::Whole)?, &all, Helpers::Here, &native, None)?.text)
}

/// The kernels as assembly, after all passes.
pub fn assembly(funcs: &[Ref<PrimFunc>], target: &Target) -> Result<String, CodegenError> {
    let native = NativeTarget::resolve(target)?;
    let kernels = Kernels::of(funcs, Share::Whole)?;
    let all: Vec<usize> = (0..funcs.len()).collect();
    let shard = write_shard(&kernels, &all, Helpers::Here, &native, None)?;
    let named = kernels.names.iter().map(String::as_str).zip(funcs);
    let assembly = emit(&shard, named, &native, FileType::Assembly)?;
    Ok(String::from_utf8_lossy(&assembly).into_owned())
}

pub(crate) fn names_of(funcs: &[Ref<PrimFunc>]) -> Result<Vec<String>, CodegenError> {
    let malformed = |kernel: &str, what: &str| CodegenError::Malformed {
        kernel: kernel.into(),
        what: what.into(),
        statement: None,
    };
    let mut names = Vec::with_capacity(funcs.len());
    let mut seen = BTreeSet::new();
    for func in funcs {
        let name = func.global_symbol().ok_or_else(|| malformed("?", "it has no `global_symbol`"))?;
        if !seen.insert(name) {
            return Err(malformed(name, "another kernel has the same `global_symbol`"));
        }
        names.push(name.to_string());
    }
    Ok(names)
}

/// Kernels by their names, each with the first of those that are equal to it.
struct Kernels<'a> {
    funcs: &'a [Ref<PrimFunc>],
    names: Vec<String>,
    /// What the names have behind them.
    suffix: String,
    originals: Vec<usize>,
}

impl<'a> Kernels<'a> {
    fn of(funcs: &'a [Ref<PrimFunc>], share: Share<'_>) -> Result<Self, CodegenError> {
        let suffix = share.suffix();
        let names = names_of(funcs)?.into_iter().map(|name| format!("{name}{suffix}")).collect();
        Ok(Kernels { funcs, names, suffix, originals: originals(funcs) })
    }
}

fn write_shard(
    kernels: &Kernels<'_>,
    indices: &[usize],
    helpers: Helpers,
    native: &NativeTarget,
    debug: Option<&Arc<DebugInfo>>,
) -> Result<Shard, CodegenError> {
    let Kernels { funcs, names, suffix, originals } = kernels;
    let mut text = ModuleText::new(native.architecture).with_debug(debug).with_helpers(helpers).with_suffix(suffix);
    if helpers == Helpers::ForAll {
        llvm::write_helpers(&mut text);
    }
    for &index in indices {
        let shared = (originals[index] != index).then(|| names[originals[index]].as_str());
        llvm::write_kernel(&names[index], &funcs[index], shared, native, &mut text)?;
    }
    if let Some(only) = called_main(names).filter(|_| !indices.is_empty()) {
        // A library of one kernel can be called by the name `main`.
        let (alias, entry) = (format!("{ENTRY_PREFIX}main{suffix}"), global_name(&format!("{ENTRY_PREFIX}{only}")));
        if *only != *format!("main{suffix}") {
            let shown = global_name(&alias);
            text.define(&alias, || format!("{shown} = weak alias i32 (ptr, ptr, i32, ptr), ptr {entry}"));
        }
    }
    let layout = native.layout()?;
    let (foreign, slots) = (text.foreign_functions().to_vec(), text.slots().clone());
    let written = indices.iter().map(|&index| Written::of(&funcs[index].body)).min().unwrap_or(Written::Vectors);
    Ok(Shard { text: text.finish(&native.triple, &layout), foreign, slots, written })
}

/// The kernel that goes by the name `main` too: the only one of a library.
pub(crate) fn called_main(names: &[String]) -> Option<&str> {
    match names {
        [only] if only != "main" => Some(only),
        _ => None,
    }
}

impl CompiledLib {
    /// The names by which kernels are called, those for other processors than the first included.
    pub(crate) fn entries(&self) -> Vec<String> {
        let main = called_main(&self.kernels).map(|_| "main".to_string());
        let plain: Vec<String> = self.kernels.iter().cloned().chain(main).collect();
        let others = self.variants.iter().flat_map(|variants| variants.rows().iter().skip(1));
        let others: Vec<String> =
            others.flat_map(|variant| plain.iter().map(|name| format!("{name}{}", suffix(&variant.name)))).collect();
        let linked = self.linked.iter().flat_map(|object| object.functions.iter().cloned());
        plain.into_iter().chain(others).chain(linked).collect()
    }

    /// Which processors the kernels are for.
    pub(crate) fn processors(&self) -> ProcessorTables {
        ProcessorTables { needed: self.target.needed(), variants: self.variants.as_ref().map(Variants::to_text) }
    }

    /// Kernels for several processors as one: each with its variant's name, the first with plain names.
    pub fn join(parts: Vec<(String, CompiledLib)>) -> Result<CompiledLib, CodegenError> {
        let row = |(name, part): &(String, CompiledLib)| Variant { name: name.clone(), needed: part.target.needed() };
        let table = Variants::new(parts.iter().map(row).collect());
        let refused = |why: &str| CodegenError::Processors { why: why.to_string() };
        let table = table.ok_or_else(|| refused("their names are not apart, or they are of two architectures"))?;
        let mut parts = parts.into_iter().map(|(_, part)| part);
        let mut all = parts.next().ok_or_else(|| refused("there is none"))?;
        for part in parts {
            all.objects.extend(part.objects);
            all.foreign.extend(part.foreign);
            all.slots.extend(part.slots);
            all.cached.found += part.cached.found;
            all.cached.kept += part.cached.kept;
            all.cached.problem = all.cached.problem.take().or(part.cached.problem);
        }
        for names in [&mut all.foreign, &mut all.slots] {
            names.sort_unstable();
            names.dedup();
        }
        all.variants = Some(table);
        Ok(all)
    }

    /// Compiles a module's text for the same machine, without any optimisation.
    pub(crate) fn compile_beside(&self, text: &str) -> Result<Vec<u8>, CodegenError> {
        let (machine, context) = (self.target.machine()?, Context::create());
        let layout = self.target.layout()?;
        let text = format!("target datalayout = \"{layout}\"\ntarget triple = \"{}\"\n\n{text}", self.target.triple);
        let module = parse(&context, &text).map_err(|error| refused(&error))?;
        write(&module, &machine, FileType::Object)
    }
}

/// Reads the text. Only what calls foreign functions needs LLVM's verifier: those may be LLVM's own, and called wrongly.
fn read<'c>(context: &'c Context, shard: &Shard) -> Result<Module<'c>, LLVMString> {
    let module = parse(context, &shard.text)?;
    if !shard.foreign.is_empty() || cfg!(debug_assertions) {
        module.verify()?;
    }
    Ok(module)
}

/// LLVM's reader wants a zero behind the text. The text is lent, not given: of LLVM 22, inkwell forgets the buffer, which its
/// predecessors freed, and the text with it if the buffer had a copy.
pub(crate) fn parse<'c>(context: &'c Context, text: &str) -> Result<Module<'c>, LLVMString> {
    let mut bytes = Vec::with_capacity(text.len() + 1);
    bytes.extend_from_slice(text.as_bytes());
    bytes.push(0);
    context.create_module_from_ir(MemoryBuffer::create_from_memory_range(&bytes[..text.len()], "kernels"))
}

pub(crate) fn optimize(module: &Module<'_>, machine: &TargetMachine, passes: &str) -> Result<(), CodegenError> {
    module.run_passes(passes, machine, PassBuilderOptions::create()).map_err(|error| refused(&error))
}

pub(crate) fn write(module: &Module<'_>, machine: &TargetMachine, form: FileType) -> Result<Vec<u8>, CodegenError> {
    let written = machine.write_to_memory_buffer(module, form).map_err(|error| refused(&error))?;
    Ok(written.as_slice().to_vec())
}

pub(crate) fn refused(error: &LLVMString) -> CodegenError {
    CodegenError::Llvm(error.to_string_lossy().into_owned())
}
