"""Sampling of tokens from distributions: by uniform numbers, among the likeliest."""

import numpy as np

from ... import op as _op
from ...expr import ShapeExpr, const
from ._values import wrap_nested


def _checked(tensor, name, dtypes, columns=None):
    """A matrix of one of some element types."""
    if tensor.ndim != 2:
        raise ValueError(f"{name} is a matrix, got {tensor}")
    if tensor.dtype not in dtypes:
        raise ValueError(f"{name} has the element type {' or '.join(dtypes)}, got {tensor.dtype}")
    if columns is not None and tensor.shape[1] != columns:
        raise ValueError(f"{name} has {columns} column, got {tensor}")
    return tensor._expr


def _rows(sample_indices, batch):
    """For each sample the row of its distribution; without indices each row has one."""
    if sample_indices is not None:
        return _checked(sample_indices, "sample_indices", ("int32", "int64"), 1)
    if not isinstance(batch, int):
        return _op.reshape(_op.arange(0, batch, 1, "int64"), [batch, 1])
    return const(np.arange(batch).reshape(-1, 1), "int64")


def multinomial_from_uniform(prob, uniform_sample, sample_indices=None, dtype="int64", name="multinomial_from_uniform"):
    """Samples from distributions.

    Parameters
    ----------
    prob : Tensor
        ``[batch, classes]``, rows with sum one.
    uniform_sample : Tensor
        ``[n, 1]``, uniform numbers between zero and one.
    sample_indices : Tensor, optional
        ``[n, 1]``, the row of each sample; without it ``n`` is ``batch``.
    dtype : str
        The element type of the result.

    Returns
    -------
    Tensor
        ``[n, 1]``, for each sample the first class up to which the probabilities sum to more than its uniform number.
    """
    rows = _rows(sample_indices, prob.shape[0])
    return wrap_nested(_op.multinomial_from_uniform(prob._expr, uniform_sample._expr, rows, dtype), name)


def _last_kept(cumulated, top_p, top_k, classes):
    """For each row the last position that stays: the first where the sum reaches ``top_p``, or the ``top_k``-th."""
    below = _op.sum(_op.astype(_op.less(cumulated, top_p), "int64"), axis=[1], keepdims=True)
    last = _op.minimum(below, _op.subtract(_op.astype(top_k, "int64"), const(1, "int64")))
    return _within(last, classes)


def _within(place, classes):
    """A position between the first class and the last, whose number may be a symbolic dimension."""
    if isinstance(classes, int):
        return _op.clip(place, 0, classes - 1)
    last = _op.subtract(_op.shape_to_tensor(ShapeExpr([classes])), const(1, "int64"))
    return _op.maximum(_op.minimum(place, last), const(0, "int64"))


def sample_top_p_top_k_from_sorted_prob(sorted_prob, sorted_index, top_p, top_k, uniform_sample, sample_indices=None):
    """Samples among the likeliest tokens: those whose probabilities sum to ``top_p``, at most ``top_k`` of them.

    Parameters
    ----------
    sorted_prob : Tensor
        ``[batch, classes]``, rows in falling order.
    sorted_index : Tensor
        ``[batch, classes]``, the tokens that they belong to.
    top_p, top_k : Tensor
        ``[batch, 1]``, the limits of each row.
    uniform_sample : Tensor
        ``[n, 1]``, uniform numbers between zero and one.
    sample_indices : Tensor, optional
        ``[n, 1]``, the row of each sample; without it ``n`` is ``batch``.

    Returns
    -------
    Tensor
        ``[n, 1]``, tokens.
    """
    probabilities = _checked(sorted_prob, "sorted_prob", ("float32", "float16"))
    tokens = _checked(sorted_index, "sorted_index", ("int32", "int64"))
    top_p, top_k = _checked(top_p, "top_p", (sorted_prob.dtype,), 1), _checked(top_k, "top_k", ("int32", "int64"), 1)
    uniform = _checked(uniform_sample, "uniform_sample", ("float32",), 1)
    classes = sorted_prob.shape[1]
    rows = _op.squeeze(_rows(sample_indices, sorted_prob.shape[0]), [1])
    cumulated = _op.cumsum(probabilities, axis=1)
    whole = _op.gather_elements(cumulated, _last_kept(cumulated, top_p, top_k, classes), axis=1)
    share = _op.divide(_op.take(cumulated, rows, axis=0), _op.take(whole, rows, axis=0))
    passed = _op.sum(_op.astype(_op.less_equal(share, uniform), "int64"), axis=[1], keepdims=True)
    place = _within(passed, classes)
    chosen = _op.gather_elements(_op.take(tokens, rows, axis=0), place, axis=1)
    return wrap_nested(_op.astype(chosen, "int64"), "sampled")


def renormalize_top_p_top_k_prob(prob, sorted_prob, top_p, top_k):
    """Distributions in which all but the likeliest tokens are zero (see :func:`sample_top_p_top_k_from_sorted_prob`).

    Parameters
    ----------
    prob, sorted_prob : Tensor
        ``[batch, classes]``, as they are and in falling order.
    top_p, top_k : Tensor
        ``[batch, 1]``, the limits of each row.

    Returns
    -------
    Tensor
        ``[batch, classes]``, rows with sum one; tokens as likely as the last that stays, stay too.
    """
    probabilities, order = _checked(prob, "prob", ("float32", "float16")), _checked(sorted_prob, "sorted_prob", (prob.dtype,))
    top_p, top_k = _checked(top_p, "top_p", (prob.dtype,), 1), _checked(top_k, "top_k", ("int32", "int64"), 1)
    cumulated = _op.cumsum(order, axis=1)
    least = _op.gather_elements(order, _last_kept(cumulated, top_p, top_k, prob.shape[1]), axis=1)
    kept = _op.where(_op.greater_equal(probabilities, least), probabilities, const(0, prob.dtype))
    return wrap_nested(_op.divide(kept, _op.sum(kept, axis=[1], keepdims=True)), "renormalized")


__all__ = ["multinomial_from_uniform", "renormalize_top_p_top_k_prob", "sample_top_p_top_k_from_sorted_prob"]
