//! Conditions as an `and` of `or`s, in which parts that decide each other are found whatever stands between them.
//!
//! ```text
//! k == 20 and ((i == 0 or j == 10) and k != 30)     ->     (i == 0 or j == 10) and k == 20
//! ```
//!
//! Of two parts of an `or` one goes if it implies the other, of two of an `and` the one that is implied. Two `or`s that are alike but for
//! one part each become one. Whatever two become stands where the later one stood. A condition that would grow beyond
//! [`MAX_GROUPS`] `or`s stays as it is.

use relaxide_ir::BinaryOp;
use relaxide_ir::arith::{same, solver};
use relaxide_ir::prim::{self, PrimExpr};

/// The most `or`s that a condition may become.
const MAX_GROUPS: usize = 32;

/// The parts of one `or`.
type Group = Vec<PrimExpr>;

/// The condition in this form; `None` where it is neither `and` nor `or`, or grows too long.
pub(super) fn and_of_ors(e: &PrimExpr) -> Option<PrimExpr> {
    if !matches!(e, PrimExpr::Binary(n) if matches!(n.op, BinaryOp::And | BinaryOp::Or)) {
        return None;
    }
    let mut groups: Vec<Group> = groups(e)?.into_iter().map(shorter).collect();
    while join_two(&mut groups) {}
    let ors =
        groups.into_iter().map(|group| group.into_iter().reduce(prim::or).unwrap_or_else(|| prim::boolean(false)));
    Some(ors.reduce(prim::and).unwrap_or_else(|| prim::boolean(true)))
}

fn groups(e: &PrimExpr) -> Option<Vec<Group>> {
    let made = match e {
        PrimExpr::Binary(n) if n.op == BinaryOp::And => [groups(&n.a)?, groups(&n.b)?].concat(),
        PrimExpr::Binary(n) if n.op == BinaryOp::Or => {
            let (left, right) = (groups(&n.a)?, groups(&n.b)?);
            left.iter().flat_map(|a| right.iter().map(|b| [a.as_slice(), b].concat())).collect()
        }
        _ => vec![vec![e.clone()]],
    };
    (made.len() <= MAX_GROUPS).then_some(made)
}

/// A group without parts that imply others.
fn shorter(mut group: Group) -> Group {
    while let Some((from, to, part)) = pair(&group, either) {
        group[to] = part;
        group.remove(from);
    }
    group
}

/// The first two parts that are one, which is given, too.
fn pair(group: &Group, one: fn(&PrimExpr, &PrimExpr) -> Option<PrimExpr>) -> Option<(usize, usize, PrimExpr)> {
    (0..group.len())
        .flat_map(|a| (a + 1..group.len()).map(move |b| (a, b)))
        .find_map(|(a, b)| Some((a, b, one(&group[a], &group[b])?)))
}

/// Makes one of two groups, if there are such.
fn join_two(groups: &mut Vec<Group>) -> bool {
    for a in 0..groups.len() {
        for b in a + 1..groups.len() {
            if is_within(&groups[a], &groups[b]) {
                groups.remove(b);
                return true;
            }
            if is_within(&groups[b], &groups[a]) {
                groups.remove(a);
                return true;
            }
            if let Some(joined) = joined(&groups[a], &groups[b]) {
                groups[b] = shorter(joined);
                groups.remove(a);
                return true;
            }
        }
    }
    false
}

fn is_within(small: &Group, large: &Group) -> bool {
    small.iter().all(|part| holds(large, part))
}

fn holds(group: &Group, part: &PrimExpr) -> bool {
    group.iter().any(|other| same(other, part))
}

/// Two groups that differ in one part each, which are one part.
fn joined(a: &Group, b: &Group) -> Option<Group> {
    let mut only_a = a.iter().filter(|part| !holds(b, part));
    let mut only_b = b.iter().enumerate().filter(|(_, part)| !holds(a, part));
    let (Some(one), None, Some((at, other)), None) = (only_a.next(), only_a.next(), only_b.next(), only_b.next())
    else {
        return None;
    };
    let mut group = b.clone();
    group[at] = both(one, other)?;
    Some(group)
}

/// What `a or b` is, if it is one part.
fn either(a: &PrimExpr, b: &PrimExpr) -> Option<PrimExpr> {
    if implies(a, b) {
        return Some(b.clone());
    }
    if implies(b, a) {
        return Some(a.clone());
    }
    implies(&prim::not(a.clone()), b).then(|| prim::boolean(true))
}

/// What `a and b` is, if it is one part.
fn both(a: &PrimExpr, b: &PrimExpr) -> Option<PrimExpr> {
    if implies(a, b) {
        return Some(a.clone());
    }
    if implies(b, a) {
        return Some(b.clone());
    }
    implies(a, &prim::not(b.clone())).then(|| prim::boolean(false))
}

fn implies(a: &PrimExpr, b: &PrimExpr) -> bool {
    same(a, b) || solver::follows(std::slice::from_ref(a), b)
}
