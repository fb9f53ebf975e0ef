"""The ONNX importer."""

import os

from ... import _core


def from_onnx(
    model,
    shape_dict=None,
    dtype_dict="float32",
    opset=None,
    keep_params_in_input=False,
    sanitize_input_names=True,
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

    Returns
    -------
    IRModule
        With one function, ``main``.
    """
    if isinstance(model, (str, os.PathLike)):
        source = os.fspath(model)
    elif isinstance(model, (bytes, bytearray)):
        source = bytes(model)
    elif hasattr(model, "SerializeToString"):
        source = model.SerializeToString()
    else:
        raise TypeError(f"expected an ONNX model, bytes or a path, got {type(model).__name__}")
    shapes = {name: list(shape) for name, shape in (shape_dict or {}).items()}
    return _core.from_onnx(source, shapes, opset, keep_params_in_input, sanitize_input_names)
