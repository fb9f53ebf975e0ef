//! Statements of a kernel.

use relaxide_ffi::{
    Any, AnyView, Error, ErrorKind, Field, FromAny, Object, ObjectEnum, Ref, StructuralEqual, StructuralHash,
};
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{AttrValue, Attrs, Buffer, DataType, Var};

use crate::tile::{ScopeIdDefStmt, TilePrimitiveCall};

/// A statement.
#[derive(ObjectEnum, Debug)]
pub enum Stmt {
    /// A loop.
    For(Ref<For>),
    /// A loop with a condition.
    While(Ref<While>),
    /// Statements in order.
    Seq(Ref<SeqStmt>),
    /// A choice.
    If(Ref<IfThenElse>),
    /// A store to a buffer.
    Store(Ref<BufferStore>),
    /// A value under a name for the statements behind it in the same sequence.
    Bind(Ref<Bind>),
    /// Memory for the statements behind it in the same sequence.
    Alloc(Ref<AllocBuffer>),
    /// An expression for its effect.
    Evaluate(Ref<Evaluate>),
    /// A condition that must hold.
    Assert(Ref<AssertStmt>),
    /// A block at given axis values.
    Block(Ref<SBlockRealize>),
    /// A statement under an attribute.
    Attr(Ref<AttrStmt>),
    /// A buffer over memory that exists, for the statements behind it in the same sequence.
    Decl(Ref<DeclBuffer>),
    /// Leaves the innermost loop.
    Break(Ref<Break>),
    /// Goes on with the next iteration of the innermost loop.
    Continue(Ref<Continue>),
    /// Ends the kernel with a value.
    Return(Ref<Return>),
    /// Numbers of the units of a scope, for the statements behind it in the same sequence.
    ScopeIds(Ref<ScopeIdDefStmt>),
    /// An operation of several threads on tiles.
    Tile(Ref<TilePrimitiveCall>),
}

/// How the iterations of a loop are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ForKind {
    /// One after another.
    Serial,
    /// On all threads of the pool.
    Parallel,
    /// As lanes of vectors.
    Vectorized,
    /// As straight-line code.
    Unrolled,
    /// As threads of a device; [`For::thread_tag`] says which.
    ThreadBinding,
}

/// A loop over `min .. min + extent`, by ones or by a step.
///
/// Passes and back ends take loops that count by one: [`unit_steps`](crate::lower::unit_steps) makes them, and stands in front of
/// all that asks how often a loop runs.
#[derive(Object, Debug, Clone)]
#[object(key = "tirx.For")]
pub struct For {
    /// The counter.
    #[field(def)]
    pub var: Ref<Var>,
    /// First value.
    pub min: PrimExpr,
    /// Length of what is counted through, which is the number of iterations where the loop counts by one.
    pub extent: PrimExpr,
    /// How iterations are executed.
    pub kind: ForKind,
    /// `"blockIdx.x"`, `"threadIdx.x"` … for [`ForKind::ThreadBinding`], else empty.
    pub thread_tag: String,
    /// Hints for later passes.
    pub annotations: Attrs,
    /// What is repeated.
    pub body: Stmt,
    /// By how much it counts; nothing where that is one.
    pub step: Option<PrimExpr>,
}

impl For {
    /// A loop that counts by one, not over threads and without hints.
    pub fn new(kind: ForKind, var: Ref<Var>, min: PrimExpr, extent: PrimExpr, body: Stmt) -> For {
        For { var, min, extent, kind, thread_tag: String::new(), annotations: Attrs::new(), body, step: None }
    }
}

/// A loop that goes on as long as a condition holds.
#[derive(Object, Debug)]
#[object(key = "tirx.While")]
pub struct While {
    /// The condition.
    pub condition: PrimExpr,
    /// What is repeated.
    pub body: Stmt,
}

/// Statements in order. [`Stmt::Bind`] and [`Stmt::Alloc`] among them hold for those behind them.
#[derive(Object, Debug)]
#[object(key = "tirx.SeqStmt")]
pub struct SeqStmt {
    /// The statements.
    pub seq: Vec<Stmt>,
}

/// A choice.
#[derive(Object, Debug)]
#[object(key = "tirx.IfThenElse")]
pub struct IfThenElse {
    /// The condition.
    pub condition: PrimExpr,
    /// Where it holds.
    pub then_case: Stmt,
    /// Where it does not.
    pub else_case: Option<Stmt>,
}

/// A store to a buffer.
#[derive(Object, Debug)]
#[object(key = "tirx.BufferStore")]
pub struct BufferStore {
    /// Where to.
    pub buffer: Ref<Buffer>,
    /// What; a vector where the last index is one.
    pub value: PrimExpr,
    /// One index a dimension (or one flat index after flattening).
    pub indices: Vec<PrimExpr>,
    /// Lanes that are written, where not all are.
    pub predicate: Option<PrimExpr>,
}

/// A value under a name for the statements behind it.
#[derive(Object, Debug)]
#[object(key = "tirx.Bind")]
pub struct Bind {
    /// The name.
    #[field(def)]
    pub var: Ref<Var>,
    /// The value.
    pub value: PrimExpr,
}

/// Memory for the statements behind it in the same sequence; freed at the sequence's end.
#[derive(Object, Debug)]
#[object(key = "tirx.AllocBuffer")]
pub struct AllocBuffer {
    /// The buffer.
    #[field(def)]
    pub buffer: Ref<Buffer>,
    /// Hints for later passes.
    pub annotations: Attrs,
}

/// An expression for its effect.
#[derive(Object, Debug)]
#[object(key = "tirx.Evaluate")]
pub struct Evaluate {
    /// The expression.
    pub value: PrimExpr,
}

/// A condition that must hold.
#[derive(Object, Debug)]
#[object(key = "tirx.AssertStmt")]
pub struct AssertStmt {
    /// The condition.
    pub condition: PrimExpr,
    /// Kind of the error that is raised otherwise.
    pub error_kind: String,
    /// Its message.
    pub message: String,
    /// Integers that stand for `{0}` and `{1}` in the message, two or none. Texts of programs have the expressions in their place.
    #[field(hidden)]
    pub numbers: Vec<PrimExpr>,
}

impl AssertStmt {
    /// The message, with expressions for numbers.
    pub fn said(&self) -> String {
        let number = |text: String, (i, n): (usize, &PrimExpr)| text.replace(&format!("{{{i}}}"), &n.to_string());
        self.numbers.iter().enumerate().fold(self.message.clone(), number)
    }

    /// What stands in front of, between and behind two numbers of the message, and the numbers.
    pub fn told(&self) -> Option<([&str; 3], [&PrimExpr; 2])> {
        let [first, second] = self.numbers.as_slice() else { return None };
        let (before, rest) = self.message.split_once("{0}")?;
        let (between, behind) = rest.split_once("{1}")?;
        Some(([before, between, behind], [first, second]))
    }
}

/// A statement under an attribute, such as `pragma_unroll`.
#[derive(Object, Debug)]
#[object(key = "tirx.AttrStmt")]
pub struct AttrStmt {
    /// What it is about, where that is not the statement: a buffer, a pointer, a name. Of `reduce_scope` it is the
    /// [`CommReducer`] of the threads' values. What it mentions need not be defined there.
    pub node: Option<AttrValue>,
    /// The attribute.
    pub key: String,
    /// Its value.
    pub value: PrimExpr,
    /// What it holds for.
    pub body: Stmt,
}

impl AttrStmt {
    /// How the threads' values are combined, of `reduce_scope`.
    pub fn reducer(&self) -> Option<Ref<CommReducer>> {
        match &self.node {
            Some(AttrValue::Object(node)) => node.clone().downcast().ok(),
            _ => None,
        }
    }
}

/// How values are combined, in any order: several at once, each pair by an expression over all of them.
#[derive(Object, Debug)]
#[object(key = "tirx.CommReducer")]
pub struct CommReducer {
    /// What stands for the values so far.
    #[field(def)]
    pub lhs: Vec<Ref<Var>>,
    /// What stands for the values that come next.
    #[field(def)]
    pub rhs: Vec<Ref<Var>>,
    /// The values with those that come next.
    pub result: Vec<PrimExpr>,
    /// What changes nothing.
    pub identity_element: Vec<PrimExpr>,
}

impl CommReducer {
    /// Values combined with others.
    pub fn combine(&self, lhs: &[PrimExpr], rhs: &[PrimExpr]) -> Vec<PrimExpr> {
        let vars = self.lhs.iter().chain(&self.rhs).cloned();
        let map: prim::VarMap = vars.zip(lhs.iter().chain(rhs).cloned()).collect();
        self.result.iter().map(|e| prim::substitute(e, &map)).collect()
    }
}

/// A buffer over memory that exists, for the statements behind it.
///
/// Buffers find their memory by their pointer. Where the buffer has the pointer that `data` names, it is another view of that
/// memory and nothing is left to do; any other `data` becomes the value of the buffer's own pointer.
#[derive(Object, Debug)]
#[object(key = "tirx.DeclBuffer")]
pub struct DeclBuffer {
    /// The buffer.
    #[field(def)]
    pub buffer: Ref<Buffer>,
    /// The address of its memory.
    pub data: PrimExpr,
}

/// Leaves the innermost loop.
#[derive(Object, Debug)]
#[object(key = "tirx.Break")]
pub struct Break {}

/// Goes on with the next iteration of the innermost loop.
#[derive(Object, Debug)]
#[object(key = "tirx.Continue")]
pub struct Continue {}

/// Ends the kernel with a value.
#[derive(Object, Debug)]
#[object(key = "tirx.Return")]
pub struct Return {
    /// The value.
    pub value: PrimExpr,
}

impl DeclBuffer {
    /// Whether the buffer is another view of memory that has a name already.
    pub fn is_view(&self) -> bool {
        self.data.as_var() == Some(&self.buffer.data)
    }
}

/// What a block's axis means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IterKind {
    /// Each value computes other elements: order is free.
    Spatial,
    /// Values are combined into one element.
    Reduce,
    /// Values must be taken in order.
    Scan,
    /// Nothing is promised.
    Opaque,
}

/// An axis of a block.
#[derive(Object, Debug)]
#[object(key = "tirx.IterVar")]
pub struct IterVar {
    /// The variable that stands for it inside the block.
    #[field(def)]
    pub var: Ref<Var>,
    /// First value.
    pub min: PrimExpr,
    /// Number of values.
    pub extent: PrimExpr,
    /// What it means.
    pub kind: IterKind,
}

/// A half-open range of one dimension.
#[derive(Object, Debug)]
#[object(key = "ir.Range")]
pub struct Range {
    /// First value.
    pub min: PrimExpr,
    /// Number of values.
    pub extent: PrimExpr,
}

/// A box of a buffer.
#[derive(Object, Debug)]
#[object(key = "tirx.BufferRegion")]
pub struct BufferRegion {
    /// Of which buffer.
    pub buffer: Ref<Buffer>,
    /// One range a dimension.
    pub region: Vec<Ref<Range>>,
}

/// A sub-buffer that a block sees under a name of its own.
#[derive(Object, Debug)]
#[object(key = "tirx.MatchBufferRegion")]
pub struct MatchBufferRegion {
    /// The name inside.
    #[field(def)]
    pub buffer: Ref<Buffer>,
    /// What it stands for.
    pub source: Ref<BufferRegion>,
}

/// A unit of computation over axes, independent of the loops around it.
#[derive(Object, Debug, Clone)]
#[object(key = "tirx.SBlock")]
pub struct SBlock {
    /// Its axes.
    #[field(def)]
    pub iter_vars: Vec<Ref<IterVar>>,
    /// What it reads, as boxes over the axes.
    pub reads: Vec<Ref<BufferRegion>>,
    /// What it writes.
    pub writes: Vec<Ref<BufferRegion>>,
    /// Its name.
    #[field(ignore)]
    pub name: String,
    /// Buffers that live inside.
    #[field(def)]
    pub alloc_buffers: Vec<Ref<Buffer>>,
    /// Sub-buffers by other names.
    pub match_buffers: Vec<Ref<MatchBufferRegion>>,
    /// Hints for later passes.
    pub annotations: Attrs,
    /// What sets the element before the first value of the reduction axes.
    pub init: Option<Stmt>,
    /// The computation for one value of every axis.
    pub body: Stmt,
}

/// A block at given axis values, where a predicate holds.
#[derive(Object, Debug, Clone)]
#[object(key = "tirx.SBlockRealize")]
pub struct SBlockRealize {
    /// Values of the axes, over the loops around.
    pub iter_values: Vec<PrimExpr>,
    /// Where it is executed at all.
    pub predicate: PrimExpr,
    /// The block.
    pub block: Ref<SBlock>,
}

impl Stmt {
    /// Statements in order; nested sequences are flattened and a sequence of one is that one.
    pub fn seq(list: impl IntoIterator<Item = Stmt>) -> Stmt {
        Stmt::flat(list.into_iter().collect())
    }

    fn flat(list: Vec<Stmt>) -> Stmt {
        let mut seq = Vec::with_capacity(list.len());
        for stmt in list {
            match stmt {
                Stmt::Seq(inner) => seq.extend(inner.seq.iter().cloned()),
                other => seq.push(other),
            }
        }
        match seq.len() {
            1 => seq.remove(0),
            _ => Ref::new(SeqStmt { seq }).into(),
        }
    }

    /// No statement at all.
    pub fn nop() -> Stmt {
        Ref::new(SeqStmt { seq: Vec::new() }).into()
    }

    /// The statement; where it is an empty sequence, one that evaluates zero, which is how TVM writes the body of a kernel
    /// that does nothing.
    pub fn or_evaluated(self) -> Stmt {
        if self.is_nop() { Stmt::evaluate(prim::int_of(DataType::int(32), 0)) } else { self }
    }

    /// Whether it is an empty sequence.
    pub fn is_nop(&self) -> bool {
        matches!(self, Stmt::Seq(s) if s.seq.is_empty())
    }

    /// A serial loop from zero.
    pub fn serial(var: Ref<Var>, extent: impl Into<PrimExpr>, body: Stmt) -> Stmt {
        Stmt::for_loop(ForKind::Serial, var, extent, body)
    }

    /// A loop over `0 .. extent` whose iterations are threads of that kind (`threadIdx.x`).
    pub fn threads(var: Ref<Var>, extent: PrimExpr, tag: impl Into<String>, body: Stmt) -> Stmt {
        let min = relaxide_ir::prim::int_of(extent.dtype(), 0);
        let made = For::new(ForKind::ThreadBinding, var, min, extent, body);
        Ref::new(For { thread_tag: tag.into(), ..made }).into()
    }

    /// A serial loop from zero over a new variable of that name, which the body is made from.
    pub fn each(name: &str, extent: impl Into<PrimExpr>, body: impl FnOnce(&PrimExpr) -> Stmt) -> Stmt {
        let var = Var::dim(name);
        let at = PrimExpr::from(&var);
        Stmt::serial(var, extent, body(&at))
    }

    /// A loop from zero of any kind but a thread binding.
    pub fn for_loop(kind: ForKind, var: Ref<Var>, extent: impl Into<PrimExpr>, body: Stmt) -> Stmt {
        let min = relaxide_ir::prim::int_of(var.dtype(), 0);
        let extent = relaxide_ir::prim::cast(var.dtype(), extent.into());
        Ref::new(For::new(kind, var, min, extent, body)).into()
    }

    /// The same loop around another body.
    pub fn loop_around(of: &For, body: Stmt) -> Stmt {
        Ref::new(For { body, ..of.clone() }).into()
    }

    /// A store.
    pub fn store(
        buffer: &Ref<Buffer>,
        indices: impl IntoIterator<Item = impl Into<PrimExpr>>,
        value: impl Into<PrimExpr>,
    ) -> Stmt {
        let indices = indices.into_iter().map(Into::into).collect();
        Ref::new(BufferStore { buffer: buffer.clone(), value: value.into(), indices, predicate: None }).into()
    }

    /// A choice without an else.
    pub fn when(condition: PrimExpr, then_case: Stmt) -> Stmt {
        match condition.as_int() {
            Some(0) => Stmt::nop(),
            Some(_) => then_case,
            None => Ref::new(IfThenElse { condition, then_case, else_case: None }).into(),
        }
    }

    /// A choice.
    pub fn if_else(condition: PrimExpr, then_case: Stmt, else_case: Stmt) -> Stmt {
        match condition.as_int() {
            Some(0) => else_case,
            Some(_) => then_case,
            None => Ref::new(IfThenElse { condition, then_case, else_case: Some(else_case) }).into(),
        }
    }

    /// An expression for what it does.
    pub fn evaluate(value: PrimExpr) -> Stmt {
        Ref::new(Evaluate { value }).into()
    }

    /// A value under a name.
    pub fn bind(var: Ref<Var>, value: impl Into<PrimExpr>) -> Stmt {
        Ref::new(Bind { var, value: value.into() }).into()
    }

    /// A buffer over memory that exists.
    pub fn decl(buffer: &Ref<Buffer>, data: impl Into<PrimExpr>) -> Stmt {
        Ref::new(DeclBuffer { buffer: buffer.clone(), data: data.into() }).into()
    }

    /// A barrier: the threads of a block wait for each other, and see what was written to memory that they share.
    pub fn barrier() -> Stmt {
        Stmt::evaluate(prim::call(DataType::void(), BARRIER, vec![prim::string(crate::lower::SHARED)]))
    }

    /// Leaves the innermost loop.
    pub fn break_loop() -> Stmt {
        Ref::new(Break {}).into()
    }

    /// Goes on with the next iteration of the innermost loop.
    pub fn continue_loop() -> Stmt {
        Ref::new(Continue {}).into()
    }

    /// Ends the kernel with a value.
    pub fn ret(value: impl Into<PrimExpr>) -> Stmt {
        Ref::new(Return { value: value.into() }).into()
    }

    /// Memory.
    pub fn alloc(buffer: &Ref<Buffer>) -> Stmt {
        Ref::new(AllocBuffer { buffer: buffer.clone(), annotations: Attrs::new() }).into()
    }
}

/// The name of a barrier among intrinsics.
pub const BARRIER: &str = "tirx.tvm_storage_sync";

/// Whether an expression is a barrier of the threads of a block.
pub fn is_barrier(e: &PrimExpr) -> bool {
    matches!(e, PrimExpr::Call(n) if n.op == BARRIER)
}

macro_rules! enum_field {
    ($ty:ident: $($variant:ident)*) => {
        impl FromAny for $ty {
            fn from_any(value: AnyView<'_>) -> Result<Self, Error> {
                let number: i64 = value.to()?;
                [$($ty::$variant),*].into_iter().find(|kind| *kind as i64 == number).ok_or_else(|| {
                    Error::new(ErrorKind::ValueError, format!("{number} is no {}", stringify!($ty)))
                })
            }
        }

        impl Field for $ty {
            fn to_any(&self) -> Any {
                Any::from(*self as i64)
            }

            fn s_equal(&self, other: &Self, _: &mut StructuralEqual) -> bool {
                self == other
            }

            fn s_hash(&self, h: &mut StructuralHash) {
                (*self as i64).s_hash(h);
            }
        }
    };
}
enum_field!(ForKind: Serial Parallel Vectorized Unrolled ThreadBinding);
enum_field!(IterKind: Spatial Reduce Scan Opaque);
