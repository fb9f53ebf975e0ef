//! The hash that goes with [`compare`](super::compare): values that are equal there have equal hashes.

use std::collections::{HashMap, HashSet};

use super::{ObjectContents, check_depth, is_dynamic, parts};
use crate::abi::type_index;
use crate::borrow_cell::borrow_for;
use crate::object::ObjectRef;
use crate::reflect::flags;
use crate::structural::{bytes_hash, combine, key_hash};
use crate::type_attr::{self, Attr};
use crate::{Any, AnyView, BigInt, Error, ErrorKind, Function, Shape};

/// The hash of a value.
pub(crate) fn recursive_hash(value: &Any) -> Result<u64, Error> {
    Hasher::default().value(value)
}

#[derive(Default)]
struct Hasher {
    depth: usize,
    /// Objects that are being hashed.
    open: HashSet<usize>,
    /// The hashes of objects. They are kept alive so that addresses stay theirs.
    known: HashMap<usize, (ObjectRef, u64)>,
}

impl Hasher {
    fn value(&mut self, value: &Any) -> Result<u64, Error> {
        if let Some(text) = value.as_str() {
            return Ok(combine(type_index::STR as u64, bytes_hash(text.as_bytes())));
        }
        if let Some(bytes) = value.as_bytes() {
            return Ok(combine(type_index::BYTES as u64, bytes_hash(bytes)));
        }
        let Some(object) = value.as_object() else { return Ok(plain(value)) };
        let address = object.as_ptr().addr();
        if let Some((_, hash)) = self.known.get(&address) {
            return Ok(*hash);
        }
        let key = key_hash(object.type_key());
        // What contains itself counts as its type there.
        if !self.open.insert(address) {
            return Ok(key);
        }
        self.depth += 1;
        check_depth(self.depth)?;
        let hash = self.object(value, object, key)?;
        self.depth -= 1;
        self.open.remove(&address);
        self.known.insert(address, (object.clone(), hash));
        Ok(hash)
    }

    fn object(&mut self, value: &Any, object: &ObjectRef, key: u64) -> Result<u64, Error> {
        let index = object.type_index();
        match index {
            type_index::SHAPE => {
                let shape: Shape = value.to()?;
                let begin = combine(key, shape.len() as u64);
                return Ok(shape.iter().fold(begin, |hash, dim| combine(hash, *dim as u64)));
            }
            type_index::BIG_INT => return Ok(bytes_hash(BigInt::words_of(value).unwrap_or(&[]))),
            _ => {}
        }
        if let Some(hook) = type_attr::get(Attr::Hash, index) {
            let hook: Function = hook.to()?;
            let answer = |hasher: &mut Hasher, args: &[AnyView<'_>]| {
                let value = args.first().copied().unwrap_or_default().to_owned();
                Ok((hasher.value(&value)? as i64).into())
            };
            let hash: i64 = borrow_for(self, answer, |hash| hook.call(&[object.into(), hash.into()]))?.to()?;
            return Ok(hash as u64);
        }
        let compares_itself = || [Attr::Eq, Attr::Compare].iter().any(|attr| type_attr::get(*attr, index).is_some());
        if is_dynamic(index) && compares_itself() {
            let message = format!(
                "RecursiveHash: type '{}' defines __ffi_eq__ or __ffi_compare__ but not __ffi_hash__. Add a \
                 __ffi_hash__ hook to maintain the invariant RecursiveEq(a,b) => RecursiveHash(a)==RecursiveHash(b).",
                object.type_key()
            );
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        match parts(object, flags::HASH_OFF | flags::COMPARE_OFF)? {
            ObjectContents::Sequence(values) => {
                let begin = combine(key, values.len() as u64);
                values.iter().enumerate().try_fold(begin, |hash, (position, value)| {
                    Ok(combine(hash, combine(self.value(value)?, position as u64)))
                })
            }
            ObjectContents::Map(entries) => {
                let mut hashes = entries
                    .iter()
                    .map(|(key, value)| Ok(combine(self.value(key)?, self.value(value)?)))
                    .collect::<Result<Vec<u64>, Error>>()?;
                hashes.sort_unstable();
                Ok(hashes.into_iter().fold(combine(key, entries.len() as u64), combine))
            }
            ObjectContents::Fields(fields) => {
                fields.iter().try_fold(key, |hash, (_, value)| Ok(combine(hash, self.value(value)?)))
            }
        }
    }
}

fn plain(value: &Any) -> u64 {
    let index = value.type_index();
    let word = value.as_view().raw().word() as u64;
    let word = match index {
        type_index::FLOAT => match value.as_float().unwrap_or(0.0) {
            0.0 => 0,
            float => crate::field::float_bits(float),
        },
        type_index::BOOL => u64::from(word != 0),
        _ => word,
    };
    combine(index as u64, word)
}
