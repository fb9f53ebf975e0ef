//! [`SavedBytes`]: the bytes of a module that is saved, in pieces, so that the weights in it are not copied.

use crate::Tensor;

/// Smaller tensors are copied: a piece of its own costs more than the copy.
const LEAST: usize = 4096;

/// Bytes in pieces, some of which are the memory of tensors.
#[derive(Clone, Debug, Default)]
pub struct SavedBytes(Vec<Piece>);

#[derive(Clone, Debug)]
enum Piece {
    Bytes(Vec<u8>),
    Tensor(Tensor),
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        match self {
            Piece::Bytes(bytes) => bytes,
            // A tensor is only kept where its bytes could be had.
            Piece::Tensor(tensor) => tensor.as_bytes().unwrap_or_default(),
        }
    }
}

impl SavedBytes {
    /// Appends bytes, which are copied.
    pub fn push(&mut self, bytes: &[u8]) {
        if let Some(Piece::Bytes(last)) = self.0.last_mut() {
            last.extend_from_slice(bytes);
        } else {
            self.0.push(Piece::Bytes(bytes.to_vec()));
        }
    }

    /// Appends the elements of a tensor in the host's memory. A compact one is kept, not copied: nobody may write to it until
    /// the bytes are used.
    pub fn push_tensor(&mut self, tensor: &Tensor) -> crate::Result<()> {
        match tensor.as_bytes() {
            Ok(bytes) if bytes.len() >= LEAST => self.0.push(Piece::Tensor(tensor.clone())),
            Ok(bytes) => self.push(bytes),
            Err(_) => self.push(&tensor.to_bytes()?),
        }
        Ok(())
    }

    /// Appends the pieces of others.
    pub fn append(&mut self, other: SavedBytes) {
        self.0.extend(other.0);
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.pieces().map(<[u8]>::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pieces in order.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(Piece::bytes)
    }

    /// All bytes in one place.
    pub fn into_bytes(mut self) -> Vec<u8> {
        if let [Piece::Bytes(only)] = &mut self.0[..] {
            return std::mem::take(only);
        }
        let mut bytes = Vec::with_capacity(self.len());
        self.pieces().for_each(|piece| bytes.extend_from_slice(piece));
        bytes
    }
}

impl From<Vec<u8>> for SavedBytes {
    fn from(bytes: Vec<u8>) -> SavedBytes {
        SavedBytes(vec![Piece::Bytes(bytes)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DataType;

    #[test]
    fn large_tensors_are_kept_and_others_are_copied() {
        let large = Tensor::from_bytes(&[7; LEAST], &[LEAST as i64], DataType::uint(8)).unwrap();
        let small = Tensor::from_bytes(&[1, 2, 3], &[3], DataType::uint(8)).unwrap();
        let mut saved = SavedBytes::from(vec![0]);
        saved.push_tensor(&small).unwrap();
        saved.push_tensor(&large).unwrap();
        saved.push(b"end");
        let pieces: Vec<&[u8]> = saved.pieces().collect();
        assert_eq!(pieces, [&[0, 1, 2, 3][..], &[7; LEAST], b"end"]);
        assert_eq!(pieces[1].as_ptr(), large.data_ptr().cast_const());
        assert_eq!((saved.len(), saved.is_empty()), (LEAST + 7, false));
        assert_eq!(saved.clone().into_bytes(), saved.pieces().collect::<Vec<_>>().concat());
    }
}
