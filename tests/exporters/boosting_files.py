"""What CatBoost, LightGBM and XGBoost become with their converters' default options."""

import tempfile

import numpy as np

from sklearn_files import data, feeds


def catboost():
    import catboost

    import onnx

    def written(model):
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            model.save_model(file.name, format="onnx")
            return onnx.load(file.name)

    trial = feeds(4, "features")
    for classes in (2, 3):
        for text in (False, True):
            x, y = data(classes=classes, text=text)
            model = catboost.CatBoostClassifier(iterations=6, depth=3, verbose=0, allow_writing_files=False)
            yield f"catboost-c{classes}{'t' if text else ''}", lambda m=model, x=x, y=y: written(m.fit(x, y)), trial
    x, y = data()
    for loss in ("RMSE", "MAE", "Quantile:alpha=0.3", "MultiRMSE"):
        target = x[:, :2] if loss == "MultiRMSE" else x[:, 0] * 2 - x[:, 1]
        model = catboost.CatBoostRegressor(iterations=6, depth=3, verbose=0, allow_writing_files=False, loss_function=loss)
        yield f"catboost-r-{loss.split(':')[0]}", lambda m=model, t=target: written(m.fit(x, t)), trial


def others():
    import lightgbm
    import onnxmltools
    import xgboost
    from onnxmltools.convert.common.data_types import FloatTensorType

    types = [("X", FloatTensorType([None, 4]))]
    for classes in (2, 3):
        for text in (False, True):
            x, y = data(classes=classes, text=text)
            for boost in ("gbdt", "dart", "rf"):
                more = dict(bagging_freq=1, bagging_fraction=0.7) if boost == "rf" else {}
                model = lightgbm.LGBMClassifier(n_estimators=6, num_leaves=6, verbose=-1, min_child_samples=3, boosting_type=boost, **more)
                for zipmap in (True, False) if boost == "gbdt" else (True,):
                    yield f"lightgbm-{boost}-c{classes}{'t' if text else ''}{'' if zipmap else 'n'}", lambda m=model, x=x, y=y, z=zipmap: onnxmltools.convert_lightgbm(m.fit(x, y), initial_types=types, zipmap=z), feeds(4)
            if not text:
                model = xgboost.XGBClassifier(n_estimators=5, max_depth=3)
                yield f"xgboost-c{classes}", lambda m=model, x=x, y=y: onnxmltools.convert_xgboost(m.fit(x, y), initial_types=types), feeds(4)
    x, _ = data()
    for objective in ("regression", "poisson", "quantile", "huber", "tweedie"):
        y = np.abs(x[:, 0] * 2 - x[:, 1])
        model = lightgbm.LGBMRegressor(n_estimators=6, num_leaves=6, verbose=-1, min_child_samples=3, objective=objective)
        yield f"lightgbm-r-{objective}", lambda m=model, y=y: onnxmltools.convert_lightgbm(m.fit(x, y), initial_types=types), feeds(4)
    for booster in ("gbtree", "dart"):
        model = xgboost.XGBRegressor(n_estimators=5, max_depth=3, booster=booster)
        yield f"xgboost-r-{booster}", lambda m=model: onnxmltools.convert_xgboost(m.fit(x, x[:, 0]), initial_types=types), feeds(4)


def files():
    yield from catboost()
    yield from others()
