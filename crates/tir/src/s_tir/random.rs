//! Random decisions that a seed repeats: the same that TVM's schedules make of it.
//!
//! What is drawn follows from the generator and from how the C++ library under TVM makes numbers below a limit and numbers
//! below one of it.

/// The modulus of the generator.
const MODULUS: u64 = 2_147_483_647;

/// A linear congruential generator, the "minimal standard": multiplier 48271, modulus 2^31 - 1.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// From a seed; seeds below 1 count as 1.
    pub fn new(seed: i64) -> Random {
        let state = u64::try_from(seed).unwrap_or(1).max(1) % MODULUS;
        Random { state: state.max(1) }
    }

    /// The next number.
    fn advance(&mut self) -> u64 {
        self.state = self.state * 48271 % MODULUS;
        self.state
    }

    /// A seed for another generator.
    pub fn fork(&mut self) -> i64 {
        (self.advance() * 32767 % 1_999_999_973) as i64
    }

    /// A number below `limit`; zero, and nothing drawn, where that is all there is.
    pub fn below(&mut self, limit: usize) -> usize {
        if limit <= 1 {
            return 0;
        }
        let limit = u64::try_from(limit).unwrap_or(MODULUS - 1).min(MODULUS - 1);
        // Equal parts of what the generator gives; a draw behind the last part counts for nothing.
        let part = (MODULUS - 1) / limit;
        loop {
            let drawn = self.advance() / part;
            if drawn < limit {
                return usize::try_from(drawn).unwrap_or(0);
            }
        }
    }

    /// A number from 0 up to, but without, 1, made of two draws.
    pub fn unit(&mut self) -> f64 {
        let base = MODULUS as f64;
        let low = self.advance() as f64;
        (low + self.advance() as f64 * base) / (base * base)
    }

    /// Different numbers below a limit, as many as are wanted.
    fn distinct(&mut self, limit: usize, wanted: usize) -> Vec<usize> {
        if wanted == 2 && limit > 2 {
            let (first, second) = (self.below(limit), self.below(limit - 1));
            return vec![first, second + usize::from(second >= first)];
        }
        let mut order: Vec<usize> = (0..limit).collect();
        for i in 0..wanted.min(limit) {
            let other = i + self.below(limit - i);
            order.swap(i, other);
        }
        order.truncate(wanted);
        order
    }

    /// Factors whose product is a number, each such list as likely as any other.
    pub fn tile(&mut self, product: i64, count: usize) -> Vec<i64> {
        let mut tile = vec![1i64; count];
        if count == 1 {
            return vec![product];
        }
        for (prime, power) in prime_powers(product) {
            if count > 2 && power == 1 {
                let at = self.below(count);
                tile[at] *= prime;
                continue;
            }
            // As many marks among the primes as cut them into `count` groups.
            let mut marks = match count {
                2 => vec![self.below(power + 1)],
                _ => self.distinct(count - 1 + power, count - 1),
            };
            marks.sort_unstable();
            marks.push(count - 1 + power);
            let mut from = 0;
            for (factor, mark) in tile.iter_mut().zip(marks) {
                let exponent = u32::try_from(mark.saturating_sub(from)).unwrap_or(0);
                *factor *= prime.pow(exponent);
                from = mark + 1;
            }
        }
        tile
    }
}

/// The primes of a number with their powers, the smallest first. What is left behind the primes below 2^16 counts as one.
fn prime_powers(mut number: i64) -> Vec<(i64, usize)> {
    let mut found = Vec::new();
    let mut prime = 2;
    while prime * prime <= number && prime < 1 << 16 {
        let mut power = 0;
        while number % prime == 0 {
            number /= prime;
            power += 1;
        }
        if power > 0 {
            found.push((prime, power));
        }
        prime += 1;
    }
    if number > 1 {
        found.push((number, 1));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_decide_as_in_tvm() {
        let mut random = Random::new(7);
        let tiles: Vec<Vec<i64>> = (0..4).map(|_| random.tile(360, 4)).collect();
        assert_eq!(tiles, [[3, 2, 15, 4], [36, 2, 5, 1], [5, 2, 9, 4], [60, 2, 1, 3]]);
        let mut random = Random::new(7);
        let tiles: Vec<Vec<i64>> = (0..4).map(|_| random.tile(14, 2)).collect();
        assert_eq!(tiles, [[7, 2], [1, 14], [2, 7], [14, 1]]);
        let mut random = Random::new(42);
        let drawn: Vec<usize> = (0..6).map(|_| (random.unit() * 100.0) as usize).collect();
        assert_eq!(drawn, [57, 44, 96, 71, 22, 53]);
        assert_eq!(Random::new(1).fork(), 1_581_695_857);
    }
}
