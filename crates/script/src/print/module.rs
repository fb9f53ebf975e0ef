//! Modules.

use relaxide_ir::{IRModule, VDevice};
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
        if !module.vdevices.is_empty() {
            let devices: Vec<_> = module.vdevices.iter().map(|d| self.vdevice_definition(d)).collect();
            self.line(format!("I.module_global_infos({{\"vdevice\": [{}]}})", devices.join(", ")));
        }
        let mut first = true;
        for (name, func) in &module.functions {
            if !first {
                self.line("");
            }
            first = false;
            self.names = Names::new();
            if let Some(func) = func.downcast::<PrimFunc>() {
                self.prim_func(name, &func);
            } else if let Some(func) = func.downcast::<Function>() {
                self.function(name, &func);
            } else if let Some(func) = func.downcast::<ExternFunc>() {
                self.line(format!("{} = R.ExternFunc({})", identifier(name), quoted(&func.global_symbol)));
            } else {
                self.line(format!(
                    "# {}: a function of kind {}, which has no text form",
                    identifier(name),
                    func.0.type_key()
                ));
            }
        }
        if module.functions.is_empty() {
            self.line("pass");
        }
        self.indent -= 1;
    }

    fn vdevice_definition(&mut self, device: &VDevice) -> String {
        // Targets that are more than a kind's name are dictionaries in text.
        let target = if device.target.starts_with('{') { device.target.clone() } else { quoted(&device.target) };
        format!("I.vdevice({target}, {}, {})", device.id, quoted(&device.scope))
    }
}
