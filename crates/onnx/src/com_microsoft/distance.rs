//! `CDist`: the distances of all rows of one matrix from all rows of another.

use relaxide_ir::prim;
use relaxide_tir::te;

use crate::error::NodeError;
use crate::node::Node;
use crate::ops::{Outputs, one};
use crate::scope::Scope;

/// `CDist`, of Euclid or its square. Differences are squared one by one, so near rows lose no digits.
pub fn distances(scope: &mut Scope, node: &Node) -> Outputs {
    let root = match node.str_or("metric", "sqeuclidean")? {
        "sqeuclidean" => false,
        "euclidean" => true,
        other => {
            return Err(NodeError::unsupported(format!(
                "`metric` is \"{other}\"; there are sqeuclidean and euclidean"
            )));
        }
    };
    let mut pair = [scope.tensor(node.input(0)?)?, scope.tensor(node.input(1)?)?];
    for x in &pair {
        let rank = scope.dims(x)?.len();
        if rank != 2 {
            return Err(NodeError::invalid(format!("an input has {rank} axes, not 2")));
        }
    }
    let length = scope.agree_on(&mut pair, &[1, 1])?;
    let rows = [scope.dims(&pair[0])?[0].clone(), scope.dims(&pair[1])?[0].clone()];
    let squares = scope.te("cdist", pair.to_vec(), |inputs| {
        vec![te::compute("cdist", &rows, |at| {
            let k = te::reduce_axis(length);
            let of = |i: usize| inputs[i].at(&[at[i].clone(), k.var()]);
            let difference = of(0) - of(1);
            te::sum(prim::mul(&difference, &difference), [&k])
        })]
    })?;
    one(if root { scope.call("sqrt", [squares])? } else { squares })
}
