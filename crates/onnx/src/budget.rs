//! A look over a file's bytes before anything is allocated for them.
//!
//! A protobuf message of two bytes can cost hundreds once it is decoded, and messages nest. So the frame of a file (which
//! messages it holds, how many, how deep, whether every length lies inside its parent) is walked first, without allocating,
//! against a [`Budget`]. What passes is decoded; what does not is refused with the offset of the first fault.
//!
//! Only the messages of [`crate::proto`] are entered: tensor data is one step, however large. Numbers that a writer did not pack
//! are fields of their own in the file and elements of one array in memory, so they do not count: trees have tens of millions.

use crate::error::ModelError;

/// How much a file may hold.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Bytes of the file.
    pub bytes: u64,
    /// Fields of all messages together, but for numbers of a list.
    pub fields: u64,
    /// Messages inside messages.
    pub depth: u32,
}

impl Default for Budget {
    /// What the format itself can hold (2 GiB), with room for graphs of millions of nodes.
    fn default() -> Self {
        Budget { bytes: 1 << 31, fields: 1 << 25, depth: 64 }
    }
}

/// The messages that are entered.
#[derive(Clone, Copy, Debug, PartialEq)]
enum MessageKind {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    Sparse,
    Function,
    ValueInfo,
    Type,
    TensorType,
    Element,
    Shape,
    Entry,
}

/// The message in field `tag` of a message, if it is one that is entered.
fn child(parent: MessageKind, tag: u64) -> Option<MessageKind> {
    use MessageKind::*;
    Some(match (parent, tag) {
        (Model, 7) => Graph,
        (Model, 8 | 14) => Entry,
        (Model, 25) => Function,
        (Graph, 1) => Node,
        (Graph, 5) => Tensor,
        (Graph, 11..=13) => ValueInfo,
        (Graph, 15) => Sparse,
        (Node, 5) => Attribute,
        (Attribute, 5) => Tensor,
        (Attribute, 6 | 11) => Graph,
        (Attribute, 14) => Type,
        (Function, 7) => Node,
        (Function, 9) => Entry,
        (Function, 11) => Attribute,
        (Tensor, 13) => Entry,
        (Sparse, 1) => Tensor,
        (ValueInfo, 2) => Type,
        (Type, 1) => TensorType,
        (Type, 4 | 9) => Element,
        (Element, 1) => Type,
        (TensorType, 2) => Shape,
        (Shape, 1) => Entry,
        _ => return None,
    })
}

/// Whether field `tag` of a message is a number of a list: two bytes of the file at least, and at most eight in memory.
fn is_listed_number(parent: MessageKind, tag: u64, wire: u64) -> bool {
    use MessageKind::*;
    wire != 2 && matches!((parent, tag), (Attribute, 7 | 8) | (Tensor, 1 | 4 | 5 | 7 | 10 | 11) | (Sparse, 3))
}

/// Checks the frame of a model file.
pub fn check(bytes: &[u8], budget: Budget) -> Result<(), ModelError> {
    let size = bytes.len() as u64;
    if size > budget.bytes {
        return Err(ModelError::TooLarge { bytes: size, limit: budget.bytes });
    }
    let mut walk = Walk { bytes, fields: 0, budget };
    walk.message(MessageKind::Model, 0, bytes.len(), 0)
}

struct Walk<'a> {
    bytes: &'a [u8],
    fields: u64,
    budget: Budget,
}

impl Walk<'_> {
    fn message(&mut self, kind: MessageKind, mut at: usize, end: usize, depth: u32) -> Result<(), ModelError> {
        if depth > self.budget.depth {
            return Err(ModelError::Limit { what: "nested messages", limit: u64::from(self.budget.depth) });
        }
        while at < end {
            let start = at;
            let key = self.varint(&mut at, end)?;
            let (tag, wire) = (key >> 3, key & 7);
            self.fields += u64::from(!is_listed_number(kind, tag, wire));
            if self.fields > self.budget.fields {
                return Err(ModelError::Limit { what: "fields", limit: self.budget.fields });
            }
            if tag == 0 {
                return Err(fault(start, "a field has the number 0"));
            }
            match wire {
                0 => {
                    self.varint(&mut at, end)?;
                }
                1 => at = skip(at, 8, end)?,
                2 => {
                    let length = self.varint(&mut at, end)?;
                    let next = skip(at, length, end)?;
                    if let Some(inner) = child(kind, tag) {
                        self.message(inner, at, next, depth + 1)?;
                    }
                    at = next;
                }
                5 => at = skip(at, 4, end)?,
                _ => return Err(fault(start, "a field has a wire type that the format does not use")),
            }
        }
        Ok(())
    }

    fn varint(&self, at: &mut usize, end: usize) -> Result<u64, ModelError> {
        let start = *at;
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte =
                self.bytes.get(..end).and_then(|b| b.get(*at)).ok_or_else(|| fault(start, "a number is cut off"))?;
            *at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(fault(start, "a number has more than ten bytes"))
    }
}

/// The offset behind `length` bytes, if they lie inside the message.
fn skip(at: usize, length: u64, end: usize) -> Result<usize, ModelError> {
    usize::try_from(length)
        .ok()
        .and_then(|length| at.checked_add(length))
        .filter(|&next| next <= end)
        .ok_or_else(|| fault(at, "a field is longer than what holds it"))
}

fn fault(offset: usize, reason: &'static str) -> ModelError {
    ModelError::Frame { offset, reason }
}
