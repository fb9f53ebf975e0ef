//! What operators take for granted about the lengths of their arguments.
//!
//! A product of matrices sums over the columns of one factor and the rows of the other, which must be as many; a scale for each
//! channel must have as many numbers as there are channels. An operator's row says so once ([`OpDef::lengths`]), and everything
//! else follows, whatever program the call is from:
//!
//! * [`check`], as part of type inference, refuses a call whose lengths are known to be different;
//! * lengths that are known to be equal cost nothing;
//! * for all others the kernel that legalization makes begins with an assertion ([`assertions`]), so the program stops with
//!   the operator's name and both numbers where they differ, before anything is read.
//!
//! That no kernel leaves its tensors does not depend on this (`relaxide_tir::inside`): a length that is too small would be found
//! there. One that is too large would be a wrong number without a word.

use relaxide_ffi::Ref;
use relaxide_ir::arith::dims::{analyzer, differ, equal};
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_tir::Stmt;
use relaxide_tir::stmt::AssertStmt;

use super::{CallCx, OpError};
use crate::display::dim_text;

/// How two lengths must be to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The same.
    Equal,
    /// The first no more than the second.
    AtMost,
}

/// Two lengths that belong together.
#[derive(Clone, Debug)]
pub struct Lengths {
    /// What the first is of, and the length.
    pub left: (String, PrimExpr),
    /// How it must be to the second.
    pub relation: Relation,
    /// What the second is of, and the length.
    pub right: (String, PrimExpr),
}

/// The lengths that a call is about.
pub type LengthRule = fn(&CallCx) -> Result<Vec<Lengths>, OpError>;

/// No lengths.
pub fn none(_: &CallCx) -> Result<Vec<Lengths>, OpError> {
    Ok(Vec::new())
}

/// Dimension `axis` of argument `i`, where it is known; one below zero counts from the end.
pub fn of(cx: &CallCx, i: usize, axis: i64) -> Option<(String, PrimExpr)> {
    let dims = cx.has(i).then(|| cx.tensor(i).ok())??.dims?;
    let place = usize::try_from(if axis < 0 { axis + dims.len() as i64 } else { axis }).ok()?;
    let name = cx.def.args.get(i).map_or("an argument", |arg| arg.name);
    Some((format!("dimension {place} of `{name}`"), dims.get(place)?.clone()))
}

/// A pair, where both lengths are known.
pub fn pair(
    left: Option<(String, PrimExpr)>,
    relation: Relation,
    right: Option<(String, PrimExpr)>,
) -> Option<Lengths> {
    Some(Lengths { left: left?, relation, right: right? })
}

/// The same length in dimensions of several arguments, each with its axis.
pub fn equal_dims(cx: &CallCx, places: &[(usize, i64)]) -> Vec<Lengths> {
    let mut known = places.iter().filter_map(|(i, axis)| of(cx, *i, *axis));
    let Some(first) = known.next() else { return Vec::new() };
    known.map(|other| Lengths { left: other, relation: Relation::Equal, right: first.clone() }).collect()
}

impl Lengths {
    fn is_known(&self) -> bool {
        let (a, b) = (&self.left.1, &self.right.1);
        match self.relation {
            Relation::Equal => equal(a, b),
            Relation::AtMost => equal(a, b) || analyzer([a, b]).can_prove(&prim::le(a.clone(), b.clone())),
        }
    }

    fn is_wrong(&self) -> bool {
        let (a, b) = (&self.left.1, &self.right.1);
        match self.relation {
            Relation::Equal => differ(a, b),
            Relation::AtMost => a.as_int().zip(b.as_int()).is_some_and(|(a, b)| a > b),
        }
    }

    fn text(&self, a: &str, b: &str) -> String {
        let but = match self.relation {
            Relation::Equal => "which must be the same as",
            Relation::AtMost => "which must be no more than",
        };
        format!("{} is {a}, {but} {}, {b}", self.left.0, self.right.0)
    }
}

/// Refuses a call whose lengths cannot be right.
pub fn check(cx: &CallCx) -> Result<(), OpError> {
    let wrong = (cx.def.lengths)(cx)?.into_iter().find(Lengths::is_wrong);
    wrong.map_or(Ok(()), |l| cx.invalid(l.text(&dim_text(&l.left.1), &dim_text(&l.right.1))))
}

/// The assertions of what is not known of a call's lengths, for the beginning of its kernel.
pub fn assertions(cx: &CallCx) -> Result<Vec<Stmt>, OpError> {
    let open = (cx.def.lengths)(cx)?.into_iter().filter(|l| !l.is_known());
    Ok(open
        .map(|l| {
            let (a, b) = (l.left.1.clone(), l.right.1.clone());
            let condition = match l.relation {
                Relation::Equal => prim::eq(a, b),
                Relation::AtMost => prim::le(a, b),
            };
            let message = format!("{}: {}", cx.name(), l.text("{0}", "{1}"));
            let numbers = vec![l.left.1, l.right.1];
            Ref::new(AssertStmt { condition, error_kind: "ValueError".to_string(), message, numbers }).into()
        })
        .collect())
}
