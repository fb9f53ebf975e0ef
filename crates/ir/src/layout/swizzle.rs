//! [`ComposeLayout`]: a permutation of addresses behind a tile layout.
//!
//! An address has `per_element` low bits within an element of the permutation. Of the bits above, `swizzle_len` are changed by those that lie
//! `atom_len` bits higher (or the other way round, where `swizzle_inner` is false):
//!
//! ```text
//! q = address >> per_element
//! q ^= (q & (mask << atom_len)) >> atom_len        where mask = (1 << swizzle_len) - 1
//! ```
//!
//! Of a coordinate the address is a sum of bounded terms. Where whole atoms, what varies within one, and a constant do not carry into each
//! other, the permutation is written over these parts, so that addresses that differ by a constant share all but one operation:
//!
//! ```text
//! S[(8, 8) : (64, 1)] + 72 at (x, y)   ->   (x * 64 + (y ^ ((x + 1 & 7) << 3)) + 64) ^ 8
//! ```

use relaxide_ffi::{Object, Ref};

use super::apply::Places;
use super::coords::like;
use super::{Axis, LayoutError, TileLayout};
use crate::arith::Analyzer;
use crate::prim::{self, BinaryOp, Let, PrimExpr};
use crate::{Type, Var};

/// A tile layout and a permutation of the addresses that it gives.
#[derive(Object, Debug, Clone)]
#[object(key = "tirx.ComposeLayout", parent = "tirx.Layout")]
pub struct ComposeLayout {
    /// Low bits of an address that stay.
    pub per_element: i64,
    /// How many bits are changed.
    pub swizzle_len: i64,
    /// How far above them lie those that change them.
    pub atom_len: i64,
    /// Whether the low bits are changed by the high ones.
    pub swizzle_inner: bool,
    /// What gives the addresses.
    pub tile_layout: Ref<TileLayout>,
    /// The low bits, without those within an element.
    pub inner_mask: i64,
    /// The high bits, without those within an element.
    pub outer_mask: i64,
}

/// Bits of the numbers that a permutation works on.
const ADDRESS_BITS: i64 = 31;

impl ComposeLayout {
    /// A permutation behind a tile layout.
    pub fn new(
        per_element: i64,
        swizzle_len: i64,
        atom_len: i64,
        tile_layout: Ref<TileLayout>,
        swizzle_inner: bool,
    ) -> Result<ComposeLayout, LayoutError> {
        let sound = per_element >= 0 && swizzle_len >= 0 && atom_len >= swizzle_len;
        let narrow = [per_element, swizzle_len, atom_len].iter().all(|bits| (0..=ADDRESS_BITS).contains(bits));
        if !sound || !narrow || per_element + swizzle_len + atom_len > ADDRESS_BITS {
            return Err(LayoutError::Swizzle { per_element, swizzle_len, atom_len });
        }
        tile_layout.scopes()?;
        let inner_mask = (1 << swizzle_len) - 1;
        let outer_mask = inner_mask << atom_len;
        Ok(ComposeLayout { per_element, swizzle_len, atom_len, swizzle_inner, tile_layout, inner_mask, outer_mask })
    }

    /// The same permutation behind another tile layout.
    pub(super) fn over(&self, tile: TileLayout) -> ComposeLayout {
        ComposeLayout { tile_layout: Ref::new(tile), ..self.clone() }
    }

    pub(super) fn permutes_like(&self, other: &ComposeLayout) -> bool {
        let numbers = |of: &ComposeLayout| (of.per_element, of.swizzle_len, of.atom_len, of.swizzle_inner);
        numbers(self) == numbers(other)
    }

    /// Of an address without the bits within an element.
    fn swizzled(&self, q: &PrimExpr) -> PrimExpr {
        let change = match self.swizzle_inner {
            true => bits(Bits::Right, bits(Bits::And, q.clone(), self.outer_mask), self.atom_len),
            false => bits(Bits::Left, bits(Bits::And, q.clone(), self.inner_mask), self.atom_len),
        };
        bits_of(Bits::Xor, q.clone(), change)
    }

    fn element(&self) -> i64 {
        1 << self.per_element
    }

    /// The permuted address.
    pub(super) fn permute(&self, places: Places) -> Result<Places, LayoutError> {
        let m = address(places)?;
        let quotient = self.swizzled(&prim::floordiv(&m, like(&m, self.element())));
        let permuted = bits(Bits::Left, quotient, self.per_element) + prim::floormod(&m, like(&m, self.element()));
        Ok(vec![(Axis::memory(), Analyzer::new().simplify(&permuted))])
    }

    /// The permuted address, which names the address and its quotient so that neither is computed twice.
    pub(super) fn permute_once(&self, places: Places) -> Result<Places, LayoutError> {
        let m = address(places)?;
        let once = |name: &str, value: &PrimExpr| Var::new(name, Type::prim(value.dtype()));
        let m_once = once("compose_m", &m);
        let quotient = prim::floordiv(PrimExpr::from(&m_once), like(&m, self.element()));
        let q_once = once("compose_q", &quotient);
        let high = bits(Bits::Left, self.swizzled(&PrimExpr::from(&q_once)), self.per_element);
        let body = high + prim::floormod(PrimExpr::from(&m_once), like(&m, self.element()));
        let body = Analyzer::new().simplify(&body);
        let body = Ref::new(Let { var: q_once, value: quotient, body }).into();
        Ok(vec![(Axis::memory(), Ref::new(Let { var: m_once, value: m, body }).into())])
    }

    /// The permuted address of a coordinate over the iterators of a tile layout.
    pub(super) fn apply_parts(&self, tile: &TileLayout, coord: &[PrimExpr]) -> Result<Places, LayoutError> {
        // The only place of an iterator is its first, whatever it is asked for.
        let coord: Vec<PrimExpr> = match coord.len() == tile.shard.len() {
            true => tile
                .shard
                .iter()
                .zip(coord)
                .map(|(iter, at)| if iter.extent.is_int(1) { like(at, 0) } else { at.clone() })
                .collect(),
            false => coord.to_vec(),
        };
        let places = tile.apply(&coord)?;
        if self.swizzle_len == 0 {
            address(places.clone())?;
            return Ok(places);
        }
        match self.of_parts(tile, &coord) {
            Some(permuted) => Ok(vec![(Axis::memory(), permuted)]),
            None => self.permute_once(places),
        }
    }

    /// The permuted address over its parts; `None` where they may carry into each other.
    fn of_parts(&self, tile: &TileLayout, coord: &[PrimExpr]) -> Option<PrimExpr> {
        if !self.swizzle_inner {
            return None;
        }
        let mut parts = AddressParts::new(1 << (self.per_element + self.atom_len));
        for (iter, at) in tile.shard.iter().zip(coord).filter(|(iter, _)| !iter.extent.is_int(1)) {
            parts.add_iter(&iter.extent, &iter.stride, at)?;
        }
        for (axis, value) in tile.offsets() {
            if axis.name != "m" {
                return None;
            }
            parts.add_offset(&value)?;
        }
        parts.permuted(self)
    }
}

/// An address as whole atoms, what varies within an atom, and a constant.
struct AddressParts {
    analyzer: Analyzer,
    atom: i64,
    whole: Option<PrimExpr>,
    /// The whole atoms, counted.
    atoms: Option<PrimExpr>,
    within: Option<PrimExpr>,
    /// The most that `within` can be.
    within_max: i64,
    constant: i64,
}

impl AddressParts {
    fn new(atom: i64) -> AddressParts {
        let analyzer = Analyzer::new();
        AddressParts { analyzer, atom, whole: None, atoms: None, within: None, within_max: 0, constant: 0 }
    }

    /// `at * stride`, for `at` below `extent`.
    fn add_iter(&mut self, extent: &PrimExpr, stride: &PrimExpr, at: &PrimExpr) -> Option<()> {
        let step = self.analyzer.simplify(stride).as_int().filter(|step| *step >= 0)?;
        let term = self.analyzer.simplify(&(at * stride));
        if let Some(value) = term.as_int() {
            return self.add_constant(value);
        }
        if let Some(atoms) = self.in_atoms(&term) {
            self.add_whole(term, atoms);
            return Some(());
        }
        let extent = self.analyzer.simplify(extent).as_int().filter(|extent| *extent > 0)?;
        let most = (extent - 1).checked_mul(step)?;
        if most >= self.atom && (1..self.atom).contains(&step) && self.atom % step == 0 {
            // The term runs through several atoms: its quotient counts them, its remainder stays within one.
            let per_atom = self.atom / step;
            let atoms = self.analyzer.simplify(&prim::floordiv(at, like(at, per_atom)));
            let within = self.analyzer.simplify(&(prim::floormod(at, like(at, per_atom)) * stride));
            let whole = self.analyzer.simplify(&(&atoms * like(&atoms, self.atom)));
            self.add_whole(whole, atoms);
            return self.add_within(within, (extent.min(per_atom) - 1).checked_mul(step)?);
        }
        self.add_within(term, most)
    }

    /// Terms of an offset, each by itself.
    fn add_offset(&mut self, value: &PrimExpr) -> Option<()> {
        let value = self.analyzer.simplify(value);
        if let Some(value) = value.as_int() {
            return self.add_constant(value);
        }
        if let PrimExpr::Binary(sum) = &value {
            match (sum.op, sum.b.as_int()) {
                (BinaryOp::Add, _) => {
                    self.add_offset(&sum.a)?;
                    return self.add_offset(&sum.b);
                }
                (BinaryOp::Sub, Some(less)) => {
                    self.add_offset(&sum.a)?;
                    self.constant = self.constant.checked_sub(less)?;
                    return Some(());
                }
                _ => {}
            }
        }
        if let Some(atoms) = self.in_atoms(&value) {
            self.add_whole(value, atoms);
            return Some(());
        }
        let bounds = self.analyzer.bounds(&value);
        let most = bounds.max.filter(|_| bounds.min.is_some_and(|least| least >= 0))?;
        self.add_within(value, most)
    }

    fn add_constant(&mut self, value: i64) -> Option<()> {
        self.constant = self.constant.checked_add(value)?;
        Some(())
    }

    fn add_whole(&mut self, term: PrimExpr, atoms: PrimExpr) {
        self.whole = Some(self.sum(self.whole.clone(), term));
        self.atoms = Some(self.sum(self.atoms.clone(), atoms));
    }

    fn add_within(&mut self, term: PrimExpr, most: i64) -> Option<()> {
        let most = self.within_max.checked_add(most).filter(|most| (0..self.atom).contains(most))?;
        self.within_max = most;
        self.within = Some(self.sum(self.within.clone(), term));
        Some(())
    }

    fn sum(&mut self, sum: Option<PrimExpr>, term: PrimExpr) -> PrimExpr {
        match sum {
            Some(sum) => self.analyzer.simplify(&(sum + term)),
            None => term,
        }
    }

    /// How many atoms a term is, where it is whole ones.
    fn in_atoms(&mut self, term: &PrimExpr) -> Option<PrimExpr> {
        if let PrimExpr::Binary(product) = term
            && product.op == BinaryOp::Mul
        {
            let (factor, of) = match (product.a.as_int(), product.b.as_int()) {
                (_, Some(factor)) => (factor, &product.a),
                (Some(factor), _) => (factor, &product.b),
                _ => return self.proved_in_atoms(term),
            };
            if factor >= 0 && factor % self.atom == 0 {
                return Some(self.analyzer.simplify(&(of * like(of, factor / self.atom))));
            }
        }
        self.proved_in_atoms(term)
    }

    fn proved_in_atoms(&mut self, term: &PrimExpr) -> Option<PrimExpr> {
        let whole = self.analyzer.can_prove(&prim::eq(prim::floormod(term, like(term, self.atom)), 0));
        whole.then(|| self.analyzer.simplify(&prim::floordiv(term, like(term, self.atom))))
    }

    fn permuted(mut self, by: &ComposeLayout) -> Option<PrimExpr> {
        if self.constant < 0 {
            return None;
        }
        let constant_within = self.constant % self.atom;
        let constant_whole = self.constant - constant_within;
        let typed = [&self.whole, &self.within].into_iter().flatten().next().cloned();
        let typed = typed.unwrap_or_else(|| prim::int_of(relaxide_ffi::DataType::int(32), 0));
        if constant_whole != 0 {
            let atoms = (constant_whole / self.atom) & by.inner_mask;
            self.whole = Some(self.sum(self.whole.clone(), like(&typed, constant_whole)));
            if atoms != 0 {
                self.atoms = Some(self.sum(self.atoms.clone(), like(&typed, atoms)));
            }
        }
        // A constant below every bit that varies is added by setting its bits, and only then.
        let lowest = constant_within & constant_within.wrapping_neg();
        let carries = constant_within != 0 && self.within_max != 0 && self.within_max >= lowest;
        if carries || self.within_max + constant_within >= self.atom {
            return None;
        }
        let or_zero = |part: Option<PrimExpr>| part.unwrap_or_else(|| like(&typed, 0));
        let phase = bits(Bits::And, or_zero(self.atoms), by.inner_mask);
        let within = bits_of(Bits::Xor, or_zero(self.within), bits(Bits::Left, phase, by.per_element));
        let base = self.analyzer.simplify(&(or_zero(self.whole) + within));
        match constant_within {
            0 => Some(base),
            constant => Some(self.analyzer.simplify(&bits(Bits::Xor, base, constant))),
        }
    }
}

/// The address among places; an error where they are anything else.
fn address(places: Places) -> Result<PrimExpr, LayoutError> {
    match <[_; 1]>::try_from(places) {
        Ok([(axis, value)]) if axis.name == "m" => Ok(value),
        Ok([(axis, _)]) => Err(LayoutError::NoAddress { axes: axis.name.clone() }),
        Err(places) => {
            let names: Vec<_> = places.iter().map(|(axis, _)| axis.name.as_str()).collect();
            Err(LayoutError::NoAddress { axes: names.join(", ") })
        }
    }
}

#[derive(Clone, Copy)]
enum Bits {
    And,
    Xor,
    Left,
    Right,
}

/// An operation on bits with a constant.
fn bits(op: Bits, a: PrimExpr, b: i64) -> PrimExpr {
    let b = like(&a, b);
    bits_of(op, a, b)
}

fn bits_of(op: Bits, a: PrimExpr, b: PrimExpr) -> PrimExpr {
    if let (Some(x), Some(y)) = (a.as_int(), b.as_int()) {
        let value = match op {
            Bits::And => Some(x & y),
            Bits::Xor => Some(x ^ y),
            Bits::Left => u32::try_from(y).ok().and_then(|y| 1i64.checked_shl(y)).and_then(|y| x.checked_mul(y)),
            Bits::Right => u32::try_from(y).ok().and_then(|y| x.checked_shr(y)),
        };
        if let Some(value) = value.filter(|value| prim::holds(a.dtype(), *value)) {
            return prim::int_of(a.dtype(), value);
        }
    }
    let name = match op {
        Bits::And => "tirx.bitwise_and",
        Bits::Xor => "tirx.bitwise_xor",
        Bits::Left => "tirx.shift_left",
        Bits::Right => "tirx.shift_right",
    };
    let (a, b) = prim::promote(a, b);
    prim::call(a.dtype(), name, vec![a, b])
}
