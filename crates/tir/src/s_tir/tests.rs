//! Steps on a matrix product with a following addition.

use relaxide_ir::DataType;
use relaxide_ir::prim::{self, PrimExpr};

use super::*;
use crate::te;

const F32: DataType = DataType::float(32);

/// `D = A @ B + 1`, over 16 x 12 x 8.
pub(super) fn product() -> Schedule {
    let a = te::placeholder("A", [16, 8], F32);
    let b = te::placeholder("B", [8, 12], F32);
    let k = te::reduce_axis(8);
    let product = |i: &[PrimExpr]| te::sum(a.at(&[i[0].clone(), k.var()]) * b.at(&[k.var(), i[1].clone()]), [&k]);
    let c = te::compute("C", [16, 12], product);
    let d = te::compute("D", [16, 12], |i| prim::add(c.at(i), prim::float_of(F32, 1.0)));
    Schedule::of_func(te::create_prim_func(&[a, b, d]).unwrap())
}

/// The kernel as text.
pub(super) fn text(sch: &Schedule) -> String {
    sch.func("main").unwrap().to_string()
}

fn factors(list: &[i64]) -> Vec<Option<PrimExpr>> {
    list.iter().map(|f| (*f > 0).then(|| PrimExpr::from(*f))).collect()
}

#[test]
fn loops_are_split_reordered_and_fused() {
    let mut sch = product();
    let block = sch.get_sblock("C", None).unwrap();
    let loops = sch.get_loops(&block).unwrap();
    let i = sch.split(&loops[0], &factors(&[0, 4])).unwrap();
    let j = sch.split(&loops[1], &factors(&[0, 5])).unwrap();
    sch.reorder(&[i[0].clone(), j[0].clone(), loops[2].clone(), i[1].clone(), j[1].clone()]).unwrap();
    sch.fuse(&[i[0].clone(), j[0].clone()]).unwrap();
    insta::assert_snapshot!(text(&sch));
    insta::assert_snapshot!(sch.trace());
    let mut again = product();
    sch.trace().apply_to(&mut again, false).unwrap();
    assert_eq!(text(&again), text(&sch));
}
