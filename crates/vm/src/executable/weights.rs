//! Weights that lie in a file of their own and not in the executable.
//!
//! ```text
//! constants: [f32[384, 384], shape(1, 2), …]        constants: ["constant_0", shape(1, 2), …]     model.safetensors
//!                                             ==>   trailer:   {"weights": {"file": "model.safetensors", …}}
//! ```
//!
//! [`Executable::without_weights`] takes large tensors out of the constant pool and leaves their names there; the description
//! behind the sections says which constants these are, and which file has them, with its size and checksum.
//! [`Executable::with_weights`] puts them back: what runs is the same executable as before. In between it lists a function that
//! TVM does not have, so that TVM says why it does not load the file.
//!
//! Integers of more than eight bits stay where they are: they may be indices that the compiler has checked and kernels trust, and
//! whoever can write the file of weights shall not choose what memory is read.
//!
//! The description is as untrusted as the rest of the file: constants that it names must exist, and the file is looked for by
//! its plain name, in a folder that the caller chooses.

use std::path::{Component, Path};

use relaxide_ffi::{Any, Array, DataType, Error, ErrorKind, Map, Tensor};
use relaxide_runtime::weights::{WeightsFile, format_dtype};

use super::{Executable, FuncInfo, FuncKind, UNDEFINED_NUM_ARGS};

/// A function that no program calls, and that only runtimes have which find weights in other files.
pub(crate) const MARK: &str = "relaxide.weights_apart";

/// Where the weights of an executable are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightsApart {
    /// The plain name of the file.
    pub file: String,
    /// How many bytes it has.
    pub bytes: u64,
    /// The checksum of all of them.
    pub checksum: u64,
    /// The tensors in it.
    pub tensors: Vec<WeightTensor>,
}

/// A constant that lies in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightTensor {
    /// Its place in the constant pool.
    pub constant: usize,
    /// Its name in the file.
    pub name: String,
    /// The type of its elements.
    pub dtype: DataType,
    /// Its dimensions.
    pub shape: Vec<i64>,
}

/// An executable and its weights, parted.
pub struct Parted {
    /// The executable with names in the places of its weights.
    pub rest: Executable,
    /// Which constants these are.
    pub described: Vec<WeightTensor>,
    /// The weights by name.
    pub tensors: Vec<(String, Tensor)>,
}

impl Executable {
    /// Where the weights are, if they are in a file of their own.
    pub fn weights_apart(&self) -> Result<Option<WeightsApart>, Error> {
        // Most files have none, and their descriptions need not be read.
        if self.function(MARK).is_none() {
            return Ok(None);
        }
        let description = self.description().and_then(|description| description.get("weights")?.to::<Map>().ok());
        let description = description.ok_or_else(|| damaged("it does not say where they are"))?;
        let weights = read(&description).ok_or_else(|| damaged("what it says about them cannot be read"))?;
        if !is_plain(&weights.file) {
            return Err(damaged(&format!("{:?} is no plain name of a file", weights.file)));
        }
        Ok(Some(weights))
    }

    /// The executable with the name of each weight of at least `least` bytes in the place of the tensor, and these tensors. The
    /// caller writes them to a file and enters where it is into the trailer. `None` if there are no such tensors.
    pub fn without_weights(&self, least: usize) -> Option<Parted> {
        let mut rest = self.clone();
        let (mut described, mut tensors) = (Vec::new(), Vec::new());
        for (index, constant) in rest.constants.iter_mut().enumerate() {
            let Ok(tensor) = constant.to::<Tensor>() else { continue };
            let (dtype, shape) = (tensor.dtype(), tensor.shape().to_vec());
            let is_weight = dtype.is_float() || (dtype.bits == 8 && (dtype.is_int() || dtype.is_uint()));
            if tensor.byte_size() < least || !is_weight || format_dtype(dtype).is_none() || tensor.as_bytes().is_err() {
                continue;
            }
            let name = format!("constant_{index}");
            *constant = Any::from(name.as_str());
            described.push(WeightTensor { constant: index, name: name.clone(), dtype, shape });
            tensors.push((name, tensor));
        }
        if tensors.is_empty() {
            return None;
        }
        rest.push_function(FuncInfo {
            kind: FuncKind::Packed,
            name: MARK.into(),
            start_instr: 0,
            end_instr: 0,
            num_args: UNDEFINED_NUM_ARGS,
            register_file_size: 0,
            param_names: Vec::new(),
        });
        Some(Parted { rest, described, tensors })
    }

    /// The executable with the tensors of a file back in their places. The file has to be the one that was written with it.
    pub(crate) fn with_weights(&self, weights: &WeightsApart, file: &WeightsFile) -> Result<Executable, Error> {
        let mut whole = self.clone();
        for tensor in &weights.tensors {
            let missing = || damaged(&format!("there is no constant {}", tensor.constant));
            let place = whole.constants.get_mut(tensor.constant).ok_or_else(missing)?;
            *place = Any::from(file.tensor(&tensor.name, tensor.dtype, &tensor.shape)?);
        }
        let other = |what: &str| {
            let message = format!(
                "the weights {} are not those that the program was compiled with: {what}; take the file that was written \
                 with it, or compile the model again",
                file.path().display()
            );
            Error::new(ErrorKind::ValueError, message)
        };
        if file.size() != weights.bytes {
            return Err(other(&format!("the file has {} bytes, not {}", file.size(), weights.bytes)));
        }
        let found = file.checksum();
        if found != weights.checksum {
            return Err(other(&format!("its checksum is {found:016x}, not {:016x}", weights.checksum)));
        }
        Ok(whole)
    }
}

/// Whether a name is one of a file in whatever folder.
fn is_plain(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name)
}

fn damaged(why: &str) -> Error {
    Error::new(ErrorKind::ValueError, format!("the program says that its weights are in another file, and {why}"))
}

fn read(description: &Map) -> Option<WeightsApart> {
    let text = |map: &Map, name: &str| map.get(name)?.to::<String>().ok();
    let tensors: Array = description.get("tensors")?.to().ok()?;
    let tensor = |value: &Any| {
        let map: Map = value.to().ok()?;
        Some(WeightTensor {
            constant: usize::try_from(map.get("constant")?.as_int()?).ok()?,
            name: text(&map, "name")?,
            dtype: text(&map, "dtype")?.parse().ok()?,
            shape: map.get("shape")?.to::<Vec<i64>>().ok()?,
        })
    };
    Some(WeightsApart {
        file: text(description, "file")?,
        bytes: u64::try_from(description.get("bytes")?.as_int()?).ok()?,
        checksum: u64::from_str_radix(&text(description, "checksum")?, 16).ok()?,
        tensors: tensors.iter().map(tensor).collect::<Option<Vec<_>>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executable::TRAILER_MAGIC;

    fn executable() -> Executable {
        let floats = Tensor::from_slice(&[1f32; 32], &[32]).unwrap();
        let indices = Tensor::from_slice(&[1i64; 32], &[32]).unwrap();
        let small = Tensor::from_slice(&[1f32; 2], &[2]).unwrap();
        let bytes = Tensor::from_slice(&[1i8; 100], &[10, 10]).unwrap();
        Executable { constants: [floats, indices, small, bytes].map(Any::from).to_vec(), ..Executable::default() }
    }

    fn refusal(weights: &str) -> String {
        let mut rest = executable().without_weights(64).unwrap().rest;
        rest.set_trailer([TRAILER_MAGIC, weights.as_bytes()].concat());
        rest.weights_apart().map_or_else(|error| error.to_string(), |weights| format!("{weights:?}"))
    }

    #[test]
    fn large_floats_and_bytes_are_weights_and_indices_are_not() {
        let Parted { rest, described, tensors } = executable().without_weights(64).unwrap();
        let places: Vec<usize> = described.iter().map(|tensor| tensor.constant).collect();
        assert_eq!((places, tensors.len()), (vec![0, 3], 2));
        assert_eq!(rest.constants()[0].to::<String>().unwrap(), "constant_0");
        assert!(rest.constants()[1].to::<Tensor>().is_ok() && rest.function(MARK).is_some());
        assert!(executable().without_weights(1 << 20).is_none());
        assert_eq!(executable().weights_apart().unwrap(), None);
    }

    #[test]
    fn descriptions_that_lie_are_refused() {
        assert!(refusal("").contains("does not say where they are"));
        assert!(refusal("{\"weights\":{}}").contains("cannot be read"));
        let file = |name: &str| {
            refusal(&format!("{{\"weights\":{{\"file\":{name:?},\"bytes\":1,\"checksum\":\"f\",\"tensors\":[]}}}}"))
        };
        for name in ["../x", "/etc/x", "a/b", "..", ".", "", "a/"] {
            assert!(file(name).contains("no plain name"), "{name}: {}", file(name));
        }
        assert!(file("x.safetensors").contains("checksum: 15"));
        let tensor = "{\"weights\":{\"file\":\"x\",\"bytes\":1,\"checksum\":\"f\",\"tensors\":[{\"constant\":-1,\"name\":\"w\",\
                      \"dtype\":\"float32\",\"shape\":[1]}]}}";
        assert!(refusal(tensor).contains("cannot be read"));
    }
}
