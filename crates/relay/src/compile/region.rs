//! A run of operators as a function of Relax.
//!
//! Parameters are the tensors that the operators use, taken out of tuples; results are the tensors of the values that are
//! used behind the region. A dimension that is not known is a variable, bound by the parameter that has it. Dimensions that
//! no parameter shows come in a shape that is the last parameter, and [`DimDef`] says what they are.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::{Attrs, Type as RxType, Var as RxVar};
use relaxide_relax as rx;

use super::{CompileError, unsupported};
use crate::convert::to_relax;
use crate::op::{self, Agreed, DimDef, LowerCx, NewDims};
use crate::*;

/// What waits to become part of a region.
pub(super) enum Item {
    /// A call of an operator.
    Call(Ref<Call>),
    /// Another name, a tuple or a field of what is in the region.
    Alias(Expr),
    /// A name for the value that another has at this place: what is inlined twice has its names twice.
    Bound(Expr),
}

/// A tensor inside of a variable's value: the fields to take.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Leaf {
    pub var: Ref<Var>,
    pub path: Vec<usize>,
}

/// A region.
pub(super) struct Region {
    /// The function of Relax.
    pub name: String,
    /// What its parameters are.
    pub params: Vec<(Leaf, Ref<RxVar>)>,
    /// Dimensions that no parameter shows.
    pub dims: Vec<(Ref<RxVar>, DimDef)>,
    /// The values that it gives, each with its type: their tensors in order are the function's results.
    pub outputs: Vec<(Ref<Var>, Type)>,
    /// Where its kernels run.
    pub device: usize,
}

fn address(var: &Ref<Var>) -> usize {
    Ref::as_ptr(var).addr()
}

pub(super) struct RegionBuilder<'a> {
    builder: &'a mut rx::BlockBuilder,
    types: &'a Types,
    values: HashMap<usize, rx::Expr>,
    /// Other names, tuples and fields, looked at where an operator takes them.
    aliases: HashMap<usize, Expr>,
    params: Vec<(Leaf, Ref<RxVar>)>,
    dims: Vec<(Ref<RxVar>, DimDef)>,
    agreed: Agreed,
}

impl<'a> RegionBuilder<'a> {
    pub fn new(builder: &'a mut rx::BlockBuilder, types: &'a Types) -> RegionBuilder<'a> {
        RegionBuilder {
            builder,
            types,
            values: HashMap::new(),
            aliases: HashMap::new(),
            params: Vec::new(),
            dims: Vec::new(),
            agreed: Agreed::default(),
        }
    }

    pub fn build(
        mut self,
        name: &str,
        items: &[(Ref<Var>, Item)],
        outputs: Vec<Ref<Var>>,
        device: usize,
    ) -> Result<Region, CompileError> {
        let attrs = Attrs::new().with("global_symbol", name);
        self.builder.begin_scope();
        let made = self.bindings(items, &outputs);
        let seq = self.builder.end_scope(made.as_ref().ok().cloned().unwrap_or_else(|| rx::Expr::tuple([])))?;
        let _ = made?;
        let mut params: Vec<Ref<RxVar>> = self.params.iter().map(|(_, var)| var.clone()).collect();
        if !self.dims.is_empty() {
            let dims: Vec<_> = self.dims.iter().map(|(var, _)| relaxide_ir::PrimExpr::Var(var.clone())).collect();
            params.push(RxVar::new("dims", RxType::shape(dims)));
        }
        let ret_ty = seq.body.ty();
        let function = rx::Function { params, body: seq, ret_ty, pure: true, attrs, span: None };
        self.builder.module_mut().insert(name, Ref::new(function));
        let outputs = outputs.into_iter().map(|var| {
            let ty = self.types.of_var(&var).unwrap_or_else(|| Type::tuple([]));
            (var, ty)
        });
        Ok(Region { name: name.to_string(), params: self.params, dims: self.dims, outputs: outputs.collect(), device })
    }

    fn bindings(&mut self, items: &[(Ref<Var>, Item)], outputs: &[Ref<Var>]) -> Result<rx::Expr, CompileError> {
        self.builder.begin_dataflow()?;
        for (var, item) in items {
            match item {
                Item::Alias(value) => {
                    self.values.remove(&address(var));
                    self.aliases.insert(address(var), value.clone());
                }
                Item::Bound(value) => {
                    let value = self.operand(value)?;
                    self.values.insert(address(var), value);
                }
                Item::Call(call) => {
                    let value = self.lowered(call)?;
                    self.values.insert(address(var), value);
                }
            }
        }
        let mut results = Vec::new();
        for var in outputs {
            let value = self.operand(&var.into())?;
            self.tensors_of(value, &mut results)?;
        }
        let mut out = Vec::new();
        for result in results {
            out.push(self.builder.emit_output(result)?);
        }
        let tuple = self.builder.emit_output(rx::Expr::tuple(out))?;
        self.builder.end_dataflow()?;
        Ok(tuple)
    }

    fn lowered(&mut self, call: &Ref<Call>) -> Result<rx::Expr, CompileError> {
        let Expr::Op(node) = &call.op else { return unsupported("an operator is expected", None) };
        let Some(def) = op::lookup(&node.name) else {
            return unsupported(format!("operator `{}` not found", node.name), call.span.as_deref());
        };
        let args = call.args.iter().map(|e| self.operand(e)).collect::<Result<Vec<_>, _>>()?;
        let mut cx = LowerCx {
            builder: self.builder,
            def,
            args,
            attrs: &call.attrs,
            dims: NewDims::Collect(&mut self.dims, &mut self.agreed),
        };
        cx.lower().or_else(|e| unsupported(e.to_string(), call.span.as_deref()))
    }

    /// The tensors of a value, tuples flattened.
    fn tensors_of(&mut self, value: rx::Expr, out: &mut Vec<rx::Expr>) -> Result<(), CompileError> {
        match value.ty() {
            RxType::Tuple(t) => {
                for i in 0..t.fields.len() {
                    let field = match &value {
                        rx::Expr::Tuple(tuple) => tuple.fields[i].clone(),
                        _ => self.builder.emit(rx::Expr::field(value.clone(), i))?,
                    };
                    self.tensors_of(field, out)?;
                }
                Ok(())
            }
            _ => {
                out.push(value);
                Ok(())
            }
        }
    }

    fn operand(&mut self, expr: &Expr) -> Result<rx::Expr, CompileError> {
        match expr {
            Expr::Constant(c) => Ok(rx::Expr::constant(c.data.clone())),
            Expr::Var(var) => {
                if let Some(value) = self.values.get(&address(var)) {
                    return Ok(value.clone());
                }
                if let Some(alias) = self.aliases.get(&address(var)).cloned() {
                    let value = self.operand(&alias)?;
                    self.values.insert(address(var), value.clone());
                    return Ok(value);
                }
                let missing = || {
                    CompileError::Program(relaxide_ir::Diagnostic::new(
                        relaxide_ir::Code::Type,
                        format!("the type of %{} is not known", var.name),
                    ))
                };
                let ty = self.types.of_var(var).ok_or_else(missing)?;
                let value = self.param(&Leaf { var: var.clone(), path: Vec::new() }, &ty)?;
                self.values.insert(address(var), value.clone());
                Ok(value)
            }
            Expr::Tuple(t) => {
                let fields = t.fields.iter().map(|e| self.operand(e)).collect::<Result<Vec<_>, _>>()?;
                Ok(rx::Expr::tuple(fields))
            }
            Expr::TupleGetItem(t) => {
                let index = usize::try_from(t.index).unwrap_or(usize::MAX);
                // The other fields of a tuple at hand need be no tensors.
                if let Expr::Var(var) = &t.tuple
                    && let Some(Expr::Tuple(tuple)) = self.aliases.get(&address(var)).cloned()
                    && let Some(field) = tuple.fields.get(index)
                {
                    return self.operand(field);
                }
                let tuple = self.operand(&t.tuple)?;
                match &tuple {
                    rx::Expr::Tuple(fields) if index < fields.fields.len() => Ok(fields.fields[index].clone()),
                    _ => Ok(self.builder.emit(rx::Expr::field(tuple, index))?),
                }
            }
            other => unsupported("an operator takes tensors", other.span().map(|s| &**s)),
        }
    }

    /// A value from outside: a parameter for each of its tensors.
    fn param(&mut self, leaf: &Leaf, ty: &Type) -> Result<rx::Expr, CompileError> {
        match ty {
            Type::Tensor(_) => {
                let rx_type = to_relax(ty).or_else(|e| unsupported(e, None))?;
                let var = RxVar::new(format!("p{}", self.params.len()), rx_type);
                self.params.push((leaf.clone(), var.clone()));
                Ok(var.into())
            }
            Type::Tuple(t) => {
                let mut fields = Vec::new();
                for (i, ty) in t.fields.iter().enumerate() {
                    let mut path = leaf.path.clone();
                    path.push(i);
                    fields.push(self.param(&Leaf { var: leaf.var.clone(), path }, ty)?);
                }
                Ok(rx::Expr::tuple(fields))
            }
            other => {
                unsupported(format!("operators take tensors and tuples of them, not {other}"), leaf.var.span.as_deref())
            }
        }
    }
}
