"""References for the detection of objects: which boxes count, and which of those that overlap stay."""

import inspect
from types import SimpleNamespace

import numpy as np

from ..vision import non_max_suppression

__all__ = ["get_valid_counts_python", "non_max_suppression_python"]


def get_valid_counts_python(data, score_threshold=0, id_index=0, score_index=1):
    """The boxes that count, in front.

    Parameters
    ----------
    data : numpy.ndarray of shape ``(batch, boxes, elements)``
    score_threshold : float
        A box counts whose score is larger.
    id_index : int
        Where a box has its class, which is negative for none; -1 where boxes have no class.
    score_index : int
        Where a box has its score.

    Returns
    -------
    valid_count : numpy.ndarray of shape ``(batch,)``
    out_tensor : numpy.ndarray of the shape of ``data``
        The boxes that count, in order; -1 behind them.
    out_indices : numpy.ndarray of shape ``(batch, boxes)``
        Where they stood; -1 behind them.
    """
    counts = data[..., score_index] > score_threshold
    if id_index >= 0:
        counts &= data[..., id_index] >= 0
    out, places = np.full_like(data, -1), np.full(data.shape[:2], -1, dtype="int32")
    for image, kept in enumerate(counts):
        found = np.flatnonzero(kept)
        out[image, : len(found)] = data[image, found]
        places[image, : len(found)] = found
    return counts.sum(axis=1).astype("int32"), out, places


def _overlap(box, others):
    """The area that a box shares with each of others, over the area that they have together."""
    low, high = np.minimum(box[:2], box[2:]), np.maximum(box[:2], box[2:])
    lows, highs = np.minimum(others[:, :2], others[:, 2:]), np.maximum(others[:, :2], others[:, 2:])
    shared = np.prod(np.maximum(np.minimum(high, highs) - np.maximum(low, lows), 0), axis=1)
    together = np.prod(high - low) + np.prod(highs - lows, axis=1) - shared
    return np.divide(shared, together, out=np.zeros_like(shared), where=together > 0)


class _Boxes:
    """The boxes of one image by falling score, and which of them are still there."""

    def __init__(self, rows, count, top_k, coord_start, score_index, rival):
        count = min(count, top_k) if top_k > 0 else count
        self.places = np.argsort(-rows[:count, score_index])
        self.rows = rows[self.places].copy()
        self.alive = np.ones(count, dtype=bool)
        self._coordinates = slice(coord_start, coord_start + 4)
        self._score_index = score_index
        self._rival = rival

    @property
    def scores(self):
        return self.rows[:, self._score_index]

    def overlaps(self, chosen):
        """Those behind a box that it may push out, and how much each overlaps it."""
        behind = np.arange(len(self.rows)) > chosen
        rivals = np.flatnonzero(behind & self.alive & self._rival(self.rows[chosen], self.rows))
        return rivals, _overlap(self.rows[chosen, self._coordinates], self.rows[rivals, self._coordinates])

    def suppress(self, most, threshold):
        """Each box that stays pushes out those that overlap it."""
        kept = 0
        for chosen in range(len(self.rows)):
            if not self.alive[chosen]:
                continue
            if 0 <= most <= kept:
                self.alive[chosen] = False
                continue
            kept += 1
            rivals, overlap = self.overlaps(chosen)
            self.alive[rivals[overlap >= threshold]] = False

    def decay(self, most, threshold, sigma, least):
        """The best box that is left lowers the scores of those that overlap it, until none is good enough."""
        chosen = 0
        while chosen < len(self.rows) and not 0 <= most <= chosen:
            open_ = np.where(self.alive, self.scores, -np.inf)
            open_[:chosen] = -np.inf
            best = int(np.argmax(open_))
            if not open_[best] > least:
                break
            swapped = [best, chosen]
            for part in (self.rows, self.places, self.alive):
                part[[chosen, best]] = part[swapped]
            rivals, overlap = self.overlaps(chosen)
            above = self.scores[rivals] > least
            rivals, overlap = rivals[above], overlap[above]
            gone = rivals[overlap >= threshold]
            self.alive[gone] = False
            left = overlap < threshold
            self.scores[rivals[left]] *= np.exp(-0.5 / sigma * overlap[left] ** 2)
            chosen += 1
        self.alive[chosen:] = False


#: The reference takes what the operator takes.
_SIGNATURE = inspect.signature(non_max_suppression)


def non_max_suppression_python(*args, **kwargs):
    """Of boxes that overlap, the one with the best score.

    Parameters
    ----------
    data : numpy.ndarray of shape ``(batch, boxes, elements)``
    valid_count : numpy.ndarray of shape ``(batch,)``
        How many boxes of each image count.
    indices : numpy.ndarray of shape ``(batch, boxes)``
        Where the boxes stood.
    max_output_size, top_k : int
        How many boxes stay at most, and how many are looked at; -1 for all.
    iou_threshold : float
        From which share on two boxes overlap.
    force_suppress : bool
        Whether boxes of different classes push each other out.
    coord_start, score_index, id_index : int
        Where a box has its coordinates, its score and its class.
    return_indices : bool
        Whether places are returned instead of boxes.
    invalid_to_bottom : bool
        Whether boxes that stay come first.
    soft_nms_sigma : float
        Where it is positive, boxes that overlap less lose some of their score.
    score_threshold : float
        Below which score a box is left out then.

    Returns
    -------
    ``(places, counts)``, with the boxes in front where scores change; the boxes where ``return_indices`` is false.
    """
    given = _SIGNATURE.bind(*args, **kwargs)
    given.apply_defaults()
    data, how = given.arguments["data"], SimpleNamespace(**given.arguments)
    soft = how.soft_nms_sigma > 0
    out, places = np.full_like(data, -1), np.full(data.shape[:2], -1, dtype="int32")
    counts = np.zeros((len(data), 1), dtype="int32")

    def rival(box, others):
        return how.force_suppress | (how.id_index < 0) | (others[:, how.id_index] == box[how.id_index])

    for image, rows in enumerate(data):
        boxes = _Boxes(rows, int(how.valid_count[image]), how.top_k, how.coord_start, how.score_index, rival)
        if soft:
            boxes.decay(how.max_output_size, how.iou_threshold, how.soft_nms_sigma, how.score_threshold)
        else:
            boxes.suppress(how.max_output_size, how.iou_threshold)
        kept = np.flatnonzero(boxes.alive)
        counts[image] = len(kept)
        if how.return_indices:
            places[image, : len(kept)] = how.indices[image, boxes.places[kept]]
        to = np.arange(len(kept)) if how.invalid_to_bottom else kept
        out[image, to] = boxes.rows[kept]
    if not how.return_indices:
        return out
    return (out, places, counts) if soft else (places, counts)


non_max_suppression_python.__signature__ = _SIGNATURE
