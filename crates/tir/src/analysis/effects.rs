//! What a kernel does beside giving a value.
//!
//! A kernel that writes to memory of its own alone, and calls nothing that could do more, may be called where only values are
//! computed: Relax takes its call for a pure one.

use std::collections::HashSet;

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::prim::{PrimExpr, PrimVisitor};

use crate::functor::StmtVisitor;
use crate::{PrimFunc, Stmt};

/// Called functions that do something beside giving a value.
const WITH_EFFECT: [&str; 6] = [
    "tirx.call_packed",
    "tirx.call_extern",
    "tirx.tvm_call_packed",
    "tirx.assume",
    "tirx.tvm_storage_sync",
    "tirx.tvm_struct_set",
];

/// Why a kernel is no pure function; nothing where it is one.
pub fn effect_of(func: &PrimFunc) -> Option<String> {
    let mut own = Own::default();
    own.visit_stmt(&func.body);
    let mut find = Find { own: own.0, found: None };
    find.visit_stmt(&func.body);
    find.found
}

/// The memory that a kernel allocates.
#[derive(Default)]
struct Own(HashSet<Ref<Var>>);

impl PrimVisitor for Own {}
impl StmtVisitor for Own {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Block(n) => self.0.extend(n.block.alloc_buffers.iter().map(|b| b.data.clone())),
            Stmt::Alloc(n) => drop(self.0.insert(n.buffer.data.clone())),
            _ => {}
        }
        self.walk_stmt(stmt);
    }
}

struct Find {
    own: HashSet<Ref<Var>>,
    found: Option<String>,
}

impl PrimVisitor for Find {
    fn visit_prim(&mut self, e: &PrimExpr) {
        if let PrimExpr::Call(n) = e
            && WITH_EFFECT.contains(&n.op.as_str())
        {
            self.found.get_or_insert_with(|| format!("it calls {}", n.op));
        }
        self.walk_prim(e);
    }
}

impl StmtVisitor for Find {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        if let Stmt::Store(n) = stmt
            && !self.own.contains(&n.buffer.data)
        {
            let name = &n.buffer.name;
            self.found.get_or_insert_with(|| format!("it writes to the buffer {name}, which is not its own"));
        }
        self.walk_stmt(stmt);
    }
}
