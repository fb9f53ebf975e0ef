//! Constructors of Relay's types, expressions, patterns and modules.

use relaxide::ffi::{Any, Array, DataType, Error, ErrorKind, Map, Object, Ref, Tensor};
use relaxide::relay::*;
use relaxide::relay_vm::{Adt, RefValue};

use super::super::{Args, Row};

pub(in super::super) const TABLE: &[Row] = &[
    ("relay.ir.TensorType", |args| Ok(Type::tensor(args.get::<Vec<i64>>(0)?, args.get::<DataType>(1)?).into())),
    ("relay.ir.TupleType", |args| Ok(Type::tuple(args.get::<Vec<Type>>(0)?).into())),
    ("relay.ir.FuncType", |args| {
        let (type_params, params, ret) = (args.get(2)?, args.get(0)?, args.get(1)?);
        Ok(Ref::new(FuncType { type_params, args: params, ret }).into())
    }),
    ("relay.ir.TypeVar", |args| Ok(Ref::new(TypeVar { name: args.get(0)? }).into())),
    ("relay.ir.TypeCall", |args| Ok(Type::data(args.get::<String>(0)?, args.get::<Vec<Type>>(1)?).into())),
    ("relay.ir.RefType", |args| Ok(Type::reference(args.get(0)?).into())),
    ("relay.ir.IncompleteType", |_| Ok(Type::fresh().into())),
    ("relay.ir.Var", |args| Ok(Var::new(args.get::<String>(0)?, args.optional(1)?).into())),
    ("relay.ir.Constant", |args| Ok(Expr::constant(args.get::<Tensor>(0)?).into())),
    ("relay.ir.Tuple", |args| Ok(Expr::tuple(args.get::<Vec<Expr>>(0)?).into())),
    ("relay.ir.TupleGetItem", |args| Ok(Expr::field(args.get::<Expr>(0)?, args.get(1)?).into())),
    ("relay.ir.Function", |args| {
        let (params, body, ret_type) = (args.get(0)?, args.get(1)?, args.optional(2)?);
        let (type_params, attrs) = (args.get(3)?, args.attrs(4)?);
        Ok(Ref::new(Function { type_params, params, body, ret_type, attrs, span: None }).into())
    }),
    ("relay.ir.Call", call),
    ("relay.ir.Let", |args| Ok(Expr::bind(args.get(0)?, args.get::<Expr>(1)?, args.get::<Expr>(2)?).into())),
    ("relay.ir.If", |args| Ok(Expr::choice(args.get::<Expr>(0)?, args.get::<Expr>(1)?, args.get::<Expr>(2)?).into())),
    ("relay.ir.RefCreate", |args| Ok(Ref::new(RefCreate { value: args.get(0)?, span: None }).into())),
    ("relay.ir.RefRead", |args| Ok(Ref::new(RefRead { reference: args.get(0)?, span: None }).into())),
    ("relay.ir.RefWrite", |args| {
        Ok(Ref::new(RefWrite { reference: args.get(0)?, value: args.get(1)?, span: None }).into())
    }),
    ("relay.ir.Match", |args| {
        let (data, clauses, complete) = (args.get(0)?, args.get(1)?, args.get(2)?);
        Ok(Ref::new(Match { data, clauses, complete, span: None }).into())
    }),
    ("relay.ir.Clause", |args| Ok(Ref::new(Clause { pattern: args.get(0)?, body: args.get(1)? }).into())),
    ("relay.ir.PatternWildcard", |_| Ok(Pattern::wildcard().into())),
    ("relay.ir.PatternVar", |args| Ok(Pattern::var(args.get(0)?).into())),
    ("relay.ir.PatternConstructor", |args| {
        Ok(Ref::new(PatternConstructor { constructor: args.get(0)?, patterns: args.get(1)? }).into())
    }),
    ("relay.ir.PatternTuple", |args| Ok(Ref::new(PatternTuple { patterns: args.get(0)? }).into())),
    ("relay.ir.Op", |args| {
        let name: String = args.get(0)?;
        match op::lookup(&name) {
            Some(_) => Ok(Expr::op(name).into()),
            None => Err(Error::new(ErrorKind::AttributeError, no_operator(&name))),
        }
    }),
    ("relay.ir.TypeData", type_data),
    ("relay.ir.Module", module),
    ("relay.ir.WithAttr", |args| {
        let function: Ref<Function> = args.get(0)?;
        let mut attrs = function.attrs.clone();
        for (name, value) in args.attrs(1)?.0 {
            attrs = attrs.with(name, value);
        }
        let (type_params, params) = (function.type_params.clone(), function.params.clone());
        let (body, ret_type, span) = (function.body.clone(), function.ret_type.clone(), function.span.clone());
        Ok(Ref::new(Function { type_params, params, body, ret_type, attrs, span }).into())
    }),
    ("relay.ir.FreeVars", |args| {
        Ok(Array::from_iter(visit::free_vars(&args.get(0)?).into_iter().map(Any::from)).into())
    }),
    ("relay.vm.MakeADT", |args| Ok(Adt::new(args.get(0)?, args.get(1)?).into())),
    ("relay.vm.RefGet", |args| Ok(args.get::<Ref<RefValue>>(0)?.get())),
];

/// Makes the types of these nodes known by their keys.
pub(in super::super) fn enter() {
    TensorType::type_index();
    TupleType::type_index();
    FuncType::type_index();
    TypeVar::type_index();
    TypeCall::type_index();
    RefType::type_index();
    IncompleteType::type_index();
    Constant::type_index();
    Tuple::type_index();
    Var::type_index();
    Function::type_index();
    Call::type_index();
    Let::type_index();
    If::type_index();
    TupleGetItem::type_index();
    RefCreate::type_index();
    RefRead::type_index();
    RefWrite::type_index();
    Match::type_index();
    Clause::type_index();
    PatternWildcard::type_index();
    PatternVar::type_index();
    PatternConstructor::type_index();
    PatternTuple::type_index();
    Constructor::type_index();
    TypeData::type_index();
    Op::type_index();
    Module::type_index();
    Adt::type_index();
    RefValue::type_index();
}

pub(super) fn no_operator(name: &str) -> String {
    let guess = relaxide::ir::diagnostic::closest(name, op::all().map(|def| def.name));
    let guess = guess.map_or(String::new(), |guess| format!("; did you mean {guess}?"));
    format!("there is no operator {name}{guess}")
}

/// `(op, args, attrs, type_args)`. The attributes of an operator are checked, and its defaults filled in.
fn call(args: &Args<'_>) -> Result<Any, Error> {
    let (callee, operands, attrs): (Expr, Vec<Expr>, _) = (args.get(0)?, args.get(1)?, args.attrs(2)?);
    let attrs = match &callee {
        Expr::Op(node) => {
            let def = op::lookup(&node.name);
            let def = def.ok_or_else(|| Error::new(ErrorKind::AttributeError, no_operator(&node.name)))?;
            def.complete_attrs(&attrs)
                .map_err(|why| Error::new(ErrorKind::ValueError, format!("{}: {why}", node.name)))?
        }
        _ => attrs,
    };
    let type_args = args.optional::<Vec<Type>>(3)?.unwrap_or_default();
    Ok(Ref::new(Call { op: callee, args: operands, attrs, type_args, span: None }).into())
}

/// `(name, type parameters, [(constructor, types of its fields)])`.
fn type_data(args: &Args<'_>) -> Result<Any, Error> {
    let (name, vars, list): (String, Vec<Ref<TypeVar>>, Array) = (args.get(0)?, args.get(1)?, args.get(2)?);
    let mut defs = Vec::new();
    for item in list.iter() {
        let pair: Array = item.to()?;
        let part = |at: usize| pair.iter().nth(at).cloned().unwrap_or_default();
        defs.push(ConstructorDef { name: part(0).to()?, inputs: part(1).to()? });
    }
    Ok(TypeData::new(&name, vars, defs).into())
}

/// `(functions by name, data types, attributes)`.
fn module(args: &Args<'_>) -> Result<Any, Error> {
    let (functions, types): (Map, Vec<Ref<TypeData>>) = (args.get(0)?, args.get(1)?);
    let mut module = Module::new();
    for (name, function) in functions.iter() {
        module.functions.insert(name.to()?, function.to()?);
    }
    for ty in types {
        module.types.insert(ty.name.clone(), ty);
    }
    module.attrs = args.attrs(2)?;
    Ok(Ref::new(module).into())
}
