//! Archives that somebody has changed are refused or imported; the importer neither panics nor asks for memory that the file
//! does not bring.

use std::path::PathBuf;

use proptest::prelude::*;
use relaxide_torch::{Archive, ImportOptions, import};

fn programs() -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/torch/programs");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the programs are in the repository")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "pt2"))
        .collect();
    paths.sort();
    paths.into_iter().map(|path| std::fs::read(path).expect("a program can be read")).collect()
}

fn try_import(bytes: &[u8]) -> Result<(), String> {
    let archive = Archive::from_bytes(bytes).map_err(|e| e.to_string())?;
    import(&archive.program, &archive.weights, &ImportOptions::default()).map(|_| ()).map_err(|e| e.to_string())
}

#[test]
fn all_programs_are_imported() {
    let programs = programs();
    assert!(programs.len() >= 10);
    for bytes in programs {
        assert_eq!(try_import(&bytes), Ok(()));
    }
}

#[test]
fn what_is_no_archive_is_told() {
    for bytes in [&b""[..], b"PK\x03\x04", b"not an archive"] {
        let error = try_import(bytes).expect_err("it is no archive");
        assert!(error.starts_with("not a `.pt2` file"), "{error}");
    }
}

/// Replaces what stands in the description, which the archive keeps as it is.
fn edit(bytes: &[u8], at: usize, with: u8) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let place = at % bytes.len();
    bytes[place] = with;
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn changed_bytes(program in 0usize..10, edits in prop::collection::vec((any::<usize>(), any::<u8>()), 1..4)) {
        let programs = programs();
        let mut bytes = programs[program % programs.len()].clone();
        for (at, with) in edits {
            bytes = edit(&bytes, at, with);
        }
        let _ = try_import(&bytes);
    }

    #[test]
    fn changed_numbers(program in 0usize..10, at in any::<usize>(), digit in b'0'..=b'9') {
        let programs = programs();
        let mut bytes = programs[program % programs.len()].clone();
        let digits: Vec<usize> = (0..bytes.len()).filter(|&i| bytes[i].is_ascii_digit()).collect();
        bytes[digits[at % digits.len()]] = digit;
        let archive = Archive::from_bytes(&bytes);
        if let Ok(archive) = archive {
            let _ = import(&archive.program, &archive.weights, &ImportOptions::default());
        }
    }
}
