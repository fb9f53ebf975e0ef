//! What functions of devices have in common, whatever they are written in.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{PrimExpr, PrimVisitor};
use relaxide_ir::{Buffer, Ref};
use relaxide_tir::lower::Fault;
pub(crate) use relaxide_tir::lower::{bytes_of, is_shared};
use relaxide_tir::{Stmt, StmtVisitor};

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

/// The type that a parameter is passed as: calls have no bools, and no integers of less than 32 bits. Nothing for types that cannot
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

/// What a processor cannot do with memory that threads share.
pub(crate) fn in_turn(buffer: &Buffer) -> String {
    format!("memory `{}`, in which threads would read what others write and on a processor take turns,", buffer.name)
}

/// The buffers that the threads of a block share, in the order in which they are asked for.
pub(crate) fn shared_memory(stmt: &Stmt) -> Vec<Ref<Buffer>> {
    struct Shared(Vec<Ref<Buffer>>);
    impl PrimVisitor for Shared {
        fn visit_prim(&mut self, _: &PrimExpr) {}
    }
    impl StmtVisitor for Shared {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            match stmt {
                Stmt::Alloc(n) if is_shared(&n.buffer) => self.0.push(n.buffer.clone()),
                _ => self.walk_stmt(stmt),
            }
        }
    }
    let mut shared = Shared(Vec::new());
    shared.visit_stmt(stmt);
    shared.0
}
