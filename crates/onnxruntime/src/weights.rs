//! What a session is given beside its model: weights in the place of the model's own, contents of files, lengths of dimensions by
//! what they stand for.
//!
//! Weights are copied when they are given. They are part of what a compiled model follows from, and so of its place in the cache.

use std::collections::BTreeMap;
use std::ffi::c_char;

use prost::bytes::Bytes;
use relaxide::ffi::Tensor;
use relaxide::onnx::Model;
use relaxide::onnx::given::{GivenTensor, GivenWeights};
use sha2::{Digest, Sha256};

use crate::border::{array, text, texts};
use crate::cache::hex;
use crate::content::Content;
use crate::handle::at;
use crate::options::{OrtSessionOptions, SessionOptions, change, length_of};
use crate::status::{OrtStatus, Result, invalid, not_here};
use crate::value::OrtValue;

/// What is given beside a model.
#[derive(Clone, Debug, Default)]
pub struct GivenBesideModel {
    /// Weights, and files that weights lie in.
    pub weights: GivenWeights,
    /// Lengths of dimensions by what the model says they stand for.
    pub denoted: BTreeMap<String, i64>,
    /// Weights that are inputs instead.
    pub opened: Vec<String>,
}

impl GivenBesideModel {
    /// Gives it to a model.
    pub fn put(&self, model: &mut Model) {
        model.given = self.weights.clone();
        model.fix_denoted(&self.denoted);
        model.open_weights(&self.opened);
    }

    /// All of it as text, with checksums in the place of contents; empty where nothing is given.
    pub fn described(&self) -> Result<String> {
        let mut parts: Vec<String> = self.denoted.iter().map(|(name, length)| format!("{name:?}={length}")).collect();
        for (name, given) in &self.weights.tensors {
            let tensor = &given.tensor;
            let digest = hex(&Sha256::digest(tensor.to_bytes()?));
            parts.push(format!("{name:?} {} {} {:?} {digest}", given.is_external, tensor.dtype(), tensor.shape()));
        }
        let files = self.weights.files.iter();
        parts.extend(files.map(|(name, bytes)| format!("{name:?} {}", hex(&Sha256::digest(bytes)))));
        parts.extend(self.opened.iter().map(|name| format!("{name:?} is an input")));
        Ok(parts.join("\n"))
    }
}

fn add_weight(options: &mut SessionOptions, name: &str, value: &Content, is_external: bool) -> Result<()> {
    let Content::Numbers(numbers) = value else {
        let kind = value.type_name();
        return Err(not_here(format!("the weight {name:?} is a {kind}; only tensors of numbers are given apart")));
    };
    let dtype = numbers.element.dtype().ok_or_else(|| invalid(format!("the weight {name:?} has no numbers")))?;
    let tensor = Tensor::from_bytes(numbers.as_bytes(), &numbers.shape, dtype)?;
    options.given.weights.tensors.insert(name.into(), GivenTensor { tensor, is_external });
    Ok(())
}

pub unsafe extern "C" fn add_initializer(
    options: *mut OrtSessionOptions,
    name: *const c_char,
    value: *const OrtValue,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    unsafe { change(options, |options| add_weight(options, text(name, "name")?, at(value, "val")?, false)) }
}

pub unsafe extern "C" fn add_external_initializers(
    options: *mut OrtSessionOptions,
    names: *const *const c_char,
    values: *const *const OrtValue,
    count: usize,
) -> *mut OrtStatus {
    let add = |options: &mut SessionOptions| {
        // SAFETY: the interface's contract.
        let (names, values) =
            unsafe { (texts(names, count, "initializer_names")?, array(values, count, "initializers")?) };
        for (name, value) in names.into_iter().zip(values) {
            // SAFETY: as above.
            add_weight(options, name, unsafe { at(*value, name)? }, true)?;
        }
        Ok(())
    };
    // SAFETY: as above.
    unsafe { change(options, add) }
}

pub unsafe extern "C" fn add_files(
    options: *mut OrtSessionOptions,
    names: *const *const c_char,
    buffers: *const *mut c_char,
    lengths: *const usize,
    count: usize,
) -> *mut OrtStatus {
    let add = |options: &mut SessionOptions| {
        // SAFETY: the interface's contract.
        let (names, buffers, lengths) = unsafe {
            let buffers = array(buffers, count, "external_initializer_file_buffer_array")?;
            let lengths = array(lengths, count, "external_initializer_file_lengths")?;
            (texts(names, count, "external_initializer_file_names")?, buffers, lengths)
        };
        for ((name, buffer), length) in names.into_iter().zip(buffers).zip(lengths) {
            // SAFETY: as above.
            let bytes = unsafe { array((*buffer).cast_const().cast::<u8>(), *length, name)? };
            options.given.weights.files.insert(name.into(), Bytes::copy_from_slice(bytes));
        }
        Ok(())
    };
    // SAFETY: as above.
    unsafe { change(options, add) }
}

/// `AddFreeDimensionOverride`.
pub unsafe extern "C" fn fix_denoted(
    options: *mut OrtSessionOptions,
    denotation: *const c_char,
    length: i64,
) -> *mut OrtStatus {
    let set = |options: &mut SessionOptions| {
        // SAFETY: the interface's contract.
        let denotation = unsafe { text(denotation, "dim_denotation")? };
        options.given.denoted.insert(denotation.into(), length_of(denotation, length)?);
        Ok(())
    };
    // SAFETY: as above.
    unsafe { change(options, set) }
}
