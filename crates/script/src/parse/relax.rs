//! Relax functions: signatures, bindings, blocks, choices.

mod blocks;
mod nested;

use std::collections::HashMap;

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::{Attrs, Type, Var};
use relaxide_relax::builder::is_pure;
use relaxide_relax::shape::{contradict, erase_type, includes, same_type, unify, vars_of};
use relaxide_relax::{
    AnyVar, Binding, BindingBlock, DataflowVar, Expr as Relax, Function, MatchCast, SeqExpr, Tuple, VarBinding,
};
use ruff_python_ast::{self as ast, Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};

use super::args::Args;
use super::value::Value;
use super::{Language, Parsed, Parser};
use crate::print::print_type;
use blocks::is_void;
use relaxide_ir::diagnostic::Code;

/// Bindings under construction: those of a function's body or of a branch.
#[derive(Default)]
pub(super) struct RelaxFrame {
    blocks: Vec<Ref<BindingBlock>>,
    open: Vec<Binding>,
    /// In a dataflow block, the names that it gives out, with how many bindings of each are still to come.
    dataflow: Option<HashMap<String, usize>>,
    /// Whether `R.output` has ended that block.
    given_out: bool,
    result: Option<Relax>,
}

/// How the value of a binding is written.
enum Bound {
    Value(Relax),
    MatchCast(Relax, Type),
}

impl Parser<'_> {
    /// The type of a function as its signature says, for calls that come before its body.
    pub(super) fn signature_type(&mut self, def: &ast::StmtFunctionDef, pure: bool) -> Parsed<Type> {
        self.language = Language::Relax;
        self.in_function(&def.body, |p| {
            let params = p.params(def)?;
            let ret = p.returns(def)?.unwrap_or_else(Type::any);
            Ok(Type::func(params.iter().map(|v| v.ty.clone()).collect::<Vec<_>>(), ret, pure))
        })
    }

    /// A function; `symbol` is the name it is exported by.
    pub(super) fn relax_function(
        &mut self,
        def: &ast::StmtFunctionDef,
        pure: bool,
        symbol: Option<&str>,
    ) -> Parsed<Function> {
        self.language = Language::Relax;
        let outer_taken = std::mem::take(&mut self.taken);
        let result = self.in_function(&def.body, |p| {
            let params = p.params(def)?;
            let returns = p.returns(def)?;
            p.frames.push(RelaxFrame::default());
            let mut attrs = symbol.map_or(Attrs::new(), |s| Attrs::new().with("global_symbol", s));
            let body = p.function_body(def, &mut attrs);
            let frame = p.frames.pop().unwrap_or_default();
            body?;
            let Some(result) = frame.result else {
                return Err(p.error(Code::Structure, format!("`{}` does not return", def.name), def.name.range));
            };
            // Dimensions that only the body knows mean nothing outside.
            let known = vars_of(params.iter().map(|param: &Ref<Var>| &param.ty));
            let found = erase_type(&result.ty(), &|var| known.contains(var));
            // What the body says of its result in more detail than the signature holds for callers, too.
            let ret_ty = match returns {
                Some(declared) if contradict(&declared, &found) => p.wrong_result(def, declared, found)?,
                Some(declared) if !includes(&declared, &found) => declared,
                _ => found,
            };
            let body = Ref::new(SeqExpr { blocks: frame.blocks, body: result });
            Ok(Function { params, body, ret_ty, pure, attrs, span: p.span(def.name.range) })
        });
        self.taken = outer_taken;
        result
    }

    /// The type of a result that is declared to be what its value cannot be. TVM reads such programs; here the value decides, and
    /// the program's author is warned. Without an author to tell, the declaration stays, which well-formedness refuses.
    fn wrong_result(&self, def: &ast::StmtFunctionDef, declared: Type, found: Type) -> Parsed<Type> {
        let Some(host) = self.host else { return Ok(declared) };
        let (said, value) = (print_type(&declared), print_type(&found));
        let message = format!("`{}` is declared to return {said}, but its value is {value}, which is taken", def.name);
        match host.warn(&message) {
            Ok(()) => Ok(found),
            Err(_) => Err(self.error(Code::Contradiction, message, def.name.range)),
        }
    }

    fn params(&mut self, def: &ast::StmtFunctionDef) -> Parsed<Vec<Ref<Var>>> {
        let list = &def.parameters;
        if list.vararg.is_some() || list.kwarg.is_some() || !list.kwonlyargs.is_empty() || !list.posonlyargs.is_empty()
        {
            return Err(self.unsupported("a parameter of this kind", list.range));
        }
        self.defining = true;
        let params: Parsed<Vec<_>> = list
            .args
            .iter()
            .map(|arg| {
                let name = &arg.parameter.name;
                let Some(annotation) = &arg.parameter.annotation else {
                    return Err(self
                        .error(Code::Type, format!("the parameter `{name}` has no type"), name.range)
                        .with_help("write R.Tensor((2, 3), \"float32\"), R.Shape, R.Any …")
                        .into());
                };
                let ty = self.ty(annotation)?;
                let is_scalar = matches!(ty, Type::Prim(_));
                let param = Ref::new(Var { name: name.to_string(), ty, span: self.span(name.range) });
                // A scalar is a dimension of what stands behind it.
                if is_scalar {
                    self.define(name, Value::Relax(param.clone().into()));
                }
                Ok(param)
            })
            .collect();
        self.defining = false;
        let params = params?;
        for param in &params {
            self.define(&param.name, Value::Relax(param.clone().into()));
        }
        Ok(params)
    }

    /// What a signature says of its result. `R.Tuple` is a tuple of no one knows what: what the body gives says it.
    fn declared_result<'d>(&self, def: &'d ast::StmtFunctionDef) -> Option<&'d Expr> {
        def.returns.as_deref().filter(|annotation| self.path(annotation).as_deref() != Some("R.Tuple"))
    }

    fn returns(&mut self, def: &ast::StmtFunctionDef) -> Parsed<Option<Type>> {
        let Some(annotation) = self.declared_result(def) else { return Ok(None) };
        self.defining = true;
        let ty = self.ty(annotation);
        self.defining = false;
        ty.map(Some)
    }

    fn function_body(&mut self, def: &ast::StmtFunctionDef, attrs: &mut Attrs) -> Parsed<()> {
        for stmt in &def.body {
            if self.frame().result.is_some() {
                return Err(self.error(Code::Structure, "nothing follows the return of a function", stmt.range()));
            }
            if let Stmt::Expr(e) = stmt
                && self.call_path(&e.value).as_deref() == Some("R.func_attr")
                && let Expr::Call(call) = &*e.value
                && let [map] = &*call.arguments.args
            {
                attrs.0.extend(self.attrs(map)?.0);
                continue;
            }
            match stmt {
                Stmt::Return(ret) => self.result(ret)?,
                // A block that ends with the return gives what is returned.
                Stmt::With(with) if let Some((Stmt::Return(ret), before)) = with.body.split_last() => {
                    self.dataflow_block(with, before, returned(ret))?;
                    self.result(ret)?;
                }
                _ => self.statement(stmt)?,
            }
        }
        Ok(())
    }

    fn result(&mut self, ret: &ast::StmtReturn) -> Parsed<()> {
        let result = match &ret.value {
            Some(e) => {
                let value = self.expr(e)?;
                self.leaf_value(value, e.range())?
            }
            None => Relax::tuple([]),
        };
        self.close_block(None);
        self.frame().result = Some(result);
        Ok(())
    }

    fn frame(&mut self) -> &mut RelaxFrame {
        if self.frames.is_empty() {
            self.frames.push(RelaxFrame::default());
        }
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    /// Ends the open block; the next is a dataflow block if it names outputs.
    fn close_block(&mut self, next: Option<HashMap<String, usize>>) {
        let frame = self.frame();
        let dataflow = frame.dataflow.is_some();
        if !frame.open.is_empty() {
            let bindings = std::mem::take(&mut frame.open);
            frame.blocks.push(Ref::new(BindingBlock { bindings, dataflow }));
        }
        frame.dataflow = next;
        frame.given_out = false;
    }

    pub(super) fn statement(&mut self, stmt: &Stmt) -> Parsed<()> {
        self.statement = stmt.range();
        match stmt {
            // Names of the surroundings are read only, whatever Python is told of them.
            Stmt::Pass(_) | Stmt::Nonlocal(_) | Stmt::Global(_) => Ok(()),
            Stmt::Expr(e) => self.expression_statement(&e.value),
            Stmt::Assign(assign) => match assign.targets.as_slice() {
                [Expr::Name(target)] => self.assign(target, None, &assign.value),
                [Expr::Tuple(targets)] => self.unpack(targets, &assign.value),
                _ => Err(self.unsupported("this assignment", assign.range)),
            },
            Stmt::AnnAssign(assign) => match (&*assign.target, &assign.value) {
                (Expr::Name(target), Some(value)) => self.assign(target, Some(&assign.annotation), value),
                _ => Err(self.unsupported("this assignment", assign.range)),
            },
            Stmt::With(with) => self.dataflow_block(with, &with.body, Vec::new()),
            Stmt::If(choice) => self.if_statement(choice),
            Stmt::For(each) if self.host.is_some() => self.repeated_statements(each),
            Stmt::FunctionDef(def) => self.local_function(def),
            Stmt::Return(ret) => Err(self
                .error(Code::Structure, "a return ends the function's body and stands nowhere else", ret.range)
                .with_help("bind the results of both branches to one name and return that")
                .into()),
            other => Err(self.unsupported("this statement in a Relax function", other.range())),
        }
    }

    fn expression_statement(&mut self, e: &Expr) -> Parsed<()> {
        if matches!(e, Expr::StringLiteral(_)) {
            return Ok(());
        }
        match self.call_path(e).as_deref() {
            Some("R.output") => {
                let frame = self.frame();
                if frame.dataflow.is_none() {
                    return Err(self.error(Code::Structure, "R.output stands in a dataflow block", e.range()));
                }
                if std::mem::replace(&mut frame.given_out, true) {
                    return Err(self.error(Code::Structure, "R.output stands once in a dataflow block", e.range()));
                }
                Ok(())
            }
            Some("R.func_attr") => {
                Err(self.error(Code::Structure, "R.func_attr stands at the top of the function's body", e.range()))
            }
            _ => {
                let value = match self.expr(e)? {
                    // A helper that was called for what it does while the text is read.
                    Value::None | Value::Host(_) if self.host.is_some() => return Ok(()),
                    // The result of a macro that nothing uses is bound already, if it was computed.
                    Value::Relax(_) if self.macro_call(e).is_some() => return Ok(()),
                    value => self.relax_value(value, e.range())?,
                };
                if matches!(value, Relax::Call(_)) && is_pure(&value) && !is_void(&value.ty()) {
                    return Err(self
                        .error(
                            Code::Structure,
                            "nobody uses the result of this call, which has no other effect",
                            e.range(),
                        )
                        .with_help("bind it to a name, or leave it out")
                        .into());
                }
                self.bind("_", Bound::Value(value), None, e.range()).map(drop)
            }
        }
    }

    /// An `if` that is decided while the text is read takes one branch; any other is one of the program.
    fn if_statement(&mut self, choice: &ast::StmtIf) -> Parsed<()> {
        let Some(mut holds) = self.decided(&choice.test)? else { return self.choice(choice) };
        if holds {
            return choice.body.iter().try_for_each(|stmt| self.statement(stmt));
        }
        for clause in &choice.elif_else_clauses {
            holds = match &clause.test {
                None => true,
                Some(test) => match self.decided(test)? {
                    Some(holds) => holds,
                    None => {
                        let message = "the condition before is decided while the text is read, this one when it runs";
                        return Err(self.error(Code::Structure, message, test.range()));
                    }
                },
            };
            if holds {
                return clause.body.iter().try_for_each(|stmt| self.statement(stmt));
            }
        }
        Ok(())
    }

    /// A loop over values of the surroundings: its body once for each.
    fn repeated_statements(&mut self, each: &ast::StmtFor) -> Parsed<()> {
        let Some(items) = self.unrolled(&each.iter)? else {
            return Err(self
                .error(Code::Unsupported, "a Relax function has no loops over its own values", each.iter.range())
                .with_help("loop over a range, a list or another Python value; write recursion for loops at run time")
                .into());
        };
        if let Some(clause) = each.orelse.first() {
            return Err(self.unsupported("the else of a loop", clause.range()));
        }
        for item in items {
            self.define_target(&each.target, item)?;
            each.body.iter().try_for_each(|stmt| self.statement(stmt))?;
        }
        Ok(())
    }

    fn assign(&mut self, target: &ast::ExprName, annotation: Option<&Expr>, value: &Expr) -> Parsed<()> {
        let name = target.id.as_str();
        if annotation.is_none() && self.symbol_assign(name, value, target.range)? {
            return Ok(());
        }
        if self.meta_assign(name, value)? {
            return Ok(());
        }
        let annotation = annotation.map(|e| self.ty(e)).transpose()?;
        if let (Some(Type::Prim(ty)), Some(dtype)) = (&annotation, self.declared_dtype(value)) {
            if ty.dtype != dtype {
                let message = format!("`{name}` is said to be {}, but is declared as {dtype}", ty.dtype);
                return Err(self.error(Code::Type, message, target.range));
            }
            return self.declare(name, dtype, target.range);
        }
        let bound = match (self.is_hosted(value), self.host) {
            (true, Some(_)) => match self.hosted(value)? {
                // What has no place in a program keeps its name while the text is read.
                value @ (Value::Host(_) | Value::None | Value::Map(_)) => {
                    self.define(name, value);
                    return Ok(());
                }
                evaluated => Bound::Value(self.relax_value(evaluated, value.range())?),
            },
            _ => self.bound(value)?,
        };
        self.bind(name, bound, annotation, target.range).map(drop)
    }

    /// `cls = Module` and `n = T.int64()`, which bind no value.
    fn symbol_assign(&mut self, name: &str, value: &Expr, range: TextRange) -> Parsed<bool> {
        if let Some(dtype) = self.declared_dtype(value) {
            self.declare(name, dtype, range)?;
            return Ok(true);
        }
        if let Expr::Name(source) = value
            && source.id.as_str() == self.module_name
            && self.lookup(&source.id).is_none()
        {
            self.define(name, Value::Module);
            return Ok(true);
        }
        Ok(false)
    }

    fn bound(&mut self, value: &Expr) -> Parsed<Bound> {
        if let Expr::Call(call) = value
            && self.path(&call.func).as_deref() == Some("R.match_cast")
        {
            let mut args = Args::of(self, "R.match_cast", call)?;
            let source = args.required(self, "value")?;
            let source_value = self.expr(source)?;
            let source = self.leaf_value(source_value, source.range())?;
            let ty = args.required(self, "ty")?;
            let ty = self.ty(ty)?;
            args.finish(self)?;
            return Ok(Bound::MatchCast(source, ty));
        }
        let evaluated = self.expr(value)?;
        Ok(Bound::Value(self.relax_value(evaluated, value.range())?))
    }

    fn unpack(&mut self, targets: &ast::ExprTuple, value: &Expr) -> Parsed<()> {
        if let Expr::Tuple(values) = value
            && targets.elts.len() == values.elts.len()
            && let Some(names) = targets.elts.iter().map(|e| e.as_name_expr()).collect::<Option<Vec<_>>>()
            && let Some(dtypes) = values.elts.iter().map(|e| self.declared_dtype(e)).collect::<Option<Vec<_>>>()
        {
            return names.iter().zip(dtypes).try_for_each(|(name, dtype)| self.declare(&name.id, dtype, name.range));
        }
        if let Expr::Tuple(values) = value
            && targets.elts.len() == values.elts.len()
            && values.elts.iter().any(|e| self.declared_dtype(e).is_some())
        {
            // Variables among values.
            return targets.elts.iter().zip(&values.elts).try_for_each(|(target, value)| {
                if let (Some(name), Some(dtype)) = (target.as_name_expr(), self.declared_dtype(value)) {
                    return self.declare(&name.id, dtype, name.range);
                }
                let value = self.expr(value)?;
                self.define_target(target, value)
            });
        }
        let evaluated = self.expr(value)?;
        if let Value::Host(_) = evaluated {
            let targets = Expr::Tuple(targets.clone());
            return self.define_target(&targets, evaluated);
        }
        let tuple = self.leaf_value(evaluated, value.range())?;
        let fields = match tuple.ty() {
            Type::Tuple(t) => t.fields.len(),
            Type::Any(_) | Type::Missing(_) => targets.elts.len(),
            _ => return Err(self.no_fields(value.range())),
        };
        if fields != targets.elts.len() {
            let message = format!("a tuple of {fields} fields is taken apart into {} names", targets.elts.len());
            return Err(self.error(Code::Type, message, targets.range));
        }
        for (i, target) in targets.elts.iter().enumerate() {
            let Expr::Name(name) = target else { return Err(self.unsupported("this assignment", target.range())) };
            let known = match &tuple {
                Relax::Tuple(t) => t.fields.get(i).cloned(),
                _ => None,
            };
            let field = known.unwrap_or_else(|| Relax::field(tuple.clone(), i));
            self.bind(name.id.as_str(), Bound::Value(field), None, name.range)?;
        }
        Ok(())
    }

    /// Adds a binding and brings its variable into scope.
    fn bind(&mut self, name: &str, bound: Bound, annotation: Option<Type>, range: TextRange) -> Parsed<AnyVar> {
        let ty = match (&bound, annotation) {
            (Bound::MatchCast(_, ty), None) => ty.clone(),
            (Bound::MatchCast(_, _), Some(annotation)) => annotation,
            (Bound::Value(value), annotation) => chosen_type(value.ty(), annotation),
        };
        if self.frame().given_out {
            return Err(self.error(Code::Structure, "nothing is bound behind R.output", range));
        }
        let span = self.span(range);
        let inner = self.frame().dataflow.as_mut().is_some_and(|outputs| match outputs.get_mut(name) {
            // A name that is bound again is given out with its last value.
            Some(left) => {
                *left = left.saturating_sub(1);
                *left > 0
            }
            None => true,
        });
        let name_text = name.to_string();
        let var = match inner {
            true => AnyVar::Dataflow(Ref::new(DataflowVar { name: name_text, ty, span })),
            false => AnyVar::Var(Ref::new(Var { name: name_text, ty, span })),
        };
        let binding = match bound {
            Bound::Value(value) => Binding::Var(Ref::new(VarBinding { var: var.clone(), value })),
            Bound::MatchCast(value, ty) => Binding::MatchCast(Ref::new(MatchCast { var: var.clone(), value, ty })),
        };
        self.frame().open.push(binding);
        self.define(name, Value::Relax(var.clone().into()));
        Ok(var)
    }

    /// A name for a binding that the text does not name.
    pub(super) fn fresh(&mut self, hint: &str) -> String {
        let name = if self.taken.contains(hint) {
            (1..).map(|i| format!("{hint}{i}")).find(|n| !self.taken.contains(n)).unwrap_or_default()
        } else {
            hint.to_string()
        };
        self.taken.insert(name.clone());
        name
    }

    /// An expression that may stand as an operand: computations are bound to a variable first.
    pub(super) fn leaf(&mut self, value: Relax) -> Parsed<Relax> {
        match value {
            Relax::Tuple(tuple) => {
                let fields = tuple.fields.iter().map(|f| self.leaf(f.clone())).collect::<Parsed<Vec<_>>>()?;
                Ok(Ref::new(Tuple { fields }).into())
            }
            leaf if is_leaf(&leaf) => Ok(leaf),
            value => {
                let hint = if self.frame().dataflow.is_some() { "lv" } else { "gv" };
                let name = self.fresh(hint);
                Ok(self.bind(&name, Bound::Value(value), None, self.statement)?.into())
            }
        }
    }

    /// A value beside which others are evaluated: what a Relax function computes for it is bound before they are.
    pub(super) fn operand(&mut self, e: &Expr) -> Parsed<Value> {
        match self.expr(e)? {
            Value::Relax(value) if !self.frames.is_empty() && self.language == Language::Relax => {
                self.leaf(value).map(Value::Relax)
            }
            value => Ok(value),
        }
    }

    /// A value as an operand.
    pub(super) fn leaf_value(&mut self, value: Value, range: TextRange) -> Parsed<Relax> {
        let value = self.relax_value(value, range)?;
        self.leaf(value)
    }

    /// A value as a Relax expression.
    pub(super) fn relax_value(&mut self, value: Value, range: TextRange) -> Parsed<Relax> {
        Ok(match value {
            Value::Relax(e) => e,
            Value::Prim(relaxide_ir::PrimExpr::Var(v)) if self.is_param(&v) => Relax::Var(v),
            Value::Prim(e) => Relax::prim(e),
            Value::Int(_) | Value::Float(_) | Value::Bool(_) => Relax::prim(self.scalar(&value, range)?),
            Value::Str(text) => Relax::string(text),
            Value::DType(dtype) => Relax::dtype(dtype),
            Value::List(items) | Value::Tuple(items) => {
                let fields = items.into_iter().map(|v| self.leaf_value(v, range)).collect::<Parsed<Vec<_>>>()?;
                Relax::tuple(fields)
            }
            other => {
                let message = format!("a value is expected, but this is {}", other.describe());
                return Err(self.error(Code::Type, message, range));
            }
        })
    }

    /// Whether a scalar variable is a value of the function rather than a symbolic dimension.
    fn is_param(&self, var: &Ref<Var>) -> bool {
        matches!(self.lookup(&var.name), Some(Value::Relax(Relax::Var(known))) if known == var)
    }
}

/// Whether an expression may stand as an operand.
fn is_leaf(value: &Relax) -> bool {
    !matches!(value, Relax::Call(_) | Relax::TupleGetItem(_) | Relax::If(_) | Relax::Function(_) | Relax::Seq(_))
}

/// The type of a variable: what is inferred, unless the annotation says more or something else.
fn chosen_type(inferred: Type, annotation: Option<Type>) -> Type {
    match annotation {
        None => inferred,
        Some(annotation) if inferred.is_missing() => annotation,
        Some(annotation) if same_type(&unify(&annotation, &inferred), &annotation) => inferred,
        Some(annotation) => annotation,
    }
}

/// The element type of a tensor, where known.
pub(super) fn tensor_dtype(ty: &Type) -> Option<DataType> {
    ty.as_tensor().map(|t| t.dtype).filter(|d| *d != DataType::void())
}

/// The names that a return gives: its value, or the fields of a tuple.
fn returned(ret: &ast::StmtReturn) -> Vec<String> {
    let values: &[Expr] = match ret.value.as_deref() {
        Some(Expr::Tuple(tuple)) => &tuple.elts,
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    let name = |value: &Expr| if let Expr::Name(name) = value { Some(name.id.to_string()) } else { None };
    values.iter().filter_map(name).collect()
}

/// How often the statements of a block bind a name.
fn times_bound(body: &[Stmt], name: &str) -> usize {
    let binds = |target: &Expr| {
        let targets = match target {
            Expr::Tuple(tuple) => tuple.elts.as_slice(),
            Expr::List(list) => list.elts.as_slice(),
            one => std::slice::from_ref(one),
        };
        targets.iter().filter(|target| matches!(target, Expr::Name(bound) if bound.id.as_str() == name)).count()
    };
    body.iter()
        .map(|stmt| match stmt {
            Stmt::Assign(assign) => assign.targets.iter().map(binds).sum(),
            Stmt::AnnAssign(assign) => binds(&assign.target),
            _ => 0,
        })
        .sum()
}
