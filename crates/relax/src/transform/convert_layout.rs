//! ConvertLayout: the axes of images and weights lie as the user wants, and what follows runs along.
//!
//! ```text
//! {"relax.nn.conv2d": ["NHWC", "OHWI"]}
//!
//! lv = R.nn.conv2d(x, w)             lv = R.permute_dims(x, axes=[0, 2, 3, 1])
//! gv = R.nn.relu(lv)                 lv1 = R.permute_dims(w, axes=[0, 2, 3, 1])
//!                              →     lv2 = R.nn.conv2d(lv, lv1, data_layout="NHWC", kernel_layout="OHWI", …)
//!                                    lv3 = R.nn.relu(lv2)
//!                                    gv = R.permute_dims(lv3, axes=[0, 3, 1, 2])
//! ```
//!
//! Each operator's row says how it is executed when its arguments lie in other orders; one that says nothing gets them in
//! the program's order. What leaves a dataflow block lies in the program's order.
//!
//! A layout may split an axis into blocks, as `NCHW4c` does; a tensor is brought to it by a map of indices,
//! `R.layout_transform(x, T.index_map(lambda i0, i1, i2, i3: (i0, i1 // 4, i2, i3, i1 % 4)))`. A call whose dimensions are not
//! known to be whole blocks stays as it is: TVM trusts that a symbolic dimension is, and would compute with elements that are
//! not there.
//!
//! `layout_cb` is asked for each call, and gives the layouts by operator's name; what is given as `desired_layouts` does not
//! count then.
//!
//! **Works on** dataflow blocks.

use std::collections::HashMap;

use indexmap::IndexMap;
use relaxide_ffi::{self as ffi, Any, Ref};
use relaxide_ir::pass::{ParamKind, PassError, PassInfo, PassParam, PassResult};
use relaxide_ir::{AttrValue, Attrs, IRModule, Type};

use super::block_pass::each_dataflow_block;
use super::fuse_by_pattern::strings;
use crate::op::{CallCx, Layout, LayoutCx, LayoutPlan, LayoutRule};
use crate::rewrite::in_function;
use crate::*;

const NAME: &str = "ConvertLayout";

pub(super) const PASS: PassInfo =
    PassInfo::new(NAME, "Axes lie as the user wants, and what follows runs along.", |module, _, args| {
        let asked = match args.get("layout_cb") {
            Some(AttrValue::Object(function)) => Any::from(function.clone()).to::<ffi::Function>().ok(),
            _ => None,
        };
        let wanted = match (asked, args.get("desired_layouts")) {
            (Some(function), _) => Wanted::Asked(function),
            (None, Some(AttrValue::Map(wanted))) => Wanted::Given(desired(wanted)?),
            _ => return Ok(module),
        };
        run(module, &wanted)
    })
    .params(&[
        PassParam::required(
            "desired_layouts",
            ParamKind::Map,
            "By operator, the layouts of data and weight, and perhaps of the result.",
        ),
        PassParam::optional("layout_cb", ParamKind::Function, "From a call to such a map, in place of the one above."),
    ]);

/// Where the wish comes from.
enum Wanted {
    /// One for all calls.
    Given(Desired),
    /// A function of the call.
    Asked(ffi::Function),
}

impl Wanted {
    /// What is wanted of a call of an operator.
    fn of(&self, name: &str, call: &Ref<Call>) -> Result<Option<Vec<String>>, PassError> {
        let function = match self {
            Wanted::Given(desired) => return Ok(desired.get(name).cloned()),
            Wanted::Asked(function) => function,
        };
        let argument = Any::from(call.clone());
        let answer = function.call(&[argument.as_view()]).map_err(|e| PassError::caused(NAME, e))?;
        let answer: IndexMap<String, AttrValue> = answer.to().map_err(|e| PassError::caused(NAME, e))?;
        Ok(desired(&answer)?.get(name).cloned())
    }
}

/// The layouts that the user wants, by operator.
type Desired = IndexMap<String, Vec<String>>;

fn desired(wanted: &IndexMap<String, AttrValue>) -> Result<Desired, PassError> {
    let refuse = |message: String| Err(PassError::new(NAME, message));
    let mut out = Desired::new();
    for (name, layouts) in wanted {
        let layouts = strings(Some(layouts));
        if op::lookup(name).is_none_or(|def| def.layout.is_none()) {
            return refuse(format!("there is no operator `{name}` that has layouts to choose from"));
        }
        if layouts.is_empty() {
            return refuse(format!("the layouts of `{name}` are given as texts, such as [NHWC, OHWI]"));
        }
        out.insert(name.trim_start_matches("relax.").to_string(), layouts);
    }
    Ok(out)
}

fn run(module: IRModule, wanted: &Wanted) -> PassResult {
    let mut b = BlockBuilder::with_module(module);
    let functions: Vec<_> = b.module().functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    for (name, func) in functions {
        func.params.iter().for_each(|p| b.reserve(&p.name));
        functor::bound_names(&func.body).iter().for_each(|n| b.reserve(n));
        let mut convert = Convert { b: &mut b, wanted, known: HashMap::new(), failed: None };
        let new = each_dataflow_block(&func, |block| convert.block(block));
        let failed = convert.failed.take();
        let new = new.map_err(|error| failed.unwrap_or_else(|| in_function(NAME, &name, error)))?;
        let ret_ty = refined(&new.ret_ty, &new.body.body.ty());
        b.module_mut().insert(name, Ref::new(Function { ret_ty, ..Function::clone(&new) }));
    }
    Ok(b.finish())
}

/// What a function gives: the shapes that its body has where it says none.
pub(super) fn refined(said: &Type, found: &Type) -> Type {
    match (said, found) {
        (Type::Tensor(a), Type::Tensor(b)) if a.shape.is_none() && a.dtype == b.dtype && b.shape.is_some() => {
            found.clone()
        }
        (Type::Tuple(a), Type::Tuple(b)) if a.fields.len() == b.fields.len() => {
            Type::tuple(a.fields.iter().zip(&b.fields).map(|(a, b)| refined(a, b)).collect::<Vec<_>>())
        }
        _ => said.clone(),
    }
}

struct Convert<'a> {
    b: &'a mut BlockBuilder,
    wanted: &'a Wanted,
    /// Why the user's function gave no answer.
    failed: Option<PassError>,
    /// What holds the value of a dataflow variable, and how it lies.
    known: HashMap<AnyVar, (Expr, Layout)>,
}

impl Convert<'_> {
    fn block(&mut self, block: &Ref<BindingBlock>) -> Result<Ref<BindingBlock>, BuildError> {
        self.known.clear();
        self.b.begin_scope();
        self.b.begin_dataflow()?;
        let done = block.bindings.iter().try_for_each(|binding| self.binding(binding));
        self.b.end_dataflow()?;
        let seq = self.b.end_scope(Expr::tuple([]))?;
        done?;
        let bindings: Vec<Binding> = seq.blocks.iter().flat_map(|b| b.bindings.iter().cloned()).collect();
        Ok(if bindings == block.bindings { block.clone() } else { Ref::new(BindingBlock { bindings, dataflow: true }) })
    }

    fn binding(&mut self, binding: &Binding) -> Result<(), BuildError> {
        let bound = match binding {
            Binding::Var(bound) => bound,
            Binding::MatchCast(cast) => {
                let value = self.initial(&cast.value)?;
                let ty = cast.ty.clone();
                return self.b.push_binding(Ref::new(MatchCast { var: cast.var.clone(), value, ty }).into());
            }
        };
        let (value, layout) = self.value(&bound.value)?;
        if value == bound.value {
            return self.b.push_binding(binding.clone());
        }
        if layout.is_initial() || matches!(bound.var, AnyVar::Var(_)) {
            let value = self.convert(value, &layout, &Layout::initial(bound.var.ty()))?;
            let value = self.b.normalize(value)?;
            return self.b.push_binding(Ref::new(VarBinding { var: bound.var.clone(), value }).into());
        }
        let value = self.b.normalize(value)?;
        let var = Ref::new(DataflowVar { name: bound.var.name().to_string(), ty: value.ty(), span: None });
        self.b.push_binding(Ref::new(VarBinding { var: var.clone().into(), value }).into())?;
        self.known.insert(bound.var.clone(), (var.into(), layout));
        Ok(())
    }

    /// A value over what holds its operands now, and how it lies.
    fn value(&mut self, value: &Expr) -> Result<(Expr, Layout), BuildError> {
        match value {
            Expr::Call(call) => self.call(value, call),
            Expr::TupleGetItem(item) => {
                let (tuple, layout) = self.operand(&item.tuple);
                let at = usize::try_from(item.index).ok();
                let field = match (&layout, at) {
                    (Layout::Tuple(fields), Some(at)) => fields.get(at).cloned(),
                    _ => None,
                };
                let layout = field.unwrap_or_else(|| Layout::initial(&value.ty()));
                if tuple == item.tuple {
                    return Ok((value.clone(), layout));
                }
                Ok((Ref::new(TupleGetItem { tuple, index: item.index }).into(), layout))
            }
            _ => Ok(self.operand(value)),
        }
    }

    /// What holds an operand now, and how it lies.
    fn operand(&self, e: &Expr) -> (Expr, Layout) {
        if let Expr::Tuple(tuple) = e {
            let (fields, layouts): (Vec<_>, Vec<_>) = tuple.fields.iter().map(|f| self.operand(f)).unzip();
            let new = if fields == tuple.fields { e.clone() } else { Expr::tuple(fields) };
            return (new, Layout::Tuple(layouts));
        }
        let known = e.as_var().and_then(|v| self.known.get(&v).cloned());
        known.unwrap_or_else(|| (e.clone(), Layout::initial(&e.ty())))
    }

    /// An operand in the program's order.
    fn initial(&mut self, e: &Expr) -> Result<Expr, BuildError> {
        let (value, layout) = self.operand(e);
        let value = self.convert(value, &layout, &Layout::initial(&e.ty()))?;
        self.b.normalize_arg(value)
    }

    fn call(&mut self, value: &Expr, call: &Ref<Call>) -> Result<(Expr, Layout), BuildError> {
        let def = call.op_name().and_then(op::lookup);
        let planned = match def.and_then(|def| Some((def, def.layout?))) {
            Some((def, rule)) => {
                let layouts: Vec<Layout> = call.args.iter().map(|a| self.operand(a).1).collect();
                let desired = self.wanted.of(def.name, call).map_err(|error| {
                    let text = error.to_string();
                    self.failed = Some(error);
                    BuildError::Program(text)
                })?;
                let cx = LayoutCx { call: CallCx::of(def, call), desired: desired.as_deref(), args: &layouts };
                Some(plan(&cx, rule)?)
            }
            None => None,
        };
        let Some(plan) = planned else {
            let args = call.args.iter().map(|a| self.initial(a)).collect::<Result<Vec<_>, _>>()?;
            let same = args == call.args;
            let new = if same { value.clone() } else { call.with_args(args, call.ty.clone()).into() };
            return Ok((new, Layout::initial(&call.ty)));
        };
        let mut args = Vec::with_capacity(call.args.len());
        for (arg, wanted) in call.args.iter().zip(&plan.args) {
            let (now, layout) = self.operand(arg);
            let converted = self.convert(now, &layout, wanted)?;
            args.push(self.b.normalize_arg(converted)?);
        }
        for (i, new) in plan.replaced {
            if let Some(arg) = args.get_mut(i) {
                *arg = new;
            }
        }
        if args == call.args && plan.attrs == call.attrs {
            return Ok((value.clone(), plan.result));
        }
        let name = call.op_name().unwrap_or_default().to_string();
        Ok((op::call_typed(&name, args, plan.attrs, call.ty_args.clone())?, plan.result))
    }

    /// A value that lies as `from`, as `to`.
    fn convert(&mut self, value: Expr, from: &Layout, to: &Layout) -> Result<Expr, BuildError> {
        match (from, to) {
            (Layout::Tensor(from), Layout::Tensor(to)) if from != to => {
                let axes: Vec<i64> = to.axes().iter().filter_map(|a| from.place(*a)).map(|a| a as i64).collect();
                let value = self.b.normalize_arg(value)?;
                Ok(op::call("permute_dims", [value], Attrs::new().with("axes", axes))?)
            }
            (Layout::Tensor(_) | Layout::Packed(_), Layout::Tensor(_) | Layout::Packed(_)) if from != to => {
                let Some((from, to)) = from.packing().zip(to.packing()) else { return Ok(value) };
                let value = self.b.normalize_arg(value)?;
                let map = AttrValue::Object(Ref::new(from.map_to(&to)).into());
                Ok(op::call("layout_transform", [value], Attrs::new().with("index_map", map))?)
            }
            (Layout::Tuple(from), Layout::Tuple(to)) if from != to && from.len() == to.len() => {
                let value = self.b.normalize_arg(value)?;
                let mut fields = Vec::with_capacity(to.len());
                for (i, (from, to)) in from.iter().zip(to).enumerate() {
                    let field = match &value {
                        Expr::Tuple(tuple) => {
                            tuple.fields.get(i).cloned().unwrap_or_else(|| Expr::field(value.clone(), i))
                        }
                        _ => self.b.emit(Expr::field(value.clone(), i))?,
                    };
                    let field = self.convert(field, from, to)?;
                    fields.push(self.b.normalize_arg(field)?);
                }
                Ok(Expr::tuple(fields))
            }
            _ => Ok(value),
        }
    }
}

/// What the operator's rule says; where it cannot, the call stays as it is.
fn plan(cx: &LayoutCx<'_>, rule: LayoutRule) -> Result<LayoutPlan, BuildError> {
    match rule(cx) {
        Ok(plan) => Ok(plan),
        Err(error) if cx.desired.is_some() => Err(error.into()),
        Err(_) => Ok(cx.unchanged()?),
    }
}
