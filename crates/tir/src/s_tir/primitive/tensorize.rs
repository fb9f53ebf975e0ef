//! `tensorize`: a block that computes what an intrinsic describes is executed by the intrinsic's implementation.
//!
//! ```text
//! with T.sblock("C_o"):                              with T.sblock("C_o"):
//!     for i, j, k in T.grid(16, 16, 16):                 A_1 = match_buffer(A[vi_o * 16 : +16, vk_o * 16 : +16])
//!         with T.sblock("C"): C[…] = C[…] + …    ->      …
//!                                                        the implementation's body, over A_1, B_1, C_1
//! ```
//!
//! A loop is made a block first. The block's body must be the description's, loop by loop and block by block; its buffers
//! may have more dimensions in front and be accessed at an offset that does not change inside.

use std::collections::HashMap;

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::arith::Analyzer;
use relaxide_ir::attrs::AttrValue;
use relaxide_ir::prim::{self, PrimExpr, VarMap, free_vars, substitute};
use relaxide_ir::{Buffer, Var};

use super::blockize::blockize;
use super::caching::Element;
use crate::PrimFunc;
use crate::functor::fresh_kernel;
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::state::{copy_block, replace, with_block};
use crate::s_tir::step::{Call, loop_operand, operand};
use crate::s_tir::tensor_intrin::TensorIntrin;
use crate::s_tir::{LoopRV, SBlockRV, Schedule, ScheduleError, StepError, Tree, Value};
use crate::stmt::*;

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "Tensorize",
    method: "tensorize",
    is_pure: false,
    params: &[Param::Input("block_or_loop"), Param::Attr("tensor_intrin"), Param::Attr("preserve_unit_iters")],
    results: Results::None,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let name = call.str(0)?.to_string();
    let intrin = TensorIntrin::get(&name).ok_or_else(|| {
        ScheduleError::Operand(format!("there is no intrinsic `{name}`: TensorIntrin.register makes one known"))
    })?;
    let before = sch.clone();
    let made = tensorize(sch, call, &intrin);
    if made.is_err() {
        // A loop may have become a block already.
        *sch = before;
    }
    made.map(|()| Vec::new())
}

fn tensorize(sch: &mut Schedule, call: &Call<'_>, intrin: &TensorIntrin) -> Result<(), ScheduleError> {
    let (name, block) = match call.loop_(0) {
        Ok(rv) => {
            let place = sch.loop_ref(&rv)?;
            let block = blockize(sch, &place, call.flag(1)?)?;
            (place.func, block)
        }
        Err(_) => {
            let place = sch.block_ref(&call.block(0)?)?;
            (place.func.clone(), place.realize()?.block.clone())
        }
    };
    let tree = Tree::of(&sch.func(&name)?.body);
    let node = tree.find_block(&block).ok_or(ScheduleError::Expired { what: "block" })?;
    let realize = tree.as_block(node).ok_or(ScheduleError::Expired { what: "block" })?.clone();
    let mut compare = Compare::default();
    let described = root(&intrin.desc)?;
    compare.block(&block, &described).map_err(|difference| {
        let reason =
            format!("block `{}` is not what `{}` describes: {difference}", block.name, call.str(0).unwrap_or(""));
        ScheduleError::at_block(&block, reason)
    })?;
    let new = implemented(&block, intrin, &compare)?;
    let changed = with_block(&realize, new.clone());
    let body = replace(&sch.func(&name)?.body, &[(realize.into(), changed.into())]);
    sch.commit(&name, body, &[(block, new)])
}

/// The root block of an intrinsic's kernel.
fn root(func: &PrimFunc) -> Result<Ref<SBlock>, ScheduleError> {
    match &func.body {
        Stmt::Block(n) if n.block.iter_vars.is_empty() => Ok(n.block.clone()),
        _ => Err(ScheduleError::Operand("a kernel of an intrinsic has a root block without axes".into())),
    }
}

/// The block with the implementation inside.
fn implemented(block: &Ref<SBlock>, intrin: &TensorIntrin, compare: &Compare) -> Result<Ref<SBlock>, ScheduleError> {
    let implementation = fresh_kernel(&intrin.implementation);
    let inside = root(&implementation)?;
    let mut sources: HashMap<Ref<Buffer>, (Ref<Buffer>, Vec<PrimExpr>)> = HashMap::new();
    let mut match_buffers = Vec::new();
    let mut analyzer = Analyzer::new();
    for (desc, own) in intrin.desc.buffers.iter().zip(&implementation.buffers) {
        let (Some(desc), Some(own)) = (desc, own) else { continue };
        let Some((buffer, offsets)) = compare.buffers.get(desc) else {
            let reason = format!("the description does not touch its parameter `{}`", desc.name);
            return Err(ScheduleError::Operand(reason));
        };
        let extra = buffer.ndim().saturating_sub(desc.ndim());
        let ranges = offsets.iter().enumerate().map(|(d, min)| {
            let extent = d.checked_sub(extra).and_then(|d| desc.shape.get(d)).cloned();
            let extent = extent.unwrap_or_else(|| prim::int_of(min.dtype(), 1));
            Ref::new(Range { min: min.clone(), extent: prim::cast(min.dtype(), extent) })
        });
        let source = Ref::new(BufferRegion { buffer: buffer.clone(), region: ranges.collect() });
        match_buffers.push(Ref::new(MatchBufferRegion { buffer: own.clone(), source }));
        sources.insert(own.clone(), (buffer.clone(), offsets.clone()));
    }
    let mut outside = |regions: &[Ref<BufferRegion>]| -> Vec<Ref<BufferRegion>> {
        let moved = |r: &Ref<BufferRegion>| {
            let (buffer, offsets) = sources.get(&r.buffer)?;
            let extra = offsets.len().saturating_sub(r.region.len());
            let range = |(d, min): (usize, &PrimExpr)| match d.checked_sub(extra).and_then(|d| r.region.get(d)) {
                Some(inner) => Ref::new(Range {
                    min: analyzer.simplify_as_tvm(&(min + prim::cast(min.dtype(), inner.min.clone()))),
                    extent: prim::cast(min.dtype(), inner.extent.clone()),
                }),
                None => Ref::new(Range { min: min.clone(), extent: prim::int_of(min.dtype(), 1) }),
            };
            let region = offsets.iter().enumerate().map(range).collect();
            Some(Ref::new(BufferRegion { buffer: buffer.clone(), region }))
        };
        regions.iter().filter_map(moved).collect()
    };
    let (reads, writes) = (outside(&inside.reads), outside(&inside.writes));
    let mut annotations = block.annotations.clone();
    annotations.0.extend(inside.annotations.0.clone());
    let init = block.init.clone();
    let own_elements = |r: &Ref<BufferRegion>| init.is_none() || !writes.iter().any(|w| w.buffer == r.buffer);
    let reads = reads.into_iter().filter(own_elements).collect();
    Ok(Ref::new(SBlock {
        reads,
        alloc_buffers: inside.alloc_buffers.clone(),
        match_buffers,
        annotations,
        body: inside.body.clone(),
        writes: writes.clone(),
        init: block.init.clone(),
        ..copy_block(block)
    }))
}

/// What of a description is what of a block.
#[derive(Default)]
struct Compare {
    vars: VarMap,
    /// Variables of the block that run inside.
    inner: Vec<Ref<Var>>,
    /// For a buffer of the description, the block's, and where it begins in that.
    buffers: HashMap<Ref<Buffer>, (Ref<Buffer>, Vec<PrimExpr>)>,
    analyzer: Analyzer,
}

/// Where a block is not what an intrinsic describes.
#[derive(Debug, thiserror::Error)]
enum Difference {
    #[error("one of them sees a part of a buffer under another name")]
    MatchedBuffer,
    #[error("block `{block}` has {found} axes, not {wanted}")]
    AxisCount { block: String, found: usize, wanted: usize },
    #[error("axis `{ours}` is not like axis `{theirs}`")]
    Axis { ours: String, theirs: String },
    #[error("only one of `{ours}` and `{theirs}` sets its elements")]
    Init { ours: String, theirs: String },
    #[error("`{ours}` stands for `{theirs}`")]
    Code { ours: String, theirs: String },
    #[error("buffer `{buffer}` holds {found}, not {wanted}")]
    ElementType { buffer: String, found: DataType, wanted: DataType },
    #[error("buffer `{ours}` has fewer dimensions than `{theirs}`")]
    Dimensions { ours: String, theirs: String },
    #[error("buffer `{ours}` is not accessed as `{theirs}` is, along dimension {dimension}")]
    Access { ours: String, theirs: String, dimension: usize },
    #[error("buffer `{0}` stands for different parts of buffers")]
    SeveralParts(String),
}

type Same = Result<(), Difference>;

fn headline(stmt: &Stmt) -> String {
    stmt.to_string().lines().next().unwrap_or_default().to_string()
}

impl Compare {
    fn block(&mut self, ours: &SBlock, theirs: &SBlock) -> Same {
        if !ours.match_buffers.is_empty() || !theirs.match_buffers.is_empty() {
            return Err(Difference::MatchedBuffer);
        }
        if ours.iter_vars.len() != theirs.iter_vars.len() && !theirs.iter_vars.is_empty() {
            let (found, wanted) = (ours.iter_vars.len(), theirs.iter_vars.len());
            return Err(Difference::AxisCount { block: ours.name.clone(), found, wanted });
        }
        for (a, b) in ours.iter_vars.iter().zip(&theirs.iter_vars) {
            if a.kind != b.kind || !self.equal(&a.extent, &b.extent) {
                return Err(Difference::Axis { ours: a.var.name.clone(), theirs: b.var.name.clone() });
            }
            self.bind(&a.var, &b.var, &a.extent);
        }
        match (&ours.init, &theirs.init) {
            (Some(a), Some(b)) => self.stmt(a, b)?,
            (None, None) => {}
            // The block outside may set its elements itself.
            (Some(_), None) if theirs.iter_vars.is_empty() => {}
            _ => return Err(Difference::Init { ours: ours.name.clone(), theirs: theirs.name.clone() }),
        }
        self.stmt(&ours.body, &theirs.body)
    }

    fn bind(&mut self, ours: &Ref<Var>, theirs: &Ref<Var>, extent: &PrimExpr) {
        self.analyzer.bind(ours, prim::int_of(ours.dtype(), 0), extent.clone());
        self.vars.insert(theirs.clone(), PrimExpr::from(ours));
        self.inner.push(ours.clone());
    }

    fn equal(&mut self, ours: &PrimExpr, theirs: &PrimExpr) -> bool {
        let theirs = prim::cast(ours.dtype(), substitute(theirs, &self.vars));
        self.analyzer.can_prove_equal(ours, &theirs)
    }

    fn stmt(&mut self, ours: &Stmt, theirs: &Stmt) -> Same {
        let differ = || Err(Difference::Code { ours: headline(ours), theirs: headline(theirs) });
        match (ours, theirs) {
            (Stmt::For(a), Stmt::For(b)) => {
                if a.kind != b.kind || !self.equal(&a.extent, &b.extent) || !self.equal(&a.min, &b.min) {
                    return differ();
                }
                self.bind(&a.var, &b.var, &a.extent);
                self.stmt(&a.body, &b.body)
            }
            (Stmt::Seq(a), Stmt::Seq(b)) if a.seq.len() == b.seq.len() => {
                a.seq.iter().zip(&b.seq).try_for_each(|(a, b)| self.stmt(a, b))
            }
            (Stmt::Block(a), Stmt::Block(b)) => {
                let alike = |(x, y): (&PrimExpr, &PrimExpr)| self.equal(x, y);
                if a.iter_values.len() != b.iter_values.len()
                    || !a.iter_values.iter().zip(&b.iter_values).all(alike)
                    || !self.equal(&a.predicate, &b.predicate)
                {
                    return differ();
                }
                self.block(&a.block, &b.block)
            }
            (Stmt::Store(a), Stmt::Store(b)) => {
                self.access(Element::new(&a.buffer, &a.indices), Element::new(&b.buffer, &b.indices))?;
                self.expr(&a.value, &b.value)
            }
            (Stmt::Evaluate(a), Stmt::Evaluate(b)) => self.expr(&a.value, &b.value),
            _ => differ(),
        }
    }

    fn expr(&mut self, ours: &PrimExpr, theirs: &PrimExpr) -> Same {
        let differ = || Err(Difference::Code { ours: ours.to_string(), theirs: theirs.to_string() });
        match (ours, theirs) {
            (PrimExpr::Load(a), PrimExpr::Load(b)) => {
                self.access(Element::new(&a.buffer, &a.indices), Element::new(&b.buffer, &b.indices))
            }
            (PrimExpr::Binary(a), PrimExpr::Binary(b)) if a.op == b.op => {
                self.expr(&a.a, &b.a)?;
                self.expr(&a.b, &b.b)
            }
            (PrimExpr::Cast(a), PrimExpr::Cast(b)) if a.dtype == b.dtype => self.expr(&a.value, &b.value),
            (PrimExpr::Not(a), PrimExpr::Not(b)) => self.expr(&a.a, &b.a),
            (PrimExpr::Select(a), PrimExpr::Select(b)) => {
                self.expr(&a.condition, &b.condition)?;
                self.expr(&a.true_value, &b.true_value)?;
                self.expr(&a.false_value, &b.false_value)
            }
            (PrimExpr::Call(a), PrimExpr::Call(b)) if a.op == b.op && a.args.len() == b.args.len() => {
                a.args.iter().zip(&b.args).try_for_each(|(a, b)| self.expr(a, b))
            }
            (PrimExpr::Int(a), PrimExpr::Int(b)) if a.value == b.value => Ok(()),
            (PrimExpr::Float(a), PrimExpr::Float(b)) if a.value == b.value && a.dtype == b.dtype => Ok(()),
            (PrimExpr::Var(_), PrimExpr::Var(_)) if self.equal(ours, theirs) => Ok(()),
            _ => differ(),
        }
    }

    /// Accesses are alike where the block's is the description's moved by what does not change inside.
    fn access(&mut self, ours: Element<'_>, theirs: Element<'_>) -> Same {
        let (a, at, b, wanted) = (ours.buffer, ours.indices, theirs.buffer, theirs.indices);
        if a.dtype != b.dtype {
            return Err(Difference::ElementType { buffer: a.name.clone(), found: a.dtype, wanted: b.dtype });
        }
        let Some(extra) = at.len().checked_sub(wanted.len()) else {
            return Err(Difference::Dimensions { ours: a.name.clone(), theirs: b.name.clone() });
        };
        let mut offsets = Vec::with_capacity(at.len());
        for (d, index) in at.iter().enumerate() {
            let moved = match d.checked_sub(extra).and_then(|d| wanted.get(d)) {
                Some(wanted) => index - prim::cast(index.dtype(), substitute(wanted, &self.vars)),
                None => index.clone(),
            };
            let offset = self.analyzer.simplify_as_tvm(&moved);
            if free_vars(&offset).iter().any(|v| self.inner.contains(v)) {
                return Err(Difference::Access { ours: a.name.clone(), theirs: b.name.clone(), dimension: d });
            }
            offsets.push(offset);
        }
        match self.buffers.get(b) {
            None => {
                self.buffers.insert(b.clone(), (a.clone(), offsets));
                Ok(())
            }
            Some((known, first)) => {
                let same = |(x, y): (&PrimExpr, &PrimExpr)| self.analyzer.can_prove_equal(x, y);
                let alike = known == a && first.len() == offsets.len() && first.iter().zip(&offsets).all(same);
                if alike { Ok(()) } else { Err(Difference::SeveralParts(b.name.clone())) }
            }
        }
    }
}

impl Schedule {
    /// Carries a block out by an intrinsic.
    pub fn tensorize(&mut self, block: &Ref<SBlockRV>, tensor_intrin: &str) -> Result<(), StepError> {
        self.step_only(&KIND, vec![operand(block)], vec![AttrValue::from(tensor_intrin), true.into()])
    }

    /// Makes a block of what a loop executes, and executes it by an intrinsic.
    pub fn tensorize_loop(&mut self, loop_: &Ref<LoopRV>, tensor_intrin: &str) -> Result<(), StepError> {
        self.step_only(&KIND, vec![loop_operand(loop_)], vec![AttrValue::from(tensor_intrin), true.into()])
    }
}
