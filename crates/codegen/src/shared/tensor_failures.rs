//! What can be wrong with a tensor argument, in the order of the checks, and what is said then.
//!
//! A message is made of what comes before the tensor's name, the name, what comes behind it, the argument's position and the
//! kernel's signature, and what was expected instead.

use relaxide_ir::Buffer;

/// Of how many bytes the address of an argument's first element must be a multiple, of elements of so many: what its offset
/// factor asks for, as far as that is a power of two.
pub(crate) fn alignment(buffer: &Buffer, element: u64) -> u64 {
    let factor = buffer.offset_factor.max(1) as u64;
    element.saturating_mul(factor & factor.wrapping_neg())
}

/// One way to fail.
pub(crate) struct Failure {
    /// The check that finds it.
    pub check: &'static str,
    /// The kind of error.
    pub kind: &'static str,
    /// The message in front of the tensor's name.
    pub before: &'static str,
    /// The message behind it.
    pub after: &'static str,
    /// The message behind the signature.
    pub tail: &'static str,
    /// What was expected.
    pub expected: Expected,
}

/// What was expected of a tensor.
pub(crate) enum Expected {
    /// Always the same.
    Fixed(&'static str),
    /// A number of dimensions.
    Rank,
    /// An element type.
    ElementType,
    /// An offset in bytes.
    ByteOffset,
    /// A number of bytes of which the address is a multiple.
    Alignment,
    /// A kind of device.
    Device,
}

const EXPECTED: &str = "`,\n  expected ";
const ALIGNMENT: &str = "`,\n  expected data alignment=";

/// All of them.
pub(crate) const ALL: [Failure; 8] = [
    Failure::new("entry", "TypeError", "Mismatched type", "", EXPECTED, Expected::Fixed("Tensor")),
    Failure::new("rank", "ValueError", "Mismatched ", ".ndim", EXPECTED, Expected::Rank),
    Failure::new("dtype", "TypeError", "Mismatched ", ".dtype", EXPECTED, Expected::ElementType),
    Failure::new("device", "ValueError", "Mismatched ", ".device_type", EXPECTED, Expected::Device),
    Failure::new("judged", "ValueError", "Mismatched ", ".strides", EXPECTED, Expected::Fixed("to be compact array")),
    Failure::new("data", "ValueError", "", " data pointer is NULL", EXPECTED, Expected::Fixed("non-NULL data pointer")),
    Failure::new("address", "ValueError", "Misaligned Tensor data", "", ALIGNMENT, Expected::Alignment),
    Failure::new("offset", "ValueError", "Invalid ", ".byte_offset", EXPECTED, Expected::ByteOffset),
];

impl Failure {
    const fn new(
        check: &'static str,
        kind: &'static str,
        before: &'static str,
        after: &'static str,
        tail: &'static str,
        expected: Expected,
    ) -> Self {
        Self { check, kind, before, after, tail, expected }
    }

    /// What TVM says of types and addresses goes without a name.
    pub fn names_tensor(&self) -> bool {
        !self.after.is_empty()
    }
}
