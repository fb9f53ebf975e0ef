//! Damaged executables: whatever happens to the bytes, reading and verifying end in a value or an error.

use crate::support::artifact;
use proptest::prelude::*;
use relaxide_vm::{Executable, verify};

const SOURCES: [&str; 5] = ["add", "closure", "control", "dynamic", "every_constant"];

fn source(index: usize) -> Vec<u8> {
    std::fs::read(artifact(&format!("{}.vmexec", SOURCES[index % SOURCES.len()]))).unwrap()
}

/// Goes the whole way that a file goes before it runs. Listings are for looking at broken files, so they must bear them.
fn digest(bytes: &[u8]) {
    let Ok(executable) = Executable::from_bytes(bytes) else { return };
    let _ = executable.as_text();
    let _ = executable.as_python();
    let _ = executable.stats();
    let written = executable.to_bytes().expect("what was read can be written");
    let again = Executable::from_bytes(&written).expect("what was written can be read");
    assert_eq!(again.to_bytes().unwrap(), written);
    let _ = verify(executable.into());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bytes_do_no_harm(
        index in 0..SOURCES.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = source(index);
        for (place, value) in &changes {
            let place = place.index(bytes.len());
            bytes[place] = *value;
        }
        digest(&bytes);
    }

    #[test]
    fn overwritten_numbers_do_no_harm(
        index in 0..SOURCES.len(),
        place in any::<prop::sample::Index>(),
        value in prop_oneof![
            Just(0_i64), Just(-1), Just(i64::MAX), Just(i64::MIN), Just(1 << 32), Just(1 << 61), -9_i64..99,
        ],
    ) {
        let mut bytes = source(index);
        let place = place.index(bytes.len() - 8);
        bytes[place..place + 8].copy_from_slice(&value.to_le_bytes());
        digest(&bytes);
    }

    #[test]
    fn truncation_does_no_harm(index in 0..SOURCES.len(), cut in any::<prop::sample::Index>()) {
        let bytes = source(index);
        let cut = cut.index(bytes.len());
        prop_assert!(Executable::from_bytes(&bytes[..cut]).is_err(), "a part of {cut} bytes was taken as the whole");
    }

    #[test]
    fn noise_does_no_harm(mut bytes in prop::collection::vec(any::<u8>(), 20..400)) {
        bytes[..20].copy_from_slice(&source(0)[..20]);
        digest(&bytes);
    }
}

#[test]
fn errors_name_section_and_byte() {
    let bytes = source(0);
    let error = |bytes: &[u8]| Executable::from_bytes(bytes).unwrap_err().to_string();
    assert!(error(&bytes[..5]).contains("header, byte 0"), "{}", error(&bytes[..5]));
    assert!(error(b"not an executable").contains("the magic is"));
    let mut other = bytes.clone();
    other[16] = b'9';
    assert!(error(&other).contains("the version is \"9.14\""), "{}", error(&other));
    let mut long = bytes.clone();
    long[0x14..0x1c].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(error(&long).contains("function table, byte 20: a list of 18446744073709551615"), "{}", error(&long));
    let mut tag = bytes;
    tag[0x21e] = 99;
    assert!(error(&tag).contains("constant pool, byte 542: constant tag 99"), "{}", error(&tag));
}
