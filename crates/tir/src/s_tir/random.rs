//! Random decisions that a seed repeats.

/// A linear congruential generator, the "minimal standard": multiplier 48271, modulus 2^31 - 1.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// From a seed; seeds below 1 count as 1.
    pub fn new(seed: i64) -> Random {
        let modulus = 2_147_483_647;
        Random { state: u64::try_from(seed).unwrap_or(1).max(1) % modulus.max(1) }.nonzero()
    }

    fn nonzero(self) -> Random {
        Random { state: self.state.max(1) }
    }

    /// The next number.
    fn advance(&mut self) -> u64 {
        self.state = self.state * 48271 % 2_147_483_647;
        self.state
    }

    /// A seed for another generator.
    pub fn fork(&mut self) -> i64 {
        (self.advance() * 32767 % 1_999_999_973) as i64
    }

    /// A number below `limit`; zero where the limit is.
    pub fn below(&mut self, limit: usize) -> usize {
        // Products of two draws reach beyond 2^31, and their low bits are not used alone.
        let wide = self.advance() << 31 | self.advance();
        usize::try_from(wide.checked_rem(limit as u64).unwrap_or(0)).unwrap_or(0)
    }

    /// A number from 0 up to, but without, 1.
    pub fn unit(&mut self) -> f64 {
        (self.advance() - 1) as f64 / 2_147_483_646.0
    }
}
