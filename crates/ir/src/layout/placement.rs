//! [`Placement`]: what a buffer says of where its elements lie.

use relaxide_ffi::{
    Any, AnyView, Error, ErrorKind, Field, FreeVars, FromAny, Ref, StructuralEqual, StructuralHash, structural_equal,
};

use super::{ComposeLayout, Iter, Layout, TileLayout};
use crate::PrimExpr;

/// Where the elements of a buffer lie.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Placement {
    /// As the buffer's strides say; without strides one behind another, the last dimension fastest.
    #[default]
    Strided,
    /// As a layout says.
    By(Layout),
    /// Nobody has said it yet.
    Unsaid,
}

/// How [`Placement::Unsaid`] travels.
const UNSAID: &str = "none";

impl Placement {
    /// A layout for a shape. The one that elements one behind another have is as good as none.
    pub fn by(layout: Layout, shape: &[PrimExpr]) -> Placement {
        let compact = Layout::from(TileLayout::compact(shape));
        match structural_equal(&layout, &compact, FreeVars::Same) {
            Ok(()) => Placement::Strided,
            Err(_) => Placement::By(layout),
        }
    }

    /// The layout, where one is given.
    pub fn layout(&self) -> Option<&Layout> {
        match self {
            Placement::By(layout) => Some(layout),
            Placement::Strided | Placement::Unsaid => None,
        }
    }

    /// The same with its expressions rebuilt.
    pub fn mapped(&self, change: &mut dyn FnMut(&PrimExpr) -> PrimExpr) -> Placement {
        let Placement::By(layout) = self else { return self.clone() };
        let tile = layout.tile_layout();
        let mut iters = |of: &[Ref<Iter>]| -> Vec<Ref<Iter>> {
            of.iter().map(|iter| Iter::new(change(&iter.extent), change(&iter.stride), &iter.axis)).collect()
        };
        let (shard, replica) = (iters(&tile.shard), iters(&tile.replica));
        let offsets = tile.offsets().into_iter().map(|(axis, value)| (axis, change(&value))).collect();
        let tile = TileLayout::new(shard, replica, offsets);
        Placement::By(match layout {
            Layout::Tile(_) => tile.into(),
            Layout::Compose(compose) => ComposeLayout { tile_layout: Ref::new(tile), ..(**compose).clone() }.into(),
        })
    }
}

impl Field for Placement {
    fn to_any(&self) -> Any {
        match self {
            Placement::Strided => Any::none(),
            Placement::By(layout) => layout.clone().into(),
            Placement::Unsaid => UNSAID.into(),
        }
    }

    fn s_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
        match (self, other) {
            (Placement::By(a), Placement::By(b)) => a.s_equal(b, eq),
            (Placement::Strided, Placement::Strided) | (Placement::Unsaid, Placement::Unsaid) => true,
            _ => eq.fail("buffers say differently where their elements lie"),
        }
    }

    fn s_hash(&self, hash: &mut StructuralHash) {
        match self {
            Placement::By(layout) => layout.s_hash(hash),
            Placement::Strided => hash.combine(0),
            Placement::Unsaid => hash.combine(1),
        }
    }
}

impl From<Placement> for Any {
    fn from(placement: Placement) -> Any {
        placement.to_any()
    }
}

impl FromAny for Placement {
    fn from_any(value: AnyView<'_>) -> Result<Self, Error> {
        match value.as_str() {
            Some(UNSAID) => Ok(Placement::Unsaid),
            Some(other) => {
                Err(Error::new(ErrorKind::ValueError, format!("a layout is expected, got the text {other:?}")))
            }
            None if value.is_none() => Ok(Placement::Strided),
            None => value.to().map(Placement::By),
        }
    }
}
