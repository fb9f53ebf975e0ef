"""A deployment of Ray Serve."""

import numpy as np

from ._files import _ray
from ._predictor import Predictor

#: Names of element types in the Open Inference Protocol.
_TYPES = {f"{kind}{bits}": f"{name}{bits}" for kind, name in (("INT", "int"), ("UINT", "uint"), ("FP", "float")) for bits in (8, 16, 32, 64)}
_TYPES = {**{kind: name for kind, name in _TYPES.items() if kind != "FP8"}, "BOOL": "bool"}
_NAMES = {name: kind for kind, name in _TYPES.items()}


class _Replica:
    """A process that serves."""

    def __init__(self, model, options):
        self._predictor = Predictor(model, keep=False, **options)

    def predict(self, **arrays):
        """Results by name, for calls by a handle."""
        return self._predictor(arrays)

    async def __call__(self, request):
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import JSONResponse

        try:
            arrays = dict(map(_array, (await request.json())["inputs"]))
            results = await run_in_threadpool(self._predictor, arrays)
        except (KeyError, TypeError, ValueError) as error:
            # A KeyError of a dictionary has the key alone.
            said = error.args[0] if error.args else error
            said = f"the request lacks {said!r}" if isinstance(error, KeyError) and " " not in str(said) else said
            return JSONResponse({"error": str(said)}, status_code=400)
        return JSONResponse({"outputs": [_written(name, value) for name, value in results.items()]})


def _array(item):
    kind = item["datatype"]
    if kind not in _TYPES:
        raise ValueError(f"{item['name']} has the datatype {kind!r}; there are {', '.join(_TYPES)}")
    array = np.asarray(item["data"], _TYPES[kind])
    return item["name"], array.reshape(item["shape"])


def _written(name, value):
    kind = _NAMES.get(str(value.dtype))
    if kind is None:
        raise ValueError(f"{name} has elements of {value.dtype}, which JSON has no name for")
    return {"name": name, "datatype": kind, "shape": list(value.shape), "data": value.ravel().tolist()}


def deployment(model, *, function="main", inputs=None, outputs=None, threads=1, **options):
    """An application of Ray Serve, for ``serve.run``.

    Its handle has ``predict.remote(x=array, …)``, which gives results by name; over HTTP it answers requests for inference in the JSON form of
    the Open Inference Protocol. (``relaxide serve`` has the whole protocol, for one machine.)

    Parameters
    ----------
    model, function, inputs, outputs, threads
        See :class:`Predictor`.
    options
        More for ``serve.deployment``, such as ``num_replicas``.
    """
    _ray()
    from ray import serve

    options.setdefault("name", "relaxide")
    options.setdefault("ray_actor_options", {"num_cpus": threads})
    made = serve.deployment(**options)(_Replica)
    return made.bind(model, {"function": function, "inputs": inputs, "outputs": outputs, "threads": threads})
