//! What an operator is: one [`OpDef`] row says everything about it.
//!
//! A row holds the names of arguments and attributes (with kinds, defaults and a sentence each), the type rule, how the
//! operator becomes a kernel or a call, and how a kernel of it may be fused. Call building, attribute checks, TVMScript
//! names, Python functions and documentation are derived from the row; nothing else knows an operator by name except the
//! passes that are about that operator.

use relaxide_ffi::DataType;
use relaxide_ir::prim;
use relaxide_ir::{PrimExpr, Type};
use relaxide_tir::te;

use super::lengths::{self, LengthRule};
use super::{CallCx, Gradient, LayoutRule, MixedPrecision, OpError};
use crate::Expr;

/// What a call's result has to do with the memory of its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryUse {
    /// Nothing is said: the result may lie in their memory, and they may be kept.
    Unknown,
    /// The arguments are read, and nothing of them is kept.
    Reads,
    /// The result has the first argument's elements in their order, and may lie in its memory.
    View,
    /// Every call makes something of its own, memory or a closure, that no other call's result can stand for.
    Fresh,
}

/// One operator.
#[derive(Clone, Copy)]
pub struct OpDef {
    /// The name without the `relax.` prefix.
    pub name: &'static str,
    /// Semantics, shape rule, dtypes.
    pub doc: &'static str,
    /// Arguments: values known when the program runs.
    pub args: &'static [ArgDef],
    /// Attributes: values known when the program is compiled.
    pub attrs: &'static [AttrDef],
    /// The type of a call.
    pub infer: fn(&CallCx) -> Result<Type, OpError>,
    /// Which lengths of its arguments belong together.
    pub lengths: LengthRule,
    /// How a call is executed.
    pub lower: Lowering,
    /// How a kernel of it may be fused with its neighbours.
    pub pattern: OpPattern,
    /// Whether a call has no visible effect but its result.
    pub pure: bool,
    /// What the result has to do with the memory of the arguments.
    pub memory: MemoryUse,
    /// Whether DataflowUseInplaceCalls has a call write over an operand that nothing needs any more; TVM's pass is defined for these.
    pub in_place: bool,
    /// What becomes of a call where a program is brought to lower precision.
    pub mixed_precision: MixedPrecision,
    /// How a call may be executed in another layout; `None` where only in the program's own.
    pub layout: Option<LayoutRule>,
    /// The gradients of the arguments; `None` where there are none.
    pub gradient: Option<Gradient>,
    /// How a call over more tensors than a kernel should take becomes several ([`divide`](super::divide)).
    pub divide: Option<Decompose>,
    /// Other operators that do the same faster, for the calls that they can serve.
    pub instead: Option<Instead>,
    /// Whether a pass chooses the algorithm of some calls (`WinogradConv2D`): they become others behind it.
    pub has_algorithms: bool,
    /// The function that serves calls whose dimensions are not known before the program runs.
    pub at_run_time: Option<&'static str>,
    /// The same block by block, as TVM writes it, for [`KernelForm::Plain`](super::KernelForm) where it differs.
    pub steps: Option<Compute>,
}

impl OpDef {
    /// What rows say that say nothing: pure, opaque, without a kernel and without hooks.
    pub const BASE: OpDef = OpDef {
        name: "",
        doc: "",
        args: &[],
        attrs: &[],
        infer: |cx| cx.invalid("has no type rule"),
        lengths: lengths::none,
        lower: Lowering::Special,
        pattern: OpPattern::Opaque,
        pure: true,
        memory: MemoryUse::Unknown,
        in_place: false,
        mixed_precision: MixedPrecision::Never,
        layout: None,
        gradient: None,
        divide: None,
        instead: None,
        has_algorithms: false,
        at_run_time: None,
        steps: None,
    };

    /// A row of an operator that is a compute over its tensors.
    pub const fn compute(
        name: &'static str,
        args: &'static [ArgDef],
        attrs: &'static [AttrDef],
        infer: fn(&CallCx) -> Result<Type, OpError>,
        lower: Compute,
        doc: &'static str,
    ) -> OpDef {
        OpDef { name, doc, args, attrs, infer, lower: Lowering::Compute(lower), ..OpDef::BASE }
    }

    /// A row of an operator that moves elements.
    pub const fn injective(
        name: &'static str,
        args: &'static [ArgDef],
        attrs: &'static [AttrDef],
        infer: fn(&CallCx) -> Result<Type, OpError>,
        lower: Compute,
        doc: &'static str,
    ) -> OpDef {
        OpDef::compute(name, args, attrs, infer, lower, doc).pattern(OpPattern::Injective)
    }

    /// A row of an operator that is a few others.
    pub const fn decomposed(
        name: &'static str,
        args: &'static [ArgDef],
        attrs: &'static [AttrDef],
        infer: fn(&CallCx) -> Result<Type, OpError>,
        open: Decompose,
        doc: &'static str,
    ) -> OpDef {
        OpDef { name, doc, args, attrs, infer, lower: Lowering::Decompose(open), ..OpDef::BASE }
    }

    /// The row with how a kernel of it may be fused.
    pub const fn pattern(self, pattern: OpPattern) -> OpDef {
        OpDef { pattern, ..self }
    }

    /// The row, whose calls have visible effects.
    pub const fn impure(self) -> OpDef {
        OpDef { pure: false, ..self }
    }

    /// The row with what its result has to do with the memory of its arguments.
    pub const fn memory(self, memory: MemoryUse) -> OpDef {
        OpDef { memory, ..self }
    }

    /// The row, whose calls may write over an operand.
    pub const fn in_place(self) -> OpDef {
        OpDef { in_place: true, ..self }
    }

    /// The row, in low precision where its arguments are.
    pub const fn follow(self) -> OpDef {
        OpDef { mixed_precision: MixedPrecision::Follow, ..self }
    }

    /// The row, in low precision always, sums included.
    pub const fn always(self) -> OpDef {
        OpDef { mixed_precision: MixedPrecision::Always(None), ..self }
    }

    /// The row with what it takes for granted about lengths.
    pub const fn lengths(self, lengths: LengthRule) -> OpDef {
        OpDef { lengths, ..self }
    }

    /// The row with a layout rule.
    pub const fn layout(self, rule: LayoutRule) -> OpDef {
        OpDef { layout: Some(rule), ..self }
    }

    /// The row with a way to divide calls over very many tensors.
    pub const fn divide(self, divide: Decompose) -> OpDef {
        OpDef { divide: Some(divide), ..self }
    }

    /// The row, of which a pass chooses the algorithm.
    pub const fn algorithms(self) -> OpDef {
        OpDef { has_algorithms: true, ..self }
    }

    /// The row with TVM's way to write it.
    pub const fn in_steps(self, steps: Compute) -> OpDef {
        OpDef { steps: Some(steps), ..self }
    }

    /// The row with a gradient.
    pub const fn gradient(self, gradient: Gradient) -> OpDef {
        OpDef { gradient: Some(gradient), ..self }
    }
}

/// One argument of an operator.
#[derive(Clone, Copy, Debug)]
pub struct ArgDef {
    /// The name, for keyword arguments and documentation.
    pub name: &'static str,
    /// What it must be.
    pub kind: ArgKind,
    /// How many times it may be given.
    pub arity: Arity,
    /// What stands for a required one where programs leave it out; in a call it is always there.
    pub default: Option<ArgDefault>,
    /// What it means.
    pub doc: &'static str,
}

/// The scalar that stands for an argument that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgDefault {
    /// A bool.
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
}

impl ArgDefault {
    /// The value.
    pub fn value(self) -> Expr {
        Expr::prim(match self {
            ArgDefault::Bool(value) => prim::int_of(DataType::bool(), i64::from(value)),
            ArgDefault::Int(value) => prim::int(value),
        })
    }
}

/// In Python's notation.
impl std::fmt::Display for ArgDefault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ArgDefault::Bool(true) => f.write_str("True"),
            ArgDefault::Bool(false) => f.write_str("False"),
            ArgDefault::Int(value) => value.fmt(f),
        }
    }
}

/// What an argument must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgKind {
    /// A tensor.
    Tensor,
    /// A tensor or a scalar.
    TensorOrScalar,
    /// A tuple of tensors.
    Tensors,
    /// A shape; a tuple of scalars is converted.
    Shape,
    /// A shape, or an empty tuple where there is none; a tuple of scalars is converted.
    ShapeOrNone,
    /// A scalar.
    Scalar,
    /// A tuple of scalars.
    Scalars,
    /// An element type.
    DType,
    /// Anything.
    Any,
}

/// How many times an argument may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// Once.
    Required,
    /// Once or not at all; only behind the required ones.
    Optional,
    /// Any number of times; only at the end.
    Variadic,
}

/// One attribute of an operator.
#[derive(Clone, Copy, Debug)]
pub struct AttrDef {
    /// The name.
    pub name: &'static str,
    /// What it must be.
    pub kind: AttrKind,
    /// What it is where nothing is said.
    pub default: AttrDefault,
    /// What it means.
    pub doc: &'static str,
}

/// What an attribute must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttrKind {
    /// `True` or `False`.
    Bool,
    /// Integer.
    Int,
    /// Number.
    Float,
    /// Text.
    Str,
    /// Element type; void where it follows from the arguments.
    DType,
    /// Integers; one integer stands for a list of one.
    Ints,
    /// Integers, repeated to that many where fewer are given: one serves all, and two of four serve both sides.
    IntsOf(usize),
    /// Anything.
    Any,
}

/// The default of an attribute.
#[derive(Clone, Copy, Debug)]
pub enum AttrDefault {
    /// It must be given.
    Required,
    /// Absent.
    None,
    /// What another attribute is, which stands in front of it.
    Same(&'static str),
    /// A bool.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A number.
    Float(f64),
    /// Text.
    Str(&'static str),
    /// Integers.
    Ints(&'static [i64]),
    /// So many scalars of 32 bits, each of them zero.
    Zeros(usize),
    /// The void dtype: it follows from the arguments.
    Void,
}

/// A compute over the tensors among the arguments, tuples flattened, in order.
pub type Compute = fn(&CallCx, &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError>;

/// What writes a call as calls of other operators.
pub type Decompose = fn(&CallCx, &mut crate::BlockBuilder) -> Result<crate::Expr, OpError>;

/// Says whether other operators serve a call, and then how it is written as calls of them.
pub type Instead = for<'c> fn(&'c CallCx<'c>) -> Result<Option<Emission<'c>>, OpError>;

/// What writes a call that was found to be one that other operators serve.
pub type Emission<'c> = Box<dyn FnOnce(&mut crate::BlockBuilder) -> Result<crate::Expr, OpError> + 'c>;

/// How a call is executed.
#[derive(Clone, Copy)]
pub enum Lowering {
    /// A kernel that computes each element of the broadcast arguments from their elements.
    Scalar(fn(&CallCx, &[PrimExpr]) -> Result<PrimExpr, OpError>),
    /// A kernel, described as a compute over the tensor arguments (tuples flattened, in order).
    Compute(Compute),
    /// Other operators.
    Decompose(Decompose),
    /// A VM builtin, called with the same arguments.
    Builtin(&'static str),
    /// A pass of its own, or code generation, knows what to do.
    Special,
}

/// How a kernel may be fused with its neighbours, from freest to least free; the order is the fuser's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OpPattern {
    /// Output element `i` needs input elements `i`.
    Elemwise = 0,
    /// As above, with size-one dimensions repeated.
    Broadcast = 1,
    /// Output element needs one input element each, anywhere.
    Injective = 2,
    /// A reduction over axes.
    Reduce = 3,
    /// A compound whose output can be post-processed element by element: convolution, matrix product.
    OutFusable = 4,
    /// Tuples.
    Tuple = 7,
    /// Anything.
    Opaque = 8,
}

impl OpPattern {
    /// The pattern of a number, as attributes store it.
    pub fn from_int(value: i64) -> Option<OpPattern> {
        use OpPattern::*;
        [Elemwise, Broadcast, Injective, Reduce, OutFusable, Tuple, Opaque].into_iter().find(|p| *p as i64 == value)
    }
}

impl ArgDef {
    const fn new(name: &'static str, kind: ArgKind, doc: &'static str) -> ArgDef {
        ArgDef { name, kind, arity: Arity::Required, default: None, doc }
    }

    /// A tensor argument.
    pub const fn tensor(name: &'static str, doc: &'static str) -> ArgDef {
        ArgDef::new(name, ArgKind::Tensor, doc)
    }

    /// An argument that may be a tensor or a scalar.
    pub const fn operand(name: &'static str, doc: &'static str) -> ArgDef {
        ArgDef::new(name, ArgKind::TensorOrScalar, doc)
    }

    /// A tuple of tensors.
    pub const fn tensors(name: &'static str, doc: &'static str) -> ArgDef {
        ArgDef::new(name, ArgKind::Tensors, doc)
    }

    /// A shape argument.
    pub const fn shape(name: &'static str, doc: &'static str) -> ArgDef {
        ArgDef::new(name, ArgKind::Shape, doc)
    }

    /// An argument that is a shape or an empty tuple.
    pub const fn shape_or_none(name: &'static str, doc: &'static str) -> ArgDef {
        ArgDef::new(name, ArgKind::ShapeOrNone, doc)
    }

    /// A scalar argument.
    pub const fn scalar(name: &'static str, doc: &'static str) -> ArgDef {
        ArgDef::new(name, ArgKind::Scalar, doc)
    }

    /// A tuple of scalars.
    pub const fn scalars(name: &'static str, doc: &'static str) -> ArgDef {
        ArgDef::new(name, ArgKind::Scalars, doc)
    }

    /// An argument of any kind.
    pub const fn any(name: &'static str, doc: &'static str) -> ArgDef {
        ArgDef::new(name, ArgKind::Any, doc)
    }

    /// An element type.
    pub const fn dtype(name: &'static str, doc: &'static str) -> ArgDef {
        ArgDef::new(name, ArgKind::DType, doc)
    }

    /// The same, but it may be left out.
    pub const fn optional(self) -> ArgDef {
        ArgDef { arity: Arity::Optional, ..self }
    }

    /// The same; a program may leave it out.
    pub const fn or(self, default: ArgDefault) -> ArgDef {
        ArgDef { default: Some(default), ..self }
    }

    /// The same, any number of times.
    pub const fn variadic(self) -> ArgDef {
        ArgDef { arity: Arity::Variadic, ..self }
    }
}

impl AttrDef {
    /// An attribute.
    pub const fn new(name: &'static str, kind: AttrKind, default: AttrDefault, doc: &'static str) -> AttrDef {
        AttrDef { name, kind, default, doc }
    }

    /// A bool with a default.
    pub const fn bool(name: &'static str, default: bool, doc: &'static str) -> AttrDef {
        AttrDef::new(name, AttrKind::Bool, AttrDefault::Bool(default), doc)
    }

    /// An integer with a default.
    pub const fn int(name: &'static str, default: i64, doc: &'static str) -> AttrDef {
        AttrDef::new(name, AttrKind::Int, AttrDefault::Int(default), doc)
    }

    /// A number with a default.
    pub const fn float(name: &'static str, default: f64, doc: &'static str) -> AttrDef {
        AttrDef::new(name, AttrKind::Float, AttrDefault::Float(default), doc)
    }

    /// Text with a default.
    pub const fn str(name: &'static str, default: &'static str, doc: &'static str) -> AttrDef {
        AttrDef::new(name, AttrKind::Str, AttrDefault::Str(default), doc)
    }

    /// An element type that follows from the arguments unless given.
    pub const fn dtype(name: &'static str, doc: &'static str) -> AttrDef {
        AttrDef::new(name, AttrKind::DType, AttrDefault::Void, doc)
    }

    /// An attribute that must be given.
    pub const fn required(name: &'static str, kind: AttrKind, doc: &'static str) -> AttrDef {
        AttrDef::new(name, kind, AttrDefault::Required, doc)
    }

    /// An attribute that may be absent.
    pub const fn absent(name: &'static str, kind: AttrKind, doc: &'static str) -> AttrDef {
        AttrDef::new(name, kind, AttrDefault::None, doc)
    }

    /// `n` integers with a default for each.
    pub const fn ints_of(name: &'static str, n: usize, default: &'static [i64], doc: &'static str) -> AttrDef {
        AttrDef::new(name, AttrKind::IntsOf(n), AttrDefault::Ints(default), doc)
    }

    /// Integers that may be absent.
    pub const fn axes(name: &'static str, doc: &'static str) -> AttrDef {
        AttrDef::new(name, AttrKind::Ints, AttrDefault::None, doc)
    }
}
