//! The statements by which the threads of a group combine values.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{Attrs, Buffer, Var};

use super::{INDEX, Machine};
use crate::stmt::*;

/// What is combined, and by whom.
pub(super) struct Exchange<'a> {
    pub machine: Machine,
    pub reducer: &'a CommReducer,
    pub values: &'a [PrimExpr],
    /// Whether a thread's values count.
    pub condition: &'a PrimExpr,
    /// The number of a thread in its group, and how many threads a group has.
    pub member: PrimExpr,
    pub members: i64,
    /// The number of a thread's group, and how many groups there are.
    pub group: PrimExpr,
    pub groups: i64,
}

/// Statements, the buffers of the results, which are to be allocated, and the element that has them.
type Built = (Vec<Stmt>, Vec<Ref<AllocBuffer>>, PrimExpr);

fn index(value: i64) -> PrimExpr {
    prim::int_of(INDEX, value)
}

fn simple(e: PrimExpr) -> PrimExpr {
    Analyzer::new().simplify(&e)
}

impl Exchange<'_> {
    pub(super) fn build(&self, side_by_side: bool) -> Built {
        match self.machine.warp.filter(|_| side_by_side && self.has_words()) {
            Some(warp) if self.members <= warp && warp % self.members == 0 => self.within_warp(warp),
            Some(warp) if self.members % warp == 0 && self.members <= warp * warp => self.over_warps(warp),
            _ => self.through_memory(),
        }
    }

    /// Whether all values have 32 bits, which is what threads exchange.
    fn has_words(&self) -> bool {
        self.types().all(|dtype| dtype.bits == 32 && dtype.lanes == 1)
    }

    fn types(&self) -> impl Iterator<Item = DataType> {
        self.reducer.identity_element.iter().map(PrimExpr::dtype)
    }

    /// A buffer for each value.
    fn buffers(&self, name: &str, elements: i64, scope: &str) -> Vec<Ref<AllocBuffer>> {
        let shared = scope == "shared";
        let several = self.reducer.result.len() > 1;
        let make = |(number, dtype): (usize, DataType)| {
            let name = if several { format!("{name}_{number}") } else { name.to_string() };
            let buffer: Ref<Buffer> = Buffer::scoped(name, dtype, [index(elements)], scope);
            let annotations = match shared && self.machine.volatile {
                true => Attrs::new().with("tirx.volatile", true),
                false => Attrs::new(),
            };
            Ref::new(AllocBuffer { buffer, annotations })
        };
        self.types().enumerate().map(make).collect()
    }

    /// The values of a thread, or what changes nothing where they do not count.
    fn own_values(&self) -> Vec<PrimExpr> {
        let pairs = self.values.iter().zip(&self.reducer.identity_element);
        pairs
            .map(|(value, identity)| prim::if_then_else(self.condition.clone(), value.clone(), identity.clone()))
            .collect()
    }

    /// Stores values that were all computed before the first is stored.
    fn store(&self, buffers: &[Ref<AllocBuffer>], at: &PrimExpr, values: Vec<PrimExpr>) -> Vec<Stmt> {
        let store = |(n, value): (&Ref<AllocBuffer>, PrimExpr)| Stmt::store(&n.buffer, [at.clone()], value);
        if values.len() == 1 {
            return buffers.iter().zip(values).map(store).collect();
        }
        let vars: Vec<Ref<Var>> = self.types().map(|dtype| Var::prim("combined", dtype)).collect();
        let binds = vars.iter().zip(values).map(|(var, value)| Stmt::bind(var.clone(), value));
        let stores = buffers.iter().zip(vars.iter().map(PrimExpr::from)).map(store);
        binds.chain(stores).collect::<Vec<_>>()
    }

    fn loads(buffers: &[Ref<AllocBuffer>], at: &PrimExpr) -> Vec<PrimExpr> {
        buffers.iter().map(|n| prim::load(&n.buffer, [at.clone()])).collect()
    }

    /// Combines what `lanes` threads side by side have in `red`: the first of them has it all then.
    fn shuffle_down(
        &self,
        red: &[Ref<AllocBuffer>],
        other: &[Ref<AllocBuffer>],
        mask: &PrimExpr,
        warp: i64,
        lanes: i64,
    ) -> Vec<Stmt> {
        let zero = index(0);
        let mut stmts = Vec::new();
        let mut places = lanes / 2;
        while places > 0 {
            for (n, to) in red.iter().zip(other) {
                let args =
                    vec![mask.clone(), prim::load(&n.buffer, [zero.clone()]), index(places), index(warp), index(warp)];
                let taken = prim::call(n.buffer.dtype, "tirx.tvm_warp_shuffle_down", args);
                stmts.push(Stmt::store(&to.buffer, [zero.clone()], taken));
            }
            let combined = self.reducer.combine(&Self::loads(red, &zero), &Self::loads(other, &zero));
            stmts.extend(self.store(red, &zero, combined));
            places /= 2;
        }
        stmts
    }

    /// Which threads take part, as statements and as a value.
    fn mask(&self) -> (Vec<Stmt>, PrimExpr) {
        if !self.machine.masks {
            return (Vec::new(), index(0));
        }
        let word = DataType::uint(32);
        let mask = Buffer::scoped("mask", word, [index(1)], "local");
        let active = prim::call(word, "tirx.tvm_warp_activemask", Vec::new());
        let set = Stmt::store(&mask, [index(0)], active);
        (vec![Stmt::alloc(&mask), set], prim::load(&mask, [index(0)]))
    }

    fn within_warp(&self, warp: i64) -> Built {
        let (red, zero) = (self.buffers("red_buf", 1, "local"), index(0));
        let other = self.buffers("t", 1, "local");
        let (mut stmts, mask) = self.mask();
        stmts.extend(other.iter().cloned().map(Stmt::Alloc));
        stmts.extend(self.store(&red, &zero, self.own_values()));
        stmts.extend(self.shuffle_down(&red, &other, &mask, warp, self.members));
        let first = simple(prim::floormod(&self.group * index(self.members), index(warp)));
        for n in &red {
            let args =
                vec![mask.clone(), prim::load(&n.buffer, [zero.clone()]), first.clone(), index(warp), index(warp)];
            let taken = prim::call(n.buffer.dtype, "tirx.tvm_warp_shuffle", args);
            stmts.push(Stmt::store(&n.buffer, [zero.clone()], taken));
        }
        (stmts, red, zero)
    }

    fn over_warps(&self, warp: i64) -> Built {
        let (warps, zero) = (self.members / warp, index(0));
        let (red, other) = (self.buffers("red_buf", 1, "local"), self.buffers("t", 1, "local"));
        let staging = self.buffers("red_buf_staging", self.groups * warps, "shared");
        let result = self.buffers("red_result", self.groups, "shared");
        let (mut stmts, mask) = self.mask();
        stmts.extend(red.iter().chain(&other).chain(&staging).cloned().map(Stmt::Alloc));
        stmts.extend(self.store(&red, &zero, self.own_values()));
        stmts.extend(self.shuffle_down(&red, &other, &mask, warp, warp));
        let staged = |number: PrimExpr| simple(&self.group * index(warps) + number);
        let is_first = simple(prim::eq(prim::floormod(&self.member, index(warp)), index(0)));
        let own = staged(prim::floordiv(&self.member, index(warp)));
        stmts.push(Stmt::when(is_first, Stmt::seq(self.store(&staging, &own, Self::loads(&red, &zero)))));
        stmts.push(Stmt::barrier());
        let counts = prim::lt(&self.member, index(warps));
        let of_warps = Self::loads(&staging, &staged(self.member.clone()));
        let of_warps = of_warps.into_iter().zip(&self.reducer.identity_element);
        let of_warps = of_warps.map(|(value, identity)| prim::if_then_else(counts.clone(), value, identity.clone()));
        stmts.extend(self.store(&red, &zero, of_warps.collect()));
        let lanes = warps.unsigned_abs().next_power_of_two() as i64;
        stmts.extend(self.shuffle_down(&red, &other, &mask, warp, lanes));
        let is_first = prim::eq(&self.member, index(0));
        stmts.push(Stmt::when(is_first, Stmt::seq(self.store(&result, &self.group, Self::loads(&red, &zero)))));
        stmts.push(Stmt::barrier());
        (stmts, result, self.group.clone())
    }

    fn through_memory(&self) -> Built {
        let red = self.buffers("red_buf", self.groups * self.members, "shared");
        let element = |number: PrimExpr| simple(&self.group * index(self.members) + number);
        let own = element(self.member.clone());
        // What was combined before may still be read.
        let mut stmts = vec![Stmt::barrier()];
        stmts.extend(self.store(&red, &own, self.own_values()));
        stmts.push(Stmt::barrier());
        let mut left = self.members;
        while left > 1 {
            let half = left.unsigned_abs().next_power_of_two() as i64 / 2;
            let others = Self::loads(&red, &element(&self.member + index(half)));
            let combined = self.reducer.combine(&Self::loads(&red, &own), &others);
            let takes = prim::lt(&self.member, index(left - half));
            stmts.push(Stmt::when(takes, Stmt::seq(self.store(&red, &own, combined))));
            stmts.push(Stmt::barrier());
            left = half;
        }
        (stmts, red, element(index(0)))
    }
}
