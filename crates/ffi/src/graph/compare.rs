//! Equality and order of values by content, as Python's operators have them.
//!
//! Sequences compare element by element, maps only for equality, objects field by field unless their type has a hook.
//! Two graphs that contain themselves are equal if nothing else tells them apart; they have no order.

use std::cmp::Ordering;
use std::collections::HashSet;

use super::{ObjectContents, check_depth, is_dynamic, parts};
use crate::abi::type_index;
use crate::big_int::compare_words;
use crate::borrow_cell::borrow_for;
use crate::object::ObjectRef;
use crate::reflect::flags;
use crate::type_attr::{self, Attr};
use crate::{Any, AnyView, BigInt, DataType, Device, Error, ErrorKind, Function, Shape};

/// True if the values are equal.
pub(crate) fn recursive_equal(a: &Any, b: &Any) -> Result<bool, Error> {
    Ok(Comparer::new(true).values(a, b)? == Ordering::Equal)
}

/// How the values are ordered; an error if they have no order.
pub(crate) fn recursive_order(a: &Any, b: &Any) -> Result<Ordering, Error> {
    Comparer::new(false).values(a, b)
}

struct Comparer {
    /// True if only equality is asked for: then anything but `Equal` says that the values differ.
    equality: bool,
    depth: usize,
    /// Pairs of objects that are being compared.
    open: HashSet<(usize, usize)>,
}

fn no_order(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::TypeError, message)
}

fn words(value: &Any) -> Option<Vec<i64>> {
    match value.type_index() {
        type_index::INT => Some(vec![value.as_int()?]),
        type_index::BIG_INT => Some(value.to::<BigInt>().ok()?.words().to_vec()),
        _ => None,
    }
}

impl Comparer {
    fn new(equality: bool) -> Comparer {
        Comparer { equality, depth: 0, open: HashSet::new() }
    }

    /// The result for values that are not equal and that nothing orders.
    fn unordered(&self, why: impl FnOnce() -> String) -> Result<Ordering, Error> {
        if self.equality { Ok(Ordering::Greater) } else { Err(no_order(why())) }
    }

    fn values(&mut self, a: &Any, b: &Any) -> Result<Ordering, Error> {
        match (a.is_none(), b.is_none()) {
            (true, true) => return Ok(Ordering::Equal),
            (true, false) => return Ok(Ordering::Less),
            (false, true) => return Ok(Ordering::Greater),
            (false, false) => {}
        }
        if let (Some(a), Some(b)) = (a.as_str(), b.as_str()) {
            return Ok(a.as_bytes().cmp(b.as_bytes()));
        }
        if let (Some(a), Some(b)) = (a.as_bytes(), b.as_bytes()) {
            return Ok(a.cmp(b));
        }
        if (a.type_index() == type_index::BIG_INT || b.type_index() == type_index::BIG_INT)
            && let (Some(a), Some(b)) = (words(a), words(b))
        {
            return Ok(compare_words(&a, &b));
        }
        if a.type_index() != b.type_index() {
            return self.unordered(|| {
                format!("Cannot compare values of different types: {} vs {}", a.type_key(), b.type_key())
            });
        }
        match (a.as_object(), b.as_object()) {
            (Some(x), Some(y)) => self.objects(a, b, x, y),
            _ => self.plain(a, b),
        }
    }

    fn plain(&self, a: &Any, b: &Any) -> Result<Ordering, Error> {
        match a.type_index() {
            type_index::BOOL | type_index::INT => Ok(a.as_int().cmp(&b.as_int())),
            type_index::FLOAT => {
                let (a, b): (f64, f64) = (a.to()?, b.to()?);
                match a.partial_cmp(&b) {
                    Some(order) => Ok(order),
                    None if self.equality && a.is_nan() && b.is_nan() => Ok(Ordering::Equal),
                    None => self.unordered(|| "Cannot order NaN values".to_string()),
                }
            }
            type_index::DATA_TYPE => {
                let parts = |dtype: DataType| (dtype.code, dtype.bits, dtype.lanes);
                Ok(parts(a.to()?).cmp(&parts(b.to()?)))
            }
            type_index::DEVICE => {
                let parts = |device: Device| (device.device_type, device.device_id);
                Ok(parts(a.to()?).cmp(&parts(b.to()?)))
            }
            _ if a.as_view().raw().word() == b.as_view().raw().word() => Ok(Ordering::Equal),
            _ => self.unordered(|| format!("Cannot order values of type {}", a.type_key())),
        }
    }

    fn objects(&mut self, a: &Any, b: &Any, x: &ObjectRef, y: &ObjectRef) -> Result<Ordering, Error> {
        if x == y {
            return Ok(Ordering::Equal);
        }
        if a.type_index() == type_index::SHAPE {
            return Ok(a.to::<Shape>()?.as_slice().cmp(b.to::<Shape>()?.as_slice()));
        }
        let pair = (x.as_ptr().addr(), y.as_ptr().addr());
        if !self.open.insert(pair) {
            if self.equality {
                return Ok(Ordering::Equal);
            }
            let message = "RecursiveCompare: cyclic reference detected in ordering";
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        self.depth += 1;
        check_depth(self.depth)?;
        let order = self.open_objects(x, y)?;
        self.depth -= 1;
        self.open.remove(&pair);
        Ok(order)
    }

    fn open_objects(&mut self, x: &ObjectRef, y: &ObjectRef) -> Result<Ordering, Error> {
        if is_dynamic(x.type_index())
            && let Some(order) = self.by_hook(x, y)?
        {
            return Ok(order);
        }
        match (parts(x, flags::COMPARE_OFF)?, parts(y, flags::COMPARE_OFF)?) {
            (ObjectContents::Sequence(x), ObjectContents::Sequence(y)) => {
                for (a, b) in x.iter().zip(&y) {
                    match self.values(a, b)? {
                        Ordering::Equal => {}
                        order => return Ok(order),
                    }
                }
                Ok(x.len().cmp(&y.len()))
            }
            (ObjectContents::Map(x), ObjectContents::Map(y)) => self.maps(&x, &y),
            (ObjectContents::Fields(x), ObjectContents::Fields(y)) => {
                for ((_, a), (_, b)) in x.iter().zip(&y) {
                    match self.values(a, b)? {
                        Ordering::Equal => {}
                        order => return Ok(order),
                    }
                }
                Ok(Ordering::Equal)
            }
            _ => self.unordered(|| format!("Cannot order values of type {}", x.type_key())),
        }
    }

    fn maps(&mut self, x: &[(Any, Any)], y: &[(Any, Any)]) -> Result<Ordering, Error> {
        let differ = |comparer: &Self| comparer.unordered(|| "Cannot order Map/Dict values".to_string());
        if x.len() != y.len() {
            return differ(self);
        }
        let other: crate::Map = y.iter().cloned().collect();
        for (key, value) in x {
            let equal = match other.get(key.clone()) {
                Some(counterpart) => self.values(value, counterpart)? == Ordering::Equal,
                None => false,
            };
            if !equal {
                return differ(self);
            }
        }
        Ok(Ordering::Equal)
    }

    fn by_hook(&mut self, x: &ObjectRef, y: &ObjectRef) -> Result<Option<Ordering>, Error> {
        let index = x.type_index();
        if self.equality
            && let Some(hook) = type_attr::get(Attr::Eq, index)
        {
            let hook: Function = hook.to()?;
            let equal: bool =
                borrow_for(self, Comparer::answer_equal, |equal| hook.call(&[x.into(), y.into(), equal.into()]))?
                    .to()?;
            return Ok(Some(if equal { Ordering::Equal } else { Ordering::Greater }));
        }
        let Some(hook) = type_attr::get(Attr::Compare, index) else { return Ok(None) };
        let hook: Function = hook.to()?;
        let order: i64 =
            borrow_for(self, Comparer::answer_order, |compare| hook.call(&[x.into(), y.into(), compare.into()]))?
                .to()?;
        Ok(Some(order.cmp(&0)))
    }

    fn pair(args: &[AnyView<'_>]) -> Result<(Any, Any), Error> {
        match args {
            [a, b] => Ok((a.to_owned(), b.to_owned())),
            _ => Err(Error::new(ErrorKind::TypeError, format!("expected 2 arguments but got {}", args.len()))),
        }
    }

    fn answer_equal(&mut self, args: &[AnyView<'_>]) -> Result<Any, Error> {
        let (a, b) = Comparer::pair(args)?;
        Ok((self.values(&a, &b)? == Ordering::Equal).into())
    }

    fn answer_order(&mut self, args: &[AnyView<'_>]) -> Result<Any, Error> {
        let (a, b) = Comparer::pair(args)?;
        Ok((self.values(&a, &b)? as i8).into())
    }
}
