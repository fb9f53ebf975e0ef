//! [`DisjointSets`]: elements in sets that are joined one after another, each set with a value (union-find).
//!
//! Elements are numbers, in the order in which they were added. One element of each set stands for it: its *root*, which whoever joins two
//! sets chooses, since the order of results may follow it. Joins shorten the ways to the roots, so that what follows is nearly constant.

/// Disjoint sets of elements.
#[derive(Clone, Debug)]
pub struct DisjointSets<T> {
    nodes: Vec<Membership<T>>,
}

#[derive(Clone, Debug)]
enum Membership<T> {
    /// In the set of another element.
    Link(usize),
    /// Stands for its set.
    Root(T),
}

impl<T> Default for DisjointSets<T> {
    fn default() -> DisjointSets<T> {
        DisjointSets { nodes: Vec::new() }
    }
}

impl<T> FromIterator<T> for DisjointSets<T> {
    /// A set of one element for each value.
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> DisjointSets<T> {
        DisjointSets { nodes: values.into_iter().map(Membership::Root).collect() }
    }
}

impl<T> DisjointSets<T> {
    /// Adds an element in a set of its own, and gives its number.
    pub fn add(&mut self, value: T) -> usize {
        self.nodes.push(Membership::Root(value));
        self.nodes.len() - 1
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The element that stands for an element's set.
    pub fn root(&self, element: usize) -> usize {
        self.root_and_value(element).0
    }

    /// The value of an element's set.
    pub fn value(&self, element: usize) -> &T {
        self.root_and_value(element).1
    }

    /// The values of all sets.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.nodes.iter().filter_map(|node| match node {
            Membership::Root(value) => Some(value),
            Membership::Link(_) => None,
        })
    }

    /// Sets the value of an element's set.
    pub fn set(&mut self, element: usize, value: T) {
        let root = self.shorten(element);
        self.nodes[root] = Membership::Root(value);
    }

    /// Makes the set of `other` a part of the set of `into`, whose root and value stay. Gives the value that was that of `other`; `None` if
    /// they were one set already.
    pub fn join(&mut self, into: usize, other: usize) -> Option<T> {
        let (into, other) = (self.shorten(into), self.shorten(other));
        if into == other {
            return None;
        }
        match std::mem::replace(&mut self.nodes[other], Membership::Link(into)) {
            Membership::Root(value) => Some(value),
            Membership::Link(_) => None,
        }
    }

    fn root_and_value(&self, mut element: usize) -> (usize, &T) {
        loop {
            match &self.nodes[element] {
                Membership::Link(next) => element = *next,
                Membership::Root(value) => return (element, value),
            }
        }
    }

    /// The root of an element, to which all elements on the way to it lead directly from now on.
    fn shorten(&mut self, element: usize) -> usize {
        let root = self.root(element);
        let mut at = element;
        while let Membership::Link(next) = self.nodes[at] {
            self.nodes[at] = Membership::Link(root);
            at = next;
        }
        root
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Joins at random against labels of elements, which are renamed at each join.
    #[test]
    fn elements_are_in_one_set_if_joins_lead_from_one_to_the_other() {
        const ELEMENTS: usize = 40;
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut below = |limit: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % limit
        };
        for _ in 0..50 {
            let mut sets: DisjointSets<usize> = (0..ELEMENTS).collect();
            let mut labels: Vec<usize> = (0..ELEMENTS).collect();
            for _ in 0..60 {
                let (into, other) = (below(ELEMENTS), below(ELEMENTS));
                let (kept, gone) = (labels[into], labels[other]);
                assert_eq!(sets.join(into, other), (kept != gone).then_some(gone));
                labels.iter_mut().filter(|label| **label == gone).for_each(|label| *label = kept);
                for (element, label) in labels.iter().enumerate() {
                    assert_eq!((sets.root(element), sets.value(element)), (*label, label));
                }
            }
            let mut left: Vec<usize> = sets.values().copied().collect();
            labels.sort_unstable();
            labels.dedup();
            left.sort_unstable();
            assert_eq!(left, labels);
        }
    }

    #[test]
    fn a_set_has_one_value_for_all_of_its_elements() {
        let mut sets = DisjointSets::default();
        assert!(sets.is_empty());
        let (a, b) = (sets.add("a"), sets.add("b"));
        sets.join(a, b);
        sets.set(b, "c");
        assert_eq!((sets.value(a), sets.root(b), sets.len()), (&"c", a, 2));
    }
}
