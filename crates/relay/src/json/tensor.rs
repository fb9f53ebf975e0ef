//! Tensors as text: the saved form in base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use relaxide_ffi::{Error, ErrorKind, Tensor};

/// The tensor of a text.
pub fn from_base64(text: &str) -> Result<Tensor, Error> {
    let invalid = |why: String| Error::new(ErrorKind::ValueError, format!("a saved tensor: {why}"));
    let bytes = STANDARD.decode(text.trim()).map_err(|e| invalid(e.to_string()))?;
    relaxide_relay_vm::params::tensor_from_bytes(&bytes).map_err(|e| invalid(e.to_string()))
}

/// The text of a tensor.
pub fn to_base64(tensor: &Tensor) -> Result<String, Error> {
    relaxide_relay_vm::params::tensor_to_bytes(tensor).map(|bytes| STANDARD.encode(bytes))
}
