//! A kernel in two: the stages that a library executes, and a kernel of the rest.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{PrimExpr, PrimVisitor, free_vars};
use relaxide_ir::{Buffer, DataType, Type, Var};
use relaxide_tir::functor::{fresh_kernel, undefined_vars};
use relaxide_tir::{PrimFunc, SBlock, SBlockRealize, Stmt, StmtVisitor};

use super::LibraryCode;
use super::matching::PatternError;
use crate::transform::root_block::{root_block, statements};

/// What a library takes of a kernel.
pub enum Cut {
    /// Everything: calls of the kernel become calls of the library with the same arguments.
    Whole,
    /// The stages in front.
    Front {
        /// Places of the library's arguments among the parameters of the kernel.
        library: Vec<usize>,
        /// What it gives.
        between: Type,
        /// The kernel of the other stages, which takes that first.
        rest: Box<PrimFunc>,
        /// Places of its other arguments among the parameters of the kernel.
        others: Vec<usize>,
    },
}

/// Cuts a kernel behind as many stages as the code stands for; `None` where it does not come apart there.
pub fn cut(kernel: &PrimFunc, code: &LibraryCode) -> Result<Option<Cut>, PatternError> {
    let Some(root) = root_block(kernel) else { return Ok(None) };
    let mut front = statements(root);
    if code.stages >= front.len() {
        return Ok(Some(Cut::Whole));
    }
    let behind = front.split_off(code.stages);
    let (done, left) = (Uses::of(&front), Uses::of(&behind));
    let Some(between) = done.writes.last() else { return Ok(None) };
    let is_param = |buffer: &Ref<Buffer>| kernel.buffers.iter().flatten().any(|b| b == buffer);
    let overwritten = left.writes.iter().any(|b| done.writes.contains(b));
    let hidden = left.reads.iter().any(|b| b != between && done.writes.contains(b));
    if overwritten || hidden || done.writes.iter().any(is_param) {
        return Ok(None);
    }
    let library = code.args.iter().map(|buffer| {
        let place = kernel.buffers.iter().position(|b| b.as_ref() == Some(buffer));
        place.filter(|_| done.reads.contains(buffer)).ok_or_else(|| PatternError::NotRead(buffer.name.clone()))
    });
    let library = library.collect::<Result<_, PatternError>>()?;
    let Some((rest, others)) = rest(kernel, root, behind, &left, between) else { return Ok(None) };
    let between = Type::tensor(between.shape.clone(), between.dtype);
    Ok(Some(Cut::Front { library, between, rest: Box::new(rest), others }))
}

/// The buffers that stages read first and write, in order.
#[derive(Default)]
pub struct Uses {
    /// Read; also what was written before.
    pub reads: Vec<Ref<Buffer>>,
    /// Written.
    pub writes: Vec<Ref<Buffer>>,
}

impl Uses {
    /// Those of statements.
    pub fn of(stages: &[Stmt]) -> Uses {
        let mut uses = Uses::default();
        stages.iter().for_each(|stage| uses.visit_stmt(stage));
        uses
    }

    /// What is read and comes from outside.
    pub fn inputs(&self) -> impl Iterator<Item = &Ref<Buffer>> {
        self.reads.iter().filter(|b| !self.writes.contains(b))
    }
}

impl PrimVisitor for Uses {
    fn visit_buffer_use(&mut self, buffer: &Ref<Buffer>) {
        if !self.reads.contains(buffer) {
            self.reads.push(buffer.clone());
        }
    }
}

impl StmtVisitor for Uses {
    fn visit_buffer_store(&mut self, buffer: &Ref<Buffer>) {
        self.writes.retain(|known| known != buffer);
        self.writes.push(buffer.clone());
    }
}

/// The kernel of the stages behind, and where its arguments but the first stand among the parameters; the last one is the
/// output, which is no argument of a call.
fn rest(
    kernel: &PrimFunc,
    root: &SBlock,
    behind: Vec<Stmt>,
    uses: &Uses,
    between: &Ref<Buffer>,
) -> Option<(PrimFunc, Vec<usize>)> {
    let used = |buffer: &Ref<Buffer>| uses.reads.contains(buffer) || uses.writes.contains(buffer);
    let input = Var::new(format!("var_{}", between.name), Type::prim(DataType::handle()));
    let (mut params, mut buffers, mut others) = (vec![input], vec![Some(between.clone())], Vec::new());
    for (place, (param, buffer)) in kernel.params.iter().zip(&kernel.buffers).enumerate() {
        let buffer = buffer.as_ref()?;
        if !used(buffer) {
            continue;
        }
        params.push(param.clone());
        buffers.push(Some(buffer.clone()));
        others.push(place);
    }
    let output = others.pop()?;
    let written = kernel.buffers.get(output).and_then(Option::as_ref).is_some_and(|b| uses.writes.contains(b));
    if !written || output + 1 != kernel.params.len() {
        return None;
    }
    let alloc_buffers = root.alloc_buffers.iter().filter(|b| used(b) && *b != between).cloned().collect();
    let block = SBlock {
        iter_vars: Vec::new(),
        reads: root.reads.clone(),
        writes: root.writes.clone(),
        name: root.name.clone(),
        alloc_buffers,
        match_buffers: root.match_buffers.clone(),
        annotations: root.annotations.clone(),
        init: None,
        body: Stmt::seq(behind),
    };
    let predicate = relaxide_ir::prim::boolean(true);
    let body: Stmt = Ref::new(SBlockRealize { iter_values: Vec::new(), predicate, block: Ref::new(block) }).into();
    // A dimension that only the library's arguments say is not known to the rest.
    let said = |var: &Ref<Var>| {
        let mut dims = buffers.iter().flatten().flat_map(|b| &b.shape);
        params.contains(var) || dims.any(|dim| matches!(dim, PrimExpr::Var(v) if v == var))
    };
    let dims = buffers.iter().flatten().flat_map(|b| &b.shape).flat_map(free_vars);
    if !undefined_vars(&body).into_iter().chain(dims).all(|var| said(&var)) {
        return None;
    }
    let mut attrs = kernel.attrs.clone();
    attrs.0.shift_remove("global_symbol");
    Some((fresh_kernel(&PrimFunc { params, buffers, attrs, body, ret_type: kernel.ret_type.clone() }), others))
}
