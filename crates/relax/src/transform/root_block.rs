//! The statements of a kernel: what its root block holds, one loop nest after another.

use relaxide_ffi::Ref;
use relaxide_ir::Buffer;
use relaxide_ir::prim::{self, PrimVisitor};
use relaxide_tir::{PrimFunc, SBlock, SBlockRealize, Stmt, StmtVisitor};

/// The root block of a kernel; a root that the program writes itself stands in one that it does not.
pub fn root_block(kernel: &PrimFunc) -> Option<&Ref<SBlock>> {
    let Stmt::Block(realize) = &kernel.body else { return None };
    let mut root = &realize.block;
    while let Stmt::Block(inner) = &root.body
        && inner.block.iter_vars.is_empty()
        && inner.block.name == root.name
    {
        root = &inner.block;
    }
    Some(root)
}

/// What a block executes, one after another.
pub fn statements(block: &SBlock) -> Vec<Stmt> {
    match &block.body {
        Stmt::Seq(seq) => seq.seq.clone(),
        one => vec![one.clone()],
    }
}

/// A root block around statements.
pub fn under_root(statements: Vec<Stmt>, alloc_buffers: Vec<Ref<Buffer>>) -> Stmt {
    let block = SBlock {
        iter_vars: Vec::new(),
        reads: Vec::new(),
        writes: Vec::new(),
        name: "root".into(),
        alloc_buffers,
        match_buffers: Vec::new(),
        annotations: relaxide_ir::Attrs::new(),
        init: None,
        body: Stmt::seq(statements),
    };
    let predicate = prim::boolean(true);
    Ref::new(SBlockRealize { iter_values: Vec::new(), predicate, block: Ref::new(block) }).into()
}

/// The blocks of a statement.
pub fn blocks_of(stmt: &Stmt) -> Vec<Ref<SBlock>> {
    struct Blocks(Vec<Ref<SBlock>>);
    impl PrimVisitor for Blocks {}
    impl StmtVisitor for Blocks {
        fn walk_block(&mut self, block: &Ref<SBlock>) {
            self.0.push(block.clone());
            self.visit_stmt(&block.body);
        }
    }
    let mut blocks = Blocks(Vec::new());
    blocks.visit_stmt(stmt);
    blocks.0
}
