"""What sklearn-onnx writes with its default options: classifiers, regressors, transformers and pipelines of columns."""

import warnings

import numpy as np

ROWS = (1, 2, 7)


def data(columns=4, classes=3, text=False, rows=60, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, columns)).astype("float32")
    y = (np.abs(x[:, 0] * 2 + x[:, 1]) * classes / 3).astype(int) % classes
    y[:classes] = range(classes)
    return x, np.array(["ab", "c", "déf", "g h"])[y] if text else y


def feeds(columns, name="X", seed=1):
    rng = np.random.default_rng(seed)
    return [{name: rng.standard_normal((n, columns)).astype("float32")} for n in ROWS]


def estimators():
    from sklearn import discriminant_analysis, ensemble, gaussian_process, linear_model, naive_bayes, neighbors, neural_network, svm, tree
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor  # noqa: F401

    small = dict(random_state=0)
    classifiers = [
        linear_model.LogisticRegression(), linear_model.SGDClassifier(loss="log_loss", **small), linear_model.Perceptron(**small),
        linear_model.RidgeClassifier(), linear_model.PassiveAggressiveClassifier(**small), svm.SVC(**small),
        svm.SVC(probability=True, kernel="poly", **small), svm.LinearSVC(**small), svm.NuSVC(nu=0.1, **small),
        tree.DecisionTreeClassifier(max_depth=4, **small), tree.ExtraTreeClassifier(max_depth=4, **small),
        ensemble.RandomForestClassifier(5, max_depth=4, **small), ensemble.ExtraTreesClassifier(5, max_depth=4, **small),
        ensemble.GradientBoostingClassifier(n_estimators=5, **small), ensemble.HistGradientBoostingClassifier(max_iter=5, **small),
        ensemble.AdaBoostClassifier(n_estimators=4, **small), ensemble.BaggingClassifier(n_estimators=3, **small),
        ensemble.VotingClassifier([("a", linear_model.LogisticRegression()), ("b", tree.DecisionTreeClassifier(max_depth=3, **small))]),
        ensemble.VotingClassifier([("a", linear_model.LogisticRegression()), ("b", naive_bayes.GaussianNB())], voting="soft"),
        ensemble.StackingClassifier([("a", linear_model.LogisticRegression()), ("b", naive_bayes.GaussianNB())]),
        naive_bayes.GaussianNB(), naive_bayes.BernoulliNB(), neighbors.KNeighborsClassifier(3),
        neighbors.RadiusNeighborsClassifier(radius=9.0), neural_network.MLPClassifier((8,), max_iter=30, **small),
        discriminant_analysis.LinearDiscriminantAnalysis(), discriminant_analysis.QuadraticDiscriminantAnalysis(reg_param=0.1),
        OneVsRestClassifier(linear_model.LogisticRegression()), CalibratedClassifierCV(linear_model.LogisticRegression(), cv=2),
    ]
    regressors = [
        linear_model.LinearRegression(), linear_model.Ridge(), linear_model.Lasso(0.01), linear_model.ElasticNet(0.01),
        linear_model.BayesianRidge(), linear_model.HuberRegressor(), linear_model.SGDRegressor(**small), linear_model.PoissonRegressor(),
        linear_model.RANSACRegressor(**small), linear_model.TheilSenRegressor(**small), svm.SVR(), svm.NuSVR(), svm.LinearSVR(**small),
        tree.DecisionTreeRegressor(max_depth=4, **small), ensemble.RandomForestRegressor(5, max_depth=4, **small),
        ensemble.ExtraTreesRegressor(5, max_depth=4, **small), ensemble.GradientBoostingRegressor(n_estimators=5, **small),
        ensemble.HistGradientBoostingRegressor(max_iter=5, **small), ensemble.AdaBoostRegressor(n_estimators=4, **small),
        ensemble.BaggingRegressor(n_estimators=3, **small), ensemble.VotingRegressor([("a", linear_model.Ridge()), ("b", svm.SVR())]),
        ensemble.StackingRegressor([("a", linear_model.Ridge()), ("b", svm.SVR())]), neighbors.KNeighborsRegressor(3),
        neural_network.MLPRegressor(hidden_layer_sizes=(8,), max_iter=30, **small), gaussian_process.GaussianProcessRegressor(),
    ]
    return classifiers, regressors


def transformers():
    from sklearn import cluster, decomposition, feature_selection, impute, mixture, preprocessing, random_projection
    from sklearn.ensemble import IsolationForest
    from sklearn.neighbors import LocalOutlierFactor

    return [
        preprocessing.StandardScaler(), preprocessing.MinMaxScaler(clip=True), preprocessing.MaxAbsScaler(), preprocessing.RobustScaler(),
        preprocessing.Normalizer(), preprocessing.Normalizer("l1"), preprocessing.Binarizer(), preprocessing.PolynomialFeatures(2),
        preprocessing.PowerTransformer(), preprocessing.KBinsDiscretizer(3, encode="onehot-dense"), preprocessing.KBinsDiscretizer(3, encode="ordinal"),
        impute.SimpleImputer(), impute.KNNImputer(n_neighbors=2), decomposition.PCA(2), decomposition.TruncatedSVD(2),
        decomposition.KernelPCA(2, kernel="rbf"), cluster.KMeans(3, random_state=0), cluster.MiniBatchKMeans(3, random_state=0),
        feature_selection.SelectKBest(k=2), feature_selection.VarianceThreshold(), mixture.GaussianMixture(2, random_state=0),
        random_projection.GaussianRandomProjection(2, random_state=0), IsolationForest(n_estimators=5, random_state=0), LocalOutlierFactor(novelty=True),
    ]


def frames():
    """Pipelines over columns of texts and numbers, each an input of its own."""
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

    rng = np.random.default_rng(3)
    colors, towns = np.array(["red", "green", "blue"]), np.array(["x", "y", "zürich", "w"])
    rows = 50
    color, town = colors[rng.integers(3, size=rows)], towns[rng.integers(4, size=rows)]
    numbers = rng.standard_normal((rows, 2)).astype("float32")
    label = np.where((color == "red") ^ (numbers[:, 0] > 0), "yes", "no")
    table = np.empty((rows, 4), dtype=object)
    table[:, 0], table[:, 1], table[:, 2:] = color, town, numbers
    for encode in (OneHotEncoder(handle_unknown="ignore"), OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)):
        for model in (LogisticRegression(), RandomForestClassifier(4, random_state=0)):
            columns = ColumnTransformer([("cats", encode, [0, 1]), ("nums", make_pipeline(SimpleImputer(), StandardScaler()), [2, 3])])
            pipeline = make_pipeline(columns, model).fit(table, label)

            def one(n, rng=np.random.default_rng(5)):
                known = np.append(colors, "unseen")
                pick = lambda names: names[rng.integers(len(names), size=(n, 1))].astype(object)  # noqa: E731
                return {"color": pick(known), "town": pick(towns), "a": rng.standard_normal((n, 1)).astype("float32"), "b": rng.standard_normal((n, 1)).astype("float32")}

            yield f"columns-{type(encode).__name__}-{type(model).__name__}", pipeline, "frame", [one(n) for n in ROWS]
    words = ["good film", "bad film", "a good day", "The worst, ever!", "good good bad", "day one", "Ever so bad", "one film a day"]
    for make in (CountVectorizer(), CountVectorizer(ngram_range=(1, 2)), TfidfVectorizer(), TfidfVectorizer(stop_words="english"), TfidfVectorizer(analyzer="char", ngram_range=(2, 3))):
        text = np.array(words, dtype=object)
        pipeline = make_pipeline(make, LogisticRegression()).fit(text, ["p", "n", "p", "n", "n", "p", "n", "p"])
        trial = [{"text": np.array(words[:n], dtype=object).reshape(n, 1)} for n in (1, 3, 8)]
        yield f"text-{type(make).__name__}-{make.analyzer}-{make.ngram_range[1]}-{make.stop_words}", pipeline, "text", trial


def files():
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import DictionaryType, FloatTensorType, Int64TensorType, StringTensorType
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.preprocessing import LabelEncoder

    warnings.simplefilter("ignore")
    classifiers, regressors = estimators()
    any_rows = [("X", FloatTensorType([None, 4]))]
    for i, model in enumerate(classifiers):
        for classes, text in ((3, True), (2, True), (3, False), (2, False)):
            x, y = data(classes=classes, text=text)
            name = f"sklearn-{i:02d}-{type(model).__name__}-{classes}{'t' if text else ''}"
            yield name, lambda m=model, x=x, y=y: to_onnx(m.fit(x, y), initial_types=any_rows), feeds(4)
    for i, model in enumerate(regressors):
        x, _ = data()
        yield f"sklearn-r{i:02d}-{type(model).__name__}", lambda m=model, x=x: to_onnx(m.fit(x, x @ np.array([1, -2, 0.5, 0.25], "float32")), initial_types=any_rows), feeds(4)
    for i, model in enumerate(transformers()):
        x, y = data()
        yield f"sklearn-t{i:02d}-{type(model).__name__}", lambda m=model, x=x, y=y: to_onnx(m.fit(x, y), initial_types=any_rows), feeds(4)
    texts, floats = StringTensorType([None, 1]), FloatTensorType([None, 1])
    for name, pipeline, kind, trial in frames():
        types = [("color", texts), ("town", texts), ("a", floats), ("b", floats)] if kind == "frame" else [("text", texts)]
        yield f"sklearn-{name}", lambda p=pipeline, t=types: to_onnx(p, initial_types=t), trial
    yield "sklearn-LabelEncoder", lambda: to_onnx(LabelEncoder().fit(["b", "a", "c"]), initial_types=[("X", StringTensorType([None]))]), [{"X": np.array(v, dtype=object)} for v in (["a"], ["c", "b"], ["b", "b", "a", "c"])]
    yield "sklearn-DictVectorizer", lambda: to_onnx(DictVectorizer(sparse=False).fit([{"a": 1.0, "b": 2.0}, {"c": 3.0}]), initial_types=[("X", DictionaryType(StringTensorType([1]), FloatTensorType([1])))]), [{"X": {"a": 2.0}}, {"X": {"c": 1.0, "b": 4.0}}, {"X": {"d": 1.0}}]
    _ = Int64TensorType
