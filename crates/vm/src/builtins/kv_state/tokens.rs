//! Which tokens a cache holds, and where each is.
//!
//! A cache has *places*, one for the keys and values of a token in every layer. A sequence is the list of its tokens' places.
//! Sequences that begin alike share places: a place is free again when no sequence has it. So nothing is copied when a sequence is
//! forked, when tokens are taken back, when a window slides over a sequence, or when one branch of a tree of guesses is accepted.
//!
//! This is the bookkeeping alone: it knows no tensors.

use std::collections::{BTreeMap, HashSet};

use super::tree;

/// Why a cache does not do what is asked for. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PlaceError {
    #[error("The sequence {id} cannot be found in KV cache; there are {known:?}")]
    Unknown { id: i64, known: Vec<i64> },
    #[error("The sequence {0} is already in the KV cache.")]
    Known(i64),
    #[error("the KV cache is for {0} sequences: remove one before another is added")]
    Sequences(usize),
    #[error("the sequence {0} ends in a tree: accept one of its branches before it is forked")]
    ForkOfTree(i64),
    #[error("the sequence {id} has {length} tokens and cannot be forked behind {position}")]
    Fork { id: i64, length: usize, position: i64 },
    #[error("the sequence {id} has {length} tokens, of which {count} cannot be popped")]
    Pop { id: i64, length: usize, count: i64 },
    #[error("a window of {window} tokens cannot keep the first {sink}: expected fewer")]
    Window { window: i64, sink: i64 },
    #[error("A sliding window has been enabled for the sequence {0} already.")]
    WindowTwice(i64),
    #[error("sequences {ids:?} and lengths {lengths:?} do not fit: expected a length for each sequence, once")]
    Batch { ids: Vec<i64>, lengths: Vec<i64> },
    #[error("lengths to append are {0:?}: expected positive ones")]
    Lengths(Vec<i64>),
    #[error("{parents} parents are given for {tokens} tokens")]
    ParentCount { parents: usize, tokens: usize },
    #[error("token {token} of a tree follows {parent}: expected an earlier one, or -1")]
    Parent { token: usize, parent: i64 },
    #[error("The KV cache is full: {wanted} tokens are to be appended, and there is room for {free}")]
    Full { wanted: usize, free: usize },
    #[error("a sequence ends in a tree: accept one of its branches before it gets more tokens")]
    BehindTree,
    #[error("the last pass appended {appended} tokens of a tree to the sequence {id}, and no token {leaf}")]
    Leaf { id: i64, appended: usize, leaf: i64 },
    #[error("there are {leaves} nodes to accept for {ids} sequences")]
    Leaves { ids: usize, leaves: usize },
    #[error("the sequence {id} has {length} tokens, not those from {start} to {end}")]
    Part { id: i64, length: usize, start: i64, end: i64 },
}

type Result<T> = std::result::Result<T, PlaceError>;

/// The tokens of a sequence.
#[derive(Clone, Debug, Default)]
pub(super) struct Sequence {
    /// Where each is.
    pub places: Vec<i32>,
    /// How many tokens stay, and how many of these are the first ones; zero where no window slides.
    window: usize,
    sink: usize,
    /// How many tokens the last pass appended.
    appended: usize,
    /// For each of the last tokens, which are a tree that is not decided yet, the other that it follows; -1 for a root.
    pub parents: Vec<i64>,
}

/// All sequences of a cache.
#[derive(Debug)]
pub(super) struct Places {
    sequences: BTreeMap<i64, Sequence>,
    most: usize,
    /// How many sequences have each place.
    uses: Vec<u32>,
    free: Vec<i32>,
}

impl Places {
    /// Room for so many tokens in so many sequences.
    pub fn new(most: usize, places: i32) -> Places {
        let free = (0..places).rev().collect();
        Places { sequences: BTreeMap::new(), most, uses: vec![0; places.max(0) as usize], free }
    }

    /// Forgets all sequences.
    pub fn clear(&mut self) {
        *self = Places::new(self.most, self.uses.len() as i32);
    }

    /// A sequence.
    pub fn get(&self, id: i64) -> Result<&Sequence> {
        self.sequences.get(&id).ok_or_else(|| self.unknown(id))
    }

    fn get_mut(&mut self, id: i64) -> Result<&mut Sequence> {
        match self.sequences.contains_key(&id) {
            true => Ok(self.sequences.entry(id).or_default()),
            false => Err(self.unknown(id)),
        }
    }

    fn unknown(&self, id: i64) -> PlaceError {
        PlaceError::Unknown { id, known: self.sequences.keys().copied().collect() }
    }

    /// Adds an empty sequence.
    pub fn add(&mut self, id: i64) -> Result<()> {
        if self.sequences.contains_key(&id) {
            return Err(PlaceError::Known(id));
        }
        if self.sequences.len() == self.most {
            return Err(PlaceError::Sequences(self.most));
        }
        self.sequences.insert(id, Sequence::default());
        Ok(())
    }

    /// Forgets a sequence.
    pub fn remove(&mut self, id: i64) -> Result<()> {
        let sequence = self.sequences.remove(&id).ok_or_else(|| self.unknown(id))?;
        self.release(&sequence.places);
        Ok(())
    }

    /// Adds a sequence that begins as another does: with its first tokens, all of them for -1.
    pub fn fork(&mut self, parent: i64, child: i64, position: i64) -> Result<()> {
        let of = self.get(parent)?;
        if !of.parents.is_empty() {
            return Err(PlaceError::ForkOfTree(parent));
        }
        let length = of.places.len();
        let count = if position == -1 { Some(length) } else { usize::try_from(position).ok() };
        let places = count.and_then(|count| of.places.get(..count));
        let places = places.ok_or(PlaceError::Fork { id: parent, length, position })?.to_vec();
        self.add(child)?;
        places.iter().for_each(|place| self.uses[*place as usize] += 1);
        self.get_mut(child)?.places = places;
        Ok(())
    }

    /// Lets a window slide over a sequence: `window` tokens stay, among them the first `sink` ones.
    pub fn enable_window(&mut self, id: i64, window: i64, sink: i64) -> Result<()> {
        if !(0..window).contains(&sink) {
            return Err(PlaceError::Window { window, sink });
        }
        let sequence = self.get_mut(id)?;
        if sequence.window > 0 {
            return Err(PlaceError::WindowTwice(id));
        }
        (sequence.window, sequence.sink) = (window as usize, sink as usize);
        Ok(())
    }

    /// Takes back the last tokens of a sequence.
    pub fn pop(&mut self, id: i64, count: i64) -> Result<()> {
        let length = self.get(id)?.places.len();
        let kept = usize::try_from(count).ok().and_then(|count| length.checked_sub(count));
        let kept = kept.ok_or(PlaceError::Pop { id, length, count })?;
        let sequence = self.get_mut(id)?;
        let gone = sequence.places.split_off(kept);
        sequence.parents.truncate(sequence.parents.len().saturating_sub(gone.len()));
        self.release(&gone);
        Ok(())
    }

    /// Whether no token is kept.
    pub fn is_empty(&self) -> bool {
        self.free.len() == self.uses.len()
    }

    /// How many tokens there is room for.
    pub fn room(&self) -> usize {
        self.free.len()
    }

    /// How many tokens all sequences have together.
    pub fn total(&self) -> usize {
        self.sequences.values().map(|sequence| sequence.places.len()).sum()
    }

    /// Some tokens of a sequence.
    pub fn part(&self, id: i64, start: i64, end: i64) -> Result<&[i32]> {
        let places = &self.get(id)?.places;
        let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
        let part = range.and_then(|(start, end)| places.get(start..end));
        part.ok_or(PlaceError::Part { id, length: places.len(), start, end })
    }

    /// Makes room for the tokens that each sequence of a batch gets; `parents` says, for all of them, which token of the tree each
    /// follows.
    pub fn begin(&mut self, ids: &[i64], lengths: &[i64], parents: Option<&[i64]>) -> Result<()> {
        if ids.len() != lengths.len() || ids.iter().collect::<HashSet<_>>().len() != ids.len() {
            return Err(PlaceError::Batch { ids: ids.to_vec(), lengths: lengths.to_vec() });
        }
        let counts = lengths.iter().map(|n| usize::try_from(*n).ok().filter(|n| *n > 0)).collect::<Option<Vec<_>>>();
        let counts = counts.ok_or_else(|| PlaceError::Lengths(lengths.to_vec()))?;
        let wanted = counts.iter().fold(0usize, |sum, n| sum.saturating_add(*n));
        if let Some(parents) = parents.filter(|parents| parents.len() != wanted) {
            return Err(PlaceError::ParentCount { parents: parents.len(), tokens: wanted });
        }
        let mut rest = parents;
        for (id, count) in ids.iter().zip(&counts) {
            let before = &self.get(*id)?.parents;
            match &mut rest {
                None if !before.is_empty() => return Err(PlaceError::BehindTree),
                None => {}
                Some(rest) => {
                    let (own, others) = rest.split_at(*count);
                    check_parents(own, before.len())?;
                    *rest = others;
                }
            }
        }
        if wanted > self.free.len() {
            return Err(PlaceError::Full { wanted, free: self.free.len() });
        }
        let mut rest = parents;
        for (id, count) in ids.iter().zip(counts) {
            let places = self.free.split_off(self.free.len() - count);
            places.iter().for_each(|place| self.uses[*place as usize] = 1);
            let sequence = self.get_mut(*id)?;
            sequence.places.extend(places.iter().rev());
            sequence.appended = count;
            if let Some(rest) = &mut rest {
                let (own, others) = rest.split_at(count);
                sequence.parents.extend(own);
                *rest = others;
            }
        }
        Ok(())
    }

    /// Ends a pass over sequences: windows slide.
    pub fn end(&mut self, ids: &[i64]) {
        for id in ids {
            let Some(sequence) = self.sequences.get_mut(id) else { continue };
            let surplus = sequence.places.len().saturating_sub(sequence.window);
            if sequence.window > 0 && surplus > 0 {
                let gone: Vec<i32> = sequence.places.drain(sequence.sink..sequence.sink + surplus).collect();
                self.release(&gone);
            }
        }
    }

    /// Of what the last pass appended to each sequence keeps the path to a node; -1 keeps nothing. Nodes are counted among these
    /// tokens. Those of a tree that earlier passes appended stay, as in TVM.
    pub fn commit(&mut self, ids: &[i64], leaves: &[i64]) -> Result<()> {
        if ids.len() != leaves.len() {
            return Err(PlaceError::Leaves { ids: ids.len(), leaves: leaves.len() });
        }
        for (id, leaf) in ids.iter().zip(leaves) {
            let sequence = self.get(*id)?;
            let appended = sequence.appended.min(sequence.parents.len());
            if !(-1..appended as i64).contains(leaf) {
                return Err(PlaceError::Leaf { id: *id, appended, leaf: *leaf });
            }
        }
        for (id, leaf) in ids.iter().zip(leaves) {
            let sequence = self.get_mut(*id)?;
            let appended = sequence.appended.min(sequence.parents.len());
            let path = tree::path(&sequence.parents, *leaf);
            let added = sequence.places.split_off(sequence.places.len() - appended);
            let (kept, gone): (Vec<_>, Vec<_>) = added.iter().enumerate().partition(|(node, _)| path.contains(node));
            sequence.places.extend(kept.into_iter().map(|(_, place)| *place));
            sequence.parents.clear();
            self.release(&gone.into_iter().map(|(_, place)| *place).collect::<Vec<_>>());
        }
        Ok(())
    }

    fn release(&mut self, places: &[i32]) {
        for place in places {
            let uses = &mut self.uses[*place as usize];
            *uses -= 1;
            if *uses == 0 {
                self.free.push(*place);
            }
        }
    }
}

/// Each token of a tree follows an earlier one, or none.
fn check_parents(parents: &[i64], known: usize) -> Result<()> {
    let wrong = parents.iter().enumerate().find(|(at, parent)| !(-1..(known + at) as i64).contains(*parent));
    wrong.map_or(Ok(()), |(at, parent)| Err(PlaceError::Parent { token: known + at, parent: *parent }))
}

impl Sequence {
    /// The places of the tokens that the last pass appended.
    pub fn new_places(&self) -> &[i32] {
        &self.places[self.places.len().saturating_sub(self.appended)..]
    }

    /// Their positions: in a tree, those at one depth have the same.
    pub fn new_positions(&self) -> Vec<i32> {
        let (tokens, of_tree) = (self.places.len(), self.parents.len());
        let depths = tree::depths(&self.parents);
        let before = tokens.saturating_sub(of_tree);
        let position = |at: usize| match at.checked_sub(before) {
            Some(node) if of_tree > 0 => (before + depths[node]) as i32,
            _ => at as i32,
        };
        (tokens.saturating_sub(self.appended)..tokens).map(position).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn forks_share_places_and_give_back_what_nobody_has() {
        let mut places = Places::new(4, 10);
        places.add(0).unwrap();
        places.begin(&[0], &[6], None).unwrap();
        places.fork(0, 1, 4).unwrap();
        places.begin(&[1, 0], &[2, 1], None).unwrap();
        assert_eq!((places.total(), places.room()), (13, 1));
        assert_eq!(places.get(0).unwrap().places[..4], places.get(1).unwrap().places[..4]);
        places.pop(1, 3).unwrap();
        places.remove(0).unwrap();
        assert_eq!((places.total(), places.room()), (3, 7));
        assert_eq!(places.fork(1, 2, 4), Err(PlaceError::Fork { id: 1, length: 3, position: 4 }));
        places.remove(1).unwrap();
        assert!(places.is_empty());
    }

    #[test]
    fn the_path_to_a_node_stays() {
        let mut places = Places::new(1, 16);
        places.add(7).unwrap();
        places.begin(&[7], &[2], None).unwrap();
        places.begin(&[7], &[5], Some(&[-1, 0, 0, 1, 2])).unwrap();
        assert_eq!(places.get(7).unwrap().new_positions(), [2, 3, 3, 4, 4]);
        assert_eq!(places.begin(&[7], &[1], None), Err(PlaceError::BehindTree));
        let tree = places.get(7).unwrap().new_places().to_vec();
        places.commit(&[7], &[4]).unwrap();
        assert_eq!(places.get(7).unwrap().places[2..], [tree[0], tree[2], tree[4]]);
        assert_eq!(places.room(), 11);
    }

    proptest! {
        /// Whatever is done, each place is free or as often in use as sequences have it.
        #[test]
        fn places_are_free_or_counted(steps in prop::collection::vec((0..9u8, -1..4i64, -1..4i64, -2..7i64), 0..60)) {
            let mut places = Places::new(3, 12);
            for (kind, a, b, n) in steps {
                let _ = match kind {
                    0 => places.add(a),
                    1 => places.remove(a),
                    2 => places.fork(a, b, n),
                    3 => places.pop(a, n),
                    4 => places.enable_window(a, n, b),
                    5 => places.begin(&[a, b], &[n, 1], None).map(|()| places.end(&[a, b])),
                    6 => places.begin(&[a], &[3], Some(&[-1, b.min(0), n.min(1)])),
                    7 => places.commit(&[a], &[n]),
                    _ => places.begin(&[a], &[n], None).map(|()| places.end(&[a])),
                };
                let mut uses = vec![0u32; 12];
                for sequence in places.sequences.values() {
                    sequence.places.iter().for_each(|place| uses[*place as usize] += 1);
                    prop_assert_eq!(sequence.new_positions().len(), sequence.new_places().len());
                }
                places.free.iter().for_each(|place| assert_eq!(uses[*place as usize], 0));
                prop_assert_eq!(places.free.len(), uses.iter().filter(|n| **n == 0).count());
                prop_assert_eq!(&places.uses, &uses);
            }
        }
    }
}
