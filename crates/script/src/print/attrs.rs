//! Attribute values.

use indexmap::IndexMap;
use relaxide_ffi::{ObjectRef, Ref};
use relaxide_ir::target::TargetKind;
use relaxide_ir::{AttrValue, Buffer, DataType, GlobalVar, VDevice, Var};

use super::Printer;
use super::names::identifier;
use crate::number::{float_text, is_literal, quoted, special_text};

impl Printer<'_> {
    /// Attributes as a dictionary, sorted by name, without those of `hidden`.
    pub(super) fn attr_map(&mut self, attrs: &IndexMap<String, AttrValue>, hidden: &[&str]) -> String {
        let mut items: Vec<_> = attrs.iter().filter(|(name, _)| !hidden.contains(&name.as_str())).collect();
        items.sort_by_key(|(name, _)| *name);
        let items: Vec<_> =
            items.into_iter().map(|(name, value)| format!("{}: {}", quoted(name), self.attr(value))).collect();
        format!("{{{}}}", items.join(", "))
    }

    /// One value.
    pub(super) fn attr(&mut self, value: &AttrValue) -> String {
        match value {
            AttrValue::None => "None".into(),
            AttrValue::Bool(true) => "True".into(),
            AttrValue::Bool(false) => "False".into(),
            AttrValue::Int(v) => v.to_string(),
            AttrValue::Float(v) => python_float(*v),
            AttrValue::Str(v) => quoted(v),
            AttrValue::DType(v) if *v == DataType::void() => "None".into(),
            AttrValue::DType(v) => quoted(&v.to_string()),
            AttrValue::List(list) => {
                let list: Vec<_> = list.iter().map(|v| self.attr(v)).collect();
                format!("[{}]", list.join(", "))
            }
            AttrValue::Map(map) => self.attr_map(map, &[]),
            AttrValue::Prim(e) => self.prim(e),
            AttrValue::Object(object) => self.attr_object(object),
        }
    }

    fn attr_object(&mut self, object: &ObjectRef) -> String {
        if let Some(device) = object.downcast_ref::<VDevice>() {
            return quoted(&self.vdevice_text(device));
        }
        if let Some(var) = object.downcast_ref::<GlobalVar>() {
            return format!("cls.{}", identifier(&var.name));
        }
        if let Some(map) = object.downcast_ref::<relaxide_tir::IndexMap>() {
            return self.index_map(map);
        }
        if let Ok(buffer) = object.clone().downcast::<Buffer>() {
            return self.buffer(&buffer);
        }
        self.metadata.object(object)
    }

    /// A map of indices as a function of Python.
    pub(super) fn index_map(&mut self, map: &relaxide_tir::IndexMap) -> String {
        self.uses_tir = true;
        self.names.push();
        let define = |v: &Ref<Var>| self.names.define(v.clone().into(), &v.name);
        let params: Vec<String> = map.initial_indices.iter().map(define).collect();
        let results: Vec<String> = map.final_indices.iter().map(|e| self.prim(e)).collect();
        self.names.pop();
        let comma = if results.len() == 1 { "," } else { "" };
        format!("T.index_map(lambda {}: ({}{comma}))", params.join(", "), results.join(", "))
    }

    /// A device as `kind:index:scope`, where the index counts the module's devices of that kind.
    pub(super) fn vdevice_text(&self, device: &VDevice) -> String {
        let kind = device.kind();
        let index = self.context.and_then(|module| {
            let mut same = module.vdevices.iter().filter(|d| kind.is_none() || d.kind() == kind);
            same.position(|d| d.is_same(device))
        });
        let index = index.map_or("-1".to_string(), |i| i.to_string());
        // A device without a target is found by its place in the whole list.
        let kind = kind.map_or("vdevice", TargetKind::name);
        format!("{kind}:{index}:{}", device.scope)
    }
}

/// A Python float.
pub(super) fn python_float(value: f64) -> String {
    if is_literal(value) { float_text(value) } else { format!("float({})", quoted(special_text(value))) }
}
