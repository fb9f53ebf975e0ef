//! What a kernel costs at least: the arithmetic that it does, and the memory that it touches.
//!
//! Both are functions of the dimensions of its buffers and of its scalar parameters, so that one count serves every shape:
//!
//! ```text
//! for i, j, k in T.grid(n, 64, 128):                 operations  n * 64 * 128 * 2
//!     C[i, j] = C[i, j] + A[i, k] * B[k, j]          bytes       4 * (n*128 + 128*64 + n*64)
//! ```
//!
//! *Operations* are those on floating-point data, each of sum, product, minimum and intrinsic (`exp`, `sqrt` …) counted once;
//! index arithmetic, comparisons and conversions are not counted, nor is what sets an element before a reduction. Of a choice
//! the larger side counts. *Bytes* are those of the buffers that the caller hands over, each read or written once: what a cache of any
//! size cannot save. A buffer of which a kernel reads only a part, as a gather does, counts with as many elements as there
//! are reads.
//!
//! What depends on the data (a `while` loop, a loop that ends early, an extent that was read from memory) and what other functions do is unknown, and said
//! to be: a wrong number is worse than none. The kernel is best given in block form, before schedules copy tiles to and fro.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, PrimExpr, PrimVisitor, free_vars};
use relaxide_ir::{Buffer, DataType, Var};

use crate::intrin::Intrinsic;
use crate::{PrimFunc, Stmt};

/// What a kernel costs at least.
#[derive(Clone, Debug)]
pub struct Cost {
    /// Operations on floating-point data, where they can be counted.
    pub operations: Option<PrimExpr>,
    /// Bytes that are read or written, where they can be counted.
    pub bytes: Option<PrimExpr>,
    /// The type that all of the operations are done in; none where there are several, or no operations.
    pub dtype: Option<DataType>,
}

/// Counts what a kernel costs.
pub fn cost(kernel: &PrimFunc) -> Cost {
    let mut count = Count::default();
    count.stmt(&kernel.body, &prim::int(1));
    let buffers: Vec<&Ref<Buffer>> = kernel.buffers.iter().flatten().collect();
    let scalars = kernel.params.iter().zip(&kernel.buffers).filter(|(_, buffer)| buffer.is_none()).map(|(p, _)| p);
    let dims = buffers.iter().flat_map(|buffer| &buffer.shape).flat_map(free_vars);
    let known: HashSet<Ref<Var>> = scalars.cloned().chain(dims).collect();
    let bytes = buffers.iter().try_fold(prim::int(0), |sum, buffer| Some(sum + count.bytes_of(buffer)?));
    let finish = |e: PrimExpr| {
        let mut analyzer = Analyzer::new();
        known.iter().for_each(|var| analyzer.mark_non_negative(var));
        Some(analyzer.simplify(&e)).filter(|e| free_vars(e).iter().all(|var| known.contains(var)))
    };
    Cost {
        operations: Some(count.operations.total()).filter(|_| !count.unknown).and_then(finish),
        bytes: bytes.filter(|_| !count.unknown).and_then(finish),
        dtype: match count.dtypes.as_slice() {
            [only] => Some(*only),
            _ => None,
        },
    }
}

/// A sum of counts. What happens equally often is one term: a value has thousands of operations, and a sum is as deep as it has
/// terms.
#[derive(Clone, Default)]
struct Tally(Vec<(PrimExpr, i64)>);

impl Tally {
    fn add(&mut self, times: &PrimExpr, count: i64) {
        match self.0.last_mut() {
            Some((last, known)) if last == times => *known += count,
            _ => self.0.push((times.clone(), count)),
        }
    }

    fn total(&self) -> PrimExpr {
        self.0.iter().fold(prim::int(0), |sum, (times, count)| sum + times * *count)
    }
}

#[derive(Default)]
struct Count {
    operations: Tally,
    /// How many elements of a buffer are loaded or stored.
    accesses: HashMap<Ref<Buffer>, Tally>,
    dtypes: Vec<DataType>,
    /// Whether something was met that cannot be counted.
    unknown: bool,
}

impl Count {
    /// A statement that is executed so many times.
    fn stmt(&mut self, stmt: &Stmt, times: &PrimExpr) {
        match stmt {
            Stmt::For(n) => self.stmt(&n.body, &(times * wide(&n.extent))),
            Stmt::While(_) => self.unknown = true,
            Stmt::Seq(n) => n.seq.iter().for_each(|s| self.stmt(s, times)),
            Stmt::If(n) => {
                let before = self.operations.clone();
                self.stmt(&n.then_case, times);
                if let Some(other) = &n.else_case {
                    let then = std::mem::replace(&mut self.operations, before);
                    self.stmt(other, times);
                    self.operations = Tally(vec![(prim::max(then.total(), self.operations.total()), 1)]);
                }
            }
            Stmt::Store(n) => {
                self.value(&n.value, times);
                n.indices.iter().for_each(|index| self.value(index, times));
                self.access(&n.buffer, n.value.dtype().lane_count().abs(), times);
            }
            Stmt::Bind(n) => self.value(&n.value, times),
            Stmt::Evaluate(_) if stmt.early_exit().is_some() => self.unknown = true,
            Stmt::Evaluate(n) => self.value(&n.value, times),
            Stmt::Block(n) => self.stmt(&n.block.body, times),
            Stmt::Attr(n) => self.stmt(&n.body, times),
            Stmt::Alloc(_) | Stmt::Assert(_) | Stmt::Decl(_) => {}
            // How many iterations there are is for the data to say.
            Stmt::Break(_) | Stmt::Continue(_) | Stmt::Return(_) => self.unknown = true,
            Stmt::ScopeIds(_) => {}
            Stmt::Tile(_) => self.unknown = true,
        }
    }

    fn value(&mut self, value: &PrimExpr, times: &PrimExpr) {
        let mut inside = Inside::default();
        inside.visit_prim(value);
        self.unknown |= inside.unknown;
        for (dtype, lanes) in inside.operations {
            self.operations.add(times, lanes);
            if !self.dtypes.contains(&dtype) {
                self.dtypes.push(dtype);
            }
        }
        for (buffer, lanes) in inside.loads {
            self.access(&buffer, lanes, times);
        }
    }

    fn access(&mut self, buffer: &Ref<Buffer>, lanes: i64, times: &PrimExpr) {
        self.accesses.entry(buffer.clone()).or_default().add(times, lanes);
    }

    /// The bytes of a buffer that are touched; none where its elements have no size.
    fn bytes_of(&self, buffer: &Ref<Buffer>) -> Option<PrimExpr> {
        let Some(accesses) = self.accesses.get(buffer).map(Tally::total) else { return Some(prim::int(0)) };
        let elements = buffer.shape.iter().fold(prim::int(1), |product, dim| product * wide(dim));
        let bits = i64::from(buffer.dtype.bits) * buffer.dtype.lane_count().abs();
        let touched = match (elements.as_int(), accesses.as_int()) {
            (Some(a), Some(b)) => prim::int(a.min(b)),
            _ if elements == accesses => elements,
            _ => prim::min(elements, accesses),
        };
        match bits {
            0 => None,
            bits if bits % 8 == 0 => Some(touched * (bits / 8)),
            bits => Some(prim::floordiv(touched * bits + 7, 8)),
        }
    }
}

/// Counts are 64 bits wide, whatever the counters of the loops are.
fn wide(e: &PrimExpr) -> PrimExpr {
    match e.as_int() {
        Some(value) => prim::int(value),
        None => prim::cast(DataType::int(64), e),
    }
}

/// What is done to compute one value.
#[derive(Default)]
struct Inside {
    /// Each operation's type of one lane, and its lanes.
    operations: Vec<(DataType, i64)>,
    loads: Vec<(Ref<Buffer>, i64)>,
    unknown: bool,
}

impl Inside {
    fn operation(&mut self, dtype: DataType) {
        if dtype.is_float() {
            self.operations.push((dtype.with_lanes(1), dtype.lane_count().abs()));
        }
    }

    /// Two values of which one is taken: the larger counts.
    fn either(&mut self, a: &PrimExpr, b: &PrimExpr) {
        let [mut a, mut b] = [a, b].map(|side| {
            let mut inside = Inside::default();
            inside.visit_prim(side);
            inside
        });
        let lanes = |inside: &Inside| inside.operations.iter().map(|(_, lanes)| lanes).sum::<i64>();
        let (more, less) = if lanes(&a) >= lanes(&b) { (&mut a, &mut b) } else { (&mut b, &mut a) };
        self.operations.append(&mut more.operations);
        self.loads.append(&mut more.loads);
        self.loads.append(&mut less.loads);
        self.unknown |= a.unknown || b.unknown;
    }
}

impl PrimVisitor for Inside {
    fn visit_prim(&mut self, e: &PrimExpr) {
        match e {
            PrimExpr::Binary(n) => {
                if !n.op.is_comparison() && !n.op.is_logical() {
                    self.operation(n.a.dtype());
                }
                self.walk_prim(e);
            }
            PrimExpr::Select(n) => {
                self.visit_prim(&n.condition);
                self.either(&n.true_value, &n.false_value);
            }
            PrimExpr::Load(n) => {
                self.loads.push((n.buffer.clone(), n.indices.last().map_or(1, |i| i.dtype().lane_count().abs())));
                self.walk_prim(e);
            }
            PrimExpr::Call(n) => match (Intrinsic::of_call(&n.op), n.args.as_slice()) {
                (Some(Intrinsic::IfThenElse), [condition, a, b]) => {
                    self.visit_prim(condition);
                    self.either(a, b);
                }
                (Some(Intrinsic::Fma), _) => {
                    (0..2).for_each(|_| self.operation(n.dtype));
                    self.walk_prim(e);
                }
                (Some(Intrinsic::Reinterpret | Intrinsic::Likely | Intrinsic::OptimizationBarrier), _) => {
                    self.walk_prim(e)
                }
                (Some(intrinsic), args) if intrinsic.is_elementwise() => {
                    // Those without arguments are constants.
                    if !args.is_empty() {
                        self.operation(n.dtype);
                    }
                    self.walk_prim(e);
                }
                // What another function does is not known here.
                _ => self.unknown = true,
            },
            _ => self.walk_prim(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use relaxide_ir::prim::{VarMap, substitute};

    use super::*;
    use crate::te::{compute, create_prim_func, placeholder, reduce_axis, sum};

    const F32: DataType = DataType::float(32);

    /// A formula's value where every variable is `n`.
    fn at(formula: Option<PrimExpr>, n: i64) -> Option<i64> {
        let formula = formula?;
        let values: VarMap = free_vars(&formula).into_iter().map(|var| (var, prim::int(n))).collect();
        Analyzer::new().simplify(&substitute(&formula, &values)).as_int()
    }

    #[test]
    fn a_value_of_many_operations_is_counted_in_a_short_formula() {
        let n = Var::dim("n");
        let a = placeholder("A", [PrimExpr::from(&n)], F32);
        let doubled = |i: &[PrimExpr]| (0..16).fold(a.at(i), |value, _| &value + &value);
        let b = compute("B", [PrimExpr::from(&n)], doubled);
        let cost = cost(&create_prim_func(&[a.clone(), b]).unwrap());
        assert_eq!(at(cost.operations, 10), Some(10 * 65535));
        assert_eq!(at(cost.bytes, 10), Some(4 * 2 * 10));
    }

    #[test]
    fn a_matrix_product_has_two_operations_a_step_and_touches_each_matrix_once() {
        let n = Var::dim("n");
        let a = placeholder("A", [PrimExpr::from(&n), 128.into()], F32);
        let b = placeholder("B", [128, 64], F32);
        let k = reduce_axis(128);
        let c = compute("C", [PrimExpr::from(&n), 64.into()], |i| {
            sum(a.at(&[i[0].clone(), k.var()]) * b.at(&[k.var(), i[1].clone()]), [&k])
        });
        let cost = cost(&create_prim_func(&[a, b, c]).unwrap());
        assert_eq!(at(cost.operations, 10), Some(10 * 64 * 128 * 2));
        assert_eq!(at(cost.bytes, 10), Some(4 * (10 * 128 + 128 * 64 + 10 * 64)));
        assert_eq!(cost.dtype, Some(F32));
    }

    #[test]
    fn a_gather_reads_as_much_of_the_table_as_there_are_rows_to_take() {
        let table = placeholder("T", [1000, 16], F32);
        let rows = placeholder("R", [4], DataType::int(64));
        let out = compute("O", [4, 16], |i| table.at(&[rows.at(&[i[0].clone()]), i[1].clone()]));
        let cost = cost(&create_prim_func(&[table, rows, out]).unwrap());
        assert_eq!(at(cost.bytes, 0), Some(64 * 4 + 4 * 8 + 64 * 4));
        assert_eq!(at(cost.operations, 0), Some(0));
        assert_eq!(cost.dtype, None);
    }

    #[test]
    fn of_a_choice_the_larger_side_counts_and_functions_are_unknown() {
        let x = placeholder("X", [8], F32);
        let choose = |i: &[PrimExpr]| {
            let padded = prim::if_then_else(prim::boolean(true), x.at(i) * x.at(i), x.at(i));
            padded + prim::math("exp", x.at(i))
        };
        let out = compute("O", [8], choose);
        assert_eq!(at(cost(&create_prim_func(&[x.clone(), out]).unwrap()).operations, 0), Some(8 * 3));
        let foreign = compute("O", [8], |i| prim::call(F32, "tirx.call_extern", vec![prim::string("f"), x.at(i)]));
        let unknown = cost(&create_prim_func(&[x, foreign]).unwrap());
        assert!(unknown.operations.is_none() && unknown.bytes.is_none());
    }
}
