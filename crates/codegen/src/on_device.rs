//! What functions of devices have in common, whatever they are written in.

use relaxide_ffi::DataType;
use relaxide_tir::lower::Fault;

/// What a function of a device has in place of the runtime: it raises no error, takes no memory and calls nobody.
#[derive(Debug)]
pub(crate) struct OnDevice {
    /// What its checks say, in the order of their numbers.
    pub faults: Vec<Fault>,
}

impl OnDevice {
    /// The number of a check, from 1; nothing for one that nobody knows.
    pub fn number_of(&self, fault: &Fault) -> usize {
        self.faults.iter().position(|known| known == fault).map_or(0, |position| position + 1)
    }
}

/// The type that a parameter is passed as: calls have no truth values, and no integers of less than 32 bits. Nothing for types that cannot
/// be passed.
pub(crate) fn passed_as(dtype: DataType) -> Option<DataType> {
    let is_integer = dtype.is_int() || dtype.is_uint() || dtype.is_bool();
    match dtype.bits {
        _ if dtype.lanes != 1 => None,
        32 | 64 if is_integer || dtype.is_float() => Some(dtype),
        _ if is_integer && dtype.bits < 32 => Some(DataType::int(32)),
        _ => None,
    }
}
