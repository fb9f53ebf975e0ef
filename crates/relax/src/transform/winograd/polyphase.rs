//! Convolutions whose taps are `d` elements apart, as convolutions of images of every `d`th row and column (space to batch).
//!
//! ```text
//! y = R.nn.conv2d(x, w, dilation=[d, d], padding=[p, p, p, p])
//!     ->  s[n, a, b, c, Y, X] = x[n, c, d*Y + a - p, d*X + b - p]     zero outside of the image
//!         r = R.nn.conv2d(s, w)                                       d² images for each
//!         y[n, m, y, x] = r[n, y % d, x % d, m, y // d, x // d]
//! ```

use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr, constant, floordiv, floormod};
use relaxide_tir::te;

use super::interpolation::Interpolation;
use super::{Convolution, F32, TAPS};
use crate::*;

impl Convolution {
    /// The convolution by tiles of every `d`th row and column.
    pub(super) fn by_phases(&self, b: &mut BlockBuilder, by: &Interpolation, weight: Expr) -> Result<Expr, BuildError> {
        let [batch, ..] = &self.dims;
        let [down, along] = self.dilation;
        let size = [0, 1].map(|axis| floordiv(&self.size[axis] + (self.dilation[axis] - 1), self.dilation[axis]));
        let [height, width] = size.clone().map(|size| size + (TAPS - 1));
        let dims = [batch * down * along, self.channels.into(), height, width];
        let images = b.emit_te("space_to_batch", vec![self.image.clone()], |t| vec![self.phases(&dims, &t[0])])?;
        let images = b.op("reshape", [images, Expr::shape(dims.clone())], Attrs::new())?;
        let near = Convolution {
            image: images,
            dims,
            filters: self.filters,
            channels: self.channels,
            before: [0, 0],
            dilation: [1, 1],
            size: size.clone(),
        };
        let result = near.in_tiles(b, by, weight)?;
        let result = b.emit(result)?;
        let [height, width] = size;
        let dims = vec![batch.clone(), down.into(), along.into(), self.filters.into(), height, width];
        let result = b.op("reshape", [result, Expr::shape(dims)], Attrs::new())?;
        b.call_te("batch_to_space", vec![result], |t| vec![self.interleaved(&t[0])])
    }

    /// The image's rows and columns by phase, as six axes.
    fn phases(&self, dims: &[PrimExpr; 4], image: &te::Tensor) -> te::Tensor {
        let [batch, _, height, width] = &self.dims;
        let [down, along] = self.dilation;
        let dims = [batch.clone(), down.into(), along.into(), dims[1].clone(), dims[2].clone(), dims[3].clone()];
        te::compute("T_phases", dims, |at| {
            let row = &at[4] * down + &at[1] - self.before[0];
            let column = &at[5] * along + &at[2] - self.before[1];
            let inside = [(&row, height), (&column, width)]
                .into_iter()
                .flat_map(|(place, size)| [prim::ge(place, 0), prim::lt(place, size)])
                .reduce(prim::and)
                .unwrap_or_else(|| prim::boolean(true));
            let element = image.at(&[at[0].clone(), at[3].clone(), row, column]);
            prim::if_then_else(inside, element, constant(F32, 0.0))
        })
    }

    /// The result from the phases' results.
    fn interleaved(&self, phases: &te::Tensor) -> te::Tensor {
        let dims = [self.dims[0].clone(), self.filters.into(), self.size[0].clone(), self.size[1].clone()];
        let [down, along] = self.dilation;
        te::compute("T_interleaved", dims, |at| {
            let [y, x] = [&at[2], &at[3]];
            phases.at(&[
                at[0].clone(),
                floormod(y, down),
                floormod(x, along),
                at[1].clone(),
                floordiv(y, down),
                floordiv(x, along),
            ])
        })
    }
}
