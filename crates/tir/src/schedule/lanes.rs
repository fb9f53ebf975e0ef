//! Scalar expressions as vectors along one axis.
//!
//! A rule that has chosen its vector axis asks [`Lanes`] for the vector of an expression at `x, x+1, …`:
//!
//! ```text
//! max(A[i, x] * s[i], 0)   at x = base, 8 lanes   ->   max(A'[ramp(i*W + base, 1, 8)] * s[i], 0)
//! ```
//!
//! What does not depend on the axis stays scalar and is broadcast where it meets a vector. Every vector access goes to a
//! flat *view* of its buffer (same memory, one dimension), with one index vector: a ramp of stride one where the access is
//! contiguous, a strided ramp where it is linear, else a gather. A lazy `if_then_else` becomes a choice of two vectors whose
//! loads are predicated by the condition, so that no lane touches what the scalar program would not.
//!
//! With a [`Mask`], only the first lanes count: loads of the others are predicated off and read as zero. The lanes that do
//! not count hold arbitrary values; the store must be masked too.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::prim::{
    BinaryOp, BufferLoad, Let, PrimCall, PrimExpr, PrimMutator, PrimVisitor, VarMap, add, binary, broadcast, call,
    cast, int, int_of, lt, mul, not, ramp, select, substitute,
};
use relaxide_ir::{Buffer, DataType, Var};

use super::Refusal;
use super::affine::{flat_index, linear};
use super::nest::Tail;
use crate::{BufferStore, Stmt};

/// Flat views of buffers, one each.
#[derive(Default, Debug)]
pub struct Views(HashMap<Ref<Var>, Ref<Buffer>>);

impl Views {
    /// The one-dimensional view of a compact buffer's memory; the buffer itself if it has one dimension.
    pub fn flat(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        if buffer.ndim() == 1 {
            return buffer.clone();
        }
        let make = || view(buffer, vec![buffer.num_elements()]);
        self.0.entry(buffer.data.clone()).or_insert_with(make).clone()
    }
}

/// Another shape over a buffer's memory.
pub fn view(buffer: &Buffer, shape: Vec<PrimExpr>) -> Ref<Buffer> {
    Ref::new(Buffer {
        name: buffer.name.clone(),
        data: buffer.data.clone(),
        dtype: buffer.dtype,
        shape,
        strides: Vec::new(),
        elem_offset: int(0),
        scope: buffer.scope.clone(),
        alignment: buffer.alignment,
        offset_factor: 1,
        layout: relaxide_ir::layout::Placement::Strided,
        producer: None,
    })
}

/// The lanes that count: the first `count`.
#[derive(Clone, Debug)]
pub struct Mask {
    count: PrimExpr,
}

impl Mask {
    /// The first `count` lanes, a scalar integer.
    pub fn first(count: impl Into<PrimExpr>) -> Mask {
        Mask { count: count.into() }
    }

    /// As a vector of bools.
    pub fn vector(&self, lanes: i64) -> PrimExpr {
        let count = cast(DataType::int(32), self.count.clone());
        lt(ramp(int_of(DataType::int(32), 0), int_of(DataType::int(32), 1), lanes), broadcast(count, lanes))
    }
}

/// Makes vectors along one axis.
pub struct Lanes<'a> {
    views: &'a mut Views,
    map: VarMap,
    axis: Ref<Var>,
    base: PrimExpr,
    lanes: i64,
    guard: Option<PrimExpr>,
    refusal: Option<Refusal>,
}

impl<'a> Lanes<'a> {
    /// Vectors of `lanes` at `axis = base, base + 1, …`; other variables are replaced as `map` says.
    pub fn new(
        views: &'a mut Views,
        axis: &Ref<Var>,
        base: impl Into<PrimExpr>,
        lanes: i64,
        mask: Option<&Mask>,
        map: &VarMap,
    ) -> Lanes<'a> {
        let base = base.into();
        let guard = mask.map(|m| m.vector(lanes));
        Lanes { views, map: map.clone(), axis: axis.clone(), base, lanes, guard, refusal: None }
    }

    /// The vector of an expression; a scalar where it does not depend on the axis.
    pub fn value(mut self, e: &PrimExpr) -> Result<PrimExpr, Refusal> {
        let value = self.visit(e);
        match self.refusal {
            Some(refusal) => Err(refusal),
            None => Ok(value),
        }
    }

    /// As [`Lanes::value`], broadcast if it is a scalar.
    pub fn vector(self, e: &PrimExpr) -> Result<PrimExpr, Refusal> {
        let lanes = self.lanes;
        Ok(splat(self.value(e)?, lanes))
    }

    /// The store of an expression's vector, in the lanes that count.
    pub fn store(self, buffer: &Ref<Buffer>, indices: &[PrimExpr], value: &PrimExpr) -> Result<Stmt, Refusal> {
        let guard = self.guard.clone();
        self.store_where(buffer, indices, value, guard)
    }

    /// The store of an expression's vector, as rows end.
    pub fn store_row(
        self,
        tail: Tail,
        buffer: &Ref<Buffer>,
        indices: &[PrimExpr],
        value: &PrimExpr,
    ) -> Result<Stmt, Refusal> {
        match tail {
            Tail::Padded => self.store_where(buffer, indices, value, None),
            Tail::Masked | Tail::Overlapped => self.store(buffer, indices, value),
        }
    }

    fn store_where(
        mut self,
        buffer: &Ref<Buffer>,
        indices: &[PrimExpr],
        value: &PrimExpr,
        predicate: Option<PrimExpr>,
    ) -> Result<Stmt, Refusal> {
        let vector = self.visit(value);
        let indices = self.indices(buffer, indices);
        let buffer = self.views.flat(buffer);
        match self.refusal {
            Some(refusal) => Err(refusal),
            None => {
                let value = splat(vector, self.lanes);
                let indices = vec![splat(indices, self.lanes)];
                Ok(Ref::new(BufferStore { buffer, value, indices, predicate }).into())
            }
        }
    }

    fn refuse(&mut self, reason: impl Into<String>) {
        self.refusal.get_or_insert_with(|| Refusal::new(reason));
    }

    fn visit(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Int(_) | PrimExpr::Float(_) | PrimExpr::Str(_) => e.clone(),
            PrimExpr::Var(var) if *var == self.axis => ramp(self.base.clone(), int_of(var.dtype(), 1), self.lanes),
            PrimExpr::Var(var) => self.map.get(var).cloned().unwrap_or_else(|| e.clone()),
            PrimExpr::Cast(n) => {
                let value = self.visit(&n.value);
                cast(n.dtype.with_lanes(value.dtype().lanes), value)
            }
            PrimExpr::Binary(n) => {
                let (a, b) = (self.visit(&n.a), self.visit(&n.b));
                binary(n.op, a, b)
            }
            PrimExpr::Not(n) => not(self.visit(&n.a)),
            PrimExpr::Select(n) => {
                let condition = self.visit(&n.condition);
                let (t, f) = (self.visit(&n.true_value), self.visit(&n.false_value));
                self.choose(condition, t, f)
            }
            PrimExpr::Let(n) => self.visit_let(n),
            PrimExpr::Ramp(_) | PrimExpr::Broadcast(_) => {
                self.refuse("the body has vectors already");
                e.clone()
            }
            PrimExpr::Load(n) => self.visit_load(n),
            PrimExpr::Call(n) if n.op == "tirx.if_then_else" && n.args.len() == 3 => self.visit_lazy(n),
            PrimExpr::Call(n) => self.visit_call(n),
        }
    }

    fn visit_let(&mut self, n: &Let) -> PrimExpr {
        let value = self.visit(&n.value);
        let var = Var::prim(n.var.name.clone(), value.dtype());
        self.map.insert(n.var.clone(), PrimExpr::from(&var));
        let body = self.visit(&n.body);
        self.map.remove(&n.var);
        Ref::new(Let { var, value, body }).into()
    }

    /// An index that is held against its extent: a scalar where it is the same for all lanes, which then must be right for one.
    fn visit_checked(&mut self, n: &PrimCall) -> PrimExpr {
        let [index, extent, what, shown] = &n.args[..] else {
            self.refuse("a checked index has a predicate already");
            return call(n.dtype, n.op.clone(), n.args.clone());
        };
        let (index, extent, shown) = (self.visit(index), self.visit(extent), self.visit(shown));
        if extent.dtype().lanes > 1 {
            self.refuse("the extent that an index is checked against differs between lanes");
        }
        let guarded = self.guard.as_ref().is_some_and(|g| g.dtype().lanes > 1) && self.in_lazy_side();
        let lanes = if guarded || index.dtype().lanes > 1 { self.lanes } else { 1 };
        if lanes == 1 {
            return call(n.dtype, n.op.clone(), vec![index, extent, what.clone(), shown]);
        }
        let mut args = vec![splat(index, lanes), extent, what.clone(), splat(shown, lanes)];
        args.extend(self.guard.clone().map(|guard| splat(guard, lanes)));
        call(n.dtype.with_lanes(self.lanes as u16), n.op.clone(), args)
    }

    fn visit_call(&mut self, n: &PrimCall) -> PrimExpr {
        if n.op == "tirx.checked_index" {
            return self.visit_checked(n);
        }
        let args: Vec<PrimExpr> = n.args.iter().map(|a| self.visit(a)).collect();
        if args.iter().all(|a| a.dtype().lanes <= 1) {
            return call(n.dtype, n.op.clone(), args);
        }
        if !is_lanewise(&n.op) {
            self.refuse(format!("{} has no vector form", n.op));
        }
        let args = args.into_iter().map(|a| splat(a, self.lanes)).collect();
        call(n.dtype.with_lanes(self.lanes as u16), n.op.clone(), args)
    }

    /// A lazy choice: lazy still where the condition and both sides are scalars.
    fn visit_lazy(&mut self, n: &PrimCall) -> PrimExpr {
        let condition = self.visit(&n.args[0]);
        let outer = self.guard.clone();
        let side = |this: &mut Self, e: &PrimExpr, condition: PrimExpr| {
            let condition = splat(condition, this.lanes);
            this.guard = Some(match &outer {
                Some(outer) => binary(BinaryOp::And, outer.clone(), condition),
                None => condition,
            });
            let value = this.visit(e);
            this.guard = outer.clone();
            value
        };
        let t = side(self, &n.args[1], condition.clone());
        let f = side(self, &n.args[2], not(condition.clone()));
        let scalar = [&condition, &t, &f].iter().all(|e| e.dtype().lanes <= 1);
        if scalar {
            return call(n.dtype, n.op.clone(), vec![condition, t, f]);
        }
        // A load that is predicated by just this condition reads zero elsewhere: no choice is left to make.
        if let PrimExpr::Load(l) = &t
            && is_zero(&f)
            && l.predicate.is_some()
        {
            return t;
        }
        self.choose(condition, t, f)
    }

    fn choose(&mut self, condition: PrimExpr, t: PrimExpr, f: PrimExpr) -> PrimExpr {
        let lanes = [&condition, &t, &f].iter().map(|e| e.dtype().lanes).max().unwrap_or(1);
        let wide = |e: PrimExpr| splat(e, i64::from(lanes));
        select(wide(condition), wide(t), wide(f))
    }

    fn visit_load(&mut self, n: &BufferLoad) -> PrimExpr {
        if n.predicate.is_some() {
            self.refuse("a load has a predicate already");
        }
        let index = self.indices(&n.buffer, &n.indices);
        let guarded_by_vector = self.guard.as_ref().is_some_and(|g| g.dtype().lanes > 1);
        if index.dtype().lanes <= 1 {
            let scalar: Vec<PrimExpr> = n.indices.iter().map(|i| substitute(i, &self.map)).collect();
            // Under a lazy condition that differs by lane the scalar may be out of reach for all of them.
            if !(guarded_by_vector && self.in_lazy_side()) {
                return Ref::new(BufferLoad { buffer: n.buffer.clone(), indices: scalar, predicate: None }).into();
            }
        }
        let buffer = self.views.flat(&n.buffer);
        let indices = vec![splat(index, self.lanes)];
        Ref::new(BufferLoad { buffer, indices, predicate: self.guard.clone() }).into()
    }

    /// Whether the guard is more than the mask of the counting lanes.
    fn in_lazy_side(&self) -> bool {
        !matches!(&self.guard, Some(PrimExpr::Binary(b)) if b.op == BinaryOp::Lt && matches!(b.a, PrimExpr::Ramp(_)))
    }

    /// The flat index of an access: a scalar if it does not move with the axis, a ramp if it moves linearly.
    fn indices(&mut self, buffer: &Buffer, indices: &[PrimExpr]) -> PrimExpr {
        let flat = flat_index(buffer, indices);
        // Names that hold vectors (of an enclosing `let`) make any index a gather.
        let plain =
            !super::affine::uses_any(&flat, self.map.iter().filter(|(_, e)| e.dtype().lanes > 1).map(|(v, _)| v));
        // What only some lanes ask for is checked for these alone.
        let plain = plain && !(self.guard.is_some() && self.in_lazy_side() && is_checked(&flat));
        match linear(&flat, &self.axis) {
            Some((coefficient, _)) if plain => {
                let mut at_base = self.map.clone();
                at_base.insert(self.axis.clone(), self.base.clone());
                let first = at_base.mutate_prim(&flat);
                if coefficient.is_int(0) { first } else { ramp(first, substitute(&coefficient, &self.map), self.lanes) }
            }
            _ => self.visit(&flat),
        }
    }
}

/// Whether an index is checked in it.
fn is_checked(e: &PrimExpr) -> bool {
    struct Search(bool);
    impl PrimVisitor for Search {
        fn visit_prim(&mut self, e: &PrimExpr) {
            self.0 |= matches!(e, PrimExpr::Call(n) if n.op == "tirx.checked_index");
            self.walk_prim(e);
        }
    }
    let mut search = Search(false);
    search.visit_prim(e);
    search.0
}

/// A scalar in every lane; a vector as it is.
pub fn splat(e: PrimExpr, lanes: i64) -> PrimExpr {
    if e.dtype().lanes > 1 { e } else { broadcast(e, lanes) }
}

fn is_zero(e: &PrimExpr) -> bool {
    match e {
        PrimExpr::Int(imm) => imm.value == 0,
        PrimExpr::Float(imm) => imm.value == 0.0 && imm.value.is_sign_positive(),
        PrimExpr::Broadcast(b) => is_zero(&b.value),
        _ => false,
    }
}

/// Whether an intrinsic works lane by lane.
pub fn is_lanewise(op: &str) -> bool {
    const LANEWISE: [&str; 43] = [
        "exp",
        "exp_nonpositive",
        "exp2",
        "exp10",
        "log",
        "log2",
        "log10",
        "log1p",
        "sqrt",
        "rsqrt",
        "tanh",
        "sigmoid",
        "erf",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "asinh",
        "acosh",
        "atanh",
        "atan2",
        "pow",
        "floor",
        "ceil",
        "round",
        "trunc",
        "fabs",
        "fma",
        "isnan",
        "isinf",
        "isfinite",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "bitwise_not",
        "shift_left",
        "shift_right",
        "dot_bytes",
        "dot_pairs",
    ];
    op.strip_prefix("tirx.").is_some_and(|name| LANEWISE.contains(&name))
}

/// `a * b + c`, as one instruction where the machine has it and the type is floating.
pub fn multiply_add(fused: bool, a: PrimExpr, b: PrimExpr, c: PrimExpr) -> PrimExpr {
    let dtype = c.dtype();
    if fused && dtype.is_float() && dtype.bits >= 32 {
        return call(dtype, "tirx.fma", vec![a, b, c]);
    }
    add(c, mul(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use relaxide_ir::prim::{if_then_else, load};

    fn matrix() -> (Ref<Buffer>, Ref<Var>, Ref<Var>) {
        let width = Var::dim("w");
        (Buffer::new("A", DataType::float(32), [int(4), PrimExpr::from(&width)]), Var::dim("i"), Var::dim("x"))
    }

    fn lanes_of(e: &PrimExpr, axis: &Ref<Var>) -> PrimExpr {
        let mut views = Views::default();
        Lanes::new(&mut views, axis, int(16), 8, None, &VarMap::new()).value(e).expect("vectorizes")
    }

    #[test]
    fn a_row_access_is_a_ramp_of_stride_one() {
        let (a, i, x) = matrix();
        let PrimExpr::Load(load) = lanes_of(&load(&a, [&i, &x]), &x) else { panic!("a load") };
        let PrimExpr::Ramp(index) = &load.indices[0] else { panic!("a ramp") };
        assert!(index.stride.is_int(1) && index.lanes == 8);
    }

    #[test]
    fn a_column_access_has_the_row_length_as_stride() {
        let (a, i, x) = matrix();
        let PrimExpr::Load(load) = lanes_of(&load(&a, [&x, &i]), &x) else { panic!("a load") };
        let PrimExpr::Ramp(index) = &load.indices[0] else { panic!("a ramp") };
        assert_eq!(index.stride, a.shape[1]);
    }

    #[test]
    fn an_access_that_does_not_move_stays_scalar() {
        let (a, i, x) = matrix();
        assert_eq!(lanes_of(&load(&a, [&i, &i]), &x).dtype().lanes, 1);
    }

    #[test]
    fn a_guarded_load_with_zero_elsewhere_is_a_predicated_load() {
        let (a, i, x) = matrix();
        let guarded = if_then_else(lt(PrimExpr::from(&x), int(3)), load(&a, [&i, &x]), int(0));
        let PrimExpr::Load(load) = lanes_of(&guarded, &x) else { panic!("a load") };
        assert!(load.predicate.is_some());
    }

    #[test]
    fn packed_calls_are_refused() {
        let (_, _, x) = matrix();
        let e = call(DataType::float(32), "tirx.call_packed", vec![PrimExpr::from(&x)]);
        let mut views = Views::default();
        assert!(Lanes::new(&mut views, &x, int(0), 8, None, &VarMap::new()).value(&e).is_err());
    }
}
