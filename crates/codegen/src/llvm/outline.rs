//! Statements that are functions of their own, which the optimizer does not put back.
//!
//! Constants that a loop needs are loaded in front of it, and in front of all loops around it: those of a long epilogue would take registers
//! away from the tile of sums that it finishes, whose loop has none to spare.

use relaxide_ir::{Ref, Var};
use relaxide_tir::Stmt;

use super::function::join;
use super::kernel::Body;
use super::module::global_name;
use super::value::{Ty, Val};
use crate::error::CodegenError;
use crate::uses::Uses;

impl Body<'_, '_> {
    /// A statement as a function, `int f(what it uses ...)`, and its call.
    pub fn outlined(&mut self, stmt: &Stmt) -> Result<(), CodegenError> {
        self.forget_values();
        let used: Vec<(Ref<Var>, Val)> = Uses::of(stmt)
            .into_iter()
            .filter_map(|var| self.vars.get(&var).cloned().map(|value| (var, value)))
            .collect();
        let number = self.f.module.fresh_number();
        let name = global_name(&format!("{}.outlined{number}", self.kernel.name));
        let mut body = Body::new(self.kernel, &mut *self.f.module);
        body.in_parallel = self.in_parallel;
        let line = body.f.line_of(stmt);
        body.f.describe(&self.kernel.name, name.trim_matches(['@', '"']), line);
        for (index, (var, value)) in used.iter().enumerate() {
            body.vars.insert(var.clone(), Val::new(value.ty, format!("%used{index}")));
        }
        body.stmt(stmt)?;
        body.leave(0);
        let parameters = used.iter().enumerate().map(|(index, (_, value))| format!("{} %used{index}", value.ty));
        let head = format!("define internal i32 {name}({}) noinline #0", join(parameters));
        let text = body.f.finish(&head);
        self.f.module.function(&text);
        let arguments = join(used.iter().map(|(_, value)| value));
        let code = self.f.emit(Ty::I32, format_args!("call i32 {name}({arguments})"));
        self.leave_unless_zero(&code);
        Ok(())
    }
}
