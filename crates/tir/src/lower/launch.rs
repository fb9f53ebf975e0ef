//! What code generation knows of a function of a device, and how the function says it.
//!
//! A launch is a kernel like any other, whose attributes say what a call of it is: so it goes through passes, is printed and is read again.
//!
//! | attribute | |
//! | --- | --- |
//! | `relaxide.launch_of` | the kernel that it is a part of |
//! | `tirx.kernel_launch_params` | the thread axes whose extents follow the parameters in a call |
//! | `relaxide.launch_threads` | threads of a block, where their number is known |
//! | `relaxide.launch_shared_bytes` | bytes that the threads of a block share |
//! | `relaxide.launch_is_wide` | that it is only called where the other of its loop cannot count in 32 bits |
//! | `relaxide.launch_faults` | what its checks say: kind and message of an error, or the name of what an index is outside of |

use relaxide_ffi::Ref;
use relaxide_ir::{AttrValue, Buffer};

use crate::PrimFunc;

const LAUNCH_OF: &str = "relaxide.launch_of";
const TAGS: &str = "tirx.kernel_launch_params";
const THREADS: &str = "relaxide.launch_threads";
const SHARED_BYTES: &str = "relaxide.launch_shared_bytes";
const IS_WIDE: &str = "relaxide.launch_is_wide";
const FAULTS: &str = "relaxide.launch_faults";

/// Words in a buffer of faults: which check it was, from 1; an index; an extent.
pub const FAULT_WORDS: i64 = 3;

/// A function of a device.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Its name.
    pub name: String,
    /// The name of the kernel that it is a part of.
    pub kernel: String,
    /// Parameters, each with its buffer if it is memory, and the loops.
    pub func: PrimFunc,
    /// The thread axes whose extents follow the parameters in a call.
    pub tags: Vec<String>,
    /// What its checks say, in the order of their numbers.
    pub faults: Vec<Fault>,
    /// Where it says which of them failed; the last parameter.
    pub fault: Option<Ref<Buffer>>,
    /// Threads of a block, where their number is known.
    pub threads: Option<i64>,
    /// Bytes that the threads of a block share.
    pub shared_bytes: i64,
    /// Whether it is only called where the other function of its loop cannot count in 32 bits.
    pub is_wide: bool,
}

/// What a check of a device says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// An index of something is outside of its extent.
    Index(String),
    /// A condition does not hold: the kind of error, and the message.
    Assertion(String, String),
}

impl Launch {
    /// What a function says of itself; nothing if it is none of a device.
    pub fn of(func: &PrimFunc) -> Option<Launch> {
        let attrs = &func.attrs;
        let (kernel, name) = (attrs.str(LAUNCH_OF)?.to_string(), func.global_symbol()?.to_string());
        let faults: Option<Vec<Fault>> = list(attrs.get(FAULTS)).iter().map(Fault::of).collect();
        let tags = list(attrs.get(TAGS)).iter().map(|tag| text(tag).map(str::to_string)).collect::<Option<_>>();
        let faults = faults?;
        let fault = if faults.is_empty() { None } else { func.buffers.last().cloned().flatten() };
        let (threads, shared_bytes) = (attrs.int(THREADS), attrs.int(SHARED_BYTES).unwrap_or(0));
        let is_wide = attrs.bool(IS_WIDE) == Some(true);
        Some(Launch { name, kernel, func: func.clone(), tags: tags?, faults, fault, threads, shared_bytes, is_wide })
    }

    /// The same, whose function says it.
    pub(super) fn described(mut self) -> Launch {
        let tags: Vec<AttrValue> = self.tags.iter().map(|tag| tag.as_str().into()).collect();
        let mut attrs = self.func.attrs.with(LAUNCH_OF, self.kernel.as_str()).with(TAGS, AttrValue::List(tags));
        if let Some(threads) = self.threads {
            attrs = attrs.with(THREADS, threads);
        }
        if self.shared_bytes > 0 {
            attrs = attrs.with(SHARED_BYTES, self.shared_bytes);
        }
        if self.is_wide {
            attrs = attrs.with(IS_WIDE, true);
        }
        if !self.faults.is_empty() {
            attrs = attrs.with(FAULTS, AttrValue::List(self.faults.iter().map(Fault::to_attr).collect()));
        }
        self.func.attrs = attrs;
        self
    }
}

impl Fault {
    fn to_attr(&self) -> AttrValue {
        match self {
            Fault::Index(what) => what.as_str().into(),
            Fault::Assertion(kind, message) => AttrValue::List(vec![kind.as_str().into(), message.as_str().into()]),
        }
    }

    fn of(value: &AttrValue) -> Option<Fault> {
        match value {
            AttrValue::List(items) => {
                let [kind, message] = items.as_slice() else { return None };
                Some(Fault::Assertion(text(kind)?.to_string(), text(message)?.to_string()))
            }
            other => Some(Fault::Index(text(other)?.to_string())),
        }
    }
}

fn text(value: &AttrValue) -> Option<&str> {
    match value {
        AttrValue::Str(text) => Some(text),
        _ => None,
    }
}

fn list(value: Option<&AttrValue>) -> &[AttrValue] {
    match value {
        Some(AttrValue::List(items)) => items,
        _ => &[],
    }
}
