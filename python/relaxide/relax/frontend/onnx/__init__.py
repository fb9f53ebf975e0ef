"""The ONNX importer."""

import os

from .... import _core


def from_onnx(
    model,
    shape_dict=None,
    dtype_dict="float32",
    opset=None,
    keep_params_in_input=False,
    sanitize_input_names=True,
    *,
    dims=None,
):
    """Import an ONNX model.

    Parameters
    ----------
    model : onnx.ModelProto, bytes, str or path
        The model, its serialized form, or the file it is in.
    shape_dict : dict of str to list, optional
        Shapes of inputs by name; a dimension may be an int or the name of a symbolic dimension. Shapes that are not
        given are the model's own, unknown dimensions become symbolic.
    dtype_dict : str or dict of str to str
        Accepted for compatibility: types are read from the model.
    opset : int, optional
        Overrides the opset version that the model declares.
    keep_params_in_input : bool
        Make the weights parameters of ``main`` instead of constants.
    sanitize_input_names : bool
        Turn input names into identifiers.
    dims : dict of str to int or pair, optional
        What lengths symbolic dimensions of inputs may have, by their names: one length, or the least and the greatest, each of
        which may be ``None``: ``dims={"batch": (1, 8), "length": (None, 512)}``. Where greatest lengths are known, memory is
        planned before the program runs; greater ones do not fit it, which is an error of the run. The command refuses all
        lengths outside of their ranges. They are the attributes ``tir_var_upper_bound`` and ``tir_var_lower_bound``.

    Returns
    -------
    IRModule
        With one function, ``main``.
    """
    return imported(model, shape_dict, opset, keep_params_in_input, sanitize_input_names, dims)


def imported(model, shape_dict, opset=None, keep_params_in_input=False, sanitize_input_names=True, dims=None, apart=None):
    """As :func:`from_onnx`, with what is given apart from the model."""
    if isinstance(model, (str, os.PathLike)):
        source = os.fspath(model)
    elif isinstance(model, (bytes, bytearray)):
        source = bytes(model)
    elif hasattr(model, "SerializeToString"):
        source = _serialized(model)
    else:
        raise TypeError(f"expected an ONNX model, bytes or a path, got {type(model).__name__}")
    shapes = {name: list(shape) for name, shape in (shape_dict or {}).items()}
    return _core.from_onnx(source, shapes, dict(dims or {}), opset, keep_params_in_input, sanitize_input_names, apart)


def _serialized(model):
    try:
        return model.SerializeToString()
    except Exception as error:
        # Which exception it is, and whether it says that the message is too large, depends on the version of protobuf.
        raise ValueError(
            f"the model cannot be serialized ({error}). A message of protobuf holds at most 2 GB: save a larger model with its "
            "weights in a file of their own, `onnx.save(model, path, save_as_external_data=True)`, and give the path"
        ) from error
