"""Layouts in Trainium's memories: 128 partitions, and banks of partial sums within each."""

import math
import re

from ..sym import Analyzer
from ._layout_spec import row_major
from .layout import Iter, TileLayout

PARTITIONS = 128


def trainium(annotation, shape):
    """See :meth:`TileLayout.trainium`."""
    analyzer = Analyzer()
    assert re.fullmatch("[PF]*", annotation), f"annotation {annotation} must be a string of 'P' and 'F'"
    assert len(annotation) == len(shape), f"annotation {annotation} and shape {shape} must have the same length"
    over = [dim for dim, letter in zip(shape, annotation) if letter == "P"]
    rounds = None
    if len(over) == 1:
        fits = analyzer.can_prove(over[0] <= PARTITIONS)
        assert fits or analyzer.can_prove(over[0] % PARTITIONS == 0), f"{over[0]} partitions are no multiple of {PARTITIONS}, nor at most that"
        rounds = over[0] // PARTITIONS if analyzer.can_prove(over[0] > PARTITIONS) else None
    elif over:
        assert analyzer.can_prove(math.prod(over) <= PARTITIONS), f"{math.prod(over)} partitions are more than {PARTITIONS}"
    # Rounds over the partitions have the largest step within them.
    within = [] if rounds is None else [rounds]
    within += [dim for dim, letter in zip(shape, annotation) if letter == "F"]
    over = over if rounds is None else [PARTITIONS]
    steps = {"P": iter(row_major(over)), "F": iter(row_major(within))}
    round_step = None if rounds is None else next(steps["F"])
    shard = []
    for letter, dim in zip(annotation, shape):
        if letter == "P" and rounds is not None:
            shard += [Iter(rounds, round_step, "F"), Iter(PARTITIONS, next(steps["P"]), "P")]
        else:
            shard.append(Iter(dim, next(steps[letter]), letter))
    return TileLayout.from_iters(shard)


def to_psum(layout):
    """See :meth:`TileLayout.to_psum`."""
    analyzer = Analyzer()
    bank = TileLayout.kPSUMMaxElemPerBank
    shard = []
    for one in layout.shard:
        if one.axis.name != "F":
            shard.append(one)
        elif analyzer.can_prove(one.stride % bank == 0):
            shard.append(Iter(one.extent, analyzer.simplify(one.stride // bank), "Bank"))
        else:
            per_bank = analyzer.simplify(bank // one.stride)
            whole = analyzer.can_prove(bank % one.stride == 0)
            few = whole and analyzer.can_prove(one.extent < per_bank)
            assert few or (whole and analyzer.can_prove(one.extent % per_bank == 0)), f"layout {layout} can not be converted to psum layout"
            shard += [one] if few else [Iter(analyzer.simplify(one.extent // per_bank), 1, "Bank"), Iter(per_bank, one.stride, "F")]
    return TileLayout.from_iters(shard)
