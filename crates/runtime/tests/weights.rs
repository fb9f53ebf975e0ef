//! Files of weights: what is written is read, in place where it can be; files that are damaged, cut off or made up are refused.

use std::path::Path;

use proptest::prelude::*;
use relaxide_ffi::{DataType, Tensor};
use relaxide_runtime::weights::{ALIGNMENT, Memory, WeightsFile, Written, read_header, write_tensors};

fn tensors() -> Vec<(String, Tensor)> {
    let numbers = |count: usize| (0..count).map(|i| i as f32).collect::<Vec<_>>();
    vec![
        ("odd \"name\"\n".into(), Tensor::from_slice(&numbers(3), &[3]).unwrap()),
        ("large".into(), Tensor::from_slice(&numbers(64), &[4, 16]).unwrap()),
        ("ints".into(), Tensor::from_slice(&[-1i64, 2, 3, 4, 5, 6, 7, 8], &[8]).unwrap()),
        ("scalar".into(), Tensor::from_slice(&[7u8], &[]).unwrap()),
        ("none".into(), Tensor::from_slice(&numbers(0), &[0, 5]).unwrap()),
    ]
}

fn bytes_of(tensors: &[(String, Tensor)]) -> (Vec<u8>, Written) {
    let mut bytes = Vec::new();
    let written = write_tensors(tensors, "test", &mut bytes).unwrap();
    (bytes, written)
}

fn open(folder: &Path, bytes: &[u8]) -> Result<WeightsFile, String> {
    let path = folder.join("w.safetensors");
    std::fs::write(&path, bytes).unwrap();
    WeightsFile::open(&path).map_err(|error| error.to_string())
}

#[test]
fn what_is_written_is_read_and_large_tensors_lie_in_the_map() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, written) = bytes_of(&tensors());
    assert_eq!(written.bytes, bytes.len() as u64);
    let file = open(folder.path(), &bytes).unwrap();
    assert_eq!((file.size(), file.checksum()), (written.bytes, written.checksum));
    assert_eq!(file.header().len(), 5);
    for (name, tensor) in tensors() {
        let read = file.tensor(&name, tensor.dtype(), tensor.shape()).unwrap();
        assert_eq!(read.to_bytes().unwrap(), tensor.to_bytes().unwrap(), "{name}");
        assert!(read.data_ptr().addr().is_multiple_of(ALIGNMENT), "{name}");
    }
    let at = |name: &str| file.tensor(name, DataType::float(32), &[4, 16]).unwrap().data_ptr();
    // Used where it lies: whoever asks again gets the same memory, and the tensor keeps it.
    assert_eq!(at("large"), at("large"));
    let kept = file.tensor("large", DataType::float(32), &[4, 16]).unwrap();
    drop(file);
    assert_eq!(kept.to_vec::<f32>().unwrap()[63], 63.0);
    // The memory is the process's own: writing to it changes no file.
    kept.copy_from_bytes(&[0; 256]).unwrap();
    assert_eq!(std::fs::read(folder.path().join("w.safetensors")).unwrap(), bytes);
}

/// What a host that has no files holds in their place.
struct Held(Vec<u8>);

impl Memory for Held {
    fn bytes(&self) -> &[u8] {
        &self.0
    }
}

#[test]
fn memory_serves_in_the_place_of_a_file() {
    let (bytes, written) = bytes_of(&tensors());
    let file = WeightsFile::in_memory("held.safetensors", Box::new(Held(bytes.clone()))).unwrap();
    assert_eq!((file.size(), file.checksum()), (written.bytes, written.checksum));
    let read = tensors()
        .into_iter()
        .map(|(name, tensor)| (file.tensor(&name, tensor.dtype(), tensor.shape()).unwrap(), tensor));
    let read: Vec<(Tensor, Tensor)> = read.collect();
    // Tensors keep the memory.
    drop(file);
    for (found, expected) in read {
        assert_eq!(found.to_bytes().unwrap(), expected.to_bytes().unwrap());
    }
    let error = WeightsFile::in_memory("held.safetensors", Box::new(Held(bytes[..9].to_vec()))).unwrap_err();
    assert!(error.to_string().contains("held.safetensors"), "{error}");
}

#[test]
fn tensors_that_are_not_what_is_wanted_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = open(folder.path(), &bytes_of(&tensors()).0).unwrap();
    let refusal = |name: &str, dtype: DataType, shape: &[i64]| file.tensor(name, dtype, shape).unwrap_err().to_string();
    let float = DataType::float(32);
    assert!(refusal("lrage", float, &[4, 16]).contains("tensor \"lrage\" is missing"));
    assert!(
        refusal("large", float, &[16, 4]).contains("is F32 of shape [4, 16]; the program wants F32 of shape [16, 4]")
    );
    assert!(refusal("large", DataType::int(32), &[4, 16]).contains("wants I32"));
    assert!(refusal("large", DataType::int(4), &[4, 16]).contains("which no file holds"));
}

#[test]
fn files_that_are_cut_off_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, _) = bytes_of(&tensors());
    for end in [0, 1, 7, 8, 9, 100, bytes.len() - 1] {
        let error = open(folder.path(), &bytes[..end]).unwrap_err();
        assert!(error.contains("w.safetensors") && error.contains("cut off"), "{end}: {error}");
    }
    let error = open(folder.path(), &[&bytes[..], b"more"].concat()).unwrap_err();
    assert!(error.contains("4 bytes behind its tensors"), "{error}");
    let missing = WeightsFile::open(&folder.path().join("missing")).unwrap_err().to_string();
    assert!(missing.contains("cannot open the weights") && missing.contains("missing"), "{missing}");
}

/// What a header says is true of the file, whatever was done to it.
fn check(bytes: &[u8]) {
    let Ok(header) = read_header(bytes) else { return };
    let mut ranges: Vec<_> = header.iter().map(|(_, entry)| entry.range.clone()).collect();
    assert!(ranges.iter().all(|range| bytes.get(range.clone()).is_some()));
    ranges.sort_by_key(|range| (range.start, range.end));
    assert!(ranges.is_sorted_by(|a, b| a.end <= b.start));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn changed_bytes_never_lie(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let (mut bytes, _) = bytes_of(&tensors());
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        check(&bytes);
    }

    #[test]
    fn changed_numbers_never_lie(numbers in prop::collection::vec(any::<i64>(), 3), length in any::<u64>(), data in 0usize..64) {
        let text = format!(
            r#"{{"w":{{"dtype":"F32","shape":[{}],"data_offsets":[{},{}]}}}}"#, numbers[0], numbers[1], numbers[2]
        );
        for length in [length, text.len() as u64] {
            let mut bytes = length.to_le_bytes().to_vec();
            bytes.extend_from_slice(text.as_bytes());
            bytes.resize(bytes.len() + data, 0);
            check(&bytes);
        }
    }

    #[test]
    fn noise_never_lies(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&bytes);
    }
}
