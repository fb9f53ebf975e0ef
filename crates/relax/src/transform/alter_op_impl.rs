//! AlterOpImpl: kernels of an operator are replaced by the user's, which may take and give tensors in other layouts.
//!
//! A kernel says what it is by its attribute `operator_name`. For such a name the user gives a kernel, and for each of its
//! parameters a map of indices, or nothing where it lies as before:
//!
//! ```text
//! AlterOpImpl({"relax.add": add_packed}, {"relax.add": [lambda i: (i // 4, i % 4)] * 3})
//!
//! gv = R.call_tir(cls.add, (x, y), …)    →    lv  = R.layout_transform(x, …)
//!                                             lv1 = R.layout_transform(y, …)
//!                                             lv2 = R.call_tir(cls.relax_add_replacement, (lv, lv1), …)
//!                                             gv  = R.layout_transform(lv2, <the map back>)
//! ```
//!
//! Where the new layout of a result has elements that the old one has not, they are cut off by a kernel `remove_pad`. Constants
//! of one element stay as they are.
//!
//! On the command line a kernel is given by its name in the module, and a map by two layouts: `"NC -> NC4c"`.
//!
//! **Needs** as many parameters of the new kernel as of the old one, and as many maps, or none at all; known dimensions of what
//! is laid out anew; and maps that lead back, which TVM checks too. **Differs from TVM**: there is one `remove_pad` for each
//! rank and element type, where TVM takes the first one of a rank for tensors of every type.

use std::collections::HashMap;

use indexmap::IndexMap as ByName;
use relaxide_ffi::{DataType, Ref};
use relaxide_ir::pass::{ParamKind, PassError, PassInfo, PassParam, PassResult};
use relaxide_ir::prim::PrimExpr;
use relaxide_ir::{AttrValue, Attrs, GlobalVar, IRModule, TensorType, Type, Var};
use relaxide_tir::{IndexMap, PrimFunc, te};

use crate::builder::make_kernel;
use crate::op::core::{CallTir, call_tir};
use crate::op::{KernelForm, Packing};
use crate::rewrite::{Action, Rewrite, rewrite_module};
use crate::*;

const NAME: &str = "AlterOpImpl";

pub(super) const PASS: PassInfo =
    PassInfo::new(NAME, "Kernels of an operator are replaced by the user's, in other layouts.", |module, _, args| {
        let (Some(AttrValue::Map(kernels)), Some(AttrValue::Map(maps))) =
            (args.get("op_impl_map"), args.get("op_buffer_transforms"))
        else {
            return Ok(module);
        };
        let kernels = kernels.iter().map(|(name, value)| Ok((name.clone(), kernel(&module, name, value)?)));
        let kernels = kernels.collect::<Result<_, PassError>>()?;
        let maps = maps.iter().map(|(name, value)| Ok((name.clone(), transforms(name, value)?)));
        run(module, kernels, maps.collect::<Result<_, PassError>>()?)
    })
    .params(&[
        PassParam::required("op_impl_map", ParamKind::Map, "By operator_name, the kernel in its place."),
        PassParam::required(
            "op_buffer_transforms",
            ParamKind::Map,
            "By operator_name, for each parameter of the kernel the map of indices to its layout, or None.",
        ),
    ])
    .ready(relaxide_tir::lower::module_of_unit_steps);

/// The attribute of a kernel that says what it computes.
pub(super) const OPERATOR_NAME: &str = "operator_name";
/// What a kernel is called that cuts padding off.
pub(super) const REMOVE_PAD: &str = "remove_pad";

fn refuse<T>(message: String) -> Result<T, PassError> {
    Err(PassError::new(NAME, message))
}

fn kernel(module: &IRModule, name: &str, value: &AttrValue) -> Result<Ref<PrimFunc>, PassError> {
    let found = match value {
        AttrValue::Object(object) => object.clone().downcast::<PrimFunc>().ok(),
        AttrValue::Str(text) => module.get_as::<PrimFunc>(text),
        _ => None,
    };
    found.map_or_else(
        || refuse(format!("what is given for `{name}` is no kernel, and no name of one of the module")),
        Ok,
    )
}

/// The map of each parameter; `None` where it lies as before.
type Transforms = Vec<Option<Ref<IndexMap>>>;

fn transforms(name: &str, value: &AttrValue) -> Result<Transforms, PassError> {
    let AttrValue::List(list) = value else { return refuse(format!("the maps of `{name}` are given as a list")) };
    let one = |value: &AttrValue| match value {
        AttrValue::None => Ok(None),
        AttrValue::Object(object) if object.downcast_ref::<IndexMap>().is_some() => {
            Ok(object.clone().downcast::<IndexMap>().ok())
        }
        AttrValue::Str(text) => match named(text) {
            Some(map) => Ok(Some(Ref::new(map))),
            None => refuse(format!("`{text}` says no map of indices; it is written as \"NC -> NC4c\"")),
        },
        _ => refuse(format!("a map of `{name}` is no map of indices")),
    };
    list.iter().map(one).collect()
}

/// The map from one layout to another: `NC -> NC4c`.
fn named(text: &str) -> Option<IndexMap> {
    let (from, to) = text.split_once("->")?;
    let (from, to) = (from.trim(), to.trim());
    Some(Packing::between(from, from)?.map_to(&Packing::between(from, to)?))
}

fn run(module: IRModule, kernels: ByName<String, Ref<PrimFunc>>, transforms: ByName<String, Transforms>) -> PassResult {
    rewrite_module(NAME, module, &mut Alter { kernels, transforms, added: HashMap::new(), cuts: HashMap::new() })
}

struct Alter {
    kernels: ByName<String, Ref<PrimFunc>>,
    transforms: ByName<String, Transforms>,
    /// New kernels in the module, by operator.
    added: HashMap<String, Ref<GlobalVar>>,
    /// Kernels that cut padding off, by rank and element type.
    cuts: HashMap<(usize, DataType), Ref<GlobalVar>>,
}

fn problem<T>(message: String) -> Result<T, BuildError> {
    Err(BuildError::Program(message))
}

impl Rewrite for Alter {
    fn value(&mut self, b: &mut BlockBuilder, _: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let (Expr::Call(call), Some(tir)) = (&value, CallTir::of(&value)) else { return Ok(Action::Bind(value)) };
        let Some(old) = b.module().get_as::<PrimFunc>(&tir.func.name) else { return Ok(Action::Bind(value)) };
        let Some(name) = old.attrs.str(OPERATOR_NAME) else { return Ok(Action::Bind(value)) };
        let Some(new) = self.kernels.get(name).cloned() else { return Ok(Action::Bind(value)) };
        let maps = self.transforms.get(name).cloned().unwrap_or_default();
        if old.params.len() != new.params.len() {
            let (old, new) = (old.params.len(), new.params.len());
            return problem(format!("kernel `{}` has {old} parameters, the one for `{name}` {new}", tir.func.name));
        }
        if !maps.is_empty() && maps.len() != new.params.len() {
            let (maps, params) = (maps.len(), new.params.len());
            return problem(format!("`{name}` has {maps} maps for {params} parameters; give one for each, or none"));
        }
        let func = self.added(b, name, &new);
        if maps.is_empty() {
            let args = vec![func.into(), Expr::tuple(tir.args)];
            return Ok(Action::Bind(call.with_args(args, call.ty.clone()).into()));
        }
        let (into, out) = maps.split_at(maps.len() - tir.outputs.len().min(maps.len()));
        let mut args = Vec::with_capacity(tir.args.len());
        for (i, arg) in tir.args.iter().enumerate() {
            args.push(laid_out(b, arg.clone(), into.get(i).and_then(Option::as_ref))?);
        }
        let types = tir.outputs.iter().zip(out).map(|(ty, map)| type_in(ty, map.as_ref()));
        let types = types.collect::<Result<Vec<_>, _>>()?;
        let one = !matches!(call.ty, Type::Tuple(_));
        let ty = if let (true, [ty]) = (one, types.as_slice()) { ty.clone() } else { Type::tuple(types) };
        let result = call_tir(func, args, ty)?;
        if out.iter().all(Option::is_none) {
            return Ok(Action::Bind(result));
        }
        let result = b.emit(result)?;
        if let (true, [ty], [map]) = (one, tir.outputs.as_slice(), out) {
            return Ok(Action::Bind(self.laid_back(b, result, map.as_ref(), ty)?));
        }
        let mut fields = Vec::with_capacity(out.len());
        for (i, (map, ty)) in out.iter().zip(&tir.outputs).enumerate() {
            let field = b.emit(Expr::field(result.clone(), i))?;
            let back = self.laid_back(b, field, map.as_ref(), ty)?;
            fields.push(b.normalize_arg(back)?);
        }
        Ok(Action::Bind(Expr::tuple(fields)))
    }
}

impl Alter {
    fn added(&mut self, b: &mut BlockBuilder, name: &str, kernel: &PrimFunc) -> Ref<GlobalVar> {
        if let Some(func) = self.added.get(name) {
            return func.clone();
        }
        let attrs = kernel.attrs.clone().with(OPERATOR_NAME, name);
        let func =
            b.add_kernel(PrimFunc { attrs, ..kernel.clone() }, &format!("{}_replacement", name.replace('.', "_")));
        self.added.insert(name.to_string(), func.clone());
        func
    }

    /// A result brought back to the type that it had.
    fn laid_back(
        &mut self,
        b: &mut BlockBuilder,
        value: Expr,
        map: Option<&Ref<IndexMap>>,
        ty: &Type,
    ) -> Result<Expr, BuildError> {
        let Some(map) = map else { return Ok(value) };
        let dims = dims_of(ty)?;
        let Some(inverse) = map.inverse(&dims) else { return problem(no_way_back(map)) };
        let back = transformed(value, inverse.map)?;
        if !inverse.padded {
            return Ok(back);
        }
        let padded = b.emit(back)?;
        let Type::Tensor(tensor) = ty else { return problem("a result is no tensor".into()) };
        let cut = self.cut(b, dims.len(), tensor.dtype)?;
        Ok(call_tir(cut, [padded], ty.clone())?)
    }

    /// The kernel that cuts padding off tensors of a rank.
    fn cut(&mut self, b: &mut BlockBuilder, ndim: usize, dtype: DataType) -> Result<Ref<GlobalVar>, BuildError> {
        if let Some(func) = self.cuts.get(&(ndim, dtype)) {
            return Ok(func.clone());
        }
        let dims = |letter: &str| -> Vec<PrimExpr> {
            (0..ndim).map(|i| PrimExpr::from(&Var::dim(format!("{letter}{i}")))).collect()
        };
        let input = te::placeholder("input", dims("p"), dtype);
        let output = te::compute("output", dims("i"), |at| input.at(at));
        let (mut kernel, _) = make_kernel(REMOVE_PAD, vec![input], vec![output], Vec::new(), KernelForm::Plain)?;
        kernel.attrs = kernel.attrs.with(OPERATOR_NAME, REMOVE_PAD);
        let func = b.add_kernel(kernel, REMOVE_PAD);
        self.cuts.insert((ndim, dtype), func.clone());
        Ok(func)
    }
}

fn no_way_back(map: &IndexMap) -> String {
    let inputs = map.initial_indices.len();
    format!(
        "a map of {inputs} indices does not lead back over the tensor's dimensions; it may move, split and join axes"
    )
}

fn dims_of(ty: &Type) -> Result<Vec<PrimExpr>, BuildError> {
    match ty.as_tensor().and_then(|t| t.shape.clone()) {
        Some(dims) => Ok(dims),
        None => problem("the dimensions of what is laid out anew are not known; give them with match_cast".into()),
    }
}

/// A tensor's type in another layout.
fn type_in(ty: &Type, map: Option<&Ref<IndexMap>>) -> Result<Type, BuildError> {
    let (Some(map), Type::Tensor(tensor)) = (map, ty) else { return Ok(ty.clone()) };
    match map.apply_to_shape(&dims_of(ty)?) {
        Some(dims) => {
            let ndim = dims.len() as i64;
            Ok(Type::Tensor(Ref::new(TensorType {
                shape: Some(dims),
                dtype: tensor.dtype,
                ndim,
                vdevice: tensor.vdevice.clone(),
            })))
        }
        None => problem(no_way_back(map)),
    }
}

fn laid_out(b: &mut BlockBuilder, value: Expr, map: Option<&Ref<IndexMap>>) -> Result<Expr, BuildError> {
    let scalar = matches!(&value, Expr::Constant(c) if c.value.ndim() == 0);
    match map {
        Some(map) if !scalar => b.emit(transformed(value, map.renewed())?),
        _ => Ok(value),
    }
}

fn transformed(value: Expr, map: IndexMap) -> Result<Expr, BuildError> {
    let map = AttrValue::Object(Ref::new(map).into());
    Ok(op::call("layout_transform", [value], Attrs::new().with("index_map", map))?)
}
