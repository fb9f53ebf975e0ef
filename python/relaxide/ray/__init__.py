"""Models on the machines of a Ray cluster (PyPI's ``ray``): batches of data, a deployment that serves, measurements of a tuner.

::

    import ray, relaxide.ray

    model = relaxide.ray.put("model.so")                                     # once; its file is on each machine once, and mapped
    scored = relaxide.ray.predict(ray.data.read_parquet("rows/"), model, batch_size=256, concurrency=8)
    ray.serve.run(relaxide.ray.deployment(model, num_replicas=4))

Of Ray it asks for ``ray[data]``, and for ``ray[serve]`` where a deployment is made. On each machine of the cluster this package is
installed, in one version.
"""

from ._files import Shared, put
from ._predictor import Predictor, predict
from ._runner import RayRunner
from ._serving import deployment

__all__ = ["Predictor", "RayRunner", "Shared", "deployment", "predict", "put"]
