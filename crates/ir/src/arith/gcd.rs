//! Greatest common divisors.

use std::ops::Rem;

/// The greatest common divisor, at least 0; 1, which divides both, where it is 2⁶³, which has no `i64`.
pub fn gcd(a: i64, b: i64) -> i64 {
    i64::try_from(of_magnitudes(a.unsigned_abs(), b.unsigned_abs())).unwrap_or(1)
}

/// The same in 128 bits.
pub(super) fn wide_gcd(a: i128, b: i128) -> i128 {
    i128::try_from(of_magnitudes(a.unsigned_abs(), b.unsigned_abs())).unwrap_or(1)
}

/// Euclid's algorithm.
fn of_magnitudes<N: Copy + Default + PartialEq + Rem<Output = N>>(mut a: N, mut b: N) -> N {
    while b != N::default() {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_do_not_matter_and_zero_is_divided_by_all() {
        assert_eq!(gcd(-12, 18), 6);
        assert_eq!((gcd(0, -7), gcd(0, 0)), (7, 0));
        assert_eq!((gcd(i64::MIN, i64::MIN), gcd(i64::MIN, 6)), (1, 2));
        assert_eq!(wide_gcd(-(1 << 80), 3 << 70), 1 << 70);
    }
}
