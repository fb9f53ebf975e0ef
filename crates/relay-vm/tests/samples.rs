//! Executables that the reference wrote: read, shown, and written again as it has them.

use std::path::PathBuf;

use relaxide_relay_vm::{Executable, Form, Instruction, Size, verify};

const NAMES: [&str; 8] = ["closure", "const", "dense", "dynshape", "if_dyn", "list_sum", "loop", "tuple_match"];

fn sample(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/relay").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn bytes(name: &str) -> Vec<u8> {
    let hex = sample(&format!("{name}.ro.hex"));
    let digits: Vec<u32> = hex.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

/// Lines without the word that the reference leaves undefined where a storage has a shape.
fn comparable(text: &str) -> String {
    let line = |line: &str| match line.split_once(": 16 ") {
        Some((_, rest)) if rest.contains(" [") || line.contains("alloc_storage $") => {
            line.split('#').next_back().unwrap_or_default().trim().to_string()
        }
        _ => line.to_string(),
    };
    text.trim_end().lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn executables_of_the_reference_are_read_and_shown_as_it_shows_them() {
    for name in NAMES {
        let executable = Executable::from_bytes(&bytes(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(executable.form, Form::V0_14, "{name}");
        let (text, expected) = (executable.bytecode().unwrap(), sample(&format!("{name}.bytecode.txt")));
        assert_eq!(comparable(&text), comparable(&expected), "{name}");
        let (stats, expected) = (executable.stats(), sample(&format!("{name}.stats.txt")));
        // The reference's tables change their order from run to run, and the two samples are of two runs.
        let sorted = |text: &str| {
            let mut letters: Vec<char> = text.trim().chars().collect();
            letters.sort_unstable();
            letters
        };
        assert_eq!(sorted(&stats), sorted(&expected), "{name}: {stats}");
        verify(executable).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

#[test]
fn what_was_read_is_written_byte_for_byte_but_for_the_undefined_word() {
    for name in NAMES {
        let original = bytes(name);
        let executable = Executable::from_bytes(&original).unwrap();
        let written = executable.to_bytes().unwrap();
        assert_eq!(written.len(), original.len(), "{name}");
        let undefined = executable
            .functions
            .iter()
            .flat_map(|f| &f.instructions)
            .filter(|i| matches!(i, Instruction::AllocStorage { size: Size::Shape(_), .. }))
            .count();
        let differing = written.chunks(1).zip(original.chunks(1)).filter(|(a, b)| a != b).count();
        // The word and the check over it.
        assert!(differing <= undefined * 16, "{name}: {differing} bytes differ, {undefined} words are undefined");
        let again = Executable::from_bytes(&written).unwrap();
        assert_eq!(again.functions, executable.functions, "{name}");
    }
}

#[test]
fn every_form_that_can_hold_a_program_holds_it() {
    let executable = Executable::from_bytes(&bytes("closure")).unwrap();
    let old = Executable::from_bytes(&executable.in_form(Form::V0_9).to_bytes().unwrap()).unwrap();
    assert_eq!((old.form, old.functions.len()), (Form::V0_9, executable.functions.len()));
    let error = executable.in_form(Form::V0_7).to_bytes().unwrap_err();
    assert!(error.message().contains("KillRegister came with 0.9"), "{error}");
    let mut plain = executable.clone();
    for function in &mut plain.functions {
        function.instructions.retain(|i| !matches!(i, Instruction::KillRegister { .. }));
    }
    for form in [Form::V0_7, Form::V0_8] {
        let read = Executable::from_bytes(&plain.in_form(form).to_bytes().unwrap()).unwrap();
        assert_eq!((read.form, &read.functions), (form, &plain.functions));
        assert_eq!(read.op_attrs.len(), if form == Form::V0_8 { plain.op_attrs.len() } else { 0 });
    }
}

#[test]
fn damaged_executables_are_refused_or_verified_and_never_harm() {
    for name in NAMES {
        let original = bytes(name);
        for length in 0..original.len() {
            assert!(Executable::from_bytes(&original[..length]).is_err(), "{name}: {length} bytes");
        }
        let mut seed = 1u64;
        for _ in 0..2_000 {
            let mut damaged = original.clone();
            for _ in 0..3 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let at = (seed >> 33) as usize % damaged.len();
                damaged[at] ^= (seed >> 25) as u8;
            }
            if let Ok(executable) = Executable::from_bytes(&damaged) {
                // What is read can be verified, shown and written.
                let _ = executable.bytecode();
                let _ = executable.stats();
                let _ = executable.to_bytes();
                let _ = verify(executable);
            }
        }
    }
}
