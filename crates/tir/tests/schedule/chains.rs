//! Products with a softmax between them, and elements that are gathered from many planes.

use super::*;

/// Attention of `heads` over `m` queries and `l` keys.
fn attention(symbolic: bool, (batch, heads, m, l): (i64, i64, i64, i64), transposed: bool) -> Case {
    const DEPTH: i64 = 5;
    const WIDTH: i64 = 19;
    let mut d = Dims::new(symbolic);
    let (b, m_, l_) = (d.dim("b", batch), d.dim("m", m), d.dim("l", l));
    let lead = [b, int(heads)];
    let of = |last: [PrimExpr; 2]| [lead.to_vec(), last.to_vec()].concat();
    let q = te::placeholder("Q", of([m_.clone(), int(DEPTH)]), F32);
    let k_shape = if transposed { [l_.clone(), int(DEPTH)] } else { [int(DEPTH), l_.clone()] };
    let k = te::placeholder("K", of(k_shape), F32);
    let v = te::placeholder("V", of([l_.clone(), int(WIDTH)]), F32);
    let mask = te::placeholder("mask", [m_.clone(), l_.clone()], F32);
    let r = te::reduce_axis(DEPTH);
    let at = |i: &[PrimExpr], last: [PrimExpr; 2]| [&i[..2], &last[..]].concat();
    let scores = te::compute("scores", of([m_.clone(), l_.clone()]), |i| {
        let key = if transposed { [i[3].clone(), r.var()] } else { [r.var(), i[3].clone()] };
        te::sum(q.at(&at(i, [i[2].clone(), r.var()])) * k.at(&at(i, key)), [&r])
    });
    let masked = te::compute("masked", of([m_.clone(), l_.clone()]), |i| scores.at(i) + mask.at(&i[2..]));
    let t = te::reduce_axis(l_.clone());
    let highest = te::compute("highest", of([m_.clone(), int(1)])[..3].to_vec(), |i| {
        te::max(masked.at(&[i, &[t.var()]].concat()), [&t])
    });
    let exps =
        te::compute("exps", of([m_.clone(), l_.clone()]), |i| prim::math("exp", masked.at(i) - highest.at(&i[..3])));
    let t = te::reduce_axis(l_.clone());
    let total = te::compute("total", of([m_.clone(), int(1)])[..3].to_vec(), |i| {
        te::sum(exps.at(&[i, &[t.var()]].concat()), [&t])
    });
    // Dear, so that it is made once for all heads, and where it is first read.
    let hidden = te::compute("hidden", [m_.clone(), l_.clone()], |i| prim::math("exp", mask.at(i)));
    let weights = te::compute("weights", of([m_.clone(), l_.clone()]), |i| {
        prim::div(exps.at(i), total.at(&i[..3])) * hidden.at(&i[2..])
    });
    let t = te::reduce_axis(l_);
    let out = te::compute("out", of([m_, int(WIDTH)]), |i| {
        te::sum(weights.at(&at(i, [i[2].clone(), t.var()])) * v.at(&at(i, [t.var(), i[3].clone()])), [&t])
    });
    let name = format!("attention {batch}x{heads}x{m}x{l} {symbolic} {transposed}");
    d.case(name, "back_to_back", vec![q, k, mask, v, out])
}

#[test]
fn products_with_a_softmax_between_them_go_block_by_block() {
    let mut cases = Vec::new();
    for symbolic in [false, true] {
        for transposed in [false, true] {
            cases.extend([
                attention(symbolic, (1, 2, 7, 33), transposed),
                attention(symbolic, (2, 3, 21, 5), transposed),
                // Blocks, the last of which has fewer rows.
                attention(symbolic, (1, 1, 263, 21), transposed),
            ]);
        }
    }
    check(cases);
}

/// Planes that are read where a table says, with weights beside; `planes` and the table have names if `symbolic`.
fn sampled(symbolic: bool, planes: i64, (h, w): (i64, i64)) -> Case {
    let mut d = Dims::new(symbolic);
    let (c, h, w) = (d.dim("c", planes), d.dim("h", h), d.dim("w", w));
    let a = te::placeholder("A", [int(2), c.clone(), int(4), int(9)], F32);
    let place = te::placeholder("place", [int(2), h.clone(), w.clone()], F32);
    let out = te::compute("out", [int(2), c, h, w], |i| {
        let table = place.at(&[i[0].clone(), i[2].clone(), i[3].clone()]);
        let x = prim::cast(DataType::int(64), &table * prim::constant(F32, 3.0) + prim::constant(F32, 4.0));
        let is_inside = prim::and(prim::ge(&x, 1), prim::lt(&x, 8));
        let clamped = prim::max(prim::min(&x, 8), 0);
        let row = prim::floormod(&i[2], int(4));
        let inside = prim::if_then_else(
            is_inside,
            a.at(&[i[0].clone(), i[1].clone(), row.clone(), &x + 1]),
            prim::constant(F32, 0.0),
        );
        inside * &table + a.at(&[i[0].clone(), i[1].clone(), row, clamped])
    });
    d.case(format!("{planes} planes, sampled, symbolic {symbolic}"), "gathered", vec![a, place, out])
}

#[test]
fn elements_gathered_from_many_planes() {
    let mut cases = Vec::new();
    for symbolic in [false, true] {
        for (planes, size) in [(3, (5, 20)), (8, (1, 16)), (21, (2, 530))] {
            cases.push(sampled(symbolic, planes, size));
        }
    }
    check(cases);
}
