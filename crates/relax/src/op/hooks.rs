//! What passes ask of an operator beyond its type and its kernel: gradient, layout, precision.
//!
//! Each hook is a field of the operator's [`OpDef`](super::OpDef) row; the passes that use them know no operator by name.
//!
//! | hook | asked by | answers |
//! | --- | --- | --- |
//! | [`Gradient`] | `Gradient` | the gradient of each argument, given that of the result |
//! | [`LayoutRule`] | `ConvertLayout` | the axis order of arguments and result, and what changes in the call |
//! | [`MixedPrecision`] | `ToMixedPrecision` | whether a call goes to low precision, and where its sums are kept |

use relaxide_ffi::DataType;
use relaxide_ir::prim::PrimExpr;
use relaxide_ir::{Attrs, Type};

use super::{CallCx, OpError, Packing};
use crate::{BlockBuilder, BuildError, Expr};

/// The gradient of each argument of a call; `None` where none flows, as into a shape or into indices. The gradient of a
/// tuple argument is a tuple. Expressions may be nested: who asks brings them to normal form. The builder is for values
/// that are used twice.
pub type Gradient = fn(&GradCx, &mut BlockBuilder) -> Result<Vec<Option<Expr>>, BuildError>;

/// A call whose gradient is asked for.
pub struct GradCx<'a> {
    /// The call.
    pub call: CallCx<'a>,
    /// Its result, as the variable that it is bound to.
    pub output: &'a Expr,
    /// The gradient of its result; a tuple of gradients where the result is a tuple.
    pub grad: &'a Expr,
}

/// Whether a call computes in low precision where a program is brought to that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MixedPrecision {
    /// Its arguments are brought to low precision. The attribute of this name, where there is one, is set to the type that
    /// sums are kept and given in; the result is then brought to low precision.
    Always(Option<&'static str>),
    /// In low precision where all its arguments are.
    Follow,
    /// Its arguments are brought to full precision.
    Never,
}

impl MixedPrecision {
    /// The attributes of a call of a [`MixedPrecision::Always`] operator whose result is to have type `out`.
    pub fn with_out_dtype(self, attrs: &Attrs, out: DataType) -> Attrs {
        match self {
            MixedPrecision::Always(Some(name)) => attrs.clone().with(name, out),
            _ => attrs.clone(),
        }
    }
}

/// The order in which the axes of a tensor lie: entry `i` is the axis, as the program counts them, that lies at place `i`.
///
/// An image that the program knows as `NCHW` and that lies as `NHWC` has the order `[0, 2, 3, 1]`; so `permute_dims` with
/// `axes` = the order brings a tensor from the program's order to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AxisOrder(Vec<usize>);

impl AxisOrder {
    /// The program's own order.
    pub fn identity(ndim: usize) -> AxisOrder {
        AxisOrder((0..ndim).collect())
    }

    /// The order that brings axes named `from` to the order `to`: `("NCHW", "NHWC")` is `[0, 2, 3, 1]`. `None` where the
    /// letters are not the same ones.
    pub fn between(from: &str, to: &str) -> Option<AxisOrder> {
        let order: Option<Vec<usize>> = to.chars().map(|c| from.chars().position(|d| d == c)).collect();
        AxisOrder::new(order?).filter(|o| o.ndim() == from.chars().count())
    }

    /// An order, if it names each axis once.
    pub fn new(order: Vec<usize>) -> Option<AxisOrder> {
        let names_all = (0..order.len()).all(|axis| order.contains(&axis));
        names_all.then_some(AxisOrder(order))
    }

    /// The axis at each place.
    pub fn axes(&self) -> &[usize] {
        &self.0
    }

    /// How many axes there are.
    pub fn ndim(&self) -> usize {
        self.0.len()
    }

    /// Whether it is the program's own order.
    pub fn is_identity(&self) -> bool {
        self.0.iter().enumerate().all(|(place, axis)| place == *axis)
    }

    /// Where an axis lies.
    pub fn place(&self, axis: usize) -> Option<usize> {
        self.0.iter().position(|a| *a == axis)
    }

    /// The order that undoes this one.
    pub fn inverse(&self) -> AxisOrder {
        AxisOrder((0..self.0.len()).filter_map(|axis| self.place(axis)).collect())
    }

    /// Things in the program's order, put into this one.
    pub fn apply<T: Clone>(&self, items: &[T]) -> Vec<T> {
        self.0.iter().filter_map(|axis| items.get(*axis).cloned()).collect()
    }

    /// The letters of a layout that the program calls `name`, in this order: of `NCHW` in `[0, 2, 3, 1]`, `NHWC`.
    pub fn rename(&self, name: &str) -> String {
        self.apply(&name.chars().collect::<Vec<_>>()).into_iter().collect()
    }

    /// The order without some axes; those behind are counted anew.
    pub fn without(&self, gone: &[usize]) -> AxisOrder {
        let kept = self.0.iter().filter(|a| !gone.contains(a));
        AxisOrder(kept.map(|a| a - gone.iter().filter(|g| *g < a).count()).collect())
    }

    /// The order of a tensor that has axes `new` more, counted in the result: each lies where the program has it, the others
    /// fill the places between in their order.
    pub fn with_new(&self, new: &[usize]) -> AxisOrder {
        let ndim = self.0.len() + new.len();
        let old: Vec<usize> = (0..ndim).filter(|axis| !new.contains(axis)).collect();
        let mut rest = self.0.iter().filter_map(|axis| old.get(*axis).copied());
        let at = |place: usize| if new.contains(&place) { Some(place) } else { rest.next() };
        AxisOrder((0..ndim).filter_map(at).collect())
    }
}

/// How a value lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A tensor of known rank, its axes whole.
    Tensor(AxisOrder),
    /// A tensor of known rank, of which an axis is split into blocks.
    Packed(Packing),
    /// A tuple.
    Tuple(Vec<Layout>),
    /// A value without axes, or of unknown rank: it stays as it is.
    Plain,
}

impl From<Packing> for Layout {
    fn from(packing: Packing) -> Self {
        match packing.order() {
            Some(order) => Layout::Tensor(order.clone()),
            None => Layout::Packed(packing),
        }
    }
}

impl Layout {
    /// The program's own layout of a type.
    pub fn initial(ty: &Type) -> Layout {
        match ty {
            Type::Tensor(t) => {
                usize::try_from(t.ndim).map_or(Layout::Plain, |n| Layout::Tensor(AxisOrder::identity(n)))
            }
            Type::Tuple(t) => Layout::Tuple(t.fields.iter().map(Layout::initial).collect()),
            _ => Layout::Plain,
        }
    }

    /// How the axes lie, if it is a tensor's.
    pub fn packing(&self) -> Option<Packing> {
        match self {
            Layout::Tensor(order) => Some(order.clone().into()),
            Layout::Packed(packing) => Some(packing.clone()),
            _ => None,
        }
    }

    /// The order, if it is that of a tensor whose axes are whole.
    pub fn order(&self) -> Option<&AxisOrder> {
        match self {
            Layout::Tensor(order) => Some(order),
            _ => None,
        }
    }

    /// Whether everything lies as the program says.
    pub fn is_initial(&self) -> bool {
        match self {
            Layout::Tensor(order) => order.is_identity(),
            Layout::Packed(_) => false,
            Layout::Tuple(fields) => fields.iter().all(Layout::is_initial),
            Layout::Plain => true,
        }
    }
}

/// A call whose layouts are asked for.
pub struct LayoutCx<'a> {
    /// The call, with the program's own types.
    pub call: CallCx<'a>,
    /// The layouts that the user wants of this operator's arguments and result, if of this one: `["NHWC", "OHWI"]`, or with
    /// the result's as a third.
    pub desired: Option<&'a [String]>,
    /// How each argument lies at this point.
    pub args: &'a [Layout],
}

/// How a call is executed in another layout.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutPlan {
    /// How each argument must lie.
    pub args: Vec<Layout>,
    /// How the result lies.
    pub result: Layout,
    /// The call's attributes in that layout.
    pub attrs: Attrs,
    /// Arguments without layout that change, as the dimensions of a slice do.
    pub replaced: Vec<(usize, Expr)>,
}

/// How a call may be executed, given how its arguments lie.
pub type LayoutRule = fn(&LayoutCx) -> Result<LayoutPlan, OpError>;

impl LayoutCx<'_> {
    /// How argument `i` lies, if it is a tensor of known rank whose axes are whole.
    pub fn order(&self, i: usize) -> Option<&AxisOrder> {
        self.args.get(i).and_then(Layout::order)
    }

    /// The plan in which the call stays as the program says, and so do its arguments.
    pub fn unchanged(&self) -> Result<LayoutPlan, OpError> {
        let args = self.call.args.iter().map(|a| Layout::initial(&a.ty())).collect();
        let result = Layout::initial(&(self.call.def.infer)(&self.call)?);
        Ok(LayoutPlan { args, result, attrs: self.call.attrs.clone(), replaced: Vec::new() })
    }

    /// The dimensions of argument `i` as the program knows them.
    pub fn dims(&self, i: usize) -> Result<Option<Vec<PrimExpr>>, OpError> {
        Ok(self.call.operand(i)?.dims)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_follows_from_letters_and_leads_back() {
        let order = AxisOrder::between("NCHW", "NHWC").unwrap();
        assert_eq!(order.axes(), [0, 2, 3, 1]);
        assert_eq!(order.rename("OIHW"), "OHWI");
        assert_eq!(order.inverse().apply(&order.apply(&[10, 11, 12, 13])), [10, 11, 12, 13]);
        assert_eq!(AxisOrder::between("NCHW", "NHWD"), None);
        assert_eq!(AxisOrder::between("NCHW", "NHW"), None);
    }

    #[test]
    fn axes_come_and_go() {
        let order = AxisOrder::between("NCHW", "NHWC").unwrap();
        assert_eq!(order.without(&[1]).axes(), [0, 1, 2]);
        assert_eq!(order.without(&[2]).axes(), [0, 2, 1]);
        assert_eq!(order.with_new(&[0]).axes(), [0, 1, 3, 4, 2]);
        assert_eq!(order.with_new(&[2]).axes(), [0, 3, 2, 4, 1]);
        assert_eq!(order.with_new(&[2]).without(&[2]), order);
    }
}
