//! How a kernel uses its memory: which element types lie behind each pointer, and what is only read.
//!
//! C lets a compiler assume that a `float` and an `int32_t` never share their place. A pointer through which elements of one
//! type are accessed is a pointer to that type. Where there are several, as in memory that two buffers share one after the
//! other, it is a pointer to bytes, and elements are copied in and out. The same goes for pointers that are computed.

use std::collections::{HashMap, HashSet};

use relaxide_ir::{
    Buffer, PrimExpr, Ref, Var,
    prim::{PrimCall, PrimVisitor},
};
use relaxide_tir::intrin::Intrinsic;
use relaxide_tir::{PrimFunc, Stmt, StmtVisitor};

use super::types::memory_type;
use crate::shared::Ty;

/// What is known of each pointer.
#[derive(Debug, Default)]
pub(crate) struct Pointers {
    /// The types of elements behind it.
    types: HashMap<Ref<Var>, HashSet<&'static str>>,
    /// Those that belong to a parameter or an allocation.
    own: HashSet<Ref<Var>>,
    /// Those through which something may be written.
    written: HashSet<Ref<Var>>,
    /// Whether a value is returned.
    pub returns: bool,
    /// Variables that are used anywhere.
    used: HashSet<Ref<Var>>,
}

impl Pointers {
    pub fn of(func: &PrimFunc) -> Self {
        let mut pointers = Self::default();
        for buffer in func.buffers.iter().flatten() {
            pointers.own.insert(buffer.data.clone());
            pointers.access(buffer);
        }
        pointers.visit_stmt(&func.body);
        pointers
    }

    /// The type that a pointer points to, if it is one type; bytes otherwise.
    pub fn element(&self, data: &Ref<Var>) -> Option<&'static str> {
        let types = self.types.get(data)?;
        match types.iter().next() {
            Some(only) if types.len() == 1 && self.own.contains(data) => Some(only),
            _ => None,
        }
    }

    /// The pointer's own type: `const float *`.
    pub fn pointer(&self, data: &Ref<Var>) -> String {
        if !self.own.contains(data) {
            return "void *".into();
        }
        let constant = if self.written.contains(data) { "" } else { "const " };
        let element = self.element(data).unwrap_or("unsigned char");
        if element.ends_with('*') { format!("{element}{constant}*") } else { format!("{constant}{element} *") }
    }

    /// Whether a pointer is a parameter's or an allocation's.
    pub fn is_own(&self, data: &Ref<Var>) -> bool {
        self.own.contains(data)
    }

    /// Whether anything uses a variable.
    pub fn uses(&self, var: &Ref<Var>) -> bool {
        self.used.contains(var)
    }

    fn access(&mut self, buffer: &Buffer) {
        if let Some(ty) = Ty::of(buffer.dtype) {
            self.types.entry(buffer.data.clone()).or_default().insert(memory_type(ty.kind));
        }
    }

    fn access_elements(&mut self, buffer: &Ref<Buffer>) {
        self.access(buffer);
        self.used.insert(buffer.data.clone());
        for e in buffer.shape.iter().chain(&buffer.strides).chain([&buffer.elem_offset]) {
            let written = self.written.clone();
            self.visit_prim(e);
            self.written = written;
        }
    }

    fn call(&mut self, n: &PrimCall) {
        match (Intrinsic::of_call(&n.op), n.args.as_slice()) {
            (Some(Intrinsic::AddressOf), [PrimExpr::Load(load)]) => {
                self.written.insert(load.buffer.data.clone());
            }
            (Some(Intrinsic::Ret), _) => self.returns = true,
            _ => {}
        }
    }
}

impl PrimVisitor for Pointers {
    fn visit_prim(&mut self, e: &PrimExpr) {
        match e {
            // A pointer that is a value can be used for anything.
            PrimExpr::Var(var) => {
                self.used.insert(var.clone());
                self.written.insert(var.clone());
            }
            PrimExpr::Call(n) => self.call(n),
            _ => {}
        }
        self.walk_prim(e);
    }

    fn visit_buffer_use(&mut self, buffer: &Ref<Buffer>) {
        self.access_elements(buffer);
    }
}

impl StmtVisitor for Pointers {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        self.returns |= matches!(stmt, Stmt::Return(_));
        if let Stmt::Alloc(n) = stmt {
            self.own.insert(n.buffer.data.clone());
            self.written.insert(n.buffer.data.clone());
            self.access(&n.buffer);
        }
        self.walk_stmt(stmt);
    }

    fn visit_buffer_store(&mut self, buffer: &Ref<Buffer>) {
        self.access_elements(buffer);
        self.written.insert(buffer.data.clone());
    }
}
