//! What a convolution costs directly and in tiles, in multiply-adds of vectors of sixteen.
//!
//! | | cost |
//! | --- | --- |
//! | direct sum | `9 * channels * filters * elements / 16` |
//! | products of tiles of `n` | `(n + 2)² * channels * filters * max(tiles / 16, 3)`: fewer vectors than three wait for the weight, which is read once |
//! | transforms | for each channel and filter, and each 16 tiles of a row: 1000 for `n = 4`, 320 for `n = 2`, less where a row has fewer tiles |
//!
//! Of distant taps the phases are rearranged, which takes as long as the transforms again, and those of few tiles a row take as long as of four.
//!
//! So a 14×14 image, whose 16 tiles of four are one vector, takes tiles of two; one of 7×7 stays with the direct sum, whose weight is a
//! quarter as long; few channels do not pay for the transforms. The figures are fitted to measured times (`docs/performance/convolutions.md`).
//!
//! Where lengths have names, they are what a network of images of 224 pixels would have; at half of that the tiles that are chosen are no slower
//! than the direct sum either. An image that would be larger than those of networks with so many channels has a name of its own: there the
//! choice is the one that is never far from the best at the size that such networks have, its half and its quarter.

use super::TAPS;

/// The lengths of a convolution.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    pub batch: i64,
    /// Height and width of the result.
    pub size: [i64; 2],
    /// Distances of taps down and along.
    pub dilation: [i64; 2],
    pub channels: i64,
    pub filters: i64,
}

/// Lanes of the vectors that are counted.
const LANES: i64 = 16;
/// Vectors of tiles below which the weight's way from memory is what takes time.
const FEWEST: i64 = 3;
/// The length that a name of a network's input stands for.
pub(super) const USUAL: i64 = 224;
/// Channels times the side of an image, at most, in networks: 64 at 224, 512 at 28.
const LARGEST: i64 = 64 * USUAL;
/// How far apart taps may be for images whose lengths have names.
const MOST_DISTANT: i64 = 4;
/// Tiles of a phase's row that take as long as fewer do.
const FEWEST_OF_PHASES: i128 = 4;
/// The transforms of 16 tiles of a row, by the side of a tile.
const TRANSFORMS: [(i64, i64); 2] = [(4, 1000), (2, 320)];
/// Of a thousand parts of the direct sum's cost, what tiles may cost at most: they take another kernel's memory, and round more.
const MOST_PARTS: i128 = 900;

/// The side of the tiles that cost least, of several extents the one that at worst costs least beside the best; none where that is the direct
/// sum, as of none.
pub(super) fn tile(extents: &[Extent]) -> Option<i64> {
    let choices = || TRANSFORMS.into_iter().map(|(side, _)| Some(side)).chain([None]);
    // The choice's cost over the least one, in parts of a thousand.
    let excess = |extent: &Extent, choice| {
        let least = choices().map(|other| extent.cost(other)).min().unwrap_or(0).max(1);
        extent.cost(choice) * 1000 / least
    };
    // Of equal choices the last one is the direct sum.
    choices()
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .min_by_key(|choice| extents.iter().map(|extent| excess(extent, *choice)).max())
        .flatten()
}

impl Extent {
    /// What an image whose lengths have names may be, if it would be this one for the usual names; nothing where that is too uncertain.
    pub fn expected(self) -> Vec<Extent> {
        // Networks have distant taps where others would have a smaller image. Of those that are far apart the image may be as small as that.
        let distance = self.dilation[0].max(self.dilation[1]);
        if distance > MOST_DISTANT {
            return Vec::new();
        }
        let most = LARGEST * distance / self.channels.max(self.filters).max(1);
        if distance == 1 && self.size.iter().all(|side| *side <= most) {
            return vec![self];
        }
        [1, 2, 4].into_iter().map(|part| Extent { size: [(most / part).max(1); 2], ..self }).collect()
    }

    /// The cost of a choice.
    fn cost(&self, tile: Option<i64>) -> i128 {
        match TRANSFORMS.into_iter().find(|(side, _)| Some(*side) == tile) {
            Some((side, transform)) => self.tiled(side, transform) * 1000 / MOST_PARTS,
            None => self.direct(),
        }
    }

    /// Products of each pair of channels, a vector at a time. Distant taps meet no image at its edges, which `op::distant_taps` makes use of.
    fn pairs(&self) -> i128 {
        i128::from(self.channels) * i128::from(self.filters)
    }

    fn direct(&self) -> i128 {
        let [down, along] = [0, 1].map(|axis| i128::from(places(self.size[axis], self.dilation[axis])));
        self.pairs() * i128::from(self.batch) * down * along / i128::from(LANES)
    }

    fn tiled(&self, tile: i64, transform: i64) -> i128 {
        let ceil = |n: i128, by: i64| (n + i128::from(by) - 1) / i128::from(by);
        let phases = i128::from(self.batch) * i128::from(self.dilation[0]) * i128::from(self.dilation[1]);
        let [height, width] = [0, 1].map(|axis| ceil(i128::from(self.size[axis]), self.dilation[axis]));
        let (rows, columns) = (phases * ceil(height, tile), ceil(width, tile));
        let points = i128::from((tile + TAPS - 1).pow(2));
        let products = points * self.pairs() * ceil(rows * columns, LANES).max(i128::from(FEWEST));
        let (fewest, times) = if self.dilation == [1, 1] { (1, 1) } else { (FEWEST_OF_PHASES, 2) };
        let narrow = (columns.clamp(fewest, i128::from(LANES)) as u64).next_power_of_two();
        let of_row = times * i128::from(transform) * i128::from(narrow) / i128::from(LANES);
        let transforms = rows * ceil(columns, LANES) * of_row;
        products + i128::from(self.channels + self.filters) * transforms
    }
}

/// The places of taps along an axis: for distant ones those inside of an image that is as long as the result.
fn places(size: i64, dilation: i64) -> i64 {
    if dilation == 1 { TAPS * size } else { size + 2 * (size - dilation).max(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tile(channels: i64, filters: i64, side: i64) -> Option<i64> {
        super::tile(&[Extent { batch: 1, size: [side; 2], dilation: [1; 2], channels, filters }])
    }

    #[test]
    fn the_classes_of_residual_networks_take_the_tiles_that_were_measured_to_be_faster() {
        assert_eq!(tile(64, 64, 56), Some(4));
        assert_eq!(tile(128, 128, 28), Some(4));
        assert_eq!(tile(256, 256, 14), Some(2));
        assert_eq!(tile(512, 512, 7), None);
        assert_eq!(tile(512, 512, 14), Some(2));
    }

    #[test]
    fn distant_taps_take_tiles_while_their_phases_have_enough_of_them() {
        let tile = |dilation, side| {
            super::tile(&[Extent { batch: 1, size: [side; 2], dilation: [dilation; 2], channels: 256, filters: 256 }])
        };
        assert_eq!(tile(2, 65), Some(4));
        assert_eq!(tile(4, 65), Some(4));
        assert_eq!(tile(2, 33), Some(4));
        assert_eq!(tile(6, 33), None);
        assert_eq!(tile(12, 33), None);
        assert_eq!(tile(36, 33), None);
    }

    #[test]
    fn images_that_no_network_has_take_what_is_never_far_from_the_best() {
        let named = |channels, distance| {
            let usual = Extent { batch: 1, size: [USUAL; 2], dilation: [distance; 2], channels, filters: channels };
            super::tile(&usual.expected())
        };
        assert_eq!(named(512, 1), Some(2));
        assert_eq!(named(64, 1), Some(4));
        assert_eq!(named(512, 4), Some(4));
        assert_eq!(named(256, 2), Some(4));
        assert_eq!(named(256, 6), None);
        assert_eq!(named(256, 24), None);
    }

    #[test]
    fn few_channels_and_empty_images_stay() {
        assert_eq!(tile(3, 64, 224), None);
        assert_eq!(tile(64, 3, 224), None);
        assert_eq!(tile(8, 8, 112), None);
        assert_eq!(tile(64, 64, 0), None);
    }
}
