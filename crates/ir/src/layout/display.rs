//! Layouts as text, as TVMScript has them: `T.TileLayout(T.S[(8, 4):(4 @ Axis.laneid, 1)])`.

use std::fmt::{self, Display, Formatter};

use relaxide_ffi::Ref;

use super::{ComposeLayout, Iter, Layout, TileLayout};
use crate::PrimExpr;

impl Display for TileLayout {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(&mut |e| e.to_string()))
    }
}

impl Display for ComposeLayout {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(&mut |e| e.to_string()))
    }
}

impl Display for Layout {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(&mut |e| e.to_string()))
    }
}

impl Layout {
    /// The layout as text, given that of expressions.
    pub fn text(&self, expr: &mut dyn FnMut(&PrimExpr) -> String) -> String {
        match self {
            Layout::Tile(tile) => tile.text(expr),
            Layout::Compose(compose) => compose.text(expr),
        }
    }
}

impl ComposeLayout {
    fn text(&self, expr: &mut dyn FnMut(&PrimExpr) -> String) -> String {
        let ComposeLayout { per_element, swizzle_len, atom_len, .. } = self;
        let tile = self.tile_layout.text(expr);
        let way = if self.swizzle_inner { "" } else { ", swizzle_inner=False" };
        format!("T.ComposeLayout({per_element}, {swizzle_len}, {atom_len}, {tile}{way})")
    }
}

impl TileLayout {
    fn text(&self, expr: &mut dyn FnMut(&PrimExpr) -> String) -> String {
        let mut terms = Vec::new();
        for (letter, iters) in [("S", &self.shard), ("R", &self.replica)] {
            if !iters.is_empty() || (letter == "S" && self.replica.is_empty()) {
                terms.push(format!("T.{letter}[{}]", iterators(iters, expr)));
            }
        }
        // Bare numbers stand in front: an offset of an axis cannot be added to what is none yet.
        let mut offsets: Vec<(bool, String)> =
            self.offsets().iter().map(|(axis, value)| (axis.name != "m", on_axis(value, &axis.name, expr))).collect();
        offsets.sort_by_key(|(on_axis, _)| *on_axis);
        match offsets.as_slice() {
            [] => {}
            [(_, one)] => terms.push(one.clone()),
            several => {
                let several: Vec<_> = several.iter().map(|(_, text)| text.clone()).collect();
                terms.push(format!("({})", several.join(" + ")));
            }
        }
        format!("T.TileLayout({})", terms.join(" + "))
    }
}

fn iterators(iters: &[Ref<Iter>], expr: &mut dyn FnMut(&PrimExpr) -> String) -> String {
    let mut extents = Vec::with_capacity(iters.len());
    let mut strides = Vec::with_capacity(iters.len());
    for iter in iters {
        extents.push(expr(&iter.extent));
        strides.push(on_axis(&iter.stride, &iter.axis.name, expr));
    }
    match (extents.as_slice(), strides.as_slice()) {
        ([extent], [stride]) => format!("{extent}:{stride}"),
        _ => format!("({}):({})", extents.join(", "), strides.join(", ")),
    }
}

fn on_axis(value: &PrimExpr, axis: &str, expr: &mut dyn FnMut(&PrimExpr) -> String) -> String {
    let text = expr(value);
    match axis {
        "m" => text,
        // A product binds as tightly as `@`.
        _ if matches!(value, PrimExpr::Binary(_)) => format!("({text}) @ Axis.{axis}"),
        _ => format!("{text} @ Axis.{axis}"),
    }
}
