//! [`BigInt`]: an integer of any size, as front ends with such integers pass those that do not fit 64 bits.
//!
//! The content is two's complement in 64-bit words, the least significant first, as few as the value needs; what fits one
//! word is a plain integer and never a `BigInt`. There is no arithmetic: the interface only carries such integers.

use std::cmp::Ordering;
use std::fmt;

use crate::abi::type_index;
use crate::handle::{exact_from_any, object_handle};
use crate::object::{Ref, allocate, deleter};
use crate::{Any, Error, ErrorKind, StructuralEqual, StructuralHash};

/// The cell: how many words there are. They follow it in the same allocation, and are aligned as they have to be where addresses have
/// 32 bits as well.
#[repr(C, align(8))]
pub(crate) struct BigIntObj {
    size: usize,
}

impl BigIntObj {
    fn words(&self) -> &[i64] {
        // SAFETY: that many words follow the cell, live as long as the object and never change.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).add(1).cast(), self.size) }
    }

    /// The words as bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        bytes_of(self.words())
    }

    fn content_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
        self.words() == other.words() || eq.fail("the integers differ")
    }

    fn content_hash(&self, hash: &mut StructuralHash) {
        hash.bytes(self.bytes());
    }
}

/// An integer that does not fit 64 bits. Copies share it.
#[derive(Clone)]
#[repr(transparent)]
pub struct BigInt(Ref<BigIntObj>);

object_handle!(BigInt, BigIntObj, "ffi.BigInt", type_index::BIG_INT, by content);
exact_from_any!(BigInt);

fn bytes_of(words: &[i64]) -> &[u8] {
    // SAFETY: integers are plain data without padding.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

impl BigInt {
    /// The value of those words: a plain integer if it fits one.
    pub fn from_words(words: &[i64]) -> Any {
        let mut words = words;
        while let [rest @ .., below, top] = words {
            // The top word only repeats the sign of the one below.
            if *top != *below >> 63 {
                break;
            }
            words = &words[..rest.len() + 1];
        }
        match words {
            [] => 0i64.into(),
            [word] => (*word).into(),
            _ => BigInt::store(words).into(),
        }
    }

    fn store(words: &[i64]) -> BigInt {
        let object = allocate::<BigIntObj>(type_index::BIG_INT, size_of_val(words), deleter::<BigIntObj>);
        // SAFETY: the allocation has room for the cell and the words behind it, which are written before the handle
        // exists.
        unsafe {
            let cell = &raw mut (*object.as_ptr()).value;
            cell.add(1).cast::<i64>().copy_from_nonoverlapping(words.as_ptr(), words.len());
            cell.write(BigIntObj { size: words.len() });
            BigInt(Ref::from_box(object))
        }
    }

    /// The words, the least significant first.
    pub fn words(&self) -> &[i64] {
        self.0.words()
    }

    /// The words of a value that is such an integer, as bytes.
    pub(crate) fn words_of(value: &Any) -> Option<&[u8]> {
        value.downcast_ref::<BigIntObj>().map(|object| object.bytes())
    }

    fn is_negative(&self) -> bool {
        self.words().last().is_some_and(|top| *top < 0)
    }

    /// The integer of decimal digits; a ValueError if the text is not one.
    pub fn parse(text: &str) -> Result<Any, Error> {
        let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(Error::new(ErrorKind::ValueError, "Invalid decimal string for ffi.BigInt"));
        }
        // The magnitude, in words of 64 bits; eighteen digits at a time.
        let mut magnitude = vec![0u64];
        for chunk in digits.as_bytes().chunks(18) {
            let value = chunk.iter().fold(0u64, |value, digit| value * 10 + u64::from(digit - b'0'));
            let mut carry = u128::from(value);
            for word in &mut magnitude {
                carry += u128::from(*word) * 10u128.pow(chunk.len() as u32);
                *word = carry as u64;
                carry >>= 64;
            }
            if carry != 0 {
                magnitude.push(carry as u64);
            }
        }
        // Room for the sign.
        magnitude.push(0);
        if negative {
            negate(&mut magnitude);
        }
        let words: Vec<i64> = magnitude.into_iter().map(|word| word as i64).collect();
        Ok(BigInt::from_words(&words))
    }
}

/// Two's complement.
fn negate(words: &mut [u64]) {
    let mut carry = true;
    for word in words {
        let (negated, overflow) = (!*word).overflowing_add(u64::from(carry));
        (*word, carry) = (negated, overflow);
    }
}

impl fmt::Display for BigInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const CHUNK: u128 = 10u128.pow(18);
        let mut magnitude: Vec<u64> = self.words().iter().map(|word| *word as u64).collect();
        if self.is_negative() {
            negate(&mut magnitude);
            f.write_str("-")?;
        }
        let mut chunks = Vec::new();
        while magnitude.iter().any(|word| *word != 0) {
            let mut rest = 0u128;
            for word in magnitude.iter_mut().rev() {
                rest = rest << 64 | u128::from(*word);
                *word = (rest / CHUNK) as u64;
                rest %= CHUNK;
            }
            chunks.push(rest);
        }
        let mut chunks = chunks.into_iter().rev();
        write!(f, "{}", chunks.next().unwrap_or(0))?;
        chunks.try_for_each(|chunk| write!(f, "{chunk:018}"))
    }
}

impl fmt::Debug for BigInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl PartialEq for BigInt {
    fn eq(&self, other: &BigInt) -> bool {
        self.words() == other.words()
    }
}

impl Eq for BigInt {}

impl PartialOrd for BigInt {
    fn partial_cmp(&self, other: &BigInt) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BigInt {
    fn cmp(&self, other: &BigInt) -> Ordering {
        compare_words(self.words(), other.words())
    }
}

/// Compares minimal two's complements.
pub(crate) fn compare_words(a: &[i64], b: &[i64]) -> Ordering {
    let negative = |words: &[i64]| words.last().is_some_and(|top| *top < 0);
    let unsigned = |words: &[i64]| words.iter().rev().map(|word| *word as u64).collect::<Vec<_>>();
    match (negative(a), negative(b)) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => a.len().cmp(&b.len()).then_with(|| unsigned(a).cmp(&unsigned(b))),
        (true, true) => b.len().cmp(&a.len()).then_with(|| unsigned(a).cmp(&unsigned(b))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_words_agree() {
        let cases: [(&str, &[i64]); 5] = [
            ("9223372036854775808", &[i64::MIN, 0]),
            ("-9223372036854775809", &[i64::MAX, -1]),
            ("18446744073709551616", &[0, 1]),
            ("-18446744073709551616", &[0, -1]),
            ("340282366920938463463374607431768211455", &[-1, -1, 0]),
        ];
        for (text, words) in cases {
            let value = BigInt::parse(text).unwrap();
            let integer: BigInt = value.to().unwrap();
            assert_eq!(integer.words(), words, "{text}");
            assert_eq!(integer.to_string(), text);
        }
        assert_eq!(BigInt::parse("-9223372036854775808").unwrap().as_int(), Some(i64::MIN));
        assert!(BigInt::parse("12x").is_err() && BigInt::parse("").is_err());
        let at = |text: &str| BigInt::parse(text).unwrap().to::<BigInt>().unwrap();
        assert!(at("-18446744073709551616") < at("-9223372036854775809"));
        assert!(at("9223372036854775808") < at("18446744073709551616"));
    }
}
