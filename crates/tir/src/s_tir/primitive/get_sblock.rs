//! `get_sblock`: a block by its name.

use relaxide_ffi::Ref;
use relaxide_ir::attrs::AttrValue;

use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::step::Call;
use crate::s_tir::{SBlockRV, Schedule, ScheduleError, StepError, Tree, Value};

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "GetSBlock",
    method: "get_sblock",
    is_pure: true,
    params: &[Param::Attr("name"), Param::Attr("func_name")],
    results: Results::One,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let (name, func) = (call.str(0)?, call.str(1)?);
    let tree = Tree::of(&sch.func(func)?.body);
    let found: Vec<_> = tree.blocks().filter(|(_, n)| n.block.name == name).map(|(_, n)| n.block.clone()).collect();
    match found.as_slice() {
        [only] => Ok(vec![Value::Block(func.to_string(), only.clone())]),
        [] => {
            let there = tree.blocks().map(|(_, n)| n.block.name.clone()).collect();
            Err(ScheduleError::NoBlock { name: name.to_string(), there })
        }
        several => Err(ScheduleError::SeveralBlocks { name: name.to_string(), count: several.len() }),
    }
}

impl Schedule {
    /// The block of a name, in a function or in the one that the schedule works on.
    pub fn get_sblock(&mut self, name: &str, func_name: Option<&str>) -> Result<Ref<SBlockRV>, StepError> {
        let func = match func_name.or(self.func_working_on()) {
            Some(func) => func.to_string(),
            None => return Err(StepError::new(KIND.method, ScheduleError::NoChoice, self)),
        };
        self.step_block(&KIND, vec![], vec![AttrValue::from(name), func.into()])
    }
}
