//! Libraries that the writer makes are loaded by the system's dynamic linker and read back by an ELF reader.

use std::path::Path;

use inkwell::{
    OptimizationLevel,
    context::Context,
    memory_buffer::MemoryBuffer,
    targets::{CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetMachine, TargetTriple},
};
use libloading::Library;
use object::{Object, ObjectSection, ObjectSymbol, read::elf::ElfFile64};
use proptest::prelude::*;
use relaxide_codegen::StaticLibrary;
use relaxide_codegen::export::{ExportError, ExtraSection, Machine, SharedLibrary};

const X86_64: &str = "x86_64-unknown-linux-gnu";
const AARCH64: &str = "aarch64-unknown-linux-gnu";

/// Compiles LLVM IR text into an object.
fn object_with(ir: &str, triple: &str, reloc: RelocMode) -> Vec<u8> {
    Target::initialize_x86(&InitializationConfig::default());
    Target::initialize_aarch64(&InitializationConfig::default());
    let context = Context::create();
    let text = MemoryBuffer::create_from_memory_range_copy(ir.as_bytes(), "test");
    let module = context.create_module_from_ir(text).unwrap();
    let triple = TargetTriple::create(triple);
    module.set_triple(&triple);
    let target = Target::from_triple(&triple).unwrap();
    let machine = target
        .create_target_machine(&triple, "generic", "", OptimizationLevel::Default, reloc, CodeModel::Default)
        .unwrap();
    let machine: TargetMachine = machine;
    machine.write_to_memory_buffer(&module, FileType::Object).unwrap().as_slice().to_vec()
}

fn object(ir: &str) -> Vec<u8> {
    object_with(ir, X86_64, RelocMode::PIC)
}

fn library<'a>(objects: &'a [Vec<u8>]) -> SharedLibrary<'a> {
    let mut library = SharedLibrary::new(Machine::X86_64);
    for (index, bytes) in objects.iter().enumerate() {
        library.object(format!("object{index}"), bytes).unwrap();
    }
    library
}

fn bytes(library: &SharedLibrary<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    library.write_to(&mut out).unwrap();
    out
}

fn load(library: &SharedLibrary<'_>, directory: &Path) -> Library {
    let path = directory.join("lib.so");
    library.write_file(&path).unwrap();
    // SAFETY: the library has no initialisers besides those that a test put there.
    unsafe { Library::new(&path) }.unwrap()
}

/// Calls `name`, a function without arguments that returns a 64-bit integer.
fn call(library: &Library, name: &str) -> i64 {
    // SAFETY: every function that the tests call has this type.
    let function = unsafe { library.get::<unsafe extern "C" fn() -> i64>(name) }.unwrap();
    // SAFETY: as above.
    unsafe { function() }
}

const MAIN: &str = r#"
@table = internal constant [3 x ptr] [ptr @one, ptr @two, ptr @external_slot]
@counter = internal global i64 40
@zeros = internal global [1000 x i64] zeroinitializer
@slot = weak global ptr null
@external_slot = external global i64
declare i64 @two()
declare double @cos(double)
declare ptr @memset(ptr, i32, i64)
declare i64 @optional()
declare extern_weak i64 @missing()

define internal i64 @one() noinline { ret i64 1 }

define i64 @through_table(i64 %i) {
  %p = getelementptr [3 x ptr], ptr @table, i64 0, i64 %i
  %f = load volatile ptr, ptr %p
  %r = call i64 %f()
  ret i64 %r
}
define i64 @table_one() { %r = call i64 @through_table(i64 0) ret i64 %r }
define i64 @table_two() { %r = call i64 @through_table(i64 1) ret i64 %r }
define i64 @bump() {
  %a = load volatile i64, ptr @counter
  %b = add i64 %a, 1
  store volatile i64 %b, ptr @counter
  %z = load volatile i64, ptr getelementptr ([1000 x i64], ptr @zeros, i64 0, i64 999)
  %c = add i64 %b, %z
  ret i64 %c
}
define i64 @data_elsewhere() { %a = load i64, ptr @external_slot ret i64 %a }
define i64 @cosine() {
  %x = load volatile i64, ptr @zeros
  %d = sitofp i64 %x to double
  %c = call double @cos(double %d)
  %s = fmul double %c, 7.0
  %i = fptosi double %s to i64
  ret i64 %i
}
define i64 @fill() {
  %r = call ptr @memset(ptr @zeros, i32 1, i64 8)
  %z = load volatile i64, ptr @zeros
  ret i64 %z
}
define i64 @has_slot() { %p = load volatile ptr, ptr @slot %i = ptrtoint ptr %p to i64 ret i64 %i }
"#;

const OTHER: &str = r#"
@external_slot = global i64 123456789
@slot = weak global ptr null
define i64 @two() { ret i64 2 }
define i64 @sees_slot() { %p = load volatile ptr, ptr @slot %i = ptrtoint ptr %p to i64 ret i64 %i }
"#;

#[test]
fn code_data_and_imports_work_when_loaded() {
    let directory = tempfile::tempdir().unwrap();
    let objects = [object(MAIN), object(OTHER)];
    let loaded = load(&library(&objects), directory.path());
    assert_eq!(call(&loaded, "table_one"), 1);
    assert_eq!(call(&loaded, "table_two"), 2);
    assert_eq!(call(&loaded, "bump"), 41);
    assert_eq!(call(&loaded, "bump"), 42);
    assert_eq!(call(&loaded, "data_elsewhere"), 123_456_789);
    assert_eq!(call(&loaded, "cosine"), 7);
    assert_eq!(call(&loaded, "fill"), 0x0101_0101_0101_0101);
}

#[test]
fn a_weak_slot_defined_in_two_objects_is_one_place() {
    let directory = tempfile::tempdir().unwrap();
    let objects = [object(MAIN), object(OTHER)];
    let loaded = load(&library(&objects), directory.path());
    // SAFETY: `slot` is a pointer-sized variable.
    let slot = unsafe { loaded.get::<*mut i64>("slot") }.unwrap();
    // SAFETY: it lies in writable data and nobody else uses it now.
    unsafe { **slot = 77 };
    assert_eq!(call(&loaded, "has_slot"), 77);
    assert_eq!(call(&loaded, "sees_slot"), 77);
}

#[test]
fn a_strong_definition_replaces_a_weak_one() {
    let directory = tempfile::tempdir().unwrap();
    let weak = object("define weak i64 @f() noinline { ret i64 1 } define i64 @g() { %r = call i64 @f() ret i64 %r }");
    let strong = object("define i64 @f() { ret i64 2 }");
    let objects = [weak, strong];
    let loaded = load(&library(&objects), directory.path());
    assert_eq!(call(&loaded, "f"), 2);
    assert_eq!(call(&loaded, "g"), 2);
}

#[test]
fn initialisers_run() {
    let directory = tempfile::tempdir().unwrap();
    let ir = r#"@entry = internal global ptr @init, section ".init_array"
        @llvm.used = appending global [1 x ptr] [ptr @entry]
        @state = global i64 0
        define internal void @init() { store i64 5, ptr @state ret void }
        define i64 @get() { %r = load volatile i64, ptr @state ret i64 %r }"#;
    let objects = [object(ir)];
    assert_eq!(call(&load(&library(&objects), directory.path()), "get"), 5);
}

#[test]
fn appended_sections_are_found_by_symbol_and_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let objects = [object(OTHER)];
    let mut library = library(&objects);
    let (length, first, second) = (100_033u64.to_le_bytes(), vec![1u8; 100_000], vec![2u8; 33]);
    library.section(ExtraSection::module_tree([&length[..], &first[..], &second[..]]));
    library.section(ExtraSection::new(".relaxide.metadata").piece(b"signature".to_vec()));
    let file = bytes(&library);
    let elf = ElfFile64::<object::LittleEndian>::parse(&*file).unwrap();
    assert_eq!(elf.section_by_name(".relaxide.metadata").unwrap().data().unwrap(), b"signature");
    let loaded = load(&library, directory.path());
    // SAFETY: the symbol marks at least the eight bytes of the length.
    let start = unsafe { loaded.get::<*const u8>("__tvm_ffi__library_bin") }.unwrap();
    // SAFETY: the section holds the length and both pieces.
    let blob = unsafe { std::slice::from_raw_parts(*start, 8 + 100_033) };
    assert_eq!(blob[..8], 100_033u64.to_le_bytes());
    assert_eq!(blob[8 + 99_999..8 + 100_002], [1, 2, 2]);
}

#[test]
fn only_the_libraries_that_are_used_are_needed() {
    let names = |objects: &[Vec<u8>]| {
        let file = bytes(&library(objects));
        ["libc.so.6", "libm.so.6"].map(|name| file.windows(name.len()).any(|window| window == name.as_bytes()))
    };
    assert_eq!(names(&[object(OTHER)]), [false, false]);
    assert_eq!(names(&[object(MAIN), object(OTHER)]), [true, true]);
}

#[test]
fn symbols_and_debug_information_can_be_read_back() {
    let ir = r#"
        define i64 @f() !dbg !4 { ret i64 1, !dbg !7 }
        !llvm.dbg.cu = !{!0}
        !llvm.module.flags = !{!2, !3}
        !0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, producer: "test", isOptimized: true, runtimeVersion: 0, emissionKind: FullDebug)
        !1 = !DIFile(filename: "kernel.c", directory: "/tmp")
        !2 = !{i32 7, !"Dwarf Version", i32 4}
        !3 = !{i32 2, !"Debug Info Version", i32 3}
        !4 = distinct !DISubprogram(name: "f", scope: !1, file: !1, line: 3, type: !5, unit: !0, spFlags: DISPFlagDefinition)
        !5 = !DISubroutineType(types: !6)
        !6 = !{null}
        !7 = !DILocation(line: 4, scope: !4)"#;
    let objects = [object(ir), object(MAIN), object(OTHER)];
    let file = bytes(&library(&objects));
    let elf = ElfFile64::<object::LittleEndian>::parse(&*file).unwrap();
    let local = elf.symbols().find(|symbol| symbol.name() == Ok("one")).unwrap();
    assert!(local.is_local() && elf.dynamic_symbols().all(|symbol| symbol.name() != Ok("one")));
    let exported = elf.dynamic_symbols().find(|symbol| symbol.name() == Ok("f")).unwrap();
    assert_eq!(elf.symbols().find(|symbol| symbol.name() == Ok("f")).unwrap().address(), exported.address());
    let address = exported.address().to_le_bytes();
    let info = elf.section_by_name(".debug_info").unwrap().data().unwrap();
    assert!(info.windows(8).any(|window| window == address), "the debug information names the final address");
}

#[test]
fn aarch64_references_reach_their_targets() {
    let objects = [object_with(MAIN, AARCH64, RelocMode::PIC), object_with(OTHER, AARCH64, RelocMode::PIC)];
    let mut library = SharedLibrary::new(Machine::Aarch64);
    for (index, bytes) in objects.iter().enumerate() {
        library.object(format!("object{index}"), bytes).unwrap();
    }
    let file = bytes(&library);
    let elf = ElfFile64::<object::LittleEndian>::parse(&*file).unwrap();
    let symbol = |name: &str| elf.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap();
    let text = elf.section_by_name(".text").unwrap();
    let word = |address: u64| {
        let at = (address - text.address()) as usize;
        u32::from_le_bytes(text.data().unwrap()[at..at + 4].try_into().unwrap())
    };
    // `bump` begins by forming the page of `counter`; decode the ADRP and its load.
    let bump = symbol("bump").address();
    let (adrp_at, adrp) =
        (0..8).map(|i| (bump + 4 * i, word(bump + 4 * i))).find(|(_, w)| w & 0x9f00_0000 == 0x9000_0000).unwrap();
    let pages = (((adrp >> 5) & 0x7_ffff) << 2 | (adrp >> 29) & 3) as i32;
    let pages = i64::from(pages << 11 >> 11);
    let page = ((adrp_at & !0xfff) as i64 + pages * 4096) as u64;
    let load = (1..8)
        .map(|i| word(adrp_at + 4 * i))
        .find(|w| w & 0xffc0_0000 == 0xf940_0000 && (w >> 5) & 31 == adrp & 31)
        .unwrap();
    assert_eq!(page + u64::from((load >> 10) & 0xfff) * 8, symbol("counter").address());
    // `table_two` calls `through_table`.
    let caller = symbol("table_two").address();
    let (call_at, branch) = (0..8)
        .map(|i| (caller + 4 * i, word(caller + 4 * i)))
        .find(|(_, w)| matches!(w >> 26, 0b100101 | 0b000101))
        .unwrap();
    let words = i64::from(((branch & 0x3ff_ffff) as i32) << 6 >> 6);
    assert_eq!((call_at as i64 + words * 4) as u64, symbol("through_table").address());
}

fn failure(ir: &str, reloc: RelocMode) -> ExportError {
    let objects = [object_with(ir, X86_64, reloc)];
    library(&objects).write_to(&mut Vec::new()).unwrap_err()
}

#[test]
fn what_cannot_be_linked_is_named() {
    let undefined =
        failure("declare i64 @nowhere() define i64 @f() { %r = call i64 @nowhere() ret i64 %r }", RelocMode::PIC);
    assert!(matches!(&undefined, ExportError::UndefinedSymbol { symbol, .. } if symbol == "nowhere"), "{undefined}");
    let absolute = failure(
        "@g = internal global i64 1 define i64 @f(i64 %i) { %p = getelementptr i64, ptr @g, i64 %i %r = load volatile i64, ptr %p ret i64 %r }",
        RelocMode::Static,
    );
    assert!(
        matches!(&absolute, ExportError::Relocation { symbol, .. } if symbol == "g" || symbol == ".data"),
        "{absolute}"
    );
    let one = object("define i64 @f() { ret i64 1 }");
    let twice = [one.clone(), one];
    let duplicate = library(&twice).write_to(&mut Vec::new()).unwrap_err();
    assert!(
        matches!(&duplicate, ExportError::DuplicateSymbol { first, second, .. } if first == "object0" && second == "object1")
    );
    let thread_local = object("@t = thread_local global i64 1");
    assert!(matches!(
        SharedLibrary::new(Machine::X86_64).object("t", &thread_local),
        Err(ExportError::BadObject { .. })
    ));
    let foreign = object_with("define i64 @f() { ret i64 1 }", AARCH64, RelocMode::PIC);
    assert!(matches!(SharedLibrary::new(Machine::X86_64).object("t", &foreign), Err(ExportError::WrongMachine { .. })));
}

#[test]
fn an_allowed_host_symbol_is_left_to_the_process() {
    let objects = [object("declare i64 @nowhere() define i64 @f() { %r = call i64 @nowhere() ret i64 %r }")];
    let mut library = library(&objects);
    library.host_symbol("nowhere");
    let file = bytes(&library);
    let elf = ElfFile64::<object::LittleEndian>::parse(&*file).unwrap();
    assert!(elf.dynamic_symbols().any(|symbol| symbol.is_undefined() && symbol.name() == Ok("nowhere")));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Damaged objects are refused or linked, never a panic.
    #[test]
    fn damaged_objects_do_not_panic(damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8), cut in any::<proptest::sample::Index>(), truncate in any::<bool>()) {
        use std::sync::OnceLock;
        static OBJECT: OnceLock<Vec<u8>> = OnceLock::new();
        let mut bytes = OBJECT.get_or_init(|| object(MAIN)).clone();
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if truncate {
            bytes.truncate(cut.index(bytes.len()));
        }
        let mut library = SharedLibrary::new(Machine::X86_64);
        library.host_symbol("two");
        if library.object("damaged", &bytes).is_ok() {
            let _ = library.write_to(&mut std::io::sink());
        }
    }

    /// So are damaged archives of them.
    #[test]
    fn damaged_archives_do_not_panic(damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8), in_header in any::<bool>(), cut in proptest::option::of(any::<proptest::sample::Index>())) {
        let object = object("define i32 @__tvm_ffi_one() { ret i32 0 }");
        let mut bytes = format!("!<arch>\n{:<48}{:<10}`\n", "one.o/", object.len()).into_bytes();
        let header = bytes.len();
        bytes.extend(object);
        for (at, value) in damage {
            let at = at.index(if in_header { header } else { bytes.len() });
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("damaged.a");
        std::fs::write(&path, &bytes).unwrap();
        if let Ok(module) = StaticLibrary::load(&path, vec!["one".to_string()]) {
            let library = module.downcast::<StaticLibrary>().unwrap();
            for object in library.objects() {
                let mut linked = SharedLibrary::new(Machine::X86_64);
                if linked.object(&object.name, &object.bytes).is_ok() {
                    let _ = linked.write_to(&mut std::io::sink());
                }
            }
        }
    }

    /// Whatever sizes and numbers the appended sections have, each starts where its header says and nothing overlaps.
    #[test]
    fn appended_sections_keep_their_bytes(sizes in proptest::collection::vec(0usize..20_000, 0..6)) {
        let contents: Vec<Vec<u8>> = sizes.iter().enumerate().map(|(i, size)| vec![i as u8 + 1; *size]).collect();
        let mut library = SharedLibrary::new(Machine::X86_64);
        for (index, content) in contents.iter().enumerate() {
            library.section(ExtraSection::new(format!(".extra{index}")).symbol(format!("extra{index}")).piece(&content[..]));
        }
        let file = bytes(&library);
        let elf = ElfFile64::<object::LittleEndian>::parse(&*file).unwrap();
        for (index, content) in contents.iter().enumerate() {
            let section = elf.section_by_name(&format!(".extra{index}")).unwrap();
            prop_assert_eq!(section.data().unwrap(), &content[..]);
            let symbol = elf.dynamic_symbols().find(|symbol| symbol.name() == Ok(&format!("extra{index}"))).unwrap();
            prop_assert_eq!(symbol.address(), section.address());
        }
    }
}
