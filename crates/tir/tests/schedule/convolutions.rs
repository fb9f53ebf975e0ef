//! Convolutions, with their padding as a stage of its own: any stride, dilation, groups, weights heavier than a cache.

use super::*;

/// A convolution with its padding as a stage of its own, with bias and residual behind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conv {
    pub(super) n: i64,
    pub(super) channels: (i64, i64),
    pub(super) image: (i64, i64),
    pub(super) kernel: (i64, i64),
    pub(super) stride: (i64, i64),
    pub(super) dilation: i64,
    pub(super) pad: (i64, i64),
    pub(super) depthwise: bool,
    /// Groups of channels, where it is not depthwise.
    pub(super) groups: i64,
    /// Filters of a panel, where the weight lies in panels.
    pub(super) panel: Option<i64>,
    pub(super) symbolic: bool,
}

impl Conv {
    pub(super) fn case(self, rule: &'static str) -> Case {
        let mut d = Dims::new(self.symbolic);
        let (n, h, w) = (d.dim("n", self.n), d.dim("h", self.image.0), d.dim("w", self.image.1));
        let (ic, oc) = self.channels;
        let (kh, kw) = self.kernel;
        let (ph, pw) = self.pad;
        let (sh, sw) = self.stride;
        let data = te::placeholder("data", [n.clone(), int(ic), h.clone(), w.clone()], F32);
        let weight_ic = if self.depthwise { 1 } else { ic / self.groups };
        let weight = match self.panel {
            Some(width) => te::placeholder("weight", [(oc + width - 1) / width, weight_ic, kh, kw, width], F32),
            None => te::placeholder("weight", [oc, weight_ic, kh, kw], F32),
        };
        let bias = te::placeholder("bias", [oc], F32);
        let padded = te::compute("pad", [n.clone(), int(ic), &h + 2 * ph, &w + 2 * pw], |i| {
            let (y, x) = (&i[2], &i[3]);
            let inside = all([prim::ge(y, int(ph)), prim::lt(y, &h + ph), prim::ge(x, int(pw)), prim::lt(x, &w + pw)]);
            let value = data.at(&[i[0].clone(), i[1].clone(), y - ph, x - pw]);
            prim::if_then_else(inside, value, prim::constant(F32, 0.0))
        });
        let size = |image: &PrimExpr, k: i64, s: i64, p: i64| {
            prim::floordiv(image + (2 * p - (k - 1) * self.dilation - 1), int(s)) + 1
        };
        let shape = [n, int(oc), size(&h, kh, sh, ph), size(&w, kw, sw, pw)];
        let (rc, ry, rx) = (te::reduce_axis(weight_ic), te::reduce_axis(kh), te::reduce_axis(kw));
        let unpadded = self.pad == (0, 0);
        let conv = te::compute("conv", shape.clone(), |i| {
            let y = &i[2] * sh + ry.var() * self.dilation;
            let x = &i[3] * sw + rx.var() * self.dilation;
            let channel = match self.groups {
                _ if self.depthwise => i[1].clone(),
                1 => rc.var(),
                groups => prim::floordiv(&i[1], int(oc / groups)) * weight_ic + rc.var(),
            };
            let image = if unpadded { &data } else { &padded };
            let (filter, mut place) = (&i[1], vec![i[1].clone(), rc.var(), ry.var(), rx.var()]);
            if let Some(width) = self.panel {
                place[0] = prim::floordiv(filter, int(width));
                place.push(prim::floormod(filter, int(width)));
            }
            let product = image.at(&[i[0].clone(), channel, y, x]) * weight.at(&place);
            te::sum(product, [&rc, &ry, &rx])
        });
        let residual = te::placeholder("residual", shape.clone(), F32);
        let out = te::compute("out", shape, |i| relu(conv.at(i) + bias.at(&[i[1].clone()])) + residual.at(i));
        d.case(format!("{self:?}"), rule, vec![data, weight, bias, residual, out])
    }
}

pub(super) const PLAIN: Conv = Conv {
    n: 1,
    channels: (2, 7),
    image: (5, 18),
    kernel: (3, 3),
    stride: (1, 1),
    dilation: 1,
    pad: (1, 1),
    depthwise: false,
    groups: 1,
    panel: None,
    symbolic: false,
};

#[test]
fn convolutions_of_every_stride_padding_and_dilation() {
    let mut cases = Vec::new();
    for symbolic in [false, true] {
        let plain = Conv { symbolic, ..PLAIN };
        cases.extend([
            plain.case("conv"),
            Conv { n: 2, channels: (1, 13), image: (3, 9), ..plain }.case("conv"),
            Conv { stride: (2, 2), ..plain }.case("conv"),
            Conv { stride: (2, 1), image: (5, 41), channels: (1, 5), ..plain }.case("conv"),
            Conv { kernel: (1, 3), pad: (0, 1), channels: (3, 6), image: (3, 17), ..plain }.case("conv"),
            Conv { kernel: (5, 5), pad: (2, 2), stride: (1, 3), channels: (2, 4), ..plain }.case("conv"),
            Conv { dilation: 2, pad: (2, 2), ..plain }.case("conv"),
            Conv { pad: (0, 0), stride: (2, 2), image: (8, 20), ..plain }.case("conv"),
            Conv { kernel: (1, 1), pad: (0, 0), stride: (2, 2), ..plain }.case("matmul"),
            Conv { kernel: (5, 7), pad: (2, 3), stride: (2, 2), channels: (1, 3), ..plain }.case("conv"),
            Conv { image: (1, 1), channels: (3, 6), symbolic: true, ..plain }.case("conv"),
        ]);
    }
    check(cases);
}

#[test]
fn groups_of_channels_are_convolutions() {
    let mut cases = Vec::new();
    for symbolic in [false, true] {
        let plain = Conv { symbolic, groups: 2, channels: (4, 14), ..PLAIN };
        cases.extend([
            plain.case("conv"),
            Conv { n: 2, groups: 3, channels: (3, 21), stride: (2, 2), ..plain }.case("conv"),
            Conv { channels: (30, 14), image: (3, 5), ..plain }.case("conv"),
            Conv { kernel: (1, 1), pad: (0, 0), channels: (8, 16), ..plain }.case("matmul"),
            // Too few for a tile of registers.
            Conv { groups: 4, channels: (8, 8), ..plain }.case("depthwise"),
        ]);
    }
    check(cases);
}

#[test]
fn sums_of_many_terms_go_on_from_row_to_row() {
    check(many_terms(false));
}

#[test]
fn sums_of_many_terms_go_on_from_row_to_row_of_named_lengths() {
    check(many_terms(true));
}

#[test]
fn heavy_weights_have_threads_share_a_workspace() {
    check(heavy_weights(false));
}

#[test]
fn heavy_weights_have_threads_share_a_workspace_of_named_lengths() {
    check(heavy_weights(true));
}

fn heavy_weights(symbolic: bool) -> Vec<Case> {
    let plain = Conv { symbolic, ..PLAIN };
    vec![
        Conv { n: 2, channels: (64, 256), image: (2, 3), stride: (2, 2), ..plain }.case("conv"),
        Conv { channels: (128, 128), image: (2, 2), ..plain }.case("conv"),
    ]
}

fn many_terms(symbolic: bool) -> Vec<Case> {
    let plain = Conv { channels: (15, 7), symbolic, ..PLAIN };
    vec![
        plain.case("conv"),
        Conv { image: (4, 32), ..plain }.case("conv"),
        Conv { n: 2, image: (3, 2), ..plain }.case("conv"),
        Conv { stride: (2, 2), image: (7, 7), ..plain }.case("conv"),
        Conv { stride: (2, 1), image: (6, 9), ..plain }.case("conv"),
        Conv { stride: (3, 2), dilation: 2, pad: (2, 2), image: (9, 8), ..plain }.case("conv"),
        Conv { stride: (4, 3), dilation: 2, pad: (1, 2), image: (11, 8), ..plain }.case("conv"),
        Conv { stride: (2, 2), dilation: 2, pad: (0, 0), image: (9, 9), ..plain }.case("conv"),
        // Rows in several groups, the last of fewer.
        Conv { channels: (15, 2), image: (3, 500), ..plain }.case("conv"),
        Conv { channels: (15, 2), image: (9, 230), stride: (1, 2), pad: (0, 1), ..plain }.case("conv"),
    ]
}

#[test]
fn pointwise_convolutions_are_matrix_products_over_the_merged_image() {
    let mut cases = Vec::new();
    for symbolic in [false, true] {
        let plain = Conv { kernel: (1, 1), pad: (0, 0), symbolic, ..PLAIN };
        cases.extend([
            plain.case("matmul"),
            Conv { n: 2, channels: (2, 29), image: (3, 11), ..plain }.case("matmul"),
            Conv { channels: (1, 9), image: (27, 40), ..plain }.case("matmul"),
            // Every second pixel, from a compact copy.
            Conv { stride: (2, 2), n: 2, channels: (3, 14), image: (9, 15), ..plain }.case("matmul"),
            Conv { stride: (1, 3), channels: (2, 7), image: (4, 25), ..plain }.case("matmul"),
        ]);
    }
    check(cases);
}

#[test]
fn depthwise_convolutions() {
    let mut cases = Vec::new();
    for symbolic in [false, true] {
        // Where sizes are known, padding is in masks.
        let masked = if symbolic { "depthwise" } else { "masked_depthwise" };
        let plain = Conv { depthwise: true, channels: (2, 2), symbolic, ..PLAIN };
        cases.extend([
            plain.case(masked),
            Conv { n: 2, channels: (1, 1), kernel: (5, 5), pad: (2, 2), image: (7, 28), ..plain }.case("depthwise"),
            Conv { stride: (2, 2), ..plain }.case(masked),
            Conv { stride: (2, 1), kernel: (5, 5), pad: (2, 2), ..plain }.case("depthwise"),
            Conv { stride: (1, 2), image: (7, 30), ..plain }.case(masked),
            Conv { dilation: 2, pad: (2, 2), ..plain }.case(masked),
        ]);
    }
    check(cases);
}

#[test]
fn a_padded_convolution_with_its_epilogue_is_one_nest() {
    let func = te::create_prim_func(&PLAIN.case("conv").args).expect("a kernel");
    let scheduled = schedule::apply(&func, &Target::llvm("x86-64-v3")).expect("a schedule");
    assert_eq!(scheduled.notes.len(), 1, "{:?}", scheduled.notes);
    assert_eq!(scheduled.notes[0].stage, "conv");
}
