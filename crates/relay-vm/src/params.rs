//! Tensors and dictionaries of parameters in their saved form.

use relaxide_ffi::{Error, ErrorKind, Tensor};
use relaxide_vm::executable::stream::{
    Problem, ReadError, Reader, Section, Writer, read_tensor, write_tensor_before_bool,
};

/// The first eight bytes of a dictionary.
const MAGIC: u64 = 0xF7E5_8D4F_0504_9CB7;

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
    load(bytes).map_err(invalid)
}

fn load(bytes: &[u8]) -> Result<Vec<(String, Tensor)>, ReadError> {
    let mut reader = Reader::new(bytes, Section::Parameters);
    let (magic, _reserved) = (reader.u64()?, reader.u64()?);
    if magic != MAGIC {
        return Err(reader.error_at(0, Problem::Other(format!("the magic is {magic:#018x}, not that of parameters"))));
    }
    let count = reader.count(8)?;
    let names = (0..count).map(|_| reader.string()).collect::<Result<Vec<_>, _>>()?;
    let at = reader.position();
    let tensors = reader.count(16)?;
    if tensors != count {
        let problem = format!("{count} names and {tensors} tensors");
        return Err(reader.error_at(at, Problem::Other(problem)));
    }
    names.into_iter().map(|name| Ok((name, read_tensor(&mut reader)?))).collect()
}

/// A dictionary of tensors.
pub fn save_params<'a>(params: impl IntoIterator<Item = (&'a str, &'a Tensor)>) -> Result<Vec<u8>, Error> {
    let params: Vec<(&str, &Tensor)> = params.into_iter().collect();
    let mut out = Writer::default();
    out.u64(MAGIC);
    out.u64(0);
    out.count(params.len());
    params.iter().for_each(|(name, _)| out.string(name));
    out.count(params.len());
    for (index, (_, tensor)) in params.iter().enumerate() {
        write_tensor_before_bool(&mut out, index, tensor).map_err(invalid)?;
    }
    Ok(out.0.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dictionary_comes_back() {
        let (a, b) = (Tensor::from_slice(&[1f32, 2.0], &[2]).unwrap(), Tensor::from_slice(&[7i64], &[]).unwrap());
        let bytes = save_params([("a", &a), ("b", &b)]).unwrap();
        assert_eq!(bytes[..8], MAGIC.to_le_bytes());
        let read = load_params(&bytes).unwrap();
        assert_eq!(read[0].0, "a");
        assert_eq!(read[1].1.to_vec::<i64>().unwrap(), [7]);
        for length in 0..bytes.len() {
            assert!(load_params(&bytes[..length]).is_err());
        }
    }
}
