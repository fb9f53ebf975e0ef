//! What a pattern consists of.

use std::ops::{BitAnd, BitOr, BitXor, Not, Shr};

use relaxide_ffi::{DataType, Object, Ref};
use relaxide_ir::{Attrs, PrimExpr, Type};

use super::PatternSeq;
use crate::Expr;

/// A pattern, or a part of one. Two are the same if they are one node: a part that occurs twice must match one value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern(Ref<PatternNode>);

/// The object behind a pattern.
#[derive(Object, Debug)]
#[object(key = "relax.dpl.Pattern")]
pub struct PatternNode {
    /// The name of its kind.
    #[field(ignore)]
    kind_name: String,
    #[field(hidden)]
    kind: PatternBox,
}

/// A kind that an object can hold.
type PatternBox = Box<PatternKind>;

/// What a pattern matches.
#[derive(Debug)]
pub enum PatternKind {
    /// Anything.
    Wildcard,
    /// A variable, of that name unless it is empty.
    Var(String),
    /// A variable of a dataflow block, of that name unless it is empty.
    DataflowVar(String),
    /// A function of the module, of that name unless it is empty.
    Global(String),
    /// A function outside the module, of that name unless it is empty.
    Extern(String),
    /// A tensor constant.
    Constant,
    /// An operator.
    Op(String),
    /// What is structurally equal.
    Expr(Expr),
    /// A call.
    Call {
        /// What is called.
        callee: Pattern,
        /// The arguments; any, where there are none said.
        args: Option<Vec<Pattern>>,
        /// Whether further arguments may follow.
        more: bool,
    },
    /// A function.
    Function {
        /// Its parameters.
        params: Vec<Pattern>,
        /// Its result.
        body: Pattern,
    },
    /// A tuple of these fields.
    Tuple(Vec<Pattern>),
    /// A tuple of these fields in any order.
    UnorderedTuple(Vec<Pattern>),
    /// A field of a tuple; any, where no index is said.
    TupleGetItem(Pattern, Option<usize>),
    /// What one of two matches; the first is tried first.
    Or(Pattern, Pattern),
    /// What both match.
    And(Pattern, Pattern),
    /// What does not match.
    Not(Pattern),
    /// What has a type.
    Type(Pattern, Type),
    /// A tensor of an element type.
    DType(Pattern, DataType),
    /// A tensor of a shape.
    Shape(Pattern, Vec<PrimExpr>),
    /// A shape.
    ShapeExpr(Vec<PrimExpr>),
    /// A call, or a function, with these attributes.
    Attrs(Pattern, Attrs),
}

impl PatternKind {
    /// The name of the kind.
    pub fn name(&self) -> &'static str {
        match self {
            PatternKind::Wildcard => "Wildcard",
            PatternKind::Var(_) => "Var",
            PatternKind::DataflowVar(_) => "DataflowVar",
            PatternKind::Global(_) => "Global",
            PatternKind::Extern(_) => "Extern",
            PatternKind::Constant => "Constant",
            PatternKind::Op(_) => "Op",
            PatternKind::Expr(_) => "Expr",
            PatternKind::Call { .. } => "Call",
            PatternKind::Function { .. } => "Function",
            PatternKind::Tuple(_) => "Tuple",
            PatternKind::UnorderedTuple(_) => "UnorderedTuple",
            PatternKind::TupleGetItem(..) => "TupleGetItem",
            PatternKind::Or(..) => "Or",
            PatternKind::And(..) => "And",
            PatternKind::Not(_) => "Not",
            PatternKind::Type(..) => "Type",
            PatternKind::DType(..) => "DType",
            PatternKind::Shape(..) => "Shape",
            PatternKind::ShapeExpr(_) => "ShapeExpr",
            PatternKind::Attrs(..) => "Attrs",
        }
    }
}

impl Pattern {
    /// A pattern of a kind.
    pub fn new(kind: PatternKind) -> Pattern {
        Pattern(Ref::new(PatternNode { kind_name: kind.name().to_string(), kind: Box::new(kind) }))
    }

    /// What it matches.
    pub fn kind(&self) -> &PatternKind {
        &self.0.kind
    }

    /// The object, which values can hold.
    pub fn object(&self) -> &Ref<PatternNode> {
        &self.0
    }

    /// The pattern that an object holds.
    pub fn from_object(object: Ref<PatternNode>) -> Pattern {
        Pattern(object)
    }

    /// A call of this with these arguments.
    pub fn call(&self, args: impl Into<Vec<Pattern>>) -> Pattern {
        Pattern::new(PatternKind::Call { callee: self.clone(), args: Some(args.into()), more: false })
    }

    /// A call of this with these arguments and perhaps further ones.
    pub fn call_with_more(&self, args: impl Into<Vec<Pattern>>) -> Pattern {
        Pattern::new(PatternKind::Call { callee: self.clone(), args: Some(args.into()), more: true })
    }

    /// A call of this with any arguments.
    pub fn call_any(&self) -> Pattern {
        Pattern::new(PatternKind::Call { callee: self.clone(), args: None, more: true })
    }

    /// This, of a type: its parts that say nothing match anything.
    pub fn has_type(&self, ty: Type) -> Pattern {
        Pattern::new(PatternKind::Type(self.clone(), ty))
    }

    /// This, a tensor of an element type.
    pub fn has_dtype(&self, dtype: DataType) -> Pattern {
        Pattern::new(PatternKind::DType(self.clone(), dtype))
    }

    /// This, a tensor of a shape.
    pub fn has_shape(&self, dims: impl IntoIterator<Item = impl Into<PrimExpr>>) -> Pattern {
        Pattern::new(PatternKind::Shape(self.clone(), dims.into_iter().map(Into::into).collect()))
    }

    /// This, with attributes of these values.
    pub fn has_attrs(&self, attrs: Attrs) -> Pattern {
        Pattern::new(PatternKind::Attrs(self.clone(), attrs))
    }

    /// This field of what matches.
    pub fn field(&self, index: usize) -> Pattern {
        Pattern::new(PatternKind::TupleGetItem(self.clone(), Some(index)))
    }

    /// This, used by `other` (as argument `index`), and perhaps by others.
    pub fn used_by(&self, other: impl Into<PatternSeq>, index: Option<usize>) -> PatternSeq {
        PatternSeq::from(self.clone()).used_by(other, index)
    }

    /// This, used by `other` (as argument `index`) and by nothing else.
    pub fn only_used_by(&self, other: impl Into<PatternSeq>, index: Option<usize>) -> PatternSeq {
        PatternSeq::from(self.clone()).only_used_by(other, index)
    }

    /// The parts, this one not included, in order.
    pub fn parts(&self) -> Vec<&Pattern> {
        match self.kind() {
            PatternKind::Wildcard
            | PatternKind::Var(_)
            | PatternKind::DataflowVar(_)
            | PatternKind::Global(_)
            | PatternKind::Extern(_)
            | PatternKind::Constant
            | PatternKind::Op(_)
            | PatternKind::Expr(_)
            | PatternKind::ShapeExpr(_) => Vec::new(),
            PatternKind::Call { callee, args, .. } => std::iter::once(callee).chain(args.iter().flatten()).collect(),
            PatternKind::Function { params, body } => params.iter().chain([body]).collect(),
            PatternKind::Tuple(fields) | PatternKind::UnorderedTuple(fields) => fields.iter().collect(),
            PatternKind::Or(a, b) | PatternKind::And(a, b) => vec![a, b],
            PatternKind::TupleGetItem(p, _)
            | PatternKind::Not(p)
            | PatternKind::Type(p, _)
            | PatternKind::DType(p, _)
            | PatternKind::Shape(p, _)
            | PatternKind::Attrs(p, _) => vec![p],
        }
    }

    /// A pattern that matches the same but is another node, so that the two may match two values. Their parts are shared.
    pub fn dup(&self) -> Pattern {
        match self.kind() {
            PatternKind::Call { callee, args, more } => {
                Pattern::new(PatternKind::Call { callee: callee.clone(), args: args.clone(), more: *more })
            }
            PatternKind::Function { params, body } => {
                Pattern::new(PatternKind::Function { params: params.clone(), body: body.clone() })
            }
            PatternKind::Wildcard => wildcard(),
            PatternKind::Var(name) => is_var(name.clone()),
            PatternKind::DataflowVar(name) => is_dataflow_var(name.clone()),
            PatternKind::Global(name) => is_global(name.clone()),
            PatternKind::Extern(name) => is_extern(name.clone()),
            PatternKind::Constant => is_const(),
            PatternKind::Op(name) => is_op(name.clone()),
            PatternKind::Expr(e) => is_expr(e.clone()),
            PatternKind::Tuple(fields) => is_tuple(fields.clone()),
            PatternKind::UnorderedTuple(fields) => is_unordered_tuple(fields.clone()),
            PatternKind::TupleGetItem(p, index) => is_tuple_get_item(p.clone(), *index),
            PatternKind::Or(a, b) => a.clone() | b.clone(),
            PatternKind::And(a, b) => a.clone() & b.clone(),
            PatternKind::Not(p) => !p.clone(),
            PatternKind::Type(p, ty) => p.has_type(ty.clone()),
            PatternKind::DType(p, dtype) => p.has_dtype(*dtype),
            PatternKind::Shape(p, dims) => p.has_shape(dims.iter().cloned()),
            PatternKind::ShapeExpr(dims) => is_shape(dims.iter().cloned()),
            PatternKind::Attrs(p, attrs) => p.has_attrs(attrs.clone()),
        }
    }
}

impl BitOr for Pattern {
    type Output = Pattern;

    fn bitor(self, other: Pattern) -> Pattern {
        Pattern::new(PatternKind::Or(self, other))
    }
}

impl BitAnd for Pattern {
    type Output = Pattern;

    fn bitand(self, other: Pattern) -> Pattern {
        Pattern::new(PatternKind::And(self, other))
    }
}

impl Not for Pattern {
    type Output = Pattern;

    fn not(self) -> Pattern {
        Pattern::new(PatternKind::Not(self))
    }
}

/// `a ^ b`: `a` is used by `b`.
impl<T: Into<PatternSeq>> BitXor<T> for Pattern {
    type Output = PatternSeq;

    fn bitxor(self, other: T) -> PatternSeq {
        self.used_by(other, None)
    }
}

/// `a >> b`: `a` is used by `b` only.
impl<T: Into<PatternSeq>> Shr<T> for Pattern {
    type Output = PatternSeq;

    fn shr(self, other: T) -> PatternSeq {
        self.only_used_by(other, None)
    }
}

/// Anything.
pub fn wildcard() -> Pattern {
    Pattern::new(PatternKind::Wildcard)
}

/// A variable, of that name unless it is empty.
pub fn is_var(name: impl Into<String>) -> Pattern {
    Pattern::new(PatternKind::Var(name.into()))
}

/// A variable of a dataflow block, of that name unless it is empty.
pub fn is_dataflow_var(name: impl Into<String>) -> Pattern {
    Pattern::new(PatternKind::DataflowVar(name.into()))
}

/// A function of the module, of that name unless it is empty.
pub fn is_global(name: impl Into<String>) -> Pattern {
    Pattern::new(PatternKind::Global(name.into()))
}

/// A function outside the module, of that name unless it is empty.
pub fn is_extern(name: impl Into<String>) -> Pattern {
    Pattern::new(PatternKind::Extern(name.into()))
}

/// A tensor constant.
pub fn is_const() -> Pattern {
    Pattern::new(PatternKind::Constant)
}

/// What is structurally equal.
pub fn is_expr(expr: impl Into<Expr>) -> Pattern {
    Pattern::new(PatternKind::Expr(expr.into()))
}

/// An operator, with or without the `relax.` prefix.
pub fn is_op(name: impl Into<String>) -> Pattern {
    let name = name.into();
    let name = if name.starts_with("relax.") { name } else { format!("relax.{name}") };
    Pattern::new(PatternKind::Op(name))
}

/// A tuple of these fields.
pub fn is_tuple(fields: impl Into<Vec<Pattern>>) -> Pattern {
    Pattern::new(PatternKind::Tuple(fields.into()))
}

/// A tuple of these fields in any order.
pub fn is_unordered_tuple(fields: impl Into<Vec<Pattern>>) -> Pattern {
    Pattern::new(PatternKind::UnorderedTuple(fields.into()))
}

/// A field of a tuple; any, where no index is said.
pub fn is_tuple_get_item(tuple: Pattern, index: Option<usize>) -> Pattern {
    Pattern::new(PatternKind::TupleGetItem(tuple, index))
}

/// A shape.
pub fn is_shape(dims: impl IntoIterator<Item = impl Into<PrimExpr>>) -> Pattern {
    Pattern::new(PatternKind::ShapeExpr(dims.into_iter().map(Into::into).collect()))
}

/// A function with these parameters and this result.
pub fn is_function(params: impl Into<Vec<Pattern>>, body: Pattern) -> Pattern {
    Pattern::new(PatternKind::Function { params: params.into(), body })
}

/// A call of a kernel, of that name unless it is empty, with these arguments, or any.
pub fn is_call_tir(name: &str, args: Option<Vec<Pattern>>) -> Pattern {
    is_op("call_tir").call_with_more([is_global(name), args.map_or_else(wildcard, is_tuple)])
}

/// A call of a function outside the module that writes its result into its last argument.
pub fn is_call_dps_packed(name: &str, args: Option<Vec<Pattern>>) -> Pattern {
    is_op("call_dps_packed").call_with_more([is_extern(name), args.map_or_else(wildcard, is_tuple)])
}

/// A call of a function outside the module with these arguments, or any.
pub fn is_call_packed(name: &str, args: Option<Vec<Pattern>>) -> Pattern {
    let callee = is_extern(name);
    args.map_or_else(|| callee.call_any(), |args| callee.call(args))
}
