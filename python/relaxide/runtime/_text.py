"""Tensors of texts, to and from numpy."""

from ..ffi import Object, Shape, get_global_func, register_object


@register_object("relaxide.TextTensor", init=False)
class TextTensor(Object):
    """A tensor of texts: what models take and return where ONNX has tensors of strings.

    ``TextTensor(array)`` copies whatever numpy makes an array of: texts in lists, or an array of ``str``, ``bytes`` (UTF-8) or objects.
    """

    def __init__(self, array):
        import numpy as np

        array = np.asarray(array)
        texts = [_text(item) for item in array.reshape(-1).tolist()]
        make = get_global_func("relaxide.vm.text_tensor_of")
        self.__init_handle_by_constructor__(make, Shape(array.shape), texts)

    def numpy(self):
        """A copy as a numpy array of objects, which are ``str``."""
        import numpy as np

        array = np.empty(len(self.texts), dtype=object)
        array[:] = [str(text) for text in self.texts]
        return array.reshape(tuple(self.shape))

    def __len__(self):
        if len(self.shape) == 0:
            raise TypeError("a tensor without dimensions has no length")
        return self.shape[0]

    def __repr__(self):
        return f"TextTensor({self.numpy().tolist()!r})"


def is_text(array):
    """Whether a numpy array holds texts."""
    return array.dtype.kind in "UST" or (array.dtype.kind == "O" and all(isinstance(a, (str, bytes)) for a in array.flat))


def _text(item):
    if isinstance(item, bytes):
        return item.decode()
    if isinstance(item, str):
        return str(item)
    raise TypeError(f"a tensor of texts cannot hold {item!r}, of type {type(item).__name__}")


__all__ = ["TextTensor"]
