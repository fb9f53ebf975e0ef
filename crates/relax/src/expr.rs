//! The nodes of Relax.

use relaxide_ffi::{DataType, Object, ObjectEnum, Ref, Tensor};
use relaxide_ir::prim::StringImm;
use relaxide_ir::span::MaybeSpan;
use relaxide_ir::{Attrs, GlobalVar, PrimExpr, Span, Type, Var};

use crate::op::Op;

/// A Relax expression.
#[derive(ObjectEnum, Debug)]
pub enum Expr {
    /// Variable.
    Var(Ref<Var>),
    /// Variable that is visible inside its dataflow block only.
    DataflowVar(Ref<DataflowVar>),
    /// Function of the module.
    Global(Ref<GlobalVar>),
    /// Function outside the module, by name.
    Extern(Ref<ExternFunc>),
    /// Operator.
    Op(Ref<Op>),
    /// Tensor constant.
    Constant(Ref<Constant>),
    /// Scalar.
    Prim(Ref<PrimValue>),
    /// String.
    Str(Ref<StringImm>),
    /// Element type as a value.
    DType(Ref<DataTypeImm>),
    /// Shape.
    Shape(Ref<ShapeExpr>),
    /// Tuple.
    Tuple(Ref<Tuple>),
    /// Field of a tuple.
    TupleGetItem(Ref<TupleGetItem>),
    /// Call.
    Call(Ref<Call>),
    /// Choice by a condition.
    If(Ref<If>),
    /// Bindings and a result.
    Seq(Ref<SeqExpr>),
    /// Function.
    Function(Ref<Function>),
}

/// A variable that is visible inside its dataflow block only.
#[derive(Object, Debug)]
#[object(key = "relax.expr.DataflowVar", var)]
pub struct DataflowVar {
    /// The name it prints by.
    #[field(ignore)]
    pub name: String,
    /// What it holds.
    pub ty: Type,
    /// Where it was written.
    #[field(ignore)]
    pub span: Option<Ref<Span>>,
}

/// A function outside the module, found by name when the program is loaded.
#[derive(Object, Debug, Clone)]
#[object(key = "relax.expr.ExternFunc")]
pub struct ExternFunc {
    /// The name.
    pub global_symbol: String,
    /// What passes say of it, such as the source of a library function; text does not show it.
    pub attrs: Attrs,
    /// What it takes and gives, as far as the program says it.
    #[field(ignore)]
    pub ty: Type,
}

impl ExternFunc {
    /// Whether the program says something of its type.
    pub fn has_own_type(&self) -> bool {
        !matches!(&self.ty, Type::Func(f) if f.params.is_none() && matches!(f.ret, Type::Any(_)) && !f.pure && f.derive.is_none())
    }
}

/// A tensor constant.
#[derive(Object, Debug)]
#[object(key = "ir.GenericConst")]
pub struct Constant {
    /// The value, on the CPU.
    pub value: Tensor,
    /// Its type.
    pub ty: Type,
}

/// A scalar as a Relax value.
#[derive(Object, Debug)]
#[object(key = "relax.expr.PrimValue")]
pub struct PrimValue {
    /// The scalar, over symbolic variables in scope.
    pub value: PrimExpr,
}

/// An element type as a Relax value.
#[derive(Object, Debug)]
#[object(key = "relax.expr.DataTypeImm")]
pub struct DataTypeImm {
    /// The type.
    pub value: DataType,
}

/// A shape: dimensions over symbolic variables in scope.
#[derive(Object, Debug)]
#[object(key = "relax.expr.ShapeExpr")]
pub struct ShapeExpr {
    /// The dimensions.
    pub values: Vec<PrimExpr>,
}

/// A tuple.
#[derive(Object, Debug)]
#[object(key = "ir.Tuple")]
pub struct Tuple {
    /// The fields.
    pub fields: Vec<Expr>,
}

/// A field of a tuple.
#[derive(Object, Debug)]
#[object(key = "ir.TupleGetItem")]
pub struct TupleGetItem {
    /// The tuple.
    pub tuple: Expr,
    /// Which field.
    pub index: i64,
}

/// A call of an operator, a function of the module, an external function or a closure.
#[derive(Object, Debug)]
#[object(key = "ir.Call")]
pub struct Call {
    /// What is called.
    pub op: Expr,
    /// Arguments.
    pub args: Vec<Expr>,
    /// Constant parameters of the operator.
    pub attrs: Attrs,
    /// Types given at the call, such as the result of `call_tir`.
    pub ty_args: Vec<Type>,
    /// Type of the result.
    #[field(ignore)]
    pub ty: Type,
    /// Where it was written.
    #[field(ignore)]
    pub span: Option<Ref<Span>>,
}

/// A choice by a condition; both branches are sequences.
#[derive(Object, Debug)]
#[object(key = "relax.expr.If")]
pub struct If {
    /// A bool scalar, or a 0-d bool tensor.
    pub condition: Expr,
    /// Value where it holds.
    pub true_branch: Ref<SeqExpr>,
    /// Value where it does not.
    pub false_branch: Ref<SeqExpr>,
    /// Type of the result.
    #[field(ignore)]
    pub ty: Type,
}

/// Bindings, then a result.
#[derive(Object, Debug)]
#[object(key = "relax.expr.SeqExpr")]
pub struct SeqExpr {
    /// The bindings, in blocks.
    pub blocks: Vec<Ref<BindingBlock>>,
    /// The result.
    pub body: Expr,
}

/// Bindings in order.
#[derive(Object, Debug)]
#[object(key = "relax.expr.BindingBlock")]
pub struct BindingBlock {
    /// The bindings.
    pub bindings: Vec<Binding>,
    /// Whether it is a dataflow block: no side effects, no control flow.
    pub dataflow: bool,
}

/// One binding.
#[derive(ObjectEnum, Debug)]
pub enum Binding {
    /// `var = value`.
    Var(Ref<VarBinding>),
    /// `var = match_cast(value, ty)`.
    MatchCast(Ref<MatchCast>),
}

/// `var = value`.
#[derive(Object, Debug)]
#[object(key = "relax.expr.VarBinding")]
pub struct VarBinding {
    /// The variable: [`Expr::Var`] or [`Expr::DataflowVar`].
    #[field(def)]
    pub var: AnyVar,
    /// Its value.
    pub value: Expr,
}

/// `var = match_cast(value, ty)`: a check at run time that also binds the symbolic variables that `ty` mentions first.
#[derive(Object, Debug)]
#[object(key = "relax.expr.MatchCast")]
pub struct MatchCast {
    /// The variable.
    #[field(def)]
    pub var: AnyVar,
    /// What is checked.
    pub value: Expr,
    /// The type it must have.
    #[field(def)]
    pub ty: Type,
}

/// A variable of either kind, where one is bound.
#[derive(ObjectEnum, Debug)]
pub enum AnyVar {
    /// Visible to the end of the function.
    Var(Ref<Var>),
    /// Visible to the end of its dataflow block.
    Dataflow(Ref<DataflowVar>),
}

/// A function.
#[derive(Object, Debug, Clone)]
#[object(key = "relax.expr.Function")]
pub struct Function {
    /// Parameters. Symbolic variables in their types are bound by the call.
    #[field(def)]
    pub params: Vec<Ref<Var>>,
    /// The body.
    pub body: Ref<SeqExpr>,
    /// Type of the result.
    pub ret_ty: Type,
    /// Whether calls have no visible effect.
    pub pure: bool,
    /// `global_symbol`, `relax.force_pure`, `Primitive` …
    pub attrs: Attrs,
    /// Where it was written.
    #[field(ignore)]
    pub span: Option<Ref<Span>>,
}

impl AnyVar {
    /// The name it prints by.
    pub fn name(&self) -> &str {
        match self {
            AnyVar::Var(v) => &v.name,
            AnyVar::Dataflow(v) => &v.name,
        }
    }

    /// A new variable of the same name and kind that holds something else.
    pub fn with_type(&self, ty: Type) -> AnyVar {
        match self {
            AnyVar::Var(v) => AnyVar::Var(Ref::new(Var { name: v.name.clone(), ty, span: v.span.clone() })),
            AnyVar::Dataflow(v) => {
                AnyVar::Dataflow(Ref::new(DataflowVar { name: v.name.clone(), ty, span: v.span.clone() }))
            }
        }
    }

    /// A new variable of a dataflow block that takes its place: of the same name and type, and written there.
    pub fn to_local(&self) -> AnyVar {
        let (name, ty, span) = (self.name().to_string(), self.ty().clone(), self.span().cloned());
        AnyVar::Dataflow(Ref::new(DataflowVar { name, ty, span }))
    }

    /// A new variable that is seen outside of dataflow blocks, and otherwise the same.
    pub fn to_outer(&self) -> AnyVar {
        let (name, ty, span) = (self.name().to_string(), self.ty().clone(), self.span().cloned());
        AnyVar::Var(Ref::new(Var { name, ty, span }))
    }

    /// A new variable of the same name, type and kind that was written elsewhere.
    pub fn written_at(&self, span: &Ref<Span>) -> AnyVar {
        let (name, ty, span) = (self.name().to_string(), self.ty().clone(), Some(span.clone()));
        match self {
            AnyVar::Var(_) => AnyVar::Var(Ref::new(Var { name, ty, span })),
            AnyVar::Dataflow(_) => AnyVar::Dataflow(Ref::new(DataflowVar { name, ty, span })),
        }
    }

    /// Where it was written.
    pub fn span(&self) -> Option<&Ref<Span>> {
        match self {
            AnyVar::Var(v) => v.span.as_ref(),
            AnyVar::Dataflow(v) => v.span.as_ref(),
        }
    }

    /// What it holds.
    pub fn ty(&self) -> &Type {
        match self {
            AnyVar::Var(v) => &v.ty,
            AnyVar::Dataflow(v) => &v.ty,
        }
    }
}

impl From<AnyVar> for Expr {
    fn from(var: AnyVar) -> Self {
        match var {
            AnyVar::Var(v) => Expr::Var(v),
            AnyVar::Dataflow(v) => Expr::DataflowVar(v),
        }
    }
}

impl Binding {
    /// The variable that is bound.
    pub fn var(&self) -> &AnyVar {
        match self {
            Binding::Var(b) => &b.var,
            Binding::MatchCast(b) => &b.var,
        }
    }

    /// What it is bound to.
    pub fn value(&self) -> &Expr {
        match self {
            Binding::Var(b) => &b.value,
            Binding::MatchCast(b) => &b.value,
        }
    }
}

impl Function {
    /// The type of the function itself.
    pub fn ty(&self) -> Type {
        Type::func(self.params.iter().map(|p| p.ty.clone()).collect::<Vec<_>>(), self.ret_ty.clone(), self.pure)
    }
}

impl Expr {
    /// The type, as far as it is known.
    pub fn ty(&self) -> Type {
        match self {
            Expr::Var(v) => v.ty.clone(),
            Expr::DataflowVar(v) => v.ty.clone(),
            Expr::Global(g) => g.ty.clone(),
            Expr::Extern(f) => f.ty.clone(),
            Expr::Op(_) => Type::missing(),
            Expr::Constant(c) => c.ty.clone(),
            Expr::Prim(p) => Type::prim(p.value.dtype()),
            Expr::Str(_) => Type::string(),
            Expr::DType(_) => Type::any(),
            Expr::Shape(s) => Type::shape(s.values.iter().cloned()),
            Expr::Tuple(t) => Type::tuple(t.fields.iter().map(Expr::ty).collect::<Vec<_>>()),
            Expr::TupleGetItem(t) => match t.tuple.ty() {
                Type::Tuple(ty) => {
                    usize::try_from(t.index).ok().and_then(|i| ty.fields.get(i)).cloned().unwrap_or_else(Type::missing)
                }
                Type::Any(_) => Type::any(),
                _ => Type::missing(),
            },
            Expr::Call(c) => c.ty.clone(),
            Expr::If(i) => i.ty.clone(),
            Expr::Seq(s) => s.body.ty(),
            Expr::Function(f) => f.ty(),
        }
    }

    /// The variable, if it is one.
    pub fn as_var(&self) -> Option<AnyVar> {
        match self {
            Expr::Var(v) => Some(AnyVar::Var(v.clone())),
            Expr::DataflowVar(v) => Some(AnyVar::Dataflow(v.clone())),
            _ => None,
        }
    }

    /// The call and the operator's name, if it is a call of an operator.
    pub fn as_op_call(&self) -> Option<(&Ref<Call>, &str)> {
        let Expr::Call(call) = self else { return None };
        call.op_name().map(|name| (call, name))
    }

    /// The scalar that it is: a literal, a computation, or a variable that holds a scalar.
    pub fn as_scalar(&self) -> Option<PrimExpr> {
        match self {
            Expr::Prim(p) => Some(p.value.clone()),
            Expr::Var(v) if matches!(v.ty, Type::Prim(_)) => Some(PrimExpr::Var(v.clone())),
            _ => None,
        }
    }

    /// A tuple.
    pub fn tuple(fields: impl Into<Vec<Expr>>) -> Expr {
        Ref::new(Tuple { fields: fields.into() }).into()
    }

    /// A field of a tuple.
    pub fn field(tuple: impl Into<Expr>, index: usize) -> Expr {
        Ref::new(TupleGetItem { tuple: tuple.into(), index: index as i64 }).into()
    }

    /// The same, where it is a call, as what comes from somewhere.
    pub fn made_of(self, span: MaybeSpan) -> Expr {
        match (&self, &span) {
            (Expr::Call(call), Some(_)) => {
                let Call { op, args, attrs, ty_args, ty, .. } = &**call;
                let (op, args, attrs) = (op.clone(), args.clone(), attrs.clone());
                Ref::new(Call { op, args, attrs, ty_args: ty_args.clone(), ty: ty.clone(), span }).into()
            }
            _ => self,
        }
    }

    /// A shape.
    pub fn shape(values: impl IntoIterator<Item = impl Into<PrimExpr>>) -> Expr {
        Ref::new(ShapeExpr { values: values.into_iter().map(Into::into).collect() }).into()
    }

    /// A scalar.
    pub fn prim(value: impl Into<PrimExpr>) -> Expr {
        Ref::new(PrimValue { value: value.into() }).into()
    }

    /// A string.
    pub fn string(value: impl Into<String>) -> Expr {
        Ref::new(StringImm { value: value.into() }).into()
    }

    /// An element type as a value.
    pub fn dtype(value: DataType) -> Expr {
        Ref::new(DataTypeImm { value }).into()
    }

    /// A tensor constant.
    pub fn constant(value: Tensor) -> Expr {
        let ty = Type::tensor(value.shape().iter().copied(), value.dtype());
        Ref::new(Constant { value, ty }).into()
    }

    /// A function outside the module.
    pub fn external(name: impl Into<String>) -> Expr {
        Expr::external_typed(name, Type::packed_func(Type::any(), false))
    }

    /// A function outside the module of which the program says what it takes and gives.
    pub fn external_typed(name: impl Into<String>, ty: Type) -> Expr {
        Ref::new(ExternFunc { global_symbol: name.into(), attrs: Attrs::new(), ty }).into()
    }
}

impl Call {
    /// The same call with other arguments and the type to go with them.
    pub fn with_args(&self, args: Vec<Expr>, ty: Type) -> Ref<Call> {
        Ref::new(Call {
            op: self.op.clone(),
            args,
            attrs: self.attrs.clone(),
            ty_args: self.ty_args.clone(),
            ty,
            span: self.span.clone(),
        })
    }
}
