//! Tensors and dictionaries of parameters in their saved form.

use relaxide_ffi::{Error, ErrorKind, Tensor};
use relaxide_vm::executable::params;
use relaxide_vm::executable::stream::{Reader, Section, Writer, read_tensor, write_tensor_before_bool};

fn invalid(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::ValueError, error.to_string())
}

/// A tensor of its saved form.
pub fn tensor_from_bytes(bytes: &[u8]) -> Result<Tensor, Error> {
    let mut reader = Reader::new(bytes, Section::Parameters);
    let tensor = read_tensor(&mut reader).map_err(invalid)?;
    match reader.rest().len() {
        0 => Ok(tensor),
        left => Err(invalid(format!("{left} bytes follow a saved tensor"))),
    }
}

/// The saved form of a tensor.
pub fn tensor_to_bytes(tensor: &Tensor) -> Result<Vec<u8>, Error> {
    let mut out = Writer::default();
    write_tensor_before_bool(&mut out, 0, tensor).map_err(invalid)?;
    Ok(out.0.into_bytes())
}

/// The tensors of a dictionary, by name, in order.
pub fn load_params(bytes: &[u8]) -> Result<Vec<(String, Tensor)>, Error> {
    params::load(bytes).map_err(invalid)
}

/// A dictionary of tensors.
pub fn save_params<'a>(params: impl IntoIterator<Item = (&'a str, &'a Tensor)>) -> Result<Vec<u8>, Error> {
    let params: Vec<(&str, &Tensor)> = params.into_iter().collect();
    params::save_before_bool(&params).map_err(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dictionary_comes_back() {
        let (a, b) = (Tensor::from_slice(&[1f32, 2.0], &[2]).unwrap(), Tensor::from_slice(&[7i64], &[]).unwrap());
        let bytes = save_params([("a", &a), ("b", &b)]).unwrap();
        assert_eq!(bytes[..8], 0xF7E5_8D4F_0504_9CB7_u64.to_le_bytes());
        let read = load_params(&bytes).unwrap();
        assert_eq!(read[0].0, "a");
        assert_eq!(read[1].1.to_vec::<i64>().unwrap(), [7]);
        for length in 0..bytes.len() {
            assert!(load_params(&bytes[..length]).is_err());
        }
    }
}
