//! Trees of guessed tokens: for each token the one that it follows, which stands before it; -1 for a root.

/// How deep each token is.
pub(super) fn depths(parents: &[i64]) -> Vec<usize> {
    let mut depths: Vec<usize> = Vec::with_capacity(parents.len());
    for parent in parents {
        let depth = usize::try_from(*parent).ok().and_then(|parent| depths.get(parent)).map_or(0, |depth| depth + 1);
        depths.push(depth);
    }
    depths
}

/// The tokens from a root to a token; none for -1.
pub(super) fn path(parents: &[i64], leaf: i64) -> Vec<usize> {
    let node = |at: i64| usize::try_from(at).ok().filter(|at| *at < parents.len());
    let mut path: Vec<usize> = std::iter::successors(node(leaf), |at| node(parents[*at])).collect();
    path.reverse();
    path
}

/// When a walk of the tree, children in their order, enters and leaves each token.
pub(super) fn order(parents: &[i64]) -> Vec<[i32; 2]> {
    let mut children = vec![Vec::new(); parents.len()];
    let mut pending = Vec::new();
    for (node, parent) in parents.iter().enumerate().rev() {
        match usize::try_from(*parent).ok().and_then(|parent| children.get_mut(parent)) {
            Some(siblings) => siblings.push(node),
            None => pending.push((node, false)),
        }
    }
    let mut order = vec![[0; 2]; parents.len()];
    let mut clock = 0;
    while let Some((node, is_left)) = pending.pop() {
        order[node][usize::from(is_left)] = clock;
        clock += 1;
        if !is_left {
            pending.push((node, true));
            pending.extend(children[node].iter().map(|child| (*child, false)));
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_enter_a_token_before_what_follows_it() {
        let parents = [-1, 0, 0, 1, 2, -1];
        assert_eq!(depths(&parents), [0, 1, 1, 2, 2, 0]);
        assert_eq!(path(&parents, 4), [0, 2, 4]);
        assert!(path(&parents, -1).is_empty());
        let order = order(&parents);
        assert_eq!(order, [[0, 9], [1, 4], [5, 8], [2, 3], [6, 7], [10, 11]]);
    }
}
