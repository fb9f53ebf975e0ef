//! Tensors as requests and answers have them: a type, a shape, and bytes whose number has been checked.
//!
//! The bytes are little endian, row by row. Texts are a length in four bytes and the bytes of the text, one behind another. So tensors are
//! joined along their first dimension by joining their bytes, whatever they hold.

use bytes::{Bytes, BytesMut};

use crate::{Datatype, Error};

/// Dimensions that a tensor may have: more are no model's.
const MAX_RANK: usize = 32;

/// A tensor of a request or an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    datatype: Datatype,
    shape: Vec<i64>,
    data: Bytes,
}

impl Tensor {
    /// A tensor of those bytes. `name` is for the message where they do not fit.
    pub fn new(name: &str, datatype: Datatype, shape: Vec<i64>, data: Bytes) -> Result<Tensor, Error> {
        let count = count(name, &shape)?;
        let found = data.len();
        match datatype.size() {
            Some(size) => {
                let wanted = count.checked_mul(size);
                if wanted != Some(found) {
                    let wanted = wanted.map_or_else(|| "more than memory can hold".into(), |n| format!("{n} bytes"));
                    let message = format!(
                        "tensor {name:?} of {} and shape {shape:?} takes {wanted}, but {found} bytes are given",
                        datatype.name()
                    );
                    return Err(Error::invalid(message));
                }
                if datatype == Datatype::Bool
                    && let Some(other) = data.iter().find(|byte| **byte > 1)
                {
                    return Err(Error::invalid(format!("tensor {name:?} of BOOL has a byte {other}: give 0 or 1")));
                }
            }
            None => check_texts(name, &shape, count, &data)?,
        }
        Ok(Tensor { datatype, shape, data })
    }

    /// A tensor of texts.
    pub fn of_texts<'a>(
        name: &str,
        shape: Vec<i64>,
        texts: impl IntoIterator<Item = &'a str>,
    ) -> Result<Tensor, Error> {
        let mut data = Vec::new();
        for text in texts {
            push_text(&mut data, text.as_bytes())?;
        }
        Tensor::new(name, Datatype::Bytes, shape, data.into())
    }

    /// The element type.
    pub fn datatype(&self) -> Datatype {
        self.datatype
    }

    /// The lengths of the dimensions.
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// The elements.
    pub fn data(&self) -> &Bytes {
        &self.data
    }

    /// The texts, of a tensor of such.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        Texts(&self.data).map(|text| text.and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default())
    }

    /// Tensors of equal type and equal further lengths as one, along the first dimension.
    pub fn join(parts: &[&Tensor]) -> Result<Tensor, Error> {
        let unlike = || Error::new(crate::Fault::Internal, "tensors that are not alike were joined");
        let (first, rest) = parts.split_first().ok_or_else(unlike)?;
        if rest.is_empty() {
            return Ok((*first).clone());
        }
        let mut data = BytesMut::with_capacity(parts.iter().map(|part| part.data.len()).sum());
        let mut rows = 0i64;
        for part in parts {
            let (Some(own), Some(tail)) = (part.shape.first(), part.shape.get(1..)) else { return Err(unlike()) };
            if part.datatype != first.datatype || Some(tail) != first.shape.get(1..) {
                return Err(unlike());
            }
            rows = rows.checked_add(*own).ok_or_else(unlike)?;
            data.extend_from_slice(&part.data);
        }
        let mut shape = first.shape.clone();
        shape[0] = rows;
        Ok(Tensor { datatype: first.datatype, shape, data: data.freeze() })
    }

    /// The parts of so many rows each. An error if it has not that many in all.
    pub fn split(&self, rows: &[usize]) -> Result<Vec<Tensor>, Error> {
        let total: usize = rows.iter().sum();
        if self.shape.first().copied() != i64::try_from(total).ok() {
            let message =
                format!("a batch of {total} rows gave a result of shape {:?}: its rows are not those", self.shape);
            return Err(Error::new(crate::Fault::Internal, message));
        }
        let tail = &self.shape[1..];
        let per_row = count("a result", tail)?;
        let mut begin = 0;
        let mut parts = Vec::with_capacity(rows.len());
        for own in rows {
            let elements = per_row.saturating_mul(*own);
            let end = match self.datatype.size() {
                Some(size) => begin + elements.saturating_mul(size),
                None => begin + Texts(&self.data[begin..]).take(elements).flatten().map(|t| t.len() + 4).sum::<usize>(),
            };
            let data = self.data.slice(begin..end.min(self.data.len()));
            let mut shape = self.shape.clone();
            shape[0] = *own as i64;
            parts.push(Tensor { datatype: self.datatype, shape, data });
            begin = end;
        }
        Ok(parts)
    }
}

impl Tensor {
    /// The tensor with another length of a dimension: cut at its end, or filled up there with an element. Not for texts.
    pub(crate) fn with_length(&self, axis: usize, length: i64, fill: &[u8]) -> Result<Tensor, Error> {
        let unfit =
            || Error::new(crate::Fault::Internal, "a tensor that has no such dimension was to be padded or cut");
        let (size, own) = (self.datatype.size().ok_or_else(unfit)?, *self.shape.get(axis).ok_or_else(unfit)?);
        let mut shape = self.shape.clone();
        shape[axis] = length;
        let elements = count("a padded one", &shape)?;
        let inner = count("a padded one", &shape[axis + 1..])?;
        let step = |length: i64| usize::try_from(length).ok()?.checked_mul(inner)?.checked_mul(size);
        let (kept, step) = (step(own.min(length)).ok_or_else(unfit)?, step(own).ok_or_else(unfit)?);
        let fills = usize::try_from((length - own).max(0)).map_err(|_| unfit())? * inner;
        if fills > 0 && fill.len() != size {
            return Err(unfit());
        }
        let fill = fill.repeat(fills);
        let mut data = BytesMut::with_capacity(elements.checked_mul(size).ok_or_else(unfit)?);
        let outer = count("a padded one", &self.shape[..axis])?;
        for i in 0..outer {
            data.extend_from_slice(self.data.get(i * step..i * step + kept).ok_or_else(unfit)?);
            data.extend_from_slice(&fill);
        }
        Ok(Tensor { datatype: self.datatype, shape, data: data.freeze() })
    }
}

/// How many elements a shape has.
pub(crate) fn count(name: &str, shape: &[i64]) -> Result<usize, Error> {
    if shape.len() > MAX_RANK {
        let rank = shape.len();
        return Err(Error::invalid(format!("tensor {name:?} has {rank} dimensions; at most {MAX_RANK} are taken")));
    }
    let count = shape.iter().try_fold(1usize, |n, dim| n.checked_mul(usize::try_from(*dim).ok()?));
    count.filter(|count| isize::try_from(*count).is_ok()).ok_or_else(|| {
        Error::invalid(format!("tensor {name:?} has the shape {shape:?}, which is negative or too large"))
    })
}

/// Adds a text in binary form.
pub(crate) fn push_text(data: &mut Vec<u8>, text: &[u8]) -> Result<(), Error> {
    let length = u32::try_from(text.len()).map_err(|_| Error::invalid("a text has 4 GB or more"))?;
    data.extend_from_slice(&length.to_le_bytes());
    data.extend_from_slice(text);
    Ok(())
}

/// Texts in binary form; `None` where the bytes end too early, which is the last item.
struct Texts<'a>(&'a [u8]);

impl<'a> Iterator for Texts<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let bytes = std::mem::take(&mut self.0);
        let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return Some(None) };
        let length = u32::from_le_bytes(*length) as usize;
        let Some((text, rest)) = rest.split_at_checked(length) else { return Some(None) };
        self.0 = rest;
        Some(Some(text))
    }
}

fn check_texts(name: &str, shape: &[i64], count: usize, data: &[u8]) -> Result<(), Error> {
    let mut found = 0usize;
    for text in Texts(data) {
        let text = text.ok_or_else(|| {
            Error::invalid(format!(
                "tensor {name:?} of BYTES ends within text {found}: each is its length in 4 bytes, then itself"
            ))
        })?;
        if std::str::from_utf8(text).is_err() {
            return Err(Error::invalid(format!("text {found} of tensor {name:?} is not UTF-8")));
        }
        found += 1;
    }
    if found != count {
        return Err(Error::invalid(format!("tensor {name:?} of shape {shape:?} takes {count} texts, but has {found}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn floats(rows: i64, start: f32) -> Tensor {
        let data: Vec<u8> = (0..rows * 3).flat_map(|i| (start + i as f32).to_le_bytes()).collect();
        Tensor::new("x", Datatype::Fp32, vec![rows, 3], data.into()).unwrap()
    }

    #[test]
    fn what_is_joined_comes_apart_again() {
        let parts = [floats(1, 0.0), floats(4, 10.0), floats(2, 50.0)];
        let joined = Tensor::join(&parts.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(joined.shape(), [7, 3]);
        assert_eq!(joined.split(&[1, 4, 2]).unwrap(), parts);
        assert!(joined.split(&[1, 4]).is_err());
        let texts = [&["a", "", "bcd", "é"][..], &["x", "yy"]];
        let parts = texts.map(|t| Tensor::of_texts("t", vec![t.len() as i64 / 2, 2], t.iter().copied()).unwrap());
        let joined = Tensor::join(&[&parts[0], &parts[1]]).unwrap();
        assert_eq!(joined.split(&[2, 1]).unwrap(), parts);
        assert_eq!(joined.texts().collect::<Vec<_>>(), ["a", "", "bcd", "é", "x", "yy"]);
        assert!(Tensor::join(&[&parts[0], &floats(1, 0.0)]).is_err());
    }

    #[test]
    fn bytes_that_do_not_fit_are_refused() {
        let made = |datatype, shape: &[i64], bytes: &[u8]| {
            Tensor::new("x", datatype, shape.to_vec(), Bytes::copy_from_slice(bytes)).map_err(|e| e.message)
        };
        let message = made(Datatype::Fp32, &[2], &[0; 7]).unwrap_err();
        assert_eq!(message, "tensor \"x\" of FP32 and shape [2] takes 8 bytes, but 7 bytes are given");
        assert!(made(Datatype::Bool, &[2], &[0, 2]).is_err());
        assert!(made(Datatype::Int8, &[-1], &[]).is_err());
        assert!(made(Datatype::Int64, &[i64::MAX, 4], &[]).is_err());
        assert!(made(Datatype::Int64, &[1 << 61], &[]).is_err());
        assert!(made(Datatype::Bytes, &[1], &[5, 0, 0, 0, b'a']).is_err());
        assert!(made(Datatype::Bytes, &[1], &[1, 0, 0, 0, 0xff]).is_err());
        assert!(made(Datatype::Bytes, &[2], &[1, 0, 0, 0, b'a']).is_err());
        assert!(made(Datatype::Int8, &[1; 40], &[0]).is_err());
        assert!(made(Datatype::Fp64, &[0, 7], &[]).is_ok());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_tensor_or_an_error(
            kind in 0u8..14, shape in prop::collection::vec(-1i64..6, 0..4), data in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let datatype = Datatype::of_byte(kind).unwrap();
            if let Ok(tensor) = Tensor::new("x", datatype, shape, data.into()) {
                let rows = tensor.shape().first().map_or(0, |rows| *rows as usize);
                if rows > 0 {
                    let parts = tensor.split(&vec![1; rows]).unwrap();
                    prop_assert_eq!(Tensor::join(&parts.iter().collect::<Vec<_>>()).unwrap(), tensor);
                }
            }
        }
    }
}
