"""PyTorch, which is a package of its own."""


def torch():
    """The package, with an error that says what to do where it is missing."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            "PyTorch is not installed, and is needed to import a program that is in memory: `pip install torch`, or give the "
            "path of a program that `torch.export.save` wrote (.pt2)"
        ) from error
    return torch


def tensor_of(value):
    """A tensor that shares the memory of PyTorch's, where that lies as ours do."""
    from .... import runtime

    module = torch()
    value = value.detach()
    if value.layout is not module.strided:
        raise ValueError("sparse tensors are not supported")
    if value.device.type != "cpu":
        value = value.cpu()
    value = value.contiguous()
    if value.is_conj() or value.is_neg():
        value = value.resolve_conj().resolve_neg()
    return runtime.from_dlpack(value)
