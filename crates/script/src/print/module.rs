//! Modules.

use relaxide_ir::{IRModule, Target, VDevice};
use relaxide_relax::{ExternFunc, Function};
use relaxide_tir::PrimFunc;

use super::Printer;
use super::names::{Names, identifier};
use crate::number::quoted;

impl Printer<'_> {
    pub(super) fn module(&mut self, module: &IRModule) {
        self.line("@I.ir_module");
        self.line("class Module:");
        self.indent += 1;
        if !module.attrs.is_empty() {
            let attrs = self.attr_map(&module.attrs.0, &[]);
            self.line(format!("I.module_attrs({attrs})"));
        }
        let mut infos: Vec<String> = Vec::new();
        if !module.vdevices.is_empty() {
            let devices: Vec<_> = module.vdevices.iter().map(|d| self.vdevice_definition(d)).collect();
            infos.push(format!("\"vdevice\": [{}]", devices.join(", ")));
        }
        for (kind, shared) in &module.infos {
            infos.push(format!("{}: [{}]", quoted(kind), vec!["I.dummy_global_info()"; shared.len()].join(", ")));
        }
        if !infos.is_empty() {
            self.line(format!("I.module_global_infos({{{}}})", infos.join(", ")));
        }
        let mut first = true;
        for (name, func) in &module.functions {
            if !first {
                self.line("");
            }
            first = false;
            self.names = Names::new();
            let start = self.out.len();
            if let Some(kernel) = func.downcast::<PrimFunc>() {
                self.prim_func(name, &kernel);
            } else if let Some(program) = func.downcast::<Function>() {
                self.function(name, &program);
            } else if let Some(external) = func.downcast::<ExternFunc>() {
                let value = self.external(&external);
                self.line(format!("{} = {value}", identifier(name)));
            } else {
                self.line(format!(
                    "# {}: a function of kind {}, which has no text form",
                    identifier(name),
                    func.0.type_key()
                ));
            }
            self.watch_since(start, || func.0.clone());
        }
        if module.functions.is_empty() {
            self.line("pass");
        }
        self.indent -= 1;
    }

    fn vdevice_definition(&mut self, device: &VDevice) -> String {
        // Targets that are more than a kind's name are dictionaries in text.
        let target = match &device.target {
            None => String::new(),
            Some(target) if target.is_plain() => format!("{}, ", quoted(target.kind.name())),
            Some(target) => format!("{}, ", self.target_dictionary(target)),
        };
        let keyword = if target.is_empty() { "vdevice_id=" } else { "" };
        let scope = if target.is_empty() { "memory_scope=" } else { "" };
        format!("I.vdevice({target}{keyword}{}, {scope}{})", device.id, quoted(&device.scope))
    }

    /// A target that is more than a kind's name.
    fn target_dictionary(&mut self, target: &Target) -> String {
        let mut fields = vec![format!("\"kind\": {}", quoted(target.kind.name()))];
        let mut attrs: Vec<_> = target.attrs.0.iter().collect();
        attrs.sort_by_key(|(name, _)| *name);
        fields.extend(attrs.into_iter().map(|(name, value)| format!("{}: {}", quoted(name), self.attr(value))));
        fields.extend(target.host.iter().map(|host| format!("\"host\": {}", self.target_dictionary(host))));
        format!("{{{}}}", fields.join(", "))
    }
}
