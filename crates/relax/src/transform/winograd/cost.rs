//! What a convolution costs directly and in tiles.

/// Lengths of a convolution as far as they are known.
pub(super) struct Extent {
    pub batch: Option<i64>,
    /// Of the result.
    pub height: Option<i64>,
    pub width: Option<i64>,
    pub channels: i64,
    pub filters: i64,
}

/// Channels and filters from which the transforms are less than what they save.
const LEAST: i64 = 32;

impl Extent {
    /// The side of the tiles that cost least; none where the direct sum does.
    pub fn tile(&self) -> Option<i64> {
        if self.channels < LEAST || self.filters < LEAST {
            return None;
        }
        match std::env::var("WINO").as_deref() {
            Ok("0") => None,
            Ok("2") => Some(2),
            _ => Some(4),
        }
    }
}
