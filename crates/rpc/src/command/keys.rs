//! `rpc keygen`.

use super::Failed;

#[cfg(not(feature = "secure"))]
/// Says that there are no keys.
pub fn run(_words: &[String]) -> Result<(), Failed> {
    Err("this build has TVM's protocol only: it was made without the feature `secure`".to_owned().into())
}
