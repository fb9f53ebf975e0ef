//! Devices: those of the module, which tensor types name, and those of the machine, which hints name.

use relaxide_ffi::{Any, DataType, Device, Ref};
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{AttrValue, Target, VDevice};
use relaxide_relax::Expr as Relax;
use ruff_python_ast::{self as ast, Expr};
use ruff_text_size::{Ranged, TextRange};

use super::args::Args;
use super::value::Value;
use super::{Parsed, Parser};
use crate::device_intrinsics::DeviceIntrinsic;
use relaxide_ir::diagnostic::Code;

impl Parser<'_> {
    /// A list of devices that a module shares: `[I.vdevice("llvm"), …]`, or a value of the surroundings.
    pub(super) fn vdevice_list(&mut self, e: &Expr) -> Parsed<Vec<Ref<VDevice>>> {
        if let Expr::List(list) = e {
            return list.elts.iter().map(|e| self.vdevice_definition(e)).collect();
        }
        let value = self.expr(e)?;
        let Some(items) = value.items() else {
            let message = format!("a list of devices is expected, but this is {}", value.describe());
            return Err(self.error(Code::Type, message, e.range()));
        };
        items.iter().map(|item| self.known_vdevice(item, e)).collect()
    }

    fn known_vdevice(&self, value: &Value, e: &Expr) -> Parsed<Ref<VDevice>> {
        let found = if let Value::Object(object) = value { object.clone().downcast::<VDevice>().ok() } else { None };
        found.ok_or_else(|| {
            let message = format!("a device is expected, but this is {}", value.describe());
            self.error(Code::Type, message, e.range())
        })
    }

    /// `I.vdevice(target, id, scope)`.
    fn vdevice_definition(&mut self, e: &Expr) -> Parsed<Ref<VDevice>> {
        let path = self.call_path(e);
        let (Expr::Call(call), Some("I.vdevice" | "R.VDevice")) = (e, path.as_deref()) else {
            let value = self.expr(e)?;
            return self.known_vdevice(&value, e);
        };
        let mut args = Args::of(self, "I.vdevice", call)?;
        let target = match args.take("target") {
            None => None,
            Some(e) => {
                let value = self.attr_value(e)?;
                let target = Target::of_attr(&value);
                Some(Ref::new(target.map_err(|error| self.error(Code::Type, error.to_string(), e.range()))?))
            }
        };
        let id = args.take("vdevice_id").map_or(Ok(0), |e| self.int(e))?;
        let scope = args.take("memory_scope").map_or(Ok("global".into()), |e| self.text(e))?;
        args.finish(self)?;
        Ok(Ref::new(VDevice { target, id, scope }))
    }

    /// A device of the module: `"cuda:1"`, `"llvm:0:global"`, counted among those of its kind; `"vdevice:1"`, counted among
    /// all; or one of the surroundings.
    pub(super) fn vdevice(&mut self, e: &Expr) -> Parsed<Ref<VDevice>> {
        // A tensor type that says nothing but a device stands for the device.
        if let Expr::Call(call) = e
            && self.path(&call.func).as_deref() == Some("R.Tensor")
            && let [text @ Expr::StringLiteral(_)] = &*call.arguments.args
        {
            return self.vdevice(text);
        }
        let text = match self.expr(e)? {
            Value::Str(text) => text,
            Value::Relax(Relax::Str(text)) => text.value.clone(),
            other => return self.known_vdevice(&other, e),
        };
        let mut parts = text.split(':');
        let kind = parts.next().unwrap_or_default();
        let index: usize = match parts.next() {
            None => 0,
            Some(index) => index.parse().map_err(|_| {
                self.error(Code::Type, format!("{text:?} is no device: {index:?} is no number"), e.range())
            })?,
        };
        let scope = parts.next();
        let mut of_kind =
            self.vdevices.iter().filter(|d| kind == "vdevice" || d.kind().is_some_and(|own| own.name() == kind));
        let found = of_kind.nth(index).cloned().filter(|d| scope.is_none_or(|s| s == d.scope));
        found.ok_or_else(|| {
            self.error(Code::UnknownName, format!("the module has no device {text:?}"), e.range())
                .with_help("devices are listed in I.module_global_infos({\"vdevice\": [...]})")
                .into()
        })
    }

    /// A device of the machine: `R.cpu()`, `R.device(device_type=1, index=0)`, `tvm.cuda(1)`; nothing for other paths.
    pub(super) fn device_call(&mut self, path: &str, call: &ast::ExprCall) -> Parsed<Option<Value>> {
        let Some(name) = path.strip_prefix("R.").or_else(|| path.strip_prefix("tvm.")) else { return Ok(None) };
        let kind = if name == "device" { None } else { name.parse::<Device>().ok() };
        if kind.is_none() && name != "device" {
            return Ok(None);
        }
        let mut args = Args::of(self, path, call)?;
        let mut device = match kind {
            Some(kind) => kind,
            None => {
                let e = args.required(self, "device_type")?;
                match self.expr(e)? {
                    Value::Str(text) => self.device_of_text(&text, e)?,
                    value => {
                        let number = value.as_int().and_then(|number| i32::try_from(number).ok());
                        let wrong = || self.error(Code::Type, "a kind of device is a number or a name", e.range());
                        Device { device_type: number.ok_or_else(wrong)?, device_id: 0 }
                    }
                }
            }
        };
        if let Some(e) = args.take("index") {
            let index = self.int(e)?;
            let wrong = |_| self.error(Code::Type, "this is no number of a device", e.range());
            device.device_id = i32::try_from(index).map_err(wrong)?;
        }
        args.finish(self)?;
        Ok(Some(Value::Host(Any::from(device))))
    }

    fn device_of_text(&self, text: &str, e: &Expr) -> Parsed<Device> {
        text.parse().map_err(|_| self.error(Code::Type, format!("{text:?} is no device"), e.range()))
    }

    /// `R.hint_on_device(x, device, scope)`.
    pub(super) fn hint_on_device(&mut self, args: &mut Args) -> Parsed<Value> {
        let range = args.range;
        let data = args.required(self, "data")?;
        let value = self.expr(data)?;
        let data = self.leaf_value(value, data.range())?;
        let mut attrs = relaxide_ir::Attrs::new();
        if let Some(kind) = args.keyword("device_type") {
            attrs = attrs.with("device_type", self.int(kind)?);
            if let Some(index) = args.keyword("index") {
                attrs = attrs.with("index", self.int(index)?);
            }
        } else {
            let e = args.required(self, "dst_vdevice")?;
            let device = match self.expr(e)? {
                Value::Str(text) => self.device_of_text(&text, e)?,
                Value::Host(value) => value
                    .to::<Device>()
                    .map_err(|_| self.error(Code::Type, "a device such as R.cpu(0) is expected", e.range()))?,
                other => {
                    let message = format!("a device is expected, but this is {}", other.describe());
                    return Err(self.error(Code::Type, message, e.range()));
                }
            };
            attrs = attrs.with("device_type", i64::from(device.device_type)).with("index", i64::from(device.device_id));
        }
        if let Some(e) = args.take("memory_scope") {
            attrs = attrs.with("memory_scope", AttrValue::Str(self.text(e)?));
        }
        self.typed_call("hint_on_device", vec![data], attrs, Vec::new(), range)
    }

    /// An instruction of a device, or a function of its library.
    pub(super) fn device_intrinsic(
        &mut self,
        known: &DeviceIntrinsic,
        args: &mut Args,
        range: TextRange,
    ) -> Parsed<PrimExpr> {
        let written = match known.is_typed_by_text() {
            true => {
                let e = args.required(self, "dtype")?;
                Some(self.dtype(e)?)
            }
            false => None,
        };
        let mut values = Vec::new();
        for param in known.params.split(' ').filter(|param| !param.is_empty()) {
            match param.split_once('=') {
                _ if param.starts_with('*') => {
                    for e in args.rest() {
                        values.push(self.scalar_expr(e)?);
                    }
                }
                None => {
                    let e = args.required(self, param)?;
                    values.push(self.scalar_expr(e)?);
                }
                Some((name, usual)) => match args.take(name) {
                    Some(e) => values.push(self.scalar_expr(e)?),
                    None => values.push(usual_value(usual)),
                },
            }
        }
        let dtype = written.or_else(|| known.result_type(&values));
        let dtype =
            dtype.ok_or_else(|| self.error(Code::Arguments, format!("`T.{}` has no type", known.path), range))?;
        Ok(prim::call(dtype, known.op(), values))
    }
}

/// What stands for an argument that is left out.
fn usual_value(text: &str) -> PrimExpr {
    match (text, text.parse::<i64>(), text.parse::<f64>()) {
        ("True" | "False", ..) => prim::boolean(text == "True"),
        (_, Ok(number), _) => prim::int_of(DataType::int(32), number),
        (_, _, Ok(number)) => prim::float_of(DataType::float(32), number),
        _ => prim::string(text),
    }
}
