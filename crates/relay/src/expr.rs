//! The nodes of Relay.
//!
//! Nodes are immutable. A node that stands in two places is computed once: sharing is part of a program's meaning, as a
//! `let` is. Variables, type parameters and constructors are told apart by address. What inference finds is not in the
//! nodes but in a [`Types`](crate::Types) beside them.

use relaxide_ffi::{DataType, Object, ObjectEnum, Ref, Tensor};
use relaxide_ir::{Attrs, GlobalVar, Span};

use crate::{Type, TypeVar, VirtualDevice};

/// An expression.
#[derive(ObjectEnum, Debug)]
pub enum Expr {
    /// A tensor that is known.
    Constant(Ref<Constant>),
    /// A tuple.
    Tuple(Ref<Tuple>),
    /// A variable.
    Var(Ref<Var>),
    /// A function of the module.
    Global(Ref<GlobalVar>),
    /// A function.
    Function(Ref<Function>),
    /// A call of a function, an operator or a constructor.
    Call(Ref<Call>),
    /// A value with a name, and what is computed with it.
    Let(Ref<Let>),
    /// A choice by a condition.
    If(Ref<If>),
    /// A field of a tuple.
    TupleGetItem(Ref<TupleGetItem>),
    /// A new reference.
    RefCreate(Ref<RefCreate>),
    /// What a reference holds.
    RefRead(Ref<RefRead>),
    /// Has a reference hold something else.
    RefWrite(Ref<RefWrite>),
    /// A choice by the form of a value.
    Match(Ref<Match>),
    /// A constructor as a function.
    Constructor(Ref<Constructor>),
    /// An operator as a function.
    Op(Ref<Op>),
}

/// A tensor that is known.
#[derive(Object, Debug)]
#[object(key = "relay.Constant")]
pub struct Constant {
    /// The value, on the CPU.
    pub data: Tensor,
    /// Where it was written.
    #[field(ignore)]
    pub span: Option<Ref<Span>>,
}

/// A tuple.
#[derive(Object, Debug)]
#[object(key = "relay.Tuple")]
pub struct Tuple {
    /// The fields.
    pub fields: Vec<Expr>,
    /// Where it was written.
    #[field(ignore)]
    pub span: Option<Ref<Span>>,
}

/// A variable.
#[derive(Object, Debug)]
#[object(key = "relay.Var", var)]
pub struct Var {
    /// The name it prints by.
    #[field(ignore)]
    pub name: String,
    /// Its type, where that was written.
    pub annotation: Option<Type>,
    /// The device that it is on, where that was written.
    #[field(ignore)]
    pub device: Option<Ref<VirtualDevice>>,
    /// Where it was written.
    #[field(ignore)]
    pub span: Option<Ref<Span>>,
}

/// A function.
#[derive(Object, Debug)]
#[object(key = "relay.Function")]
pub struct Function {
    /// Type parameters.
    #[field(def)]
    pub type_params: Vec<Ref<TypeVar>>,
    /// Parameters.
    #[field(def)]
    pub params: Vec<Ref<Var>>,
    /// The body.
    pub body: Expr,
    /// Type of the result, where that was written.
    pub ret_type: Option<Type>,
    /// `Primitive`, `Inline`, `Compiler` …
    pub attrs: Attrs,
    /// Where it was written.
    #[field(ignore)]
    pub span: Option<Ref<Span>>,
}

/// A call.
#[derive(Object, Debug)]
#[object(key = "relay.Call")]
pub struct Call {
    /// What is called.
    pub op: Expr,
    /// Arguments.
    pub args: Vec<Expr>,
    /// Attributes; for an operator with the defaults filled in.
    pub attrs: Attrs,
    /// Types for the type parameters of what is called, where they were given.
    #[field(ignore)]
    pub type_args: Vec<Type>,
    /// Where it was written.
    #[field(ignore)]
    pub span: Option<Ref<Span>>,
}

/// A value with a name, and what is computed with it.
#[derive(Object, Debug)]
#[object(key = "relay.Let")]
pub struct Let {
    /// The name. A function is visible in its own body.
    #[field(def)]
    pub var: Ref<Var>,
    /// The value.
    pub value: Expr,
    /// What is computed with it.
    pub body: Expr,
    /// Where it was written.
    #[field(ignore)]
    pub span: Option<Ref<Span>>,
}

/// A choice by a condition.
#[derive(Object, Debug)]
#[object(key = "relay.If")]
pub struct If {
    /// A bool without dimensions.
    pub cond: Expr,
    /// Where it holds.
    pub then: Expr,
    /// Where it does not.
    pub other: Expr,
    /// Where it was written.
    #[field(ignore)]
    pub span: Option<Ref<Span>>,
}

/// A field of a tuple.
#[derive(Object, Debug)]
#[object(key = "relay.TupleGetItem")]
pub struct TupleGetItem {
    /// The tuple.
    pub tuple: Expr,
    /// Which field.
    pub index: i64,
    /// Where it was written.
    #[field(ignore)]
    pub span: Option<Ref<Span>>,
}

/// A new reference.
#[derive(Object, Debug)]
#[object(key = "relay.RefCreate")]
pub struct RefCreate {
    /// What it holds at first.
    pub value: Expr,
    /// Where it was written.
    #[field(ignore)]
    pub span: Option<Ref<Span>>,
}

/// What a reference holds.
#[derive(Object, Debug)]
#[object(key = "relay.RefRead")]
pub struct RefRead {
    /// The reference.
    pub reference: Expr,
    /// Where it was written.
    #[field(ignore)]
    pub span: Option<Ref<Span>>,
}

/// Has a reference hold something else; its value is the empty tuple.
#[derive(Object, Debug)]
#[object(key = "relay.RefWrite")]
pub struct RefWrite {
    /// The reference.
    pub reference: Expr,
    /// What it holds from now on.
    pub value: Expr,
    /// Where it was written.
    #[field(ignore)]
    pub span: Option<Ref<Span>>,
}

/// A choice by the form of a value.
#[derive(Object, Debug)]
#[object(key = "relay.Match")]
pub struct Match {
    /// The value.
    pub data: Expr,
    /// The cases, tried in order.
    pub clauses: Vec<Ref<Clause>>,
    /// Whether every form has to have a case (`match`, not `match?`).
    pub complete: bool,
    /// Where it was written.
    #[field(ignore)]
    pub span: Option<Ref<Span>>,
}

/// One case.
#[derive(Object, Debug)]
#[object(key = "relay.Clause")]
pub struct Clause {
    /// The form.
    #[field(def)]
    pub pattern: Pattern,
    /// What is computed then.
    pub body: Expr,
}

/// A form of a value.
#[derive(ObjectEnum, Debug)]
pub enum Pattern {
    /// Anything.
    Wildcard(Ref<PatternWildcard>),
    /// Anything, with a name.
    Var(Ref<PatternVar>),
    /// What a constructor made.
    Constructor(Ref<PatternConstructor>),
    /// A tuple.
    Tuple(Ref<PatternTuple>),
}

/// Anything.
#[derive(Object, Debug)]
#[object(key = "relay.PatternWildcard")]
pub struct PatternWildcard {}

/// Anything, with a name.
#[derive(Object, Debug)]
#[object(key = "relay.PatternVar")]
pub struct PatternVar {
    /// The name.
    pub var: Ref<Var>,
}

/// What a constructor made.
#[derive(Object, Debug)]
#[object(key = "relay.PatternConstructor")]
pub struct PatternConstructor {
    /// The constructor.
    pub constructor: Ref<Constructor>,
    /// Forms of its fields.
    pub patterns: Vec<Pattern>,
}

/// A tuple.
#[derive(Object, Debug)]
#[object(key = "relay.PatternTuple")]
pub struct PatternTuple {
    /// Forms of its fields.
    pub patterns: Vec<Pattern>,
}

/// What makes a value of a data type.
#[derive(Object, Debug)]
#[object(key = "relay.Constructor")]
pub struct Constructor {
    /// The name.
    pub name: String,
    /// The types of its fields, over the data type's parameters.
    #[field(ignore)]
    pub inputs: Vec<Type>,
    /// The data type.
    pub belong_to: String,
    /// What tells values apart at run time.
    pub tag: i64,
    /// How many constructors the data type has; inference and matching ask for it.
    #[field(ignore)]
    pub siblings: i64,
}

/// A data type.
#[derive(Object, Debug)]
#[object(key = "relay.TypeData")]
pub struct TypeData {
    /// The name.
    pub name: String,
    /// Parameters.
    #[field(def)]
    pub type_vars: Vec<Ref<TypeVar>>,
    /// Constructors, in order; none for an external type.
    pub constructors: Vec<Ref<Constructor>>,
    /// Whether its values are made outside of Relay.
    pub external: bool,
}

/// An operator.
#[derive(Object, Debug)]
#[object(key = "relay.Op")]
pub struct Op {
    /// The name.
    pub name: String,
}

impl Var {
    /// A variable.
    pub fn new(name: impl Into<String>, annotation: Option<Type>) -> Ref<Var> {
        Ref::new(Var { name: name.into(), annotation, device: None, span: None })
    }
}

impl Function {
    /// A function without type parameters and attributes.
    pub fn new(params: Vec<Ref<Var>>, body: Expr, ret_type: Option<Type>) -> Ref<Function> {
        Ref::new(Function { type_params: Vec::new(), params, body, ret_type, attrs: Attrs::new(), span: None })
    }

    /// The same function with another body.
    pub fn with_body(&self, body: Expr) -> Ref<Function> {
        Ref::new(Function {
            type_params: self.type_params.clone(),
            params: self.params.clone(),
            body,
            ret_type: self.ret_type.clone(),
            attrs: self.attrs.clone(),
            span: self.span.clone(),
        })
    }

    /// Whether it is one kernel.
    pub fn is_primitive(&self) -> bool {
        self.attrs.int("Primitive").is_some_and(|v| v != 0)
    }
}

impl Expr {
    /// A tensor that is known.
    pub fn constant(data: Tensor) -> Expr {
        Ref::new(Constant { data, span: None }).into()
    }

    /// A scalar, of an element type that integers are stored in.
    pub fn int(value: i64, dtype: DataType) -> Result<Expr, relaxide_ffi::Error> {
        crate::scalar::int(value, dtype).map(Expr::constant)
    }

    /// A tuple.
    pub fn tuple(fields: impl Into<Vec<Expr>>) -> Expr {
        Ref::new(Tuple { fields: fields.into(), span: None }).into()
    }

    /// A field of a tuple.
    pub fn field(tuple: impl Into<Expr>, index: i64) -> Expr {
        Ref::new(TupleGetItem { tuple: tuple.into(), index, span: None }).into()
    }

    /// A function of the module.
    pub fn global(name: impl Into<String>) -> Expr {
        GlobalVar::new(name).into()
    }

    /// An operator.
    pub fn op(name: impl Into<String>) -> Expr {
        Ref::new(Op { name: name.into() }).into()
    }

    /// A call without attributes.
    pub fn call(op: impl Into<Expr>, args: impl Into<Vec<Expr>>) -> Expr {
        Expr::call_with(op, args, Attrs::new())
    }

    /// A call.
    pub fn call_with(op: impl Into<Expr>, args: impl Into<Vec<Expr>>, attrs: Attrs) -> Expr {
        Ref::new(Call { op: op.into(), args: args.into(), attrs, type_args: Vec::new(), span: None }).into()
    }

    /// A value with a name, and what is computed with it.
    pub fn bind(var: Ref<Var>, value: impl Into<Expr>, body: impl Into<Expr>) -> Expr {
        Ref::new(Let { var, value: value.into(), body: body.into(), span: None }).into()
    }

    /// A choice by a condition.
    pub fn choice(cond: impl Into<Expr>, then: impl Into<Expr>, other: impl Into<Expr>) -> Expr {
        Ref::new(If { cond: cond.into(), then: then.into(), other: other.into(), span: None }).into()
    }

    /// Where it was written.
    pub fn span(&self) -> Option<&Ref<Span>> {
        match self {
            Expr::Constant(e) => e.span.as_ref(),
            Expr::Tuple(e) => e.span.as_ref(),
            Expr::Var(e) => e.span.as_ref(),
            Expr::Function(e) => e.span.as_ref(),
            Expr::Call(e) => e.span.as_ref(),
            Expr::Let(e) => e.span.as_ref(),
            Expr::If(e) => e.span.as_ref(),
            Expr::TupleGetItem(e) => e.span.as_ref(),
            Expr::RefCreate(e) => e.span.as_ref(),
            Expr::RefRead(e) => e.span.as_ref(),
            Expr::RefWrite(e) => e.span.as_ref(),
            Expr::Match(e) => e.span.as_ref(),
            Expr::Global(_) | Expr::Constructor(_) | Expr::Op(_) => None,
        }
    }

    /// Whether it names something that exists without being computed. Such a node may stand in many places.
    pub fn is_leaf(&self) -> bool {
        matches!(self, Expr::Var(_) | Expr::Global(_) | Expr::Constant(_) | Expr::Op(_) | Expr::Constructor(_))
    }

    /// The address, which is its identity.
    pub fn address(&self) -> usize {
        self.as_object().as_ptr().addr()
    }

    /// The expressions that it is made of, in the order in which they are evaluated; of a function, its body.
    pub fn children(&self) -> Vec<&Expr> {
        match self {
            Expr::Constant(_) | Expr::Var(_) | Expr::Global(_) | Expr::Constructor(_) | Expr::Op(_) => Vec::new(),
            Expr::Tuple(e) => e.fields.iter().collect(),
            Expr::Function(e) => vec![&e.body],
            Expr::Call(e) => std::iter::once(&e.op).chain(&e.args).collect(),
            Expr::Let(e) => vec![&e.value, &e.body],
            Expr::If(e) => vec![&e.cond, &e.then, &e.other],
            Expr::TupleGetItem(e) => vec![&e.tuple],
            Expr::RefCreate(e) => vec![&e.value],
            Expr::RefRead(e) => vec![&e.reference],
            Expr::RefWrite(e) => vec![&e.reference, &e.value],
            Expr::Match(e) => std::iter::once(&e.data).chain(e.clauses.iter().map(|c| &c.body)).collect(),
        }
    }

    /// The name of the operator and the call, if it is a call of one.
    pub fn as_op_call(&self) -> Option<(&Ref<Call>, &str)> {
        let Expr::Call(call) = self else { return None };
        let Expr::Op(op) = &call.op else { return None };
        Some((call, &op.name))
    }
}

impl Pattern {
    /// Anything.
    pub fn wildcard() -> Pattern {
        Ref::new(PatternWildcard {}).into()
    }

    /// Anything, with a name.
    pub fn var(var: Ref<Var>) -> Pattern {
        Ref::new(PatternVar { var }).into()
    }

    /// The variables that it binds, from left to right.
    pub fn vars(&self) -> Vec<Ref<Var>> {
        match self {
            Pattern::Wildcard(_) => Vec::new(),
            Pattern::Var(p) => vec![p.var.clone()],
            Pattern::Constructor(p) => p.patterns.iter().flat_map(Pattern::vars).collect(),
            Pattern::Tuple(p) => p.patterns.iter().flat_map(Pattern::vars).collect(),
        }
    }
}
