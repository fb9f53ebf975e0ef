//! The server: who may come in, and what each session has.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`accept`] | listening, and going on whatever clients do |
//! | [`announce`] | being found through a tracker |
//! | [`greet`] | who may come in |
//! | [`children`], [`session`] | what a client gets once it is in |
//! | [`confine`] | a session's process, kept to its folder by the system |
//! | [`environment`] | the functions that each session has of its own |
//! | [`folder`] | the files of a session |
//! | [`policy`] | what a session may do |
//! | [`scratch`] | where sessions' folders are made |

pub mod accept;
pub mod announce;
pub mod children;
pub mod confine;
pub mod environment;
pub mod folder;
pub mod greet;
pub(crate) mod log;
pub mod policy;
pub mod scratch;
pub mod session;

use std::sync::Once;

use relaxide_ffi::{Error, Function, Shape, get_global, register_global};

/// Enters what servers offer among the global functions. Calling it again does nothing.
pub fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        relaxide_vm::register();
        enter("rpc.testing.GetShapeSize", Function::typed(|shape: Shape| Ok::<_, Error>(shape.len() as i64)));
        enter(
            "rpc.testing.GetShapeElem",
            Function::typed(|shape: Shape, index: i64| {
                let found = usize::try_from(index).ok().and_then(|index| shape.get(index).copied());
                found.ok_or_else(|| {
                    let message = format!("index {index} of a shape of {}", shape.len());
                    Error::new(relaxide_ffi::ErrorKind::IndexError, message)
                })
            }),
        );
    });
}

fn enter(name: &str, function: Function) {
    if get_global(name).is_none() {
        // Only another thread's registration of the same function can come between.
        let _ = register_global(name, function);
    }
}
