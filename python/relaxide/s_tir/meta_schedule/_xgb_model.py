"""The model that boosts trees, by the package xgboost."""

from typing import NamedTuple, Optional

import numpy as np

from . import cost_model


class XGBConfig(NamedTuple):
    """Parameters of xgboost, under its names."""

    max_depth: int = 10
    gamma: float = 0.001
    min_child_weight: float = 0
    eta: float = 0.2
    seed: int = 43
    nthread: Optional[int] = None
    tree_method: str = "auto"

    def to_dict(self):
        """What xgboost takes."""
        given = self._asdict()
        return {name: value for name, value in given.items() if value is not None}


class FeatureGroup:
    """The candidates of one module: an array of rows for each, and their times."""

    def __init__(self, group_hash, features, costs):
        self.group_hash, self.features, self.costs = group_hash, list(features), np.asarray(costs, dtype=float)
        self.min_cost = float(self.costs.min()) if len(self.costs) else 1.0

    def append(self, features, costs):
        """Add candidates."""
        self.features += list(features)
        self.costs = np.append(self.costs, costs)
        self.min_cost = float(self.costs.min())


class XGBModel(cost_model.PyCostModel):
    """Learns from features of stores with boosted trees. It needs the package xgboost: ``pip install xgboost``.

    Parameters
    ----------
    extractor : FeatureExtractor or "per-store-feature"
        What gives the rows of a candidate.
    config : XGBConfig
        Parameters of xgboost.
    num_warmup_samples : int
        Until so many were measured, scores are drawn.
    early_stopping_rounds, verbose_eval : int
        As xgboost takes them.
    average_peak_n : int
        Of how many picks the quality is told.
    adaptive_training : bool
        Whether it is trained anew only when enough new was measured.
    """

    def __init__(
        self,
        *,
        extractor="per-store-feature",
        config=XGBConfig(),
        num_warmup_samples=100,
        early_stopping_rounds=50,
        verbose_eval=25,
        average_peak_n=32,
        adaptive_training=True,
        num_tuning_cores=None,
        tree_method=None,
    ):
        try:
            import xgboost  # noqa: F401
        except ImportError as error:
            raise ImportError("XGBModel needs the package xgboost: pip install xgboost, or use cost_model='random'") from error
        from .feature_extractor import FeatureExtractor

        self.extractor = FeatureExtractor.create(extractor) if isinstance(extractor, str) else extractor
        config = config._replace(nthread=config.nthread or num_tuning_cores, tree_method=tree_method or config.tree_method)
        self.config, self.num_warmup_samples, self.average_peak_n = config, num_warmup_samples, average_peak_n
        self.early_stopping_rounds, self.verbose_eval, self.adaptive_training = early_stopping_rounds, verbose_eval, adaptive_training
        self.data, self.data_size, self.last_train_size, self.booster = {}, 0, 0, None

    def load(self, path):
        """Read a model, and what it was trained with."""
        import pickle

        with open(path, "rb") as file:
            state = pickle.load(file)  # noqa: S301 the file is one that `save` wrote
        self.data, self.data_size, raw = state["data"], state["size"], state["booster"]
        self.booster = self._loaded(raw) if raw is not None else None

    def save(self, path):
        """Write the model, and what it was trained with."""
        import pickle

        raw = None if self.booster is None else bytes(self.booster.save_raw())
        with open(path, "wb") as file:
            pickle.dump({"data": self.data, "size": self.data_size, "booster": raw}, file)

    @staticmethod
    def _loaded(raw):
        import xgboost

        booster = xgboost.Booster()
        booster.load_model(bytearray(raw))
        return booster

    def _rows(self, context, candidates):
        return [np.asarray(rows.numpy(), dtype="float32") for rows in self.extractor.extract_from(context, candidates)]

    def update(self, context, candidates, results):
        """Learn from what was measured."""
        from .utils import shash2hex

        if len(candidates) != len(results):
            raise ValueError(f"{len(candidates)} candidates and {len(results)} results")
        if not candidates:
            return
        costs = [float(np.median(result.run_secs)) if result.run_secs else 1e10 for result in results]
        key, rows = shash2hex(context.mod), self._rows(context, candidates)
        if key in self.data:
            self.data[key].append(rows, costs)
        else:
            self.data[key] = FeatureGroup(key, rows, costs)
        self.data_size += len(candidates)
        if self.adaptive_training and self.data_size - self.last_train_size < self.last_train_size / 5:
            return
        self.last_train_size = self.data_size
        self._train()

    def _train(self):
        import xgboost

        xs = [rows for group in self.data.values() for rows in group.features]
        ys = np.concatenate([group.min_cost / group.costs for group in self.data.values()])
        packed = cost_model.PackSum(xs, ys)
        matrix = xgboost.DMatrix(packed.rows)
        parameters = {**self.config.to_dict(), "disable_default_eval_metric": True}
        self.booster = xgboost.train(
            parameters, matrix, num_boost_round=200, obj=lambda predicted, _: packed.obj_square_error(predicted), verbose_eval=False
        )

    def predict(self, context, candidates):
        """A score for each candidate: drawn until enough was measured."""
        if self.data_size < self.num_warmup_samples or self.booster is None:
            return np.random.uniform(size=len(candidates))
        import xgboost

        packed = cost_model.PackSum(self._rows(context, candidates), None)
        return packed.predict_with_score(self.booster.predict(xgboost.DMatrix(packed.rows)))


__all__ = ["FeatureGroup", "XGBConfig", "XGBModel"]
