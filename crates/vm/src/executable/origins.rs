//! [`Origins`]: which nodes of a model instructions were made of.
//!
//! An error at run time is about a kernel or a check that the compiler made; whoever reads it knows the nodes of the model. They
//! ride in the description behind the sections, as `"origins": {"words": ["Gather `g`", …], "ranges": [[0, 4, 0], …]}`: from the
//! first number's instruction up to the second's, which is not among them, it is the third's words.

use relaxide_ffi::{Array, Map};

/// The nodes that instructions were made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins {
    /// The nodes in words, each once.
    words: Vec<String>,
    /// First instruction, the one behind the last, and which words; in order.
    ranges: Vec<(usize, usize, usize)>,
}

impl Origins {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Says what the instructions from `first` up to `end` were made of; ranges come in order.
    pub fn add(&mut self, first: usize, end: usize, words: &str) {
        if first >= end {
            return;
        }
        // Nodes come one after the other, so the words are among the last ones or new.
        let recent = self.words.len().saturating_sub(RECENT);
        let known = self.words.iter().skip(recent).position(|known| known == words).map(|at| at + recent);
        let which = known.unwrap_or_else(|| {
            self.words.push(words.to_string());
            self.words.len() - 1
        });
        match self.ranges.last_mut() {
            Some((_, last, same)) if *last == first && *same == which => *last = end,
            _ => self.ranges.push((first, end, which)),
        }
    }

    /// What an instruction was made of.
    pub fn of(&self, instruction: usize) -> Option<&str> {
        let at = self.ranges.partition_point(|(first, ..)| *first <= instruction).checked_sub(1)?;
        let (_, end, which) = self.ranges.get(at)?;
        if instruction < *end { self.words.get(*which).map(String::as_str) } else { None }
    }

    /// The words, and the ranges.
    pub fn parts(&self) -> (&[String], &[(usize, usize, usize)]) {
        (&self.words, &self.ranges)
    }

    /// What a description says; nothing where it makes no sense.
    pub(super) fn of_description(description: &Map) -> Option<Origins> {
        let origins: Map = description.get("origins")?.to().ok()?;
        let words: Vec<String> = origins.get("words")?.to().ok()?;
        let listed: Array = origins.get("ranges")?.to().ok()?;
        let range = |range: &relaxide_ffi::Any| {
            let [first, end, which] = <[i64; 3]>::try_from(range.to::<Vec<i64>>().ok()?).ok()?;
            Some((usize::try_from(first).ok()?, usize::try_from(end).ok()?, usize::try_from(which).ok()?))
        };
        let ranges: Vec<(usize, usize, usize)> = listed.iter().map(range).collect::<Option<_>>()?;
        let ordered = ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0);
        ordered.then_some(Origins { words, ranges })
    }
}

/// Among how many of the last words an equal one is looked for.
const RECENT: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_have_the_words_of_their_range() {
        let mut origins = Origins::default();
        origins.add(2, 4, "a");
        origins.add(4, 5, "a");
        origins.add(5, 5, "nothing");
        origins.add(7, 9, "b");
        let found: Vec<Option<&str>> = (0..10).map(|i| origins.of(i)).collect();
        let (a, b) = (Some("a"), Some("b"));
        assert_eq!(found, [None, None, a, a, a, None, None, b, b, None]);
        assert_eq!(origins.parts().1, [(2, 5, 0), (7, 9, 1)]);
    }
}
