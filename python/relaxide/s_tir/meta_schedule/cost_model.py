"""Cost models: how fast candidates look before they are measured. Larger is faster."""

import numpy as np

from ...ir.utils import Outer


class CostModel:
    """The base of models."""

    def load(self, path):
        """Read what was learned from a file."""
        raise NotImplementedError(f"{type(self).__name__}.load")

    def save(self, path):
        """Write what was learned to a file."""
        raise NotImplementedError(f"{type(self).__name__}.save")

    def update(self, context, candidates, results):
        """Learn from what was measured."""
        raise NotImplementedError(f"{type(self).__name__}.update")

    def predict(self, context, candidates):
        """A score for each candidate, an array of float64."""
        raise NotImplementedError(f"{type(self).__name__}.predict")

    @staticmethod
    def create(kind, *args, **kwargs):
        """A model by name: ``"xgb"`` learns with the package xgboost, ``"random"`` guesses, ``"none"`` is no model."""
        if kind in ("mlp",):
            raise ValueError("the model 'mlp' needs weights that come with TVM's own tuner: use 'xgb' or 'random'")
        if kind == "xgb":
            # The number of cores is the tuner's name for it.
            kwargs.setdefault("num_tuning_cores", None)
            return XGBModel(*args, **kwargs)
        kwargs.pop("num_tuning_cores", None)
        if kind == "random":
            return RandomModel(*args, **kwargs)
        if kind == "none":
            return None
        raise ValueError(f"Unknown CostModel: {kind}; there are xgb, random, none")


class PyCostModel(Outer, CostModel):
    """The base of models of one's own."""


create = CostModel.create
#: What may be given for a model.
CostModel.CostModelType = CostModel


def max_curve(trial_scores):
    """The best score up to each trial, never below zero."""
    return np.maximum.accumulate(np.maximum(np.asarray(trial_scores, dtype=float), 0.0))


class RandomModel(PyCostModel):
    """Guesses numbers from 0 to ``max_range``; ``path`` is a file with the state of an earlier one."""

    def __init__(self, *, seed=None, path=None, max_range=100):
        self.random_state = np.random.RandomState(seed)
        self.max_range = max_range
        if path is not None:
            self.load(path)

    def load(self, path):
        """Read the state of the numbers."""
        kind, keys, *rest = np.load(path, allow_pickle=True).tolist()
        self.random_state.set_state((kind, np.asarray(keys), *rest))

    def save(self, path):
        """Write the state of the numbers."""
        kind, keys, *rest = self.random_state.get_state()
        np.save(path, np.array([kind, keys, *rest], dtype=object), allow_pickle=True)

    def update(self, context, candidates, results):
        """There is nothing to learn."""

    def predict(self, context, candidates):
        """Numbers."""
        return self.random_state.random(len(candidates)) * self.max_range


class PackSum:
    """Rows that add up to the scores of candidates: each candidate is the rows of its stores.

    ``xs`` has an array of rows for each candidate, ``ys`` their scores.
    """

    def __init__(self, xs, ys):
        self.ids = np.repeat(np.arange(len(xs)), [len(rows) for rows in xs])
        self.rows = np.concatenate(xs) if xs else np.zeros((0, 1))
        self.ys = None if ys is None else np.asarray(ys, dtype=float)

    def predict_with_score(self, pred):
        """The sums of what was predicted for rows."""
        return np.bincount(self.ids, weights=pred, minlength=int(self.ids.max(initial=-1)) + 1)

    def obj_square_error(self, ys_pred):
        """Gradient and curvature of the squared error, weighted by the score, for each row."""
        difference = self.predict_with_score(ys_pred) - self.ys
        weight = self.ys[self.ids]
        return 2 * difference[self.ids] * weight, 2 * weight

    def rmse(self, ys_pred):
        """``("p-rmse", root of the mean squared error)``."""
        return "p-rmse", float(np.sqrt(np.mean(np.square(self.predict_with_score(ys_pred) - self.ys))))

    def average_peak_score(self, ys_pred, n):
        """How close the best of the first 1 to ``n`` picks come to the best of all, on average."""
        order = np.argsort(-self.predict_with_score(ys_pred), kind="stable")[:n]
        n = min(n, len(self.ys))
        if not n or self.ys.max() <= 0:
            return f"a-peak@{n}", 0.0
        return f"a-peak@{n}", float(np.mean(max_curve(self.ys[order][:n]) / self.ys.max()))


def make_metric_sorter(focused_metric):
    """A key that sorts ``(name, value)`` with one metric first, and the validation's in front of the training's."""

    def key(named):
        name, _ = named
        data, _, metric = name.partition("-")
        return (metric != focused_metric and name != focused_metric, data, name)

    return key


from ._xgb_model import FeatureGroup, XGBConfig, XGBModel  # noqa: E402 it builds on what is above

__all__ = ["CostModel", "FeatureGroup", "PackSum", "PyCostModel", "RandomModel", "XGBConfig", "XGBModel", "create", "make_metric_sorter"]
__all__ += ["max_curve"]
