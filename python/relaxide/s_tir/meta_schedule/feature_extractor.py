"""What cost models see of a schedule: a row of numbers for each store."""

import math

import numpy as np

from ...ir.prim import BinaryOpExpr, BufferLoad, CmpExpr, LogicalExpr, PrimCall, Select
from ...ir.utils import Outer
from ...runtime import tensor
from ...tirx import BufferStore, For, ForKind, PrimFunc
from ...tirx._walk import children, operands


class FeatureExtractor:
    """The base of extractors."""

    def extract_from(self, context, candidates):
        """A tensor for each candidate, with a row for each of its stores."""
        raise NotImplementedError(f"{type(self).__name__}.extract_from")

    @staticmethod
    def create(kind, *args, **kwargs):
        """An extractor by name: ``"per-store-feature"``."""
        if kind != "per-store-feature":
            raise ValueError(f"Unknown FeatureExtractor: {kind}; there is 'per-store-feature'")
        return PerStoreFeature(*args, **kwargs)


class PyFeatureExtractor(Outer, FeatureExtractor):
    """The base of extractors of one's own."""


#: What may be given for an extractor.
FeatureExtractor.FeatureExtractorType = FeatureExtractor

_KINDS = (ForKind.SERIAL, ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.UNROLLED, ForKind.THREAD_BINDING)
#: Numbers of a row that are about the store, and about each buffer it touches.
_OF_STORE, _OF_BUFFER = 16, 5


class PerStoreFeature(FeatureExtractor):
    """Rows of what a store computes, the loops around it, and what it touches of each buffer.

    A row has the logarithms (base 2, of the number and one) of: arithmetic, comparisons, choices and calls of one element, and of all;
    for each kind of loop the product of the lengths and their number; for the first ``buffers_per_store`` buffers, largest first, the
    bytes that are touched in all and in the innermost loop, reads, writes, and reuse; and ``arith_intensity_curve_num_samples`` samples of
    arithmetic per byte from the innermost loops outwards. The rows are not those of TVM's extractor: models are not exchanged with it.

    ``cache_line_bytes`` is what bytes are counted in; ``extract_workload`` adds the numbers of the module before it was scheduled.
    """

    def __init__(self, buffers_per_store=5, arith_intensity_curve_num_samples=10, cache_line_bytes=64, extract_workload=False):
        self.buffers_per_store, self.cache_line_bytes = buffers_per_store, cache_line_bytes
        self.arith_intensity_curve_num_samples, self.extract_workload = arith_intensity_curve_num_samples, extract_workload
        self.feature_vector_length = _OF_STORE + _OF_BUFFER * buffers_per_store + arith_intensity_curve_num_samples
        self.feature_vector_length *= 2 if extract_workload else 1

    def extract_from(self, context, candidates):
        """A tensor of float64 for each candidate."""
        before = self._rows(context.mod).sum(axis=0, keepdims=True) if self.extract_workload else None
        made = []
        for candidate in candidates:
            rows = self._rows(candidate.sch.mod)
            made.append(tensor(rows if before is None else np.concatenate([rows, np.repeat(before, len(rows), axis=0)], axis=1)))
        return made

    def _rows(self, mod):
        found = []
        for func in mod.functions.values():
            if isinstance(func, PrimFunc):
                self._visit(func.body, [], found)
        length = _OF_STORE + _OF_BUFFER * self.buffers_per_store + self.arith_intensity_curve_num_samples
        return np.array(found, dtype="float64") if found else np.zeros((1, length))

    def _visit(self, stmt, loops, found):
        if isinstance(stmt, BufferStore):
            found.append(self._row(stmt, loops))
        inner = [*loops, stmt] if isinstance(stmt, For) else loops
        for part in children(stmt):
            self._visit(part, inner, found)

    def _row(self, store, loops):
        counts, loads = _counted(store.value)
        lengths = [getattr(loop.extent, "value", 1) or 1 for loop in loops]
        total = math.prod(lengths)
        row = [*counts, sum(counts) * total, total]
        for kind in _KINDS:
            own = [length for loop, length in zip(loops, lengths) if loop.kind is kind]
            row += [math.prod(own) if own else 0, len(own)]
        touched = {}
        for buffer, side in [*((load.buffer, 0) for load in loads), (store.buffer, 1)]:
            touched.setdefault(hash(buffer), (buffer, [0, 0]))[1][side] += 1
        parts = sorted((self._buffer(*one, total, lengths) for one in touched.values()), reverse=True)[: self.buffers_per_store]
        for part in parts + [(0,) * _OF_BUFFER] * (self.buffers_per_store - len(parts)):
            row += part
        return [math.log2(1 + abs(value)) for value in row + self._curve(sum(counts), lengths, touched.values())]

    def _buffer(self, buffer, sides, total, lengths):
        size = (buffer.dtype.bits + 7) // 8
        whole = size * math.prod(getattr(dim, "value", 1) or 1 for dim in buffer.shape)
        bytes_in_all = min(whole, size * total)
        lines = math.ceil(bytes_in_all / self.cache_line_bytes)
        return (bytes_in_all, lines, sides[0], sides[1], size * total / max(bytes_in_all, 1))

    def _curve(self, arithmetic, lengths, touched):
        samples, inner = [], 1
        steps = list(reversed(lengths)) or [1]
        for index in range(self.arith_intensity_curve_num_samples):
            if index < len(steps):
                inner *= steps[index]
            size = sum(min(math.prod(getattr(dim, "value", 1) or 1 for dim in b.shape), inner) * (b.dtype.bits + 7) // 8 for b, _ in touched)
            samples.append(arithmetic * inner / max(size, 1))
        return samples


def _counted(value):
    """``([arithmetic, comparisons, choices, calls], loads)`` of a scalar."""
    counts, loads, pending = [0, 0, 0, 0], [], [value]
    while pending:
        one = pending.pop()
        pending.extend(operands(one))
        if isinstance(one, BufferLoad):
            loads.append(one)
        elif isinstance(one, (CmpExpr, LogicalExpr)):
            counts[1] += 1
        elif isinstance(one, Select):
            counts[2] += 1
        elif isinstance(one, BinaryOpExpr):
            counts[0] += 1
        elif isinstance(one, PrimCall):
            counts[3] += 1
    return counts, loads


class RandomFeatureExtractor(PyFeatureExtractor):
    """Rows of random numbers, up to ``max_block_num`` of ``feature_size`` each."""

    def __init__(self, *, feature_size=30, max_block_num=5, seed=0):
        self.max_block_num, self.feature_size = max_block_num, feature_size
        np.random.seed(seed)

    def extract_from(self, context, candidates):
        """A tensor of float64 for each candidate."""
        shapes = [(np.random.randint(1, self.max_block_num + 1), self.feature_size) for _ in candidates]
        return [tensor(np.random.rand(*shape)) for shape in shapes]


__all__ = ["FeatureExtractor", "PerStoreFeature", "PyFeatureExtractor", "RandomFeatureExtractor"]
