//! A program of Relay as one of Relax, so that it gets the whole of the other compiler.
//!
//! Functions over tensors and tuples of them, branches, recursion and local functions have the same form there. A dimension
//! that Relay does not know is a variable; where a value comes back from a branch or a call with dimensions that Relax
//! forgot, a `match_cast` gives them names again. Values of data types become tuples and `match` becomes branches
//! ([`data`]). What is of a type parameter is any value, in every call of the function alike: where such a value comes back
//! and its type is known, a `match_cast` says it. References are objects of the machine, and what reads and writes them is a
//! call with effects: a program that has any is one of functions that are not pure, so that the order of its calls stays.

mod data;

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::{Attrs, GlobalVar, IRModule, Type as RxType, Var as RxVar};
use relaxide_relax as rx;

use crate::compile::unsupported;
use crate::convert::{DimNames, NotOfTensors, to_relax_named as type_to_relax};
use crate::devices::mentions_devices;
use crate::op::{self, LowerCx, NewDims};
use crate::stack::deep;
use crate::*;

/// The program in Relax; `main` and all that it calls.
pub fn to_relax(module: &Module) -> Result<IRModule, CompileError> {
    deep(|| {
        let module = transform::remove_unused_functions(module, &["main"]);
        if mentions_devices(&module) {
            refuse_copies(&plan_devices(&module, &DeviceConfig::default())?)?;
        }
        let module = to_a_normal_form(&transform::eta_expand(&transform::expand_composed(&module)));
        let types = infer(&module).map_err(CompileError::Types)?;
        let pure = !module.functions.values().any(has_references);
        let mut builder = rx::BlockBuilder::new();
        let mut globals = HashMap::new();
        for (name, function) in &module.functions {
            let Some(ty) = types.of(&Expr::Function(function.clone())) else { continue };
            let ty = function_type(&ty, pure).or_else(|why| {
                let place = place_of_use(&module, name).or_else(|| function.span.clone());
                unsupported(format!("@{name}: {why}"), place.as_deref())
            })?;
            globals.insert(name.clone(), GlobalVar::typed(name.clone(), ty));
        }
        for (name, function) in &module.functions {
            let (builder, values) = (&mut builder, HashMap::new());
            let agreed = op::Agreed::default();
            let mut writer = Writer { builder, types: &types, globals: &globals, values, agreed, pure, name: None };
            let made = writer.function(function, Attrs::new().with("global_symbol", name.clone()))?;
            builder.module_mut().insert(name.clone(), made);
        }
        let context = relaxide_ir::pass::PassContext::default();
        let passes = rx::transform::parse_passes("ConvertToDataflow")?;
        Ok(relaxide_ir::pass::Pass::sequential("from Relay", passes).run(builder.finish(), &context)?)
    })
}

/// The error of what the other machine can say.
fn only_in_relay_vm<T>(message: String, span: Option<&relaxide_ir::Span>) -> Result<T, CompileError> {
    unsupported(message, span).map_err(|error| match error {
        CompileError::Program(diagnostic) => CompileError::Program(diagnostic.with_help(RELAY_VM_HELP)),
        other => other,
    })
}

/// What to do with a program that Relax cannot say.
const RELAY_VM_HELP: &str =
    "it runs in the Relay VM: `--machine relay` on the command line, `relay.vm.compile` in Python";

/// Fails if values of a program go from one device to another: Relax's kernels would all be for one.
fn refuse_copies(module: &Module) -> Result<(), CompileError> {
    let (mut found, mut place) = (false, None);
    for function in module.functions.values() {
        visit::each(&Expr::Function(function.clone()), |expr| {
            if matches!(expr.as_op_call(), Some((_, "device_copy"))) {
                found = true;
                place = place.take().or_else(|| expr.span().cloned());
            }
        });
    }
    match found {
        true => only_in_relay_vm("the program has its values on several devices".into(), place.as_deref()),
        false => Ok(()),
    }
}

/// Where the program's own text uses a function of the prelude first: that is the line to change.
fn place_of_use(module: &Module, name: &str) -> Option<Ref<relaxide_ir::Span>> {
    let in_prelude = |span: &Ref<relaxide_ir::Span>| span.source == "prelude.rly";
    // The program may use it by way of other functions of the prelude.
    let mut ways = vec![name.to_string()];
    let mut at = 0;
    while at < ways.len() {
        for (caller, function) in &module.functions {
            if !ways.contains(caller) && visit::globals(&function.body).contains(&ways[at]) {
                ways.push(caller.clone());
            }
        }
        at += 1;
    }
    let own = module.functions.values().filter(|f| f.span.as_ref().is_none_or(|span| !in_prelude(span)));
    let mut found: Option<Ref<relaxide_ir::Span>> = None;
    for function in own {
        visit::each(&function.body, |expr| {
            let uses = expr.children().into_iter().any(|e| matches!(e, Expr::Global(g) if ways.contains(&g.name)));
            if uses && let Some(span) = expr.span() {
                let first = found.as_ref().is_none_or(|before| span.line < before.line);
                if !in_prelude(span) && first {
                    found = Some(span.clone());
                }
            }
        });
    }
    found
}

/// Whether a function makes, reads or writes references, or calls what it was given one for.
fn has_references(function: &Ref<Function>) -> bool {
    let mut found = false;
    visit::each(&function.body, |expr| {
        found |= matches!(expr, Expr::RefCreate(_) | Expr::RefRead(_) | Expr::RefWrite(_));
    });
    found
}

/// Why a type has no counterpart in Relax.
#[derive(Debug, thiserror::Error)]
enum TypeProblem {
    #[error("a function is expected")]
    NoFunction,
    #[error(transparent)]
    NotOfTensors(#[from] NotOfTensors),
}

/// A function's type, whose results have the dimensions that are numbers.
fn function_type(ty: &Type, pure: bool) -> Result<RxType, TypeProblem> {
    let Type::Func(func) = ty else { return Err(TypeProblem::NoFunction) };
    let forms = &mut Forms::new(pure);
    let args = func.args.iter().map(|arg| value_type(arg, forms)).collect::<Result<Vec<_>, _>>()?;
    Ok(RxType::func(args, forgetful(&func.ret, pure)?, pure))
}

/// How types are written.
struct Forms {
    /// Names of dimensions.
    names: DimNames,
    /// Whether functions have no effects.
    pure: bool,
}

impl Forms {
    fn new(pure: bool) -> Forms {
        Forms { names: DimNames::default(), pure }
    }
}

fn value_type(ty: &Type, forms: &mut Forms) -> Result<RxType, TypeProblem> {
    match ty {
        // Where a function takes or gives what is any value in some place, types do not say which functions fit.
        Type::Func(_) if !is_plain(ty) => Ok(RxType::packed_func(RxType::any(), forms.pure)),
        Type::Func(_) => function_type(ty, forms.pure),
        Type::Call(_) | Type::Var(_) | Type::Ref(_) => Ok(RxType::any()),
        Type::Tuple(t) => {
            let fields = t.fields.iter().map(|field| value_type(field, forms));
            Ok(RxType::tuple(fields.collect::<Result<Vec<_>, _>>()?))
        }
        _ => Ok(type_to_relax(ty, &mut forms.names)?),
    }
}

/// Whether a type is made of tensors of known dimensions.
fn is_plain(ty: &Type) -> bool {
    match ty {
        Type::Tensor(t) => t.is_static(),
        Type::Tuple(t) => t.fields.iter().all(is_plain),
        Type::Func(f) => f.type_params.is_empty() && f.args.iter().all(is_plain) && is_plain(&f.ret),
        _ => false,
    }
}

/// A type without the dimensions that are not numbers.
fn forgetful(ty: &Type, pure: bool) -> Result<RxType, TypeProblem> {
    match ty {
        Type::Tensor(t) if !t.is_static() => Ok(RxType::tensor_ndim(t.shape.len() as i64, t.dtype)),
        Type::Tuple(t) => {
            Ok(RxType::tuple(t.fields.iter().map(|f| forgetful(f, pure)).collect::<Result<Vec<_>, _>>()?))
        }
        other => value_type(other, &mut Forms::new(pure)),
    }
}

struct Writer<'a> {
    builder: &'a mut rx::BlockBuilder,
    types: &'a Types,
    globals: &'a HashMap<String, Ref<GlobalVar>>,
    values: HashMap<usize, rx::Expr>,
    /// Dimensions that came of broadcasting, in this function and branch.
    agreed: op::Agreed,
    /// Whether the program has no effects.
    pure: bool,
    /// The function of the module whose own code is written.
    name: Option<String>,
}

fn address(var: &Ref<Var>) -> usize {
    Ref::as_ptr(var).addr()
}

impl Writer<'_> {
    fn function(&mut self, f: &Ref<Function>, attrs: Attrs) -> Result<Ref<rx::Function>, CompileError> {
        let (mut params, mut forms) = (Vec::new(), Forms::new(self.pure));
        for param in &f.params {
            let ty = self.types.of_var(param).unwrap_or_else(Type::fresh);
            let ty = value_type(&ty, &mut forms).or_else(|why| unsupported(why, param.span.as_deref()))?;
            let var = RxVar::new(param.name.clone(), ty);
            self.values.insert(address(param), var.clone().into());
            params.push(var);
        }
        // The dimensions of a function are its own.
        let outer = std::mem::take(&mut self.agreed);
        let name = attrs.str("global_symbol").map(String::from);
        let outer_name = std::mem::replace(&mut self.name, name);
        self.builder.begin_scope();
        let result = self.scope(&f.body);
        (self.agreed, self.name) = (outer, outer_name);
        let seq = self.builder.end_scope(result.as_ref().ok().cloned().unwrap_or_else(|| rx::Expr::tuple([])))?;
        result?;
        let ret = match self.types.of(&Expr::Function(f.clone())) {
            Some(Type::Func(ty)) => forgetful(&ty.ret, self.pure).or_else(|why| unsupported(why, f.span.as_deref()))?,
            _ => seq.body.ty(),
        };
        Ok(Ref::new(rx::Function { params, body: seq, ret_ty: ret, pure: self.pure, attrs, span: f.span.clone() }))
    }

    /// Bindings and the result of a scope. What a call gives at its end stays as it is, so that a function that ends with a
    /// call of itself is a loop.
    fn scope(&mut self, expr: &Expr) -> Result<rx::Expr, CompileError> {
        let mut expr = expr;
        while let Expr::Let(l) = expr {
            if let Expr::Function(f) = &l.value {
                self.local_function(&l.var, f)?;
                expr = &l.body;
                continue;
            }
            let value = self.value(&l.value)?;
            let is_result = matches!(&l.body, Expr::Var(v) if Ref::ptr_eq(v, &l.var));
            let value = match self.types.of_var(&l.var) {
                Some(Type::Tuple(t)) if t.fields.is_empty() && self.is_lost(&l.value, is_result) => rx::Expr::tuple([]),
                Some(ty) => self.typed(value, &ty, is_result)?,
                None => value,
            };
            self.values.insert(address(&l.var), value);
            expr = &l.body;
        }
        let result = self.value(expr)?;
        Ok(self.builder.normalize_arg(result)?)
    }

    /// Whether Relax's machine keeps nothing of an expression that gives the empty tuple: it takes such calls for effects alone.
    /// A function's call of itself in its last place is a loop, and what comes back is what another iteration gave.
    fn is_lost(&self, value: &Expr, is_result: bool) -> bool {
        match value {
            Expr::Call(call) => match &call.op {
                Expr::Global(g) => !is_result || self.name.as_ref() != Some(&g.name),
                _ => true,
            },
            Expr::RefWrite(_) => true,
            Expr::If(_) | Expr::Match(_) => !is_result,
            _ => false,
        }
    }

    /// A function inside of a function, which may call itself.
    fn local_function(&mut self, var: &Ref<Var>, f: &Ref<Function>) -> Result<(), CompileError> {
        let ty = self.types.of(&Expr::Function(f.clone())).unwrap_or_else(Type::fresh);
        let ty = function_type(&ty, self.pure).or_else(|why| unsupported(why, f.span.as_deref()))?;
        let own = self.builder.fresh_var(&var.name, ty, false);
        self.values.insert(address(var), own.clone().into());
        let made = self.function(f, Attrs::new())?;
        Ok(self.builder.bind(own, rx::Expr::Function(made))?)
    }

    /// A value as what its type says. If `loosely`, dimensions need no names.
    fn typed(&mut self, value: rx::Expr, ty: &Type, loosely: bool) -> Result<rx::Expr, CompileError> {
        if says_enough(&value.ty(), ty, loosely) {
            return Ok(value);
        }
        let wanted = if loosely { forgetful(ty, self.pure) } else { value_type(ty, &mut Forms::new(self.pure)) };
        let wanted = wanted.or_else(|why| unsupported(why, None))?;
        Ok(self.builder.match_cast(value, wanted)?)
    }

    fn sequence(
        &mut self,
        body: impl FnOnce(&mut Self) -> Result<rx::Expr, CompileError>,
    ) -> Result<Ref<rx::SeqExpr>, CompileError> {
        let mark = self.agreed.mark();
        self.builder.begin_scope();
        let result = body(self).and_then(|result| Ok(self.builder.normalize_arg(result)?));
        self.agreed.forget(mark);
        let seq = self.builder.end_scope(result.as_ref().ok().cloned().unwrap_or_else(|| rx::Expr::tuple([])))?;
        result?;
        Ok(seq)
    }

    fn atom(&mut self, expr: &Expr) -> Result<rx::Expr, CompileError> {
        match expr {
            Expr::Var(v) => match self.values.get(&address(v)) {
                Some(value) => Ok(value.clone()),
                None => unsupported(format!("the variable %{} is not bound here", v.name), v.span.as_deref()),
            },
            Expr::Constant(c) => Ok(rx::Expr::constant(c.data.clone())),
            Expr::Global(g) => match self.globals.get(&g.name) {
                Some(global) => Ok(global.clone().into()),
                None => unsupported(format!("the module has no function `@{}`", g.name), None),
            },
            Expr::Constructor(c) => self.constructor(c),
            other => unsupported(format!("{} has no form in Relax", other.type_key()), other.span().map(|s| &**s)),
        }
    }

    fn value(&mut self, expr: &Expr) -> Result<rx::Expr, CompileError> {
        let span = expr.span().map(|s| &**s);
        match expr {
            leaf if leaf.is_leaf() => self.atom(leaf),
            Expr::Tuple(t) => {
                Ok(rx::Expr::tuple(t.fields.iter().map(|e| self.atom(e)).collect::<Result<Vec<_>, _>>()?))
            }
            Expr::TupleGetItem(t) => {
                let (tuple, index) = (self.atom(&t.tuple)?, usize::try_from(t.index).unwrap_or(usize::MAX));
                match &tuple {
                    rx::Expr::Tuple(fields) if index < fields.fields.len() => Ok(fields.fields[index].clone()),
                    _ => Ok(self.builder.emit(rx::Expr::field(tuple, index))?),
                }
            }
            Expr::Function(f) => {
                let made = self.function(f, Attrs::new())?;
                Ok(self.builder.emit(rx::Expr::Function(made))?)
            }
            Expr::If(i) => {
                let condition = self.atom(&i.cond)?;
                let true_branch = self.sequence(|w| w.scope(&i.then))?;
                let false_branch = self.sequence(|w| w.scope(&i.other))?;
                let ty = rx::shape::unify(&true_branch.body.ty(), &false_branch.body.ty());
                let choice = Ref::new(rx::If { condition, true_branch, false_branch, ty });
                Ok(self.builder.emit(rx::Expr::If(choice))?)
            }
            Expr::Call(call) => self.call(call),
            Expr::Match(m) => self.matching(m),
            Expr::RefCreate(r) => self.reference("vm.builtin.reference_new", &[&r.value], RxType::any()),
            Expr::RefRead(r) => self.reference("vm.builtin.reference_read", &[&r.reference], RxType::any()),
            Expr::RefWrite(r) => {
                let empty = RxType::tuple(Vec::new());
                self.reference("vm.builtin.reference_write", &[&r.reference, &r.value], empty)
            }
            other => only_in_relay_vm(format!("{} has no form in Relax", other.type_key()), span),
        }
    }

    /// A call of the machine that makes, reads or writes a reference.
    fn reference(&mut self, name: &str, args: &[&Expr], ty: RxType) -> Result<rx::Expr, CompileError> {
        let args = args.iter().map(|arg| self.atom(arg)).collect::<Result<Vec<_>, _>>()?;
        let (op, attrs, ty_args) = (rx::Expr::external(name), Attrs::new(), vec![ty]);
        let made = rx::Call { op, args, attrs, ty_args, ty: RxType::missing(), span: None };
        Ok(self.builder.emit(rx::Expr::Call(Ref::new(made)))?)
    }

    fn call(&mut self, call: &Ref<Call>) -> Result<rx::Expr, CompileError> {
        let args = call.args.iter().map(|e| self.atom(e)).collect::<Result<Vec<_>, _>>()?;
        if let Expr::Op(node) = &call.op {
            if matches!(node.name.as_str(), "on_device" | "debug") && !args.is_empty() {
                return Ok(args[0].clone());
            }
            let Some(def) = op::lookup(&node.name) else {
                return unsupported(format!("operator `{}` not found", node.name), call.span.as_deref());
            };
            if matches!(def.mapping, op::Mapping::Machine) {
                return only_in_relay_vm(format!("`{}` has no form in Relax", node.name), call.span.as_deref());
            }
            let dims = NewDims::Emit(&mut self.agreed);
            let mut cx = LowerCx { builder: self.builder, def, args, attrs: &call.attrs, dims };
            return cx.lower().or_else(|e| unsupported(e.to_string(), call.span.as_deref()));
        }
        if let Expr::Constructor(constructor) = &call.op {
            return self.data(constructor, args);
        }
        let callee = self.atom(&call.op)?;
        let (ty_args, span) = (Vec::new(), call.span.clone());
        let made = rx::Call { op: callee, args, attrs: Attrs::new(), ty_args, ty: RxType::missing(), span };
        Ok(self.builder.emit(rx::Expr::Call(Ref::new(made)))?)
    }
}

/// Whether Relax knows of a value what Relay's type says. If `loosely`, dimensions need no names.
fn says_enough(found: &RxType, ty: &Type, loosely: bool) -> bool {
    match (found, ty) {
        (_, Type::Call(_) | Type::Var(_) | Type::Ref(_) | Type::Incomplete(_)) | (RxType::Func(_), Type::Func(_)) => {
            true
        }
        (RxType::Tensor(t), Type::Tensor(_)) => loosely || t.shape.is_some(),
        (RxType::Tuple(found), Type::Tuple(t)) if found.fields.len() == t.fields.len() => {
            found.fields.iter().zip(&t.fields).all(|(found, ty)| says_enough(found, ty, loosely))
        }
        _ => false,
    }
}
