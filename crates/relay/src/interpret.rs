//! The reference interpreter.
//!
//! It runs a program in A-normal form as it is written, one step after the other, with nothing fused, planned or compiled:
//! what it gives is what a program means, and what the compiler is tested against. An operator is executed by TIR's
//! reference interpreter on the kernels that Relax makes of it for the shapes at hand. Calls are kept in memory of its own,
//! so neither the depth of recursion nor the length of a run is bounded by the native stack. What memory passes write is
//! executed too ([`memory`]): so it is seen whether storages that lie over each other disturb each other.

mod memory;

use std::collections::HashMap;

use relaxide_ffi::{Any, AnyView, Array, Error, ErrorKind, Object, Ref, Tensor};
use relaxide_ir::pass::{Pass, PassContext};
use relaxide_ir::{Attrs, IRModule, Type as RxType, Var as RxVar};
use relaxide_relax as rx;
use relaxide_relax::op::core::CallTir;
use relaxide_relay_vm::{Adt, RefValue};
use relaxide_tir::{PrimFunc, interp};

use crate::op::{self, LowerCx, NewDims};
use crate::stack::deep;
use crate::visit::free_vars;
use crate::*;

/// A function with what it captured.
#[derive(Object)]
#[object(key = "relay.interpreter.Closure")]
pub struct InterpretedFunction {
    #[field(hidden)]
    function: Callable,
    #[field(hidden)]
    captured: Vec<(Ref<Var>, Any)>,
    /// The name by which the function knows itself.
    #[field(hidden)]
    own: Option<Ref<Var>>,
}

#[derive(Clone)]
enum Callable {
    Function(Ref<Function>),
    Constructor(Ref<Constructor>),
}

impl std::fmt::Debug for InterpretedFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Closure({} captured)", self.captured.len())
    }
}

fn error(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::RuntimeError, message.into())
}

fn address(var: &Ref<Var>) -> usize {
    Ref::as_ptr(var).addr()
}

/// What is done when a value is there.
struct Frame {
    var: Ref<Var>,
    body: Expr,
    /// Which activation goes on.
    activation: usize,
}

/// Runs programs.
pub struct Interpreter {
    module: Module,
    /// By operator, attributes and shapes.
    kernels: HashMap<String, Ref<Lowered>>,
    /// Keeps the nodes whose addresses are keys.
    keep: Vec<Expr>,
    captures: HashMap<usize, Vec<Ref<Var>>>,
}

/// An operator on known shapes, as kernels.
#[derive(Object)]
#[object(key = "relay.interpreter.Lowered")]
struct Lowered {
    #[field(hidden)]
    module: IRModule,
}

impl Interpreter {
    /// An interpreter of a module, which is brought to A-normal form.
    pub fn new(module: &Module) -> Interpreter {
        let module = crate::to_a_normal_form(&crate::transform::eta_expand(&crate::transform::expand_composed(module)));
        Interpreter { module, kernels: HashMap::new(), keep: Vec::new(), captures: HashMap::new() }
    }

    /// Calls a function of the module. Lists become tuples.
    pub fn run(&mut self, name: &str, args: &[AnyView<'_>]) -> Result<Any, Error> {
        let function = self.module.functions.get(name).cloned();
        let function = function.ok_or_else(|| error(format!("the module has no function `@{name}`")))?;
        let args = args.iter().map(|v| value_of(*v)).collect::<Result<Vec<_>, _>>()?;
        deep(|| self.call(&function, args))
    }

    fn call(&mut self, function: &Ref<Function>, args: Vec<Any>) -> Result<Any, Error> {
        let mut frames: Vec<Frame> = Vec::new();
        let mut activations: Vec<HashMap<usize, Any>> = vec![bound(function, args)?];
        let mut expr = function.body.clone();
        loop {
            let here = activations.len() - 1;
            let Expr::Let(l) = &expr else {
                let value = self.atom(&expr, &activations[here])?;
                let Some(frame) = frames.pop() else { return Ok(value) };
                activations.truncate(frame.activation + 1);
                activations[frame.activation].insert(address(&frame.var), value);
                expr = frame.body;
                continue;
            };
            let l = l.clone();
            // A value that is the result at once needs no way back.
            let last = matches!(&l.body, Expr::Var(v) if Ref::ptr_eq(v, &l.var));
            let next = match self.step(&l, &activations[here])? {
                Evaluation::Value(value) => {
                    activations[here].insert(address(&l.var), value);
                    expr = l.body.clone();
                    continue;
                }
                Evaluation::Inside(inner, names) => {
                    activations[here].extend(names);
                    if !last {
                        frames.push(Frame { var: l.var.clone(), body: l.body.clone(), activation: here });
                    }
                    inner
                }
                Evaluation::Forget(name) => {
                    activations[here].remove(&name);
                    activations[here].insert(address(&l.var), Adt::tuple(Vec::new()).into());
                    expr = l.body.clone();
                    continue;
                }
                Evaluation::Call(inner, activation) => {
                    let waiting = frames.last().is_some_and(|frame| frame.activation == here);
                    if last && !waiting {
                        activations[here] = activation;
                    } else {
                        if !last {
                            frames.push(Frame { var: l.var.clone(), body: l.body.clone(), activation: here });
                        }
                        activations.push(activation);
                    }
                    inner
                }
            };
            expr = next;
        }
    }

    fn atom(&self, expr: &Expr, names: &HashMap<usize, Any>) -> Result<Any, Error> {
        match expr {
            Expr::Var(v) => {
                names.get(&address(v)).cloned().ok_or_else(|| error(format!("the variable %{} is not bound", v.name)))
            }
            Expr::Constant(c) => Ok(c.data.clone().into()),
            Expr::Global(g) => {
                let function = self.module.functions.get(&g.name).cloned();
                let function = function.ok_or_else(|| error(format!("the module has no function `@{}`", g.name)))?;
                Ok(Ref::new(InterpretedFunction {
                    function: Callable::Function(function),
                    captured: vec![],
                    own: None,
                })
                .into())
            }
            Expr::Constructor(c) => Ok(Ref::new(InterpretedFunction {
                function: Callable::Constructor(c.clone()),
                captured: vec![],
                own: None,
            })
            .into()),
            // The others became functions.
            Expr::Op(op) => Err(error(match crate::transform::as_function(op, None) {
                Err(why) => why.to_string(),
                Ok(_) => format!("the operator {} is no operand", op.name),
            })),
            other => Err(error(format!("{} is no operand", other.type_key()))),
        }
    }

    fn step(&mut self, l: &Ref<Let>, names: &HashMap<usize, Any>) -> Result<Evaluation, Error> {
        if l.value.is_leaf() {
            return self.atom(&l.value, names).map(Evaluation::Value);
        }
        let value = match &l.value {
            Expr::Tuple(t) => Adt::tuple(self.atoms(&t.fields, names)?).into(),
            Expr::TupleGetItem(t) => field(&self.atom(&t.tuple, names)?, t.index)?,
            Expr::Function(f) => self.closure(l, f, names)?,
            Expr::RefCreate(r) => RefValue::new(self.atom(&r.value, names)?).into(),
            Expr::RefRead(r) => reference(&self.atom(&r.reference, names)?)?.get(),
            Expr::RefWrite(r) => {
                reference(&self.atom(&r.reference, names)?)?.set(self.atom(&r.value, names)?);
                Adt::tuple(Vec::new()).into()
            }
            Expr::If(i) => {
                let holds = crate::scalar::ints(&tensor(&self.atom(&i.cond, names)?)?).and_then(|v| v.first().copied());
                let holds = holds.ok_or_else(|| error("a condition is no bool"))?;
                return Ok(Evaluation::Inside(
                    if holds != 0 { i.then.clone() } else { i.other.clone() },
                    HashMap::new(),
                ));
            }
            Expr::Match(m) => {
                let data = self.atom(&m.data, names)?;
                for clause in &m.clauses {
                    let mut bound = HashMap::new();
                    if matches(&clause.pattern, &data, &mut bound)? {
                        return Ok(Evaluation::Inside(clause.body.clone(), bound));
                    }
                }
                return Err(error("no case of a `match` fits"));
            }
            Expr::Call(c) => return self.call_step(c, names),
            other => return Err(error(format!("{} is not in A-normal form", other.type_key()))),
        };
        Ok(Evaluation::Value(value))
    }

    fn atoms(&self, exprs: &[Expr], names: &HashMap<usize, Any>) -> Result<Vec<Any>, Error> {
        exprs.iter().map(|e| self.atom(e, names)).collect()
    }

    fn closure(&mut self, l: &Ref<Let>, f: &Ref<Function>, names: &HashMap<usize, Any>) -> Result<Any, Error> {
        let expr = Expr::Function(f.clone());
        let free = self.captures.entry(expr.address()).or_insert_with(|| {
            self.keep.push(expr.clone());
            free_vars(&expr)
        });
        let own = free.iter().any(|v| Ref::ptr_eq(v, &l.var)).then(|| l.var.clone());
        let captured = free.iter().filter(|v| !Ref::ptr_eq(v, &l.var)).map(|v| {
            let value = names.get(&address(v)).cloned();
            Ok((v.clone(), value.ok_or_else(|| error(format!("the variable %{} is not bound", v.name)))?))
        });
        let captured = captured.collect::<Result<_, Error>>()?;
        Ok(Ref::new(InterpretedFunction { function: Callable::Function(f.clone()), captured, own }).into())
    }

    fn call_step(&mut self, call: &Ref<Call>, names: &HashMap<usize, Any>) -> Result<Evaluation, Error> {
        if let (Expr::Op(op), [Expr::Var(var)]) = (&call.op, call.args.as_slice())
            && op.name == "memory.kill"
        {
            return Ok(Evaluation::Forget(address(var)));
        }
        let args = self.atoms(&call.args, names)?;
        match &call.op {
            Expr::Op(node) if memory::is_memory(&node.name) => {
                self.memory(call, &node.name, args).map(Evaluation::Value)
            }
            Expr::Op(node) => self.operator(call, &node.name, args).map(Evaluation::Value),
            Expr::Constructor(c) => Ok(Evaluation::Value(Adt::new(tag(c)?, args).into())),
            Expr::Global(g) => {
                let function = self.module.functions.get(&g.name).cloned();
                let function = function.ok_or_else(|| error(format!("the module has no function `@{}`", g.name)))?;
                Ok(Evaluation::Call(function.body.clone(), bound(&function, args)?))
            }
            callee => {
                let value = self.atom(callee, names)?;
                let closure = value
                    .downcast_ref::<InterpretedFunction>()
                    .ok_or_else(|| error("what is called is no function"))?;
                match &closure.function {
                    Callable::Constructor(c) => Ok(Evaluation::Value(Adt::new(tag(c)?, args).into())),
                    Callable::Function(f) => {
                        let mut activation = bound(f, args)?;
                        activation.extend(closure.captured.iter().map(|(v, value)| (address(v), value.clone())));
                        if let Some(own) = &closure.own {
                            activation.insert(address(own), value.clone());
                        }
                        Ok(Evaluation::Call(f.body.clone(), activation))
                    }
                }
            }
        }
    }

    fn operator(&mut self, call: &Ref<Call>, name: &str, args: Vec<Any>) -> Result<Any, Error> {
        if matches!(name, "on_device" | "device_copy" | "debug") {
            return args.into_iter().next().ok_or_else(|| error(format!("{name} takes an argument")));
        }
        let def = op::lookup(name).ok_or_else(|| error(format!("operator `{name}` not found")))?;
        // Where a shape is data, the data are part of what the kernels are made for.
        let by_value = op::shape_is_data(name);
        let mut tensors = Vec::new();
        let mut key = format!("{name} {:?} ", call.attrs);
        for (arg, expr) in args.iter().zip(&call.args) {
            flatten(arg, &mut tensors, &mut key, by_value || is_small(expr))?;
        }
        let lowered = match self.kernels.get(&key) {
            Some(lowered) => lowered.clone(),
            None => {
                let made = Ref::new(Lowered { module: self.lower(call, def, &args, by_value)? });
                self.kernels.insert(key, made.clone());
                made
            }
        };
        carry_out(&lowered.module, &tensors)
    }

    /// An operator on tensors of these shapes, as kernels: parameters are the tensors in order.
    fn lower(
        &self,
        call: &Ref<Call>,
        def: &'static op::OpDef,
        args: &[Any],
        by_value: bool,
    ) -> Result<IRModule, Error> {
        let mut builder = rx::BlockBuilder::new();
        let mut params = Vec::new();
        let mut operands = Vec::new();
        for (arg, expr) in args.iter().zip(&call.args) {
            operands.push(operand(arg, by_value || is_small(expr), &mut params)?);
        }
        builder.begin_scope();
        builder.begin_dataflow().map_err(|e| error(e.to_string()))?;
        let mut dims = Vec::new();
        let mut cx = LowerCx {
            builder: &mut builder,
            def,
            args: operands,
            attrs: &call.attrs,
            dims: NewDims::Collect(&mut dims, &mut op::Agreed::default()),
        };
        let result = cx.lower().map_err(|e| error(format!("{}: {e}", def.name)));
        let result = result.and_then(|r| builder.emit_output(r).map_err(|e| error(e.to_string())));
        let body = result.as_ref().ok().cloned().unwrap_or_else(|| rx::Expr::tuple([]));
        let seq = builder.end_scope(body).map_err(|e| error(e.to_string()))?;
        result?;
        let (ret_ty, attrs) = (seq.body.ty(), Attrs::new().with("global_symbol", "main"));
        let function = rx::Function { params, body: seq, ret_ty, pure: true, attrs, span: None };
        builder.module_mut().insert("main", Ref::new(function));
        let passes = rx::transform::parse_passes("LegalizeOps(fast=True)").map_err(|e| error(e.to_string()))?;
        let lowered = Pass::sequential("interpreter", passes).run(builder.finish(), &PassContext::default());
        lowered.map_err(|e| error(e.to_string()))
    }
}

/// A constant that an operator may need to know, as the value of a border: kernels are made for it.
fn is_small(expr: &Expr) -> bool {
    matches!(expr, Expr::Constant(c) if c.data.byte_size() <= 256)
}

/// The number of a constructor, as values have it.
fn tag(constructor: &Constructor) -> Result<i32, Error> {
    let number = constructor.tag;
    i32::try_from(number).map_err(|_| {
        error(format!("the constructor {} has the number {number}, of more than 32 bits", constructor.name))
    })
}

enum Evaluation {
    Value(Any),
    /// A name that is given up.
    Forget(usize),
    /// A branch, in the same function, with names that it binds.
    Inside(Expr, HashMap<usize, Any>),
    /// A function's body, with its own names.
    Call(Expr, HashMap<usize, Any>),
}

fn bound(function: &Ref<Function>, args: Vec<Any>) -> Result<HashMap<usize, Any>, Error> {
    if function.params.len() != args.len() {
        let (wanted, got) = (function.params.len(), args.len());
        return Err(error(format!("a function takes {wanted} arguments, and {got} are given")));
    }
    Ok(function.params.iter().map(address).zip(args).collect())
}

fn value_of(value: AnyView<'_>) -> Result<Any, Error> {
    match value.to::<Array>() {
        Ok(list) => {
            let fields = list.iter().map(|v| value_of(v.as_view())).collect::<Result<_, _>>()?;
            Ok(Adt::tuple(fields).into())
        }
        Err(_) => Ok(value.to_owned()),
    }
}

fn tensor(value: &Any) -> Result<Tensor, Error> {
    value.to::<Tensor>().map_err(|_| error(format!("a tensor is expected, not {}", value.type_key())))
}

fn reference(value: &Any) -> Result<Ref<RefValue>, Error> {
    value.downcast_ref::<RefValue>().cloned().ok_or_else(|| error("a reference is expected"))
}

fn field(value: &Any, index: i64) -> Result<Any, Error> {
    let adt = value.downcast_ref::<Adt>().ok_or_else(|| error("a tuple is expected"))?;
    let found = usize::try_from(index).ok().and_then(|i| adt.fields.get(i));
    found.cloned().ok_or_else(|| error(format!("there is no field {index}")))
}

fn matches(pattern: &Pattern, value: &Any, bound: &mut HashMap<usize, Any>) -> Result<bool, Error> {
    let fields = |patterns: &[Pattern], bound: &mut HashMap<usize, Any>| {
        for (i, pattern) in patterns.iter().enumerate() {
            if !matches(pattern, &field(value, i as i64)?, bound)? {
                return Ok(false);
            }
        }
        Ok(true)
    };
    match pattern {
        Pattern::Wildcard(_) => Ok(true),
        Pattern::Var(p) => {
            bound.insert(address(&p.var), value.clone());
            Ok(true)
        }
        Pattern::Constructor(p) => {
            let adt = value.downcast_ref::<Adt>().ok_or_else(|| error("a value of a data type is expected"))?;
            if adt.tag != tag(&p.constructor)? { Ok(false) } else { fields(&p.patterns, bound) }
        }
        Pattern::Tuple(p) => fields(&p.patterns, bound),
    }
}

/// The tensors of a value in order, and a text of what kernels depend on.
fn flatten(value: &Any, out: &mut Vec<Tensor>, key: &mut String, by_value: bool) -> Result<(), Error> {
    if let Some(adt) = value.downcast_ref::<Adt>() {
        key.push('(');
        adt.fields.iter().try_for_each(|field| flatten(field, out, key, by_value))?;
        key.push(')');
        return Ok(());
    }
    let tensor = tensor(value)?;
    *key += &format!("{:?}{};", tensor.shape(), tensor.dtype());
    if by_value {
        *key += &format!("{:?}", tensor.to_bytes()?);
    } else {
        out.push(tensor);
    }
    Ok(())
}

fn operand(value: &Any, by_value: bool, params: &mut Vec<Ref<RxVar>>) -> Result<rx::Expr, Error> {
    if let Some(adt) = value.downcast_ref::<Adt>() {
        let fields = adt.fields.iter().map(|f| operand(f, by_value, params)).collect::<Result<Vec<_>, _>>()?;
        return Ok(rx::Expr::tuple(fields));
    }
    let tensor = tensor(value)?;
    if by_value {
        return Ok(rx::Expr::constant(tensor));
    }
    let var = RxVar::new(format!("x{}", params.len()), RxType::tensor(tensor.shape().to_vec(), tensor.dtype()));
    params.push(var.clone());
    Ok(var.into())
}

/// Executes kernels one after the other.
fn carry_out(module: &IRModule, args: &[Tensor]) -> Result<Any, Error> {
    let main = module.get_as::<rx::Function>("main").ok_or_else(|| error("the operator was lost in lowering"))?;
    let key = |var: &rx::AnyVar| var.as_object().as_ptr().addr();
    let mut values: HashMap<usize, Any> = HashMap::new();
    for (param, arg) in main.params.iter().zip(args) {
        values.insert(Ref::as_ptr(param).addr(), arg.clone().into());
    }
    for binding in main.body.blocks.iter().flat_map(|b| &b.bindings) {
        let value = match CallTir::of(binding.value()) {
            Some(call) => kernel(module, &call, &values)?,
            None => plain(binding.value(), &values)?,
        };
        values.insert(key(binding.var()), value);
    }
    plain(&main.body.body, &values)
}

fn plain(e: &rx::Expr, values: &HashMap<usize, Any>) -> Result<Any, Error> {
    match e {
        rx::Expr::Constant(c) => Ok(c.value.clone().into()),
        rx::Expr::Tuple(t) => {
            Ok(Adt::tuple(t.fields.iter().map(|e| plain(e, values)).collect::<Result<_, _>>()?).into())
        }
        rx::Expr::TupleGetItem(t) => field(&plain(&t.tuple, values)?, t.index),
        other => {
            let var = other.as_var().ok_or_else(|| {
                let call = other.as_op_call().map_or(other.type_key(), |(_, name)| name);
                error(format!("the interpreter has no kernels for {call}"))
            })?;
            let found = values.get(&var.as_object().as_ptr().addr()).cloned();
            found.ok_or_else(|| error("a kernel takes what is not bound"))
        }
    }
}

fn kernel(module: &IRModule, call: &CallTir, values: &HashMap<usize, Any>) -> Result<Any, Error> {
    let func = module.get_as::<PrimFunc>(&call.func.name).ok_or_else(|| error("a kernel is missing"))?;
    let mut args = Vec::new();
    for arg in &call.args {
        args.push(interp::Arg::Tensor(tensor(&plain(arg, values)?)?));
    }
    let mut outputs = Vec::new();
    for ty in &call.outputs {
        let RxType::Tensor(ty) = ty else { return Err(error("a kernel gives no tensor")) };
        let dims = ty.shape.as_ref().and_then(|dims| rx::shape::const_dims(dims));
        let dims = dims.ok_or_else(|| error("the shape of a kernel's result is not known"))?;
        let out = Tensor::zeros(&dims, ty.dtype)?;
        outputs.push(out.clone());
        args.push(interp::Arg::Tensor(out));
    }
    interp::run(&func, &args).map_err(|e| error(format!("{}: {e}", call.func.name)))?;
    Ok(match outputs.as_slice() {
        [one] => one.clone().into(),
        many => Adt::tuple(many.iter().map(|t| t.clone().into()).collect()).into(),
    })
}
