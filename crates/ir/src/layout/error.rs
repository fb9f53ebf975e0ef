//! What is wrong with a layout or with what is asked of it.

use crate::PrimExpr;

/// Why an operation on a layout was refused. All but the last three are mistakes in what was asked.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// Two lists that belong together differ in length.
    #[error("{what}: {expected} values are expected, got {given}")]
    Length {
        /// What they are.
        what: &'static str,
        /// How many there should be.
        expected: usize,
        /// How many there are.
        given: usize,
    },
    /// A layout whose iterators do not fall into groups that have the extents of a shape.
    #[error(
        "layout {layout} can not be grouped by shape {shape}: choose dimensions whose products are those of its extents"
    )]
    Group {
        /// The layout as text.
        layout: String,
        /// The shape as text.
        shape: String,
    },
    /// Shapes that have no common refinement.
    #[error("group_many {why}")]
    GroupMany {
        /// What is not known of them.
        why: String,
    },
    /// A dimension that a tile does not divide.
    #[error("the dimension {dim} is not known to be divisible by {factor}")]
    Indivisible {
        /// The dimension.
        dim: PrimExpr,
        /// The tile's.
        factor: PrimExpr,
    },
    /// Axes of threads that count the same units within different scopes.
    #[error("conflicting scopes for {subscope}: one axis counts them in a {first}, another in a {second}")]
    Conflict {
        /// What is counted.
        subscope: &'static str,
        /// Within what by one axis.
        first: &'static str,
        /// Within what by another.
        second: &'static str,
    },
    /// Axes of threads between which a scope is missing.
    #[error("disconnected scope chain: the axes {axes} leave out a scope between them")]
    Gap {
        /// Their names.
        axes: String,
    },
    /// An axis of threads that cannot be taken apart.
    #[error("the axis {axis} can not be split at {scope}")]
    Unsplittable {
        /// Its name.
        axis: String,
        /// Where it should be.
        scope: &'static str,
    },
    /// A question about one axis of a layout that permutes addresses.
    #[error("axis_name ({axis}) is not supported for compose layout: ask its tile_layout")]
    AxisOfSwizzle {
        /// The axis that was named.
        axis: String,
    },
    /// A permutation of addresses behind a layout that gives something else.
    #[error("a swizzle permutes addresses on the axis m, but its tile layout leads to {axes}")]
    NoAddress {
        /// The axes that it leads to.
        axes: String,
    },
    /// Numbers of a permutation that make none.
    #[error(
        "the compose layout is not well-formed: 0 <= per_element, 0 <= swizzle_len <= atom_len and at most 31 bits are expected, got {per_element}, {swizzle_len}, {atom_len}"
    )]
    Swizzle {
        /// Bits of an index within an element.
        per_element: i64,
        /// Bits that are permuted.
        swizzle_len: i64,
        /// Bits between them and those that permute them.
        atom_len: i64,
    },
    /// A name of a scope that is not one.
    #[error("Unknown scope kind name {name:?}: cluster, cta, warpgroup, warp and thread are known")]
    UnknownScope {
        /// The name.
        name: String,
    },
    /// Two scopes between which nothing is counted.
    #[error("no scope id counts {cur:?} in {parent:?}; known are {known}")]
    UnknownBinding {
        /// The outer scope.
        parent: String,
        /// The inner one.
        cur: String,
        /// What is known.
        known: String,
    },
    /// Scope ids that say two numbers of units.
    #[error("Inconsistent extents for scope {parent}->{cur}: {known} and {count}")]
    Inconsistent {
        /// Within what is counted.
        parent: &'static str,
        /// What is counted.
        cur: &'static str,
        /// How many there are by one.
        known: i64,
        /// How many there are by another.
        count: i64,
    },
    /// Units that do not divide into equal parts.
    #[error("non-divisible extents: {whole} of scope {parent}->{cur} are no multiple of {part}")]
    Unequal {
        /// Within what is counted.
        parent: &'static str,
        /// What is counted.
        cur: &'static str,
        /// How many there are.
        whole: i64,
        /// How many make a part.
        part: i64,
    },
    /// A definition of scope ids that is none.
    #[error("{0}")]
    ScopeId(String),
}
