//! [`Crossings`]: the copies between devices that a function needs, and no others.

use relaxide_ffi::Ref;
use relaxide_ir::{AttrValue, Attrs, Type, VDevice};

use super::device_groups::{DeviceError, DeviceGroups, destination};
use crate::op::Op;
use crate::*;

/// A value that was copied, and where to.
type Copied = (Expr, Ref<VDevice>, AnyVar);

/// Makes hints copies or nothing, leaves out copies that lead nowhere or were made before, and copies constants to where they are used.
pub(super) struct Crossings<'a> {
    places: &'a DeviceGroups<'a>,
    /// Where constants are, and all of which nothing is said.
    main: Option<&'a Ref<VDevice>>,
    /// The copies that can be seen.
    copied: Vec<Copied>,
    in_dataflow: bool,
    wrong: Option<DeviceError>,
}

impl<'a> Crossings<'a> {
    pub(super) fn new(places: &'a DeviceGroups<'a>, main: Option<&'a Ref<VDevice>>) -> Crossings<'a> {
        Crossings { places, main, copied: Vec::new(), in_dataflow: false, wrong: None }
    }

    /// What was wrong, if anything was.
    pub(super) fn outcome(self) -> Result<(), DeviceError> {
        self.wrong.map_or(Ok(()), Err)
    }

    /// A value on a device: as it is, as it was copied before, or nothing if it is to be copied.
    fn at(&self, value: &Expr, device: &VDevice) -> Option<Expr> {
        let found = value.as_var().and_then(|var| self.places.found(&var, &[]));
        if found.is_some_and(|place| place.is_same(device)) {
            return Some(value.clone());
        }
        let before = self.copied.iter().find(|(copied, to, _)| copied == value && to.is_same(device));
        before.map(|(_, _, copy)| copy.clone().into())
    }

    fn copy(value: &Expr, device: &Ref<VDevice>) -> Expr {
        let attrs = Attrs::new().with("dst_vdevice", AttrValue::Object(device.clone().into()));
        let op = Op::get("to_vdevice").into();
        let ty = super::on(&value.ty(), &|_| Some(device.clone()));
        Ref::new(Call { op, args: vec![value.clone()], attrs, ty_args: Vec::new(), ty, span: None }).into()
    }

    /// Constants of an operand, copied to a device where they are not.
    fn constants(&mut self, operand: &Expr, device: Option<&Ref<VDevice>>, out: &mut Vec<Binding>) -> Expr {
        let elsewhere = device.filter(|device| !self.main.is_some_and(|main| main.is_same(device)));
        match (operand, elsewhere) {
            (Expr::Constant(_), Some(device)) => {
                if let Some(known) = self.at(operand, device) {
                    return known;
                }
                let value = Self::copy(operand, device);
                let var = match self.in_dataflow {
                    true => {
                        AnyVar::Dataflow(Ref::new(DataflowVar { name: "const".into(), ty: value.ty(), span: None }))
                    }
                    false => AnyVar::Var(relaxide_ir::Var::new("const", value.ty())),
                };
                out.push(Ref::new(VarBinding { var: var.clone(), value }).into());
                self.copied.push((operand.clone(), device.clone(), var.clone()));
                var.into()
            }
            (Expr::Tuple(tuple), Some(_)) => {
                let fields: Vec<Expr> = tuple.fields.iter().map(|field| self.constants(field, device, out)).collect();
                if fields == tuple.fields { operand.clone() } else { Expr::tuple(fields) }
            }
            _ => operand.clone(),
        }
    }

    /// The constants that a value of a variable is made of, each copied to where its field lives.
    fn constants_of_value(
        &mut self,
        var: &AnyVar,
        value: &Expr,
        path: &mut Vec<usize>,
        out: &mut Vec<Binding>,
    ) -> Expr {
        match value {
            Expr::Constant(_) => {
                let device = self.places.found(var, path);
                self.constants(value, device.as_ref(), out)
            }
            Expr::Tuple(tuple) => {
                let field = |(index, field): (usize, &Expr)| {
                    path.push(index);
                    let placed = self.constants_of_value(var, field, path, out);
                    path.pop();
                    placed
                };
                let fields: Vec<Expr> = tuple.fields.iter().enumerate().map(field).collect();
                if fields == tuple.fields { value.clone() } else { Expr::tuple(fields) }
            }
            _ => value.clone(),
        }
    }

    fn call(&mut self, var: &AnyVar, call: &Ref<Call>, out: &mut Vec<Binding>) -> Expr {
        let to = match call.op_name() {
            Some("to_vdevice") => Some(destination(call)),
            Some("hint_on_device") => Some(self.places.hinted(call)),
            _ => None,
        };
        let Some(to) = to else { return self.operands(var, call, out) };
        match (to, call.args.first()) {
            (Ok(device), Some(data)) => self.at(data, &device).unwrap_or_else(|| {
                self.copied.push((data.clone(), device.clone(), var.clone()));
                Self::copy(data, &device)
            }),
            (Err(why), _) => {
                self.wrong.get_or_insert(why);
                call.clone().into()
            }
            (Ok(_), None) => call.clone().into(),
        }
    }

    /// A call whose constants are where its other operands are.
    fn operands(&mut self, var: &AnyVar, call: &Ref<Call>, out: &mut Vec<Binding>) -> Expr {
        let device = first_leaf(var.ty()).and_then(|path| self.places.found(var, &path));
        let device = device.filter(|_| call.op_name().is_some());
        let args: Vec<Expr> = call.args.iter().map(|arg| self.constants(arg, device.as_ref(), out)).collect();
        if args == call.args { call.clone().into() } else { Ref::new(call.rebuilt(call.op.clone(), args)).into() }
    }
}

fn first_leaf(ty: &Type) -> Option<Vec<usize>> {
    match ty {
        Type::Tensor(_) => Some(Vec::new()),
        Type::Tuple(tuple) => {
            tuple.fields.iter().enumerate().find_map(|(i, field)| Some([vec![i], first_leaf(field)?].concat()))
        }
        _ => None,
    }
}

impl ExprMutator for Crossings<'_> {
    fn mutate_seq(&mut self, seq: &Ref<SeqExpr>) -> Ref<SeqExpr> {
        // What is copied inside of a branch or a function is not seen behind it.
        let seen = self.copied.clone();
        let mut blocks: Vec<_> = seq.blocks.iter().map(|block| self.mutate_block(block)).collect();
        blocks.retain(|block| !block.bindings.is_empty());
        self.copied = seen;
        if blocks == seq.blocks { seq.clone() } else { Ref::new(SeqExpr { blocks, body: seq.body.clone() }) }
    }

    fn mutate_block(&mut self, block: &Ref<BindingBlock>) -> Ref<BindingBlock> {
        let around = std::mem::replace(&mut self.in_dataflow, block.dataflow);
        let mut bindings = Vec::with_capacity(block.bindings.len());
        block.bindings.iter().for_each(|binding| self.mutate_binding(binding, &mut bindings));
        self.in_dataflow = around;
        // Variables of a dataflow block end with it.
        self.copied
            .retain(|(value, _, copy)| !matches!(copy, AnyVar::Dataflow(_)) && !matches!(value, Expr::DataflowVar(_)));
        Ref::new(BindingBlock { bindings, dataflow: block.dataflow })
    }

    fn mutate_binding(&mut self, binding: &Binding, out: &mut Vec<Binding>) {
        let var = binding.var();
        let value = match binding.value() {
            Expr::Call(call) => self.call(var, call, out),
            value @ (Expr::Constant(_) | Expr::Tuple(_)) => self.constants_of_value(var, value, &mut Vec::new(), out),
            value => self.mutate_expr(value),
        };
        out.push(match binding {
            Binding::Var(_) => Ref::new(VarBinding { var: var.clone(), value }).into(),
            Binding::MatchCast(cast) => Ref::new(MatchCast { var: var.clone(), value, ty: cast.ty.clone() }).into(),
        });
    }
}
