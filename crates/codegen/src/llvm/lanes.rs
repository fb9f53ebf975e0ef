//! What is done to the lanes of a vector one after the other.
//!
//! Lanes whose number is known are taken out of the vector. Those of a scalable vector go through memory, in a loop.

use relaxide_ir::BinaryOp;

use super::{
    function::FunctionText,
    value::{Overflow, Ty, Val},
};

/// The alignment of a scalable vector on the stack.
const ALIGNMENT: u64 = 16;

impl FunctionText<'_> {
    /// The vector of what `apply` gives for each lane of some vectors; of scalars, what it gives for them.
    pub fn by_lane(&mut self, vectors: &[&Val], element: Ty, mut apply: impl FnMut(&mut Self, &[Val]) -> Val) -> Val {
        let Some(first) = vectors.first() else { return Val::zero(element) };
        if !first.ty.is_scalable() {
            let lanes: Vec<Val> = (0..first.ty.lanes)
                .map(|at| {
                    let parts: Vec<Val> = vectors.iter().map(|vector| self.lane(vector, at)).collect();
                    apply(self, &parts)
                })
                .collect();
            return self.gather_lanes(&lanes);
        }
        let result = element.with_lanes(first.ty.lanes);
        let slot = self.stack_slot(result, 1, ALIGNMENT);
        self.each_scalable_lane(vectors, |this, parts, at| {
            let value = apply(this, parts);
            let place = this.emit(Ty::PTR, format_args!("getelementptr inbounds {element}, {slot}, {at}"));
            this.effect(format_args!("store {value}, {place}"));
        });
        self.emit(result, format_args!("load {result}, {slot}, align {ALIGNMENT}"))
    }

    /// All lanes of a scalable vector as one number, from the first on.
    pub fn fold_scalable(&mut self, op: BinaryOp, vector: &Val) -> Val {
        let element = vector.ty.element();
        let slot = self.stack_slot(element, 1, ALIGNMENT);
        let first = self.lane(vector, 0);
        self.effect(format_args!("store {first}, {slot}"));
        self.each_scalable_lane(&[vector], |this, parts, at| {
            let so_far = this.emit(element, format_args!("load {element}, {slot}"));
            let with = this.binary(op, &so_far, &parts[0], Overflow::Wraps);
            let is_first = this.icmp("eq", at, &Val::int(Ty::I64, 0));
            let all = this.select(&is_first, &so_far, &with);
            this.effect(format_args!("store {all}, {slot}"));
        });
        self.emit(element, format_args!("load {element}, {slot}"))
    }

    /// How many lanes a vector has.
    fn count_lanes(&mut self, ty: Ty) -> Val {
        let vscale = self.intrinsic("vscale", Ty::I64, Ty::I64, &[]);
        self.op("mul", &vscale, &Val::int(Ty::I64, i64::from(ty.least_lanes())))
    }

    /// A loop over the lanes of scalable vectors, of which there is at least one.
    fn each_scalable_lane(&mut self, vectors: &[&Val], mut body: impl FnMut(&mut Self, &[Val], &Val)) {
        let Some(first) = vectors.first() else { return };
        let count = self.count_lanes(first.ty);
        let slots: Vec<Val> = vectors
            .iter()
            .map(|vector| {
                let slot = self.stack_slot(vector.ty, 1, ALIGNMENT);
                self.effect(format_args!("store {vector}, {slot}, align {ALIGNMENT}"));
                slot
            })
            .collect();
        let (before, head, latch, done) = (self.current(), self.label(), self.label(), self.label());
        self.branch(head);
        self.start(head);
        let at = self.loop_phi(&Val::int(Ty::I64, 0), before, latch);
        let parts: Vec<Val> = vectors
            .iter()
            .zip(&slots)
            .map(|(vector, slot)| {
                let element = vector.ty.element();
                let place = self.emit(Ty::PTR, format_args!("getelementptr inbounds {element}, {slot}, {at}"));
                self.emit(element, format_args!("load {element}, {place}"))
            })
            .collect();
        body(self, &parts, &at);
        self.branch(latch);
        self.start(latch);
        self.loop_step(&at, format_args!("add {at}, 1"));
        let more = self.emit(Ty::BOOL, format_args!("icmp ult i64 {}.next, {}", at.text, count.text));
        self.branch_if(&more, head, done);
        self.start(done);
    }
}
