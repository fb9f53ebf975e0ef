//! Constructors of Relax nodes and of functions.

use relaxide::ffi::{Any, Error, ErrorKind, Object, ObjectRef, Ref};
use relaxide::ir::{Attrs, GlobalVar, PrimExpr, Span, Type, Var};
use relaxide::relax::builder::infer;
use relaxide::relax::op::Op;
use relaxide::relax::shape::unify;
use relaxide::relax::{
    self, Binding, BindingBlock, Call, Constant, DataTypeImm, DataflowVar, Expr, ExternFunc, Function, If, MatchCast,
    SeqExpr, ShapeExpr, Tuple, TupleGetItem, VarBinding,
};
use relaxide::script as print;
use relaxide::tir::{self, PrimFunc, Stmt};

use super::{Args, Row};

pub(super) const TABLE: &[Row] = &[
    ("ir.Span", span),
    ("ir.Op", |args| Ok(op(&args.get::<String>(0)?)?.into())),
    ("ir.GlobalVar", |args| Ok(GlobalVar::typed(args.get::<String>(0)?, args.ty(1)?).into())),
    ("ir.Var", |args| Ok(Ref::new(Var { name: args.get(0)?, ty: args.ty(1)?, span: args.span(2)? }).into())),
    ("ir.Call", call),
    ("ir.Tuple", |args| Ok(Expr::tuple(args.exprs(0)?).into())),
    ("ir.TupleGetItem", tuple_field),
    ("ir.GenericConst", constant),
    ("ir.ExprType", |args| Ok(args.expr(0)?.ty().into())),
    ("ir.WithAttrs", with_attrs),
    ("ir.WithoutAttr", without_attr),
    ("ir.Script", script),
    ("ir.ScriptSpans", script_spans),
    ("relax.DataflowVar", |args| {
        Ok(Ref::new(DataflowVar { name: args.get(0)?, ty: args.ty(1)?, span: args.span(2)? }).into())
    }),
    ("relax.DataTypeImm", |args| Ok(Expr::dtype(args.get(0)?).into())),
    ("relax.ShapeExpr", |args| Ok(Expr::shape(args.prims(0)?.unwrap_or_default()).into())),
    ("relax.ExternFunc", |args| {
        let name = args.get::<String>(0)?;
        Ok(match args.optional::<Type>(1)? {
            Some(ty) => Expr::external_typed(name, ty),
            None => Expr::external(name),
        }
        .into())
    }),
    ("relax.If", choice),
    ("relax.SeqExpr", |args| Ok(Ref::new(SeqExpr { blocks: args.get(0)?, body: args.expr(1)? }).into())),
    ("relax.Function", function),
    ("relax.VarBinding", |args| Ok(Ref::new(VarBinding { var: args.var(0)?, value: args.expr(1)? }).into())),
    ("relax.MatchCast", |args| {
        Ok(Ref::new(MatchCast { var: args.var(0)?, value: args.expr(1)?, ty: args.ty(2)? }).into())
    }),
    ("relax.BindingBlock", |args| block(args, false)),
    ("relax.DataflowBlock", |args| block(args, true)),
    ("relax.ToExpr", |args| Ok(args.expr(0)?.into())),
    ("relax.CopyWithNewVars", |args| Ok(relax::transform::fresh_copy(&args.get(0)?).into())),
];

/// Makes the types of these nodes known by their keys.
pub(super) fn enter() {
    Span::type_index();
    Op::type_index();
    GlobalVar::type_index();
    Call::type_index();
    Tuple::type_index();
    TupleGetItem::type_index();
    Constant::type_index();
    DataflowVar::type_index();
    relax::PrimValue::type_index();
    DataTypeImm::type_index();
    ShapeExpr::type_index();
    ExternFunc::type_index();
    If::type_index();
    SeqExpr::type_index();
    Function::type_index();
    VarBinding::type_index();
    MatchCast::type_index();
    BindingBlock::type_index();
    PrimFunc::type_index();
    tir::For::type_index();
    tir::While::type_index();
    tir::SeqStmt::type_index();
    tir::IfThenElse::type_index();
    tir::BufferStore::type_index();
    tir::Bind::type_index();
    tir::AllocBuffer::type_index();
    tir::Evaluate::type_index();
    tir::AssertStmt::type_index();
    tir::AttrStmt::type_index();
    tir::CommReducer::type_index();
    tir::DeclBuffer::type_index();
    tir::Break::type_index();
    tir::Continue::type_index();
    tir::Return::type_index();
    tir::IterVar::type_index();
    tir::Range::type_index();
    tir::BufferRegion::type_index();
    tir::MatchBufferRegion::type_index();
    tir::SBlock::type_index();
    tir::SBlockRealize::type_index();
}

fn span(args: &Args<'_>) -> Result<Any, Error> {
    let (source, line, end_line) = (args.get(0)?, args.get(1)?, args.get(2)?);
    let (column, end_column) = (args.get(3)?, args.get(4)?);
    Ok(Ref::new(Span { source, line, end_line, column, end_column, notes: Vec::new() }).into())
}

fn op(name: &str) -> Result<Ref<Op>, Error> {
    match relax::op::lookup(name) {
        Some(def) => Ok(Op::get(def.name)),
        None => Err(Error::new(ErrorKind::AttributeError, format!("there is no operator {name}"))),
    }
}

/// `(op, args, attrs, ty_args, span, ty)`. A call of an operator is checked, and its type inferred where none is given.
fn call(args: &Args<'_>) -> Result<Any, Error> {
    let (op, operands, attrs, ty_args) = (args.expr(0)?, args.exprs(1)?, args.attrs(2)?, args.types(3)?);
    let (span, ty) = (args.span(4)?, args.ty(5)?);
    let mut call = Call { op, args: operands, attrs, ty_args, ty, span };
    if let (Expr::Op(op), true) = (&call.op, call.ty.is_missing()) {
        let typed = relax::op::call_typed(&op.name, call.args, call.attrs, call.ty_args)
            .map_err(|error| Error::new(ErrorKind::ValueError, error.to_string()))?;
        return Ok(typed.into());
    }
    if call.ty.is_missing() {
        call.ty = infer(&call).map_err(|error| Error::new(ErrorKind::ValueError, error.to_string()))?;
    }
    Ok(Ref::new(call).into())
}

fn tuple_field(args: &Args<'_>) -> Result<Any, Error> {
    let (tuple, index): (Expr, i64) = (args.expr(0)?, args.get(1)?);
    if let Type::Tuple(ty) = tuple.ty()
        && usize::try_from(index).map_or(true, |index| index >= ty.fields.len())
    {
        let message = format!("the tuple has {} fields, so there is no field {index}", ty.fields.len());
        return Err(Error::new(ErrorKind::IndexError, message));
    }
    Ok(Ref::new(TupleGetItem { tuple, index }).into())
}

fn constant(args: &Args<'_>) -> Result<Any, Error> {
    let value: relaxide::ffi::Tensor = args.get(0)?;
    Ok(match args.ty(1)? {
        Type::Missing(_) => Expr::constant(value).into(),
        ty => Ref::new(Constant { value, ty }).into(),
    })
}

/// An expression as a sequence.
fn sequence(body: Expr) -> Ref<SeqExpr> {
    match body {
        Expr::Seq(seq) => seq,
        body => Ref::new(SeqExpr { blocks: Vec::new(), body }),
    }
}

fn choice(args: &Args<'_>) -> Result<Any, Error> {
    let (condition, on_true, on_false) = (args.expr(0)?, sequence(args.expr(1)?), sequence(args.expr(2)?));
    let ty = unify(&on_true.body.ty(), &on_false.body.ty());
    Ok(Ref::new(If { condition, true_branch: on_true, false_branch: on_false, ty }).into())
}

/// `(params, body, ret_ty, pure, attrs, span)`.
fn function(args: &Args<'_>) -> Result<Any, Error> {
    let (params, body) = (args.get::<Vec<Ref<Var>>>(0)?, sequence(args.expr(1)?));
    let known = relax::shape::vars_of(params.iter().map(|param| &param.ty));
    let found = relax::shape::erase_type(&body.body.ty(), &|var| known.contains(var) || params.contains(var));
    // As in text: what the body says of its result in more detail than the declaration holds.
    let ret_ty = match (args.ty(2)?, &found) {
        (Type::Missing(_), _) => found,
        (declared, Type::Missing(_)) => declared,
        (declared, _) if relax::shape::includes(&declared, &found) => found,
        (declared, _) => declared,
    };
    let function =
        Ref::new(Function { params, body, ret_ty, pure: args.get(3)?, attrs: args.attrs(4)?, span: args.span(5)? });
    Ok(relax::symbols::settle(&function).into())
}

fn block(args: &Args<'_>, dataflow: bool) -> Result<Any, Error> {
    let bindings: Vec<Binding> = args.get(0)?;
    Ok(Ref::new(BindingBlock { bindings, dataflow }).into())
}

/// A function with other attributes.
fn changed(function: &ObjectRef, change: impl FnOnce(&mut Attrs)) -> Result<Any, Error> {
    if let Some(function) = function.downcast_ref::<Function>() {
        let mut function = Function::clone(function);
        change(&mut function.attrs);
        return Ok(Ref::new(function).into());
    }
    if let Some(function) = function.downcast_ref::<PrimFunc>() {
        let mut function = PrimFunc::clone(function);
        change(&mut function.attrs);
        return Ok(Ref::new(function).into());
    }
    if let Some(function) = function.downcast_ref::<ExternFunc>() {
        let mut function = ExternFunc::clone(function);
        change(&mut function.attrs);
        return Ok(Ref::new(function).into());
    }
    Err(Error::new(ErrorKind::TypeError, format!("an object of type {} has no attributes", function.type_key())))
}

fn with_attrs(args: &Args<'_>) -> Result<Any, Error> {
    let more = args.attrs(1)?;
    changed(&args.get(0)?, |attrs| {
        for (name, value) in more.0 {
            attrs.0.insert(name, value);
        }
    })
}

fn without_attr(args: &Args<'_>) -> Result<Any, Error> {
    let name: String = args.get(1)?;
    changed(&args.get(0)?, |attrs| {
        attrs.0.shift_remove(&name);
    })
}

/// A node as text.
fn script(args: &Args<'_>) -> Result<Any, Error> {
    let node: ObjectRef = args.get(0)?;
    if let Some(func) = node.downcast_ref::<PrimFunc>() {
        return Ok(print::print_prim_func(func).as_str().into());
    }
    if let Some(func) = node.downcast_ref::<Function>() {
        return Ok(print::print_function(func).as_str().into());
    }
    let text = if let Ok(ty) = Type::try_from(node.clone()) {
        print::print_type(&ty)
    } else if let Some(var) = node.downcast_ref::<Var>() {
        print::print_variable(var)
    } else if let Ok(scalar) = PrimExpr::try_from(node.clone()) {
        print::print_scalar(&scalar)
    } else if let Ok(expr) = Expr::try_from(node.clone()) {
        print::print_expr(&expr)
    } else if let Ok(stmt) = Stmt::try_from(node.clone()) {
        print::print_stmt(&stmt)
    } else if let Ok(binding) = Binding::try_from(node.clone()) {
        print::print_binding(&binding)
    } else if let Some(block) = node.downcast_ref::<BindingBlock>() {
        print::print_block(block)
    } else if let Some(text) = print::print_part(&node) {
        text
    } else {
        let message = format!("an object of type {} has no form in TVMScript", node.type_key());
        return Err(Error::new(ErrorKind::TypeError, message));
    };
    Ok(text.as_str().into())
}

/// A module or a function as text, and for each of the nodes its spans in it, `[begin, end, begin, end …]`.
fn script_spans(args: &Args<'_>) -> Result<Any, Error> {
    let (root, nodes): (ObjectRef, Vec<ObjectRef>) = (args.get(0)?, args.get(1)?);
    let options = print::PrintOptions { show_meta: args.get(2)? };
    let printed = print::print_with_spans(&root, &nodes, options);
    let printed = printed.map_err(|error| Error::new(ErrorKind::ValueError, error.to_string()))?;
    let Some((text, spans)) = printed else { return Ok(Any::none()) };
    let flat = |list: &print::Spans| list.iter().flat_map(|(b, e)| [*b as i64, *e as i64]).collect::<Vec<i64>>();
    let spans: Vec<Any> = spans.iter().map(|list| Any::from(flat(list))).collect();
    Ok(Any::from(vec![Any::from(text.as_str()), Any::from(spans)]))
}
