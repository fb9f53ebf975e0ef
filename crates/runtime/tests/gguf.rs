//! GGUF files: what is in them is read, and files that are damaged, cut off or made up are refused with their place.

use std::path::Path;

use proptest::prelude::*;
use relaxide_ffi::DataType;
use relaxide_runtime::weights::{GgufFile, read_gguf_header, read_tensors};

/// A tensor to be written: its name, lengths with the innermost first, the number of its type, and its bytes.
struct Given<'a>(&'a str, &'a [u64], u32, Vec<u8>);

const ALIGNMENT: usize = 32;

fn text(text: &str) -> Vec<u8> {
    (text.len() as u64).to_le_bytes().into_iter().chain(text.bytes()).collect()
}

fn header(version: u32, tensors: u64, pairs: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"GGUF".to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.extend(tensors.to_le_bytes());
    bytes.extend((pairs.len() as u64).to_le_bytes());
    bytes.extend(pairs.concat());
    bytes
}

fn pair(key: &str, ty: u32, value: &[u8]) -> Vec<u8> {
    [text(key), ty.to_le_bytes().to_vec(), value.to_vec()].concat()
}

fn file(tensors: &[Given], pairs: &[Vec<u8>]) -> Vec<u8> {
    let (mut bytes, mut data) = (header(3, tensors.len() as u64, pairs), Vec::new());
    for Given(name, dims, ty, content) in tensors {
        bytes.extend(text(name));
        bytes.extend((dims.len() as u32).to_le_bytes());
        dims.iter().for_each(|dim| bytes.extend(dim.to_le_bytes()));
        bytes.extend(ty.to_le_bytes());
        bytes.extend((data.len() as u64).to_le_bytes());
        data.extend(content);
        data.resize(data.len().next_multiple_of(ALIGNMENT), 0);
    }
    bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
    bytes.extend(data);
    bytes
}

fn open(folder: &Path, bytes: &[u8]) -> Result<GgufFile, String> {
    let path = folder.join("w.gguf");
    std::fs::write(&path, bytes).unwrap();
    GgufFile::open(&path).map_err(|error| error.to_string())
}

fn half(value: f32) -> [u8; 2] {
    // Of few bits: what 16 bits hold exactly.
    let bits = value.to_bits();
    assert_eq!(bits & 0x1fff, 0);
    let exponent = ((bits >> 23 & 255) as i32 - 127 + 15) as u32;
    ((bits >> 31 << 15 | exponent << 10 | bits >> 13 & 1023) as u16).to_le_bytes()
}

fn numbers(tensors: Vec<Given>, name: &str) -> Vec<f32> {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path(), &file(&tensors, &[])).unwrap().tensor(name).unwrap().to_vec::<f32>().unwrap()
}

#[test]
fn numbers_keep_their_type_and_lengths_are_turned() {
    let folder = tempfile::tempdir().unwrap();
    let six: Vec<u8> = (0..6).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let tensors = [
        Given("blk.0.w", &[3, 2], 0, six),
        Given("half", &[2], 1, [half(1.5), half(-2.0)].concat()),
        Given("brain", &[1], 30, vec![0x80, 0x3f]),
        Given("ints", &[2], 26, [7i32.to_le_bytes(), (-1i32).to_le_bytes()].concat()),
        Given("none", &[0, 4], 0, Vec::new()),
    ];
    let pairs = [
        pair("general.name", 8, &text("a name")),
        pair("general.alignment", 4, &32u32.to_le_bytes()),
        pair("tokens", 9, &[8u32.to_le_bytes().to_vec(), 2u64.to_le_bytes().to_vec(), text("a"), text("b")].concat()),
        pair("places", 9, &[5u32.to_le_bytes().to_vec(), 2u64.to_le_bytes().to_vec(), vec![0; 8]].concat()),
        pair("flag", 7, &[1]),
    ];
    let file = open(folder.path(), &file(&tensors, &pairs)).unwrap();
    let of = |name: &str| file.tensor(name).unwrap();
    assert_eq!((of("blk.0.w").shape(), of("blk.0.w").dtype()), (&[2i64, 3][..], DataType::float(32)));
    assert_eq!(of("blk.0.w").to_vec::<f32>().unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(of("half").dtype(), DataType::float(16));
    assert_eq!(of("brain").dtype(), DataType::bfloat16());
    assert_eq!(of("ints").to_vec::<i32>().unwrap(), [7, -1]);
    assert_eq!(of("none").shape(), [4, 0]);
    assert!(file.tensor("other").unwrap_err().to_string().contains("tensor \"other\" is missing"));
    let all = read_tensors(&folder.path().join("w.gguf")).unwrap();
    assert_eq!(
        all.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["blk.0.w", "brain", "half", "ints", "none"]
    );
}

#[test]
fn blocks_of_32_become_numbers() {
    let nibbles: Vec<u8> = (0..16u8).map(|i| i | (15 - i) << 4).collect();
    let block = [half(0.5).to_vec(), nibbles.clone()].concat();
    let expected: Vec<f32> = (0..16).chain((0..16).rev()).map(|q| 0.5 * (q as f32 - 8.0)).collect();
    assert_eq!(numbers(vec![Given("w", &[32], 2, block)], "w"), expected);
    let block = [half(0.5).to_vec(), half(-3.0).to_vec(), nibbles].concat();
    let expected: Vec<f32> = (0..16).chain((0..16).rev()).map(|q| 0.5 * q as f32 - 3.0).collect();
    assert_eq!(numbers(vec![Given("w", &[32], 3, block)], "w"), expected);
    let block = [half(0.25).to_vec(), (0..32).map(|i| (i * 8 - 128) as u8).collect()].concat();
    let expected: Vec<f32> = (0..32).map(|i| 0.25 * (i * 8 - 128) as f32).collect();
    assert_eq!(numbers(vec![Given("w", &[32, 2], 8, block.repeat(2))], "w"), expected.repeat(2));
}

#[test]
fn blocks_of_256_become_numbers() {
    // Each of the eight scales and minima has its own number of six bits.
    let (scales, least) = ([1u8, 18, 35, 63, 5, 22, 39, 60], [2u8, 17, 40, 62, 9, 33, 50, 63]);
    let mut packed = [0u8; 12];
    for at in 0..4 {
        packed[at] = scales[at] | scales[at + 4] >> 4 << 6;
        packed[at + 4] = least[at] | least[at + 4] >> 4 << 6;
        packed[at + 8] = scales[at + 4] & 15 | (least[at + 4] & 15) << 4;
    }
    let q = |at: usize| (at * 7 % 16) as u8;
    let bytes = (0..128).map(|at| q(at / 32 * 64 + at % 32) | q(at / 32 * 64 + 32 + at % 32) << 4);
    let block: Vec<u8> = [half(0.5).to_vec(), half(0.25).to_vec(), packed.to_vec(), bytes.collect()].concat();
    let of = |at: usize| 0.5 * f32::from(scales[at / 32]) * f32::from(q(at)) - 0.25 * f32::from(least[at / 32]);
    assert_eq!(numbers(vec![Given("w", &[256], 12, block)], "w"), (0..256).map(of).collect::<Vec<_>>());

    let q = |at: usize| (at * 37 % 64) as u8;
    let (mut lower, mut upper) = ([0u8; 128], [0u8; 64]);
    for at in 0..256 {
        let (part, quarter, place) = (at / 128, at % 128 / 32, at % 32);
        lower[64 * part + 32 * (quarter % 2) + place] |= (q(at) & 15) << (4 * (quarter / 2));
        upper[32 * part + place] |= q(at) >> 4 << (2 * quarter);
    }
    let scales: Vec<u8> = (0..16).map(|at| (at * 5 - 40) as i8 as u8).collect();
    let block = [lower.to_vec(), upper.to_vec(), scales.clone(), half(0.125).to_vec()].concat();
    let of = |at: usize| 0.125 * f32::from(scales[at / 16] as i8) * (f32::from(q(at)) - 32.0);
    assert_eq!(numbers(vec![Given("w", &[256], 14, block)], "w"), (0..256).map(of).collect::<Vec<_>>());
}

#[test]
fn every_lie_is_named_with_its_place() {
    let one = |dims: &[u64], ty: u32, bytes: usize| file(&[Given("w", dims, ty, vec![0; bytes])], &[]);
    let with = |key: &str, ty: u32, value: &[u8]| file(&[], &[pair(key, ty, value)]);
    let mut shifted = one(&[8], 0, 32);
    // The offset is the last of the header, which is 24 bytes, a name of 9, one length and a type.
    shifted[24 + 9 + 4 + 8 + 4] = 4;
    let mut beyond = one(&[8], 0, 32);
    beyond[24 + 9 + 4 + 8 + 4] = 32;
    let twice = [Given("w", &[8], 0, vec![0; 32]), Given("w", &[8], 0, vec![0; 32])];
    let cases = [
        (b"GGU".to_vec(), "does not begin with `GGUF`"),
        (b"GGML\0\0\0\0".to_vec(), "does not begin with `GGUF`"),
        (header(1, 0, &[]), "version 1"),
        (header(3, 1, &[]), "cut off in the name of a tensor at byte 24: 8 bytes are to follow, and there are 0"),
        (header(3, u64::MAX, &[]), "cut off"),
        (header(3, 0, &[u64::MAX.to_le_bytes().to_vec()]), "cut off in a key at byte 32"),
        (header(3, 0, &[[1u64.to_le_bytes().to_vec(), vec![255]].concat()]), "a key at byte 32 is not UTF-8"),
        (with("k", 13, &[]), "value of \"k\" is of type 13"),
        (with("k", 9, &[8u32.to_le_bytes().to_vec(), u64::MAX.to_le_bytes().to_vec()].concat()), "cut off in a text"),
        (with("k", 9, &[6u32.to_le_bytes().to_vec(), u64::MAX.to_le_bytes().to_vec()].concat()), "cut off in a list"),
        (with("general.alignment", 4, &[3, 0, 0, 0]), "is 3, which is no power of two"),
        (with("general.alignment", 4, &[0; 4]), "is 0, which is no power of two"),
        (one(&[8], 99, 32), "tensor \"w\" is of type 99, which is not read"),
        (one(&[33], 2, 36), "tensor \"w\" of type Q4_0 has the shape [33], whose rows are no whole blocks of 32"),
        (one(&[u64::MAX], 0, 32), "or more than memory holds"),
        (one(&[1 << 40, 1 << 40], 0, 32), "or more than memory holds"),
        (one(&[9], 0, 32), "of type float32 and shape [9] takes 36 bytes from offset 0 of the data, which has 32"),
        (one(&[1; 9], 0, 32), "has 9 dimensions"),
        (shifted, "begins at offset 4 of the data, which is no multiple of 32"),
        (beyond, "takes 32 bytes from offset 32 of the data, which has 32"),
        (file(&twice, &[]), "is there twice"),
    ];
    for (bytes, message) in cases {
        let said = read_gguf_header(&bytes).map_or_else(|error| error.to_string(), |found| format!("{found:?}"));
        assert!(said.contains(message), "{message}: {said}");
    }
    let folder = tempfile::tempdir().unwrap();
    assert!(open(folder.path(), b"").unwrap_err().contains("does not begin"));
    assert!(GgufFile::open(&folder.path().join("none.gguf")).unwrap_err().to_string().contains("none.gguf"));
}

proptest! {
    #[test]
    fn damaged_files_are_refused_or_stay_within_bounds(
        edits in prop::collection::vec((0usize..4096, any::<u8>()), 0..6),
        length in 0usize..4096,
        kind in prop::sample::select(vec![0u32, 1, 2, 3, 8, 12, 14, 30]),
    ) {
        let size = match kind { 2 => 18 * 8, 3 => 20 * 8, 8 => 34 * 8, 12 => 144, 14 => 210, 0 => 1024, _ => 512 };
        let pairs = [pair("general.name", 8, &text("n")), pair("list", 9, &[[6, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0], [0; 12]].concat()[..16])];
        let mut bytes = file(&[Given("a", &[256], kind, vec![3; size]), Given("b", &[4, 2], 0, vec![0; 32])], &pairs);
        prop_assert!(read_gguf_header(&bytes).is_ok());
        for (at, value) in edits {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        bytes.truncate(bytes.len() - length.min(bytes.len()) / 8);
        if let Ok(entries) = read_gguf_header(&bytes) {
            for entry in entries.values() {
                let own = bytes.get(entry.range.clone());
                prop_assert!(own.is_some());
                if let Some(numbers) = own.and_then(|own| entry.kind.numbers(own)) {
                    prop_assert_eq!(numbers.len() as i64, entry.shape.iter().product::<i64>());
                }
            }
        }
    }

    #[test]
    fn tensors_without_elements_lie_inside_of_the_file_wherever_it_ends(
        lengths in prop::collection::vec(prop_oneof![Just(0u64), 1u64..9, (1u64 << 20)..(1 << 62)], 1..5),
        zero in any::<prop::sample::Index>(),
        kind in prop::sample::select(vec![0u32, 1, 26, 30]),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut lengths = lengths;
        let at = zero.index(lengths.len());
        lengths[at] = 0;
        let whole = |lengths: &[u64]| file(&[Given("w", lengths, kind, Vec::new())], &[]);
        // Nothing follows the padding, so that the file may end anywhere in it.
        let mut bytes = whole(&lengths);
        let end = header(3, 1, &[]).len() + text("w").len() + 4 + 8 * lengths.len() + 4 + 8;
        bytes.truncate(end + cut.index(bytes.len() - end + 1));
        let found = read_gguf_header(&bytes);
        let elements = lengths.iter().try_fold(1u64, |product, length| product.checked_mul((*length).max(1)));
        // Lengths that no memory holds are refused also beside a zero; what it may hold is taken.
        prop_assert!(elements.is_some() || found.is_err());
        prop_assert!(elements.is_none_or(|elements| elements >= 1 << 53) || found.is_ok());
        lengths.reverse();
        prop_assert_eq!(found.is_ok(), read_gguf_header(&whole(&lengths)).is_ok());
        if let Ok(entries) = found {
            prop_assert_eq!(bytes.get(entries["w"].range.clone()), Some(&[][..]));
            let folder = tempfile::tempdir().unwrap();
            let tensor = open(folder.path(), &bytes).unwrap().tensor("w").unwrap();
            prop_assert_eq!(tensor.shape().iter().map(|dim| *dim as u64).collect::<Vec<_>>(), lengths);
        }
    }
}
