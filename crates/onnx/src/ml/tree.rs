//! `TreeEnsemble`, `TreeEnsembleRegressor` and `TreeEnsembleClassifier`: how each writes down trees.
//!
//! The newer operator numbers branches and leaves of all trees; the older ones list nodes with the tree and the number that
//! they have there, and votes that name them. Both become a [`Forest`].
//!
//! ONNX and ONNX Runtime differ here and there, and ONNX is followed: the label is that of the largest score (of two classes
//! that both have votes, ONNX Runtime takes the second where its score is positive), base values are added to targets without
//! votes too, and the transformation with the number 1 is softmax.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_relax::Expr;

use super::forest::{Aggregate, Branch, Forest, Mode, Next};
use super::rows;
use super::score::{self, Other, Transform};
use crate::constant;
use crate::error::NodeError;
use crate::node::Node;
use crate::ops::elementwise::{broadcast_call, with_number};
use crate::ops::{Outputs, one};
use crate::scope::Scope;
use crate::text::Labels;
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

/// The most values that a set of members has, since each becomes a branch.
const MOST_MEMBERS: usize = 1 << 20;

fn missing(name: &str) -> NodeError {
    NodeError::invalid(format!("attribute `{name}` is missing"))
}

fn ints(node: &Node, name: &str) -> Result<Vec<i64>> {
    node.ints(name)?.ok_or_else(|| missing(name))
}

/// The numbers of a tensor attribute.
fn tensor(node: &Node, name: &str) -> Result<Option<Vec<f64>>> {
    let Some(proto) = node.tensor(name)? else { return Ok(None) };
    let bad = |e: crate::error::TensorError| NodeError::invalid(format!("attribute `{name}`: {e}"));
    constant::floats(&constant::from_proto(proto, None).map_err(bad)?).map(Some).map_err(bad)
}

/// Numbers that are a list, or a tensor with `_as_tensor` behind the name.
fn list_or_tensor(node: &Node, name: &str) -> Result<Vec<f64>> {
    match node.floats(name)?.filter(|list| !list.is_empty()) {
        Some(list) => Ok(list.into_iter().map(f64::from).collect()),
        None => Ok(tensor(node, &format!("{name}_as_tensor"))?.unwrap_or_default()),
    }
}

/// Refuses lists that describe the same things and have different lengths.
fn same_lengths(count: usize, lists: &[(&str, usize)]) -> Result<()> {
    match lists.iter().find(|(_, n)| *n != count) {
        Some((name, n)) => Err(NodeError::invalid(format!("`{name}` has {n} elements where {count} are needed"))),
        None => Ok(()),
    }
}

/// Which branches are followed by what is no number; a list that may be left out.
fn missing_flags(node: &Node, count: usize) -> Result<Vec<bool>> {
    let flags = node.ints("nodes_missing_value_tracks_true")?.filter(|list| !list.is_empty());
    let flags = flags.unwrap_or_else(|| vec![0; count]);
    same_lengths(count, &[("nodes_missing_value_tracks_true", flags.len())])?;
    Ok(flags.into_iter().map(|f| f != 0).collect())
}

fn targets(node: &Node) -> Result<usize> {
    let given = node.int_or("n_targets", 1)?;
    usize::try_from(given).ok().filter(|n| *n > 0).ok_or_else(|| NodeError::invalid(format!("`n_targets` is {given}")))
}

/// `TreeEnsemble`.
pub fn ensemble(scope: &mut Scope, node: &Node) -> Outputs {
    let aggregate = match node.int_or("aggregate_function", 1)? {
        0 => Aggregate::Average,
        1 => Aggregate::Sum,
        2 => Aggregate::Least,
        3 => Aggregate::Largest,
        other => return Err(NodeError::invalid(format!("`aggregate_function` is {other}"))),
    };
    let forest = numbered_forest(node)?;
    let input = scope.tensor(node.input(0)?)?;
    let dtype = scope.dtype(&input);
    let x = rows(scope, node)?;
    let scores = forest.scores(scope, x, aggregate)?;
    let scores = Transform::numbered(node)?.apply(scope, scores)?;
    one(scope.cast(scores, dtype)?)
}

/// The trees of a `TreeEnsemble`.
fn numbered_forest(node: &Node) -> Result<Forest> {
    let (features, modes) = (ints(node, "nodes_featureids")?, tensor(node, "nodes_modes")?.unwrap_or_default());
    let splits = tensor(node, "nodes_splits")?.ok_or_else(|| missing("nodes_splits"))?;
    let (yes, no) = (ints(node, "nodes_truenodeids")?, ints(node, "nodes_falsenodeids")?);
    let (yes_leaf, no_leaf) = (ints(node, "nodes_trueleafs")?, ints(node, "nodes_falseleafs")?);
    let count = features.len();
    let lists = [
        ("nodes_modes", modes.len()),
        ("nodes_splits", splits.len()),
        ("nodes_truenodeids", yes.len()),
        ("nodes_falsenodeids", no.len()),
        ("nodes_trueleafs", yes_leaf.len()),
        ("nodes_falseleafs", no_leaf.len()),
    ];
    same_lengths(count, &lists)?;
    let flags = missing_flags(node, count)?;
    let next = |at: i64, leaf: i64| {
        let at = usize::try_from(at).map_err(|_| NodeError::invalid(format!("a tree leads to node {at}")))?;
        Ok::<_, NodeError>(if leaf != 0 { Next::Leaf(at) } else { Next::Branch(at) })
    };
    let mut branches = Vec::with_capacity(count);
    let mut sets = Vec::new();
    for i in 0..count {
        let mode = match modes[i] as usize {
            6 => {
                sets.push(i);
                Mode::Equal
            }
            mode => *Mode::ALL.get(mode).ok_or_else(|| NodeError::invalid(format!("node {i} has the mode {mode}")))?,
        };
        let (yes, no) = (next(yes[i], yes_leaf[i])?, next(no[i], no_leaf[i])?);
        branches.push(Branch { feature: features[i], mode, split: splits[i], yes, no, missing: flags[i] });
    }
    spread_sets(node, &mut branches, &sets)?;
    let (ids, weights) = (ints(node, "leaf_targetids")?, tensor(node, "leaf_weights")?.unwrap_or_default());
    same_lengths(ids.len(), &[("leaf_weights", weights.len())])?;
    let leaves = ids.into_iter().zip(weights).map(|vote| vec![vote]).collect();
    let roots = ints(node, "tree_roots")?.into_iter().map(|at| next(at, 0)).collect::<Result<Vec<_>>>()?;
    Ok(Forest { branches, leaves, roots, targets: targets(node)? })
}

/// Branches that ask for one of several values become one branch for each.
fn spread_sets(node: &Node, branches: &mut Vec<Branch>, sets: &[usize]) -> Result<()> {
    if sets.is_empty() {
        return Ok(());
    }
    let members = tensor(node, "membership_values")?.ok_or_else(|| missing("membership_values"))?;
    if members.len() > MOST_MEMBERS {
        return Err(NodeError::unsupported(format!("more than {MOST_MEMBERS} `membership_values` are not supported")));
    }
    let mut lists: Vec<&[f64]> = members.split(|v| v.is_nan()).collect();
    // What ends the last set may be there or not.
    if lists.len() == sets.len() + 1 && lists.last().is_some_and(|list| list.is_empty()) {
        lists.pop();
    }
    if lists.len() != sets.len() {
        let (given, needed) = (lists.len(), sets.len());
        return Err(NodeError::invalid(format!("`membership_values` has {given} sets for {needed} nodes")));
    }
    for (&at, members) in sets.iter().zip(lists) {
        let Some((first, rest)) = members.split_first() else {
            // Nothing is a member of the empty set.
            let no = branches[at].no;
            branches[at].yes = if branches[at].missing { branches[at].yes } else { no };
            branches[at].split = f64::NAN;
            continue;
        };
        branches[at].split = *first;
        let (last, mut from) = (branches[at].no, at);
        for member in rest {
            let next = Branch { split: *member, no: last, ..branches[at].clone() };
            branches[from].no = Next::Branch(branches.len());
            from = branches.len();
            branches.push(next);
        }
    }
    Ok(())
}

/// The trees of the older operators, without votes, and the leaves by tree and node.
fn listed_forest(node: &Node, targets: usize, prefix: &str) -> Result<Forest> {
    let (trees, ids) = (ints(node, "nodes_treeids")?, ints(node, "nodes_nodeids")?);
    let (features, modes) = (ints(node, "nodes_featureids")?, node.strings("nodes_modes")?.unwrap_or_default());
    let splits = list_or_tensor(node, "nodes_values")?;
    let (yes, no) = (ints(node, "nodes_truenodeids")?, ints(node, "nodes_falsenodeids")?);
    let count = trees.len();
    let lists = [
        ("nodes_nodeids", ids.len()),
        ("nodes_featureids", features.len()),
        ("nodes_modes", modes.len()),
        ("nodes_values", splits.len()),
        ("nodes_truenodeids", yes.len()),
        ("nodes_falsenodeids", no.len()),
    ];
    same_lengths(count, &lists)?;
    let flags = missing_flags(node, count)?;
    let (mut places, mut branches, mut leaves) = (HashMap::new(), 0, 0);
    for (i, key) in trees.iter().copied().zip(ids.iter().copied()).enumerate() {
        let slot = if modes[i] == "LEAF" { &mut leaves } else { &mut branches };
        let next = if modes[i] == "LEAF" { Next::Leaf(*slot) } else { Next::Branch(*slot) };
        *slot += 1;
        if places.insert(key, next).is_some() {
            return Err(NodeError::invalid(format!("tree {} has two nodes {}", key.0, key.1)));
        }
    }
    let find = |tree: i64, id: i64| {
        let found = places.get(&(tree, id)).copied();
        found.ok_or_else(|| NodeError::invalid(format!("tree {tree} leads to node {id}, which it does not have")))
    };
    let mut forest = Forest { leaves: vec![Vec::new(); leaves], targets, ..Forest::default() };
    let mut reached = HashSet::new();
    for i in (0..count).filter(|&i| modes[i] != "LEAF") {
        const NAMES: [&str; 6] = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"];
        let mode = NAMES.iter().position(|name| *name == modes[i]).and_then(|at| Mode::ALL.get(at)).copied();
        let mode = mode.ok_or_else(|| NodeError::invalid(format!("node {i} has the mode \"{}\"", modes[i])))?;
        let (yes_at, no_at) = (find(trees[i], yes[i])?, find(trees[i], no[i])?);
        reached.extend([(trees[i], yes[i]), (trees[i], no[i])]);
        forest.branches.push(Branch {
            feature: features[i],
            mode,
            split: splits[i],
            yes: yes_at,
            no: no_at,
            missing: flags[i],
        });
    }
    // A tree begins at the node that no other leads to.
    let mut begun = HashSet::new();
    for (tree, id) in trees.iter().copied().zip(ids.iter().copied()).filter(|key| !reached.contains(key)) {
        if !begun.insert(tree) {
            return Err(NodeError::invalid(format!("tree {tree} has several nodes that no other leads to")));
        }
        forest.roots.push(find(tree, id)?);
    }
    if let Some(tree) = trees.iter().find(|tree| !begun.contains(tree)) {
        return Err(NodeError::invalid(format!("tree {tree} has no root: every node of it is led to by another")));
    }
    if !forest.all_reached() {
        return Err(NodeError::invalid(
            "a tree has branches that lead to each other and are not reached from its root",
        ));
    }
    votes(node, prefix, &mut forest, &find)?;
    Ok(forest)
}

/// Adds the votes of leaves. Those of branches count nothing, since no walk ends there; some converters write them.
fn votes(node: &Node, prefix: &str, forest: &mut Forest, find: &dyn Fn(i64, i64) -> Result<Next>) -> Result<()> {
    let of = |part: &str| ints(node, &format!("{prefix}_{part}"));
    let (trees, ids, targets) = (of("treeids")?, of("nodeids")?, of("ids")?);
    let weights = list_or_tensor(node, &format!("{prefix}_weights"))?;
    let lists = [("nodeids", ids.len()), ("ids", targets.len()), ("weights", weights.len())];
    same_lengths(trees.len(), &lists.map(|(name, n)| (name, n)))?;
    for i in 0..trees.len() {
        if let Next::Leaf(leaf) = find(trees[i], ids[i])? {
            forest.leaves[leaf].push((targets[i], weights[i]));
        }
    }
    Ok(())
}

/// Values that are added to scores, one for each target or one for all.
fn with_base(scope: &mut Scope, scores: Expr, base: &[f64], targets: usize) -> Result<Expr> {
    if base.is_empty() {
        return Ok(scores);
    }
    if base.len() != targets && base.len() != 1 {
        let given = base.len();
        return Err(NodeError::invalid(format!("{given} `base_values` are given for {targets} targets")));
    }
    let base = scope.constant(base, &[base.len() as i64], scope.dtype(&scores))?;
    broadcast_call(scope, "add", [scores, base])
}

/// `TreeEnsembleRegressor`. The result is float32.
pub fn regressor(scope: &mut Scope, node: &Node) -> Outputs {
    let aggregate = match node.str_or("aggregate_function", "SUM")? {
        "AVERAGE" => Aggregate::Average,
        "SUM" => Aggregate::Sum,
        "MIN" => Aggregate::Least,
        "MAX" => Aggregate::Largest,
        other => return Err(NodeError::invalid(format!("`aggregate_function` is \"{other}\""))),
    };
    let forest = listed_forest(node, targets(node)?, "target")?;
    let x = rows(scope, node)?;
    let scores = forest.scores(scope, x, aggregate)?;
    let scores = with_base(scope, scores, &list_or_tensor(node, "base_values")?, forest.targets)?;
    let scores = scope.cast(scores, DataType::float(32))?;
    one(Transform::of(node)?.apply(scope, scores)?)
}

/// `TreeEnsembleClassifier`: the label of each row's best class, and the scores of all.
pub fn classifier(scope: &mut Scope, node: &Node) -> Outputs {
    let labels = Labels::of(node, "classlabels_int64s", "classlabels_strings")?;
    let outputs = classified(scope, node, &labels.numbers)?;
    Ok(labels.put(outputs))
}

fn classified(scope: &mut Scope, node: &Node, labels: &[i64]) -> Outputs {
    if labels.is_empty() {
        return Err(missing("classlabels_int64s"));
    }
    let transform = Transform::of(node)?;
    let forest = listed_forest(node, labels.len(), "class")?;
    let base = list_or_tensor(node, "base_values")?;
    let x = rows(scope, node)?;
    let scores = forest.scores(scope, x, Aggregate::Sum)?;
    let voted = |class: i64| forest.leaves.iter().flatten().any(|(id, _)| *id == class);
    if labels.len() == 2 && voted(0) != voted(1) {
        let classes = TwoClasses { labels: [labels[0], labels[1]], is_second_voted: voted(1) };
        return one_sided(scope, scores, classes, &base, &forest, transform);
    }
    let scores = with_base(scope, scores, &base, labels.len())?;
    let scores = scope.cast(scores, DataType::float(32))?;
    let best = score::best(scope, scores.clone())?;
    let label = score::named(scope, best, labels)?;
    Ok(vec![Value::Computed(label), Value::Computed(transform.apply(scope, scores)?)])
}

/// Two classes of which the leaves vote for one only.
#[derive(Clone, Copy)]
struct TwoClasses {
    labels: [i64; 2],
    /// Whether it is the second that they vote for.
    is_second_voted: bool,
}

/// The class and the scores where leaves vote for one of two only. Votes for the first column are for the second class; the other's score
/// follows from them, as a probability's rest where no vote is negative. Votes for the second column leave the first at zero.
fn one_sided(
    scope: &mut Scope,
    scores: Expr,
    classes: TwoClasses,
    base: &[f64],
    forest: &Forest,
    transform: Transform,
) -> Outputs {
    let column = Expr::constant(score::whole(&[i64::from(classes.is_second_voted)])?);
    let own = scope.op("take", [scores.clone(), column], Attrs::new().with("axis", 1i64))?;
    let own = match base {
        [] => own,
        [one] | [_, one] => with_number(scope, "add", own, *one)?,
        _ => return Err(NodeError::invalid(format!("{} `base_values` are given for 2 classes", base.len()))),
    };
    let own = scope.cast(own, DataType::float(32))?;
    let probabilities = forest.leaves.iter().flatten().all(|(_, weight)| *weight >= 0.0);
    let (limit, other) = if probabilities { (0.5, Other::Rest) } else { (0.0, Other::Opposite) };
    let positive = with_number(scope, "greater", own.clone(), limit)?;
    let label = score::either(scope, positive, classes.labels[1], classes.labels[0])?;
    let scores = if classes.is_second_voted {
        let scores = with_base(scope, scores, base, 2)?;
        let scores = scope.cast(scores, DataType::float(32))?;
        transform.apply(scope, scores)?
    } else {
        score::both(scope, own, other, transform)?
    };
    Ok(vec![Value::Computed(label), Value::Computed(scores)])
}
