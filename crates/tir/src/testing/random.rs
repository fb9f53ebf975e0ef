//! Random choices that can be recorded, repeated and made simpler.
//!
//! A generator asks for choices; each is a number below some limit. They come from a seed, from bytes (a fuzzer's) or from a
//! list of choices made before. What was chosen is kept, so a case that fails is a list of numbers, and a simpler case is a
//! shorter list or one of smaller numbers ([`shrink`](super::shrink)). Behind the end of a list or of the bytes every choice
//! is zero: generators have to end then, and to make of zero the simplest that they can.

/// A source of choices.
#[derive(Clone, Debug)]
pub struct Random {
    source: DrawnFrom,
    made: Vec<u64>,
}

#[derive(Clone, Debug)]
enum DrawnFrom {
    /// SplitMix64, which is the same everywhere.
    Seed(u64),
    /// Bytes, the next one first.
    Bytes(std::vec::IntoIter<u8>),
    /// Choices made before.
    Choices(std::vec::IntoIter<u64>),
}

impl Random {
    fn from_source(source: DrawnFrom) -> Random {
        Random { source, made: Vec::new() }
    }

    /// The choices of a seed.
    pub fn new(seed: u64) -> Random {
        Random::from_source(DrawnFrom::Seed(seed))
    }

    /// Choices by bytes: one for a choice among 256 or fewer, else two or eight.
    pub fn from_bytes(bytes: &[u8]) -> Random {
        Random::from_source(DrawnFrom::Bytes(Vec::from(bytes).into_iter()))
    }

    /// Choices made before. One that is too large for its place becomes the largest there.
    pub fn repeat(choices: &[u64]) -> Random {
        Random::from_source(DrawnFrom::Choices(Vec::from(choices).into_iter()))
    }

    /// What was chosen so far, without the zeros at its end.
    pub fn choices(&self) -> Vec<u64> {
        let end = self.made.iter().rposition(|c| *c != 0).map_or(0, |last| last + 1);
        self.made[..end].to_vec()
    }

    /// A choice below `limit`, of which 0 stands for 2^64. `meaning` turns a number at random into the choice.
    fn choose(&mut self, limit: u64, meaning: impl Fn(u64) -> u64) -> u64 {
        let choice = match &mut self.source {
            DrawnFrom::Seed(state) => meaning(split_mix(state)),
            DrawnFrom::Bytes(bytes) => {
                let count = match limit {
                    1..=0x100 => 1,
                    0x101..=0x1_0000 => 2,
                    _ => 8,
                };
                let word = bytes.by_ref().take(count).fold(0u64, |word, byte| word << 8 | u64::from(byte));
                if limit == 0 { word } else { word % limit }
            }
            DrawnFrom::Choices(list) => list.next().unwrap_or(0).min(limit.wrapping_sub(1)),
        };
        self.made.push(choice);
        choice
    }

    /// Any 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.choose(0, |word| word)
    }

    /// A number below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        let limit = n.max(1) as u64;
        self.choose(limit, |word| word % limit) as usize
    }

    /// A number in `low..=high`; the simplest is `low`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        let limit = (high - low + 1).max(1) as u64;
        low + self.choose(limit, |word| word % limit) as i64
    }

    /// True once in `n` times; the simplest is false.
    pub fn one_in(&mut self, n: usize) -> bool {
        let limit = n.max(1) as u64;
        self.choose(2, |word| u64::from(word % limit == 0)) == 1
    }

    /// True but once in `n` times; the simplest is false.
    pub fn mostly(&mut self, n: usize) -> bool {
        let limit = n.max(1) as u64;
        self.choose(2, |word| u64::from(word % limit != 0)) == 1
    }

    /// One of several, the simplest first; `None` of none.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        list.get(self.below(list.len()))
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(random: &mut Random) -> (usize, i64, bool, u64, usize) {
        (random.below(1000), random.between(-4, 4), random.one_in(2), random.bits(), random.below(7))
    }

    #[test]
    fn what_was_chosen_can_be_chosen_again() {
        for seed in 0..100 {
            let mut first = Random::new(seed);
            let drawn = draw(&mut first);
            assert_eq!(draw(&mut Random::repeat(&first.choices())), drawn, "seed {seed}");
        }
    }

    #[test]
    fn behind_the_end_of_its_source_every_choice_is_the_simplest() {
        assert_eq!(draw(&mut Random::from_bytes(&[])), (0, -4, false, 0, 0));
        assert_eq!(draw(&mut Random::from_bytes(&[1, 2, 3, 1])), (258, -1, true, 0, 0));
        assert_eq!(Random::repeat(&[9]).below(4), 3);
    }
}
