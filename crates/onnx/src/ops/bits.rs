//! Shifts of bits.

use super::elementwise::with_number;
use super::{Outputs, one};
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;

/// `BitShift`. By more bits than there are, or by fewer than none, all bits are lost but the sign.
pub fn shift(scope: &mut Scope, node: &Node) -> Outputs {
    let mut pair = [scope.tensor(node.input(0)?)?, scope.tensor(node.input(1)?)?];
    scope.broadcastable(&mut pair)?;
    let [x, amount] = pair;
    let dtype = scope.dtype(&x);
    let amount = scope.cast(amount, dtype)?;
    let last = f64::from(dtype.bits) - 1.0;
    let mut inside = with_number(scope, "less_equal", amount.clone(), last)?;
    if dtype.is_int() {
        let natural = with_number(scope, "greater_equal", amount.clone(), 0.0)?;
        inside = scope.call("logical_and", [inside, natural])?;
    }
    let most = scope.scalar(last, dtype)?;
    let amount = scope.call("where", [inside.clone(), amount, most])?;
    let name = match node.str_or("direction", "")? {
        "LEFT" => "left_shift",
        // The last shift that is possible leaves the sign alone.
        "RIGHT" if dtype.is_int() => return one(scope.call("right_shift", [x, amount])?),
        "RIGHT" => "right_shift",
        other => return Err(NodeError::invalid(format!("`direction` is \"{other}\""))),
    };
    let shifted = scope.call(name, [x, amount])?;
    let zero = scope.scalar(0.0, dtype)?;
    one(scope.call("where", [inside, shifted, zero])?)
}
