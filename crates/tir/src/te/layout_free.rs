//! Tensors whose layout may be changed: a block lists them, and the kernel lists those that are its arguments by their places.

use relaxide_ir::{AttrValue, Attrs, Buffer};

use super::prim_func::key_of;
use super::tensor::{StageKind, Tensor, output_link};

/// The annotation of the block.
const LISTED: &str = "layout_free_placeholders";

/// Whether a tensor that an annotation names is an input.
fn is_input(item: &AttrValue) -> bool {
    let AttrValue::Object(object) = item else { return false };
    let link = object.downcast_ref::<Buffer>().and_then(|buffer| output_link(buffer));
    link.is_some_and(|link| matches!(link.stage.kind, StageKind::Placeholder))
}

/// Leaves out of a block's annotations the inputs that its stage lists.
pub(super) fn without_inputs(stage: &Attrs, block: &mut Attrs) {
    let (Some(AttrValue::List(named)), Some(AttrValue::List(kept))) = (stage.0.get(LISTED), block.0.get_mut(LISTED))
    else {
        return;
    };
    let mut inputs = named.iter().map(is_input);
    kept.retain(|_| inputs.next() != Some(true));
    if kept.is_empty() {
        block.0.shift_remove(LISTED);
    }
}

/// The places among the arguments of what stages list.
pub(super) fn places<'a>(stages: impl Iterator<Item = &'a Attrs>, args: &[Tensor]) -> Vec<AttrValue> {
    let items = stages.filter_map(|attrs| match attrs.0.get(LISTED) {
        Some(AttrValue::List(items)) => Some(items),
        _ => None,
    });
    let place = |item: &AttrValue| {
        let AttrValue::Object(object) = item else { return None };
        let key = key_of(object.downcast_ref::<Buffer>()?)?;
        args.iter().position(|arg| key_of(arg.buffer()).as_ref() == Some(&key)).map(|at| AttrValue::Int(at as i64))
    };
    items.flatten().filter_map(place).collect()
}
