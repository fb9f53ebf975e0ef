//! Which convolutions passes know.

use crate::Call;

/// Whether a convolution of two dimensions has one group, and its operands lie as ONNX and PyTorch have them.
pub(super) fn is_plain(call: &Call) -> bool {
    let is = |name, layout| call.attrs.str(name).is_none_or(|own| own.is_empty() || own == layout);
    let layouts = is("data_layout", "NCHW") && is("kernel_layout", "OIHW") && is("out_layout", "NCHW");
    call.op_name() == Some("nn.conv2d") && layouts && call.attrs.int("groups") == Some(1)
}
