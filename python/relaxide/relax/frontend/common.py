"""What all importers share."""

from ...ir import IRModule


def detach_params(mod):
    """Take the weights that an importer has left in the attribute ``params`` of its functions out of a module.

    Returns
    -------
    tuple of the module without the attributes, and of the weights, lists of tensors by the names of the functions
    """
    from ...runtime import Tensor

    bare, params = IRModule(), {}
    for var, func in mod.functions_items():
        weights = (func.attrs or {}).get("params")
        if weights is not None:
            weights = list(weights)
            strange = [weight for weight in weights if not isinstance(weight, Tensor)]
            if strange:
                raise ValueError(f"the attribute params of {var.name_hint} holds {type(strange[0]).__name__}, not tensors alone")
            params[var.name_hint] = weights
            func = func.without_attr("params")
        bare[var] = func
    return bare, params


def autopad(
    bb, data, strides, kernel_shape, dilations=(1, 1), pad_type="constant", deconv=False, mode="SAME_UPPER", pad_value=0.0
):
    """Pad an image of layout NC… so that a window with these strides gives an output for every stride.

    ``pad_type`` is ``constant``, ``edge`` or ``reflect``; ``mode`` ends in ``UPPER`` or ``LOWER``, for the side that gets the odd
    element. With ``deconv`` the padding is that of the transposed window. Returns the padded tensor, emitted by ``bb``.
    """
    from ... import te, tirx, topi
    from ...error import OpAttributeInvalid

    if pad_type not in ("constant", "edge", "reflect"):
        raise OpAttributeInvalid(f"pad_type is {pad_type!r}; there are constant, edge and reflect")
    before, after = [0, 0], [0, 0]
    for length, stride, kernel, dilation in zip(list(data.ty.shape)[2:], strides, kernel_shape, dilations):
        window = (kernel - 1) * dilation + 1
        fixed = getattr(length, "value", None)
        if fixed is not None:
            rest = fixed % stride
            total = max(window - (stride if rest == 0 else rest), 0)
        else:
            rest = length % stride
            total = tirx.Select(rest == 0, max(window - stride, 0), tirx.max(window - rest, 0))
        total = kernel - 1 - total if deconv else total
        small = total // 2
        before.append(total - small if "LOWER" in mode else small)
        after.append(small if "LOWER" in mode else total - small)
    if pad_type == "constant":
        return bb.emit_te(topi.nn.pad, data, before, after, pad_value)

    def place(index, low, length):
        at = index - low
        if pad_type == "edge":
            return tirx.max(tirx.min(at, length - 1), 0)
        return tirx.Select(at < 0, -at, tirx.Select(at >= length, 2 * length - 2 - at, at))

    def padded(x):
        shape = [low + length + high for low, length, high in zip(before, x.shape, after)]
        return te.compute(shape, lambda *at: x(*map(place, at, before, x.shape)), name="padded")

    return bb.emit_te(padded, data)


__all__ = ["autopad", "detach_params"]
