//! Parameters by name as bytes: the form that TVM's front ends save weights in.
//!
//! | bytes | what |
//! | --- | --- |
//! | 8 | magic |
//! | 8 | 0 |
//! | 8, then each 8 and its text | the names |
//! | 8, then each as in the constant pool | the tensors |

use relaxide_ffi::Tensor;

use super::UnsupportedConstant;
use super::constant::{read_tensor, write_tensor, write_tensor_before_bool};
use super::read::{Problem, ReadError, Reader, Section};
use super::write::Writer;

const MAGIC: u64 = 0xF7E5_8D4F_0504_9CB7;

/// Why bytes are no parameters. They are damaged, or something else.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read the parameters: byte {offset}: {problem}")]
pub struct ParamsError {
    /// The byte at which the trouble was noticed.
    pub offset: usize,
    /// What was found.
    pub problem: Problem,
}

impl From<ReadError> for ParamsError {
    fn from(error: ReadError) -> Self {
        ParamsError { offset: error.offset, problem: error.problem }
    }
}

/// The bytes of tensors by name.
pub fn save(params: &[(String, Tensor)]) -> Result<Vec<u8>, UnsupportedConstant> {
    let params: Vec<(&str, &Tensor)> = params.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    save_with(&params, write_tensor)
}

/// The same as releases before the Relax VM wrote them ([`write_tensor_before_bool`]).
pub fn save_before_bool(params: &[(&str, &Tensor)]) -> Result<Vec<u8>, UnsupportedConstant> {
    save_with(params, write_tensor_before_bool)
}

type WriteTensor = fn(&mut Writer, usize, &Tensor) -> Result<(), UnsupportedConstant>;

fn save_with(params: &[(&str, &Tensor)], write: WriteTensor) -> Result<Vec<u8>, UnsupportedConstant> {
    let mut out = Writer::default();
    out.u64(MAGIC);
    out.u64(0);
    out.count(params.len());
    params.iter().for_each(|(name, _)| out.string(name));
    out.count(params.len());
    for (index, (_, tensor)) in params.iter().enumerate() {
        write(&mut out, index, tensor)?;
    }
    Ok(out.0.into_bytes())
}

/// The tensors by name of bytes, in the order in which they were saved.
pub fn load(bytes: &[u8]) -> Result<Vec<(String, Tensor)>, ParamsError> {
    let mut reader = Reader::new(bytes, Section::Parameters);
    let (magic, _reserved) = (reader.u64()?, reader.u64()?);
    if magic != MAGIC {
        let problem = Problem::Tensor(format!("they begin with {magic:#018x} and not with the magic of parameters"));
        return Err(reader.error_at(0, problem).into());
    }
    let count = reader.count(8)?;
    let names = (0..count).map(|_| reader.string()).collect::<Result<Vec<_>, _>>()?;
    let at = reader.position();
    let tensors = reader.count(8)?;
    if tensors != count {
        return Err(reader.error_at(at, Problem::Tensor(format!("{count} names go with {tensors} tensors"))).into());
    }
    names.into_iter().map(|name| Ok((name, read_tensor(&mut reader)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Vec<(String, Tensor)> {
        let tensor = Tensor::from_slice(&[1.0f32, 2.0, 3.0], &[3]).unwrap();
        vec![("w".to_string(), tensor.clone()), ("b".to_string(), tensor)]
    }

    #[test]
    fn what_is_saved_is_loaded() {
        let loaded = load(&save(&example()).unwrap()).unwrap();
        assert_eq!(loaded.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["w", "b"]);
        assert_eq!(loaded[1].1.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0]);
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let bytes = save(&example()).unwrap();
        for end in 0..bytes.len() {
            assert!(load(&bytes[..end]).is_err(), "{end} bytes of {}", bytes.len());
        }
        for at in (0..32).chain(36..44) {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0x80;
            let _ = load(&wrong);
        }
    }
}
