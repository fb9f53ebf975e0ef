//! Operators of torchvision.

use relaxide_ir::Attrs;

use super::Table;
use crate::rule::{Cx, Outputs, one};

pub const TABLE: Table = &[("torchvision.roi_align", roi_align)];

fn roi_align(cx: &mut Cx<'_>) -> Outputs {
    let (x, rois) = (cx.tensor("input")?, cx.tensor("rois")?);
    let size = vec![cx.int_or("pooled_height", 1)?, cx.int_or("pooled_width", 1)?];
    let attrs = Attrs::new()
        .with("pooled_size", size)
        .with("spatial_scale", cx.float_or("spatial_scale", 1.0)?)
        .with("sample_ratio", cx.int_or("sampling_ratio", -1)?)
        .with("aligned", cx.flag("aligned", false)?)
        .with("layout", "NCHW")
        .with("mode", "avg");
    one(cx.op("vision.roi_align", [x, rois], attrs)?)
}
