"""Weights as TVM's programs for browsers read them: files of raw data, and a text that says what stands where.

The folder holds ``tensor-cache.json`` (``metadata``, and ``records``: one for each file, with one for each tensor in it) and files
``params_shard_N.bin``. Where float32 was shortened to bfloat16 (``f32-to-bf16``), ``tensor-cache-b16.json`` describes the same files as
tensors of bfloat16.
"""

import hashlib
import json
import os
from collections.abc import Mapping

import numpy as np

from ..runtime import Tensor, empty

_FORMATS = ("raw", "f32-to-bf16")


def _convert_f32_to_bf16(value):
    """The upper halves of float32, rounded to the nearest, the even one of two; what would become infinite is cut off."""
    bits = np.ascontiguousarray(value).view("uint32").astype("uint64")
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    keep = ((rounded & 0x7FFF) >= 0x7F80) | ~np.isfinite(value)
    return np.where(keep, bits >> 16, rounded).astype("uint16")


def _convert_bf16_to_f32(halves):
    return (halves.astype("uint32") << 16).view("float32")


def _digest(path):
    with open(path, "rb") as file:
        return hashlib.md5(file.read(), usedforsecurity=False).hexdigest()


class TensorCacheShardingManager:
    """Writes tensors into files of at most ``shard_cap_nbytes``, and keeps what stands where.

    ``initial_shard_records`` are the records of files that are there, whose tensors may be replaced.
    """

    def __init__(self, cache_dir, prefix, shard_cap_nbytes, initial_shard_records=None):
        self.cache_dir, self.prefix, self.shard_cap_nbytes = cache_dir, prefix, shard_cap_nbytes
        self.shard_records = list(initial_shard_records or ())
        self._held, self._held_records, self._changed = bytearray(), [], set()
        self._of_name = {record["name"]: (shard, record) for shard in self.shard_records for record in shard["records"]}

    @property
    def pending_nbytes(self):
        """How many bytes wait for a file."""
        return len(self._held)

    @property
    def counter(self):
        """How many files there are."""
        return len(self.shard_records)

    def append_or_update(self, data, name, shape, dtype, encode_format, allow_update=False):
        """Add a tensor of raw ``data``; one of a name that is there takes its place where ``allow_update`` says so."""
        record = {"name": name, "shape": list(shape), "dtype": dtype, "format": encode_format, "nbytes": len(data)}
        if name in self._of_name:
            if not allow_update:
                raise ValueError(f"Duplicate name {name} found in the cache.")
            return self.update_single_record(record, data)
        if self._held and self.pending_nbytes + len(data) > self.shard_cap_nbytes:
            self.commit()
        record["byteOffset"] = self.pending_nbytes
        self._held += data
        self._held_records.append(record)
        self._of_name[name] = (None, record)
        return None

    def update_single_record(self, rec, data):
        """Put other data, of the same size, in the place of a tensor's."""
        shard, old = self._of_name[rec["name"]]
        if old["nbytes"] != len(data):
            raise ValueError(f"{rec['name']} has {old['nbytes']} bytes in the cache, and cannot be replaced by {len(data)}")
        begin = old["byteOffset"]
        if shard is None:
            self._held[begin : begin + len(data)] = data
        else:
            with open(os.path.join(self.cache_dir, shard["dataPath"]), "r+b") as file:
                file.seek(begin)
                file.write(data)
            self._changed.add(shard["dataPath"])
        old.update(rec, byteOffset=begin)

    def commit(self):
        """Write what waits for a file."""
        if not self._held_records:
            return
        path = f"{self.prefix}_{self.counter}.bin"
        with open(os.path.join(self.cache_dir, path), "wb") as file:
            file.write(self._held)
        shard = {"dataPath": path, "format": "raw-shard", "nbytes": len(self._held), "records": self._held_records}
        shard["md5sum"] = _digest(os.path.join(self.cache_dir, path))
        self.shard_records.append(shard)
        self._of_name.update({record["name"]: (shard, record) for record in self._held_records})
        self._held, self._held_records = bytearray(), []

    def finish(self):
        """Write what is left; the records of all files."""
        self.commit()
        for shard in self.shard_records:
            if shard["dataPath"] in self._changed:
                shard["md5sum"] = _digest(os.path.join(self.cache_dir, shard["dataPath"]))
        self._changed.clear()
        return self.shard_records


def _format_of(name, encode_format):
    chosen = encode_format.get(name, encode_format.get("*")) if isinstance(encode_format, Mapping) else encode_format
    if chosen not in _FORMATS:
        raise ValueError(f"the format of {name} is {chosen!r}; there are {' and '.join(_FORMATS)}")
    return chosen


def _write(path, metadata, records):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"metadata": metadata, "records": records}, file, indent=4)


def dump_tensor_cache(
    params,
    cache_dir,
    encode_format="f32-to-bf16",
    meta_data=None,
    shard_cap_mb=32,
    show_progress=True,
    update_if_exists=False,
):
    """Write tensors into a folder.

    Parameters
    ----------
    params : dict or iterator of pairs
        Tensors or arrays by name.
    cache_dir : str
        The folder, which is made.
    encode_format : str or dict
        ``f32-to-bf16`` shortens float32 to half its size, ``raw`` keeps it; or one of these by name, ``*`` for all others.
    meta_data : object, optional
        What JSON holds, or a function that makes it; ``load_tensor_cache`` gives it back.
    shard_cap_mb : int
        The size of the files, but for tensors that are larger.
    show_progress : bool
        Whether it is printed.
    update_if_exists : bool
        Whether what the folder holds stays, and tensors of the same names are replaced.
    """
    if not isinstance(encode_format, (str, Mapping)):
        raise TypeError("encode_format is the name of a format, or a dict of names")
    for name in ["every tensor"] if isinstance(encode_format, str) else encode_format:
        _format_of(name, encode_format)
    os.makedirs(cache_dir, exist_ok=True)
    index, known = os.path.join(cache_dir, "tensor-cache.json"), {}
    if update_if_exists and os.path.exists(index):
        with open(index, encoding="utf-8") as file:
            known = json.load(file)
        meta_data = known["metadata"] if meta_data is None else meta_data
    manager = TensorCacheShardingManager(cache_dir, "params_shard", shard_cap_mb << 20, known.get("records"))
    for name, value in params.items() if isinstance(params, Mapping) else params:
        chosen = _format_of(name, encode_format)
        array, dtype = (value.numpy(), str(value.dtype)) if isinstance(value, Tensor) else (np.asarray(value), str(value.dtype))
        short = chosen == "f32-to-bf16" and dtype == "float32"
        data = (_convert_f32_to_bf16(array) if short else array).tobytes()
        manager.append_or_update(data, name, array.shape, dtype, chosen, allow_update=update_if_exists)
        if show_progress:
            print(f"saved {name}")
    records = manager.finish()
    metadata = meta_data() if callable(meta_data) else {} if meta_data is None else meta_data
    _write(index, metadata, records)
    _write_short(os.path.join(cache_dir, "tensor-cache-b16.json"), metadata, records)


def _write_short(path, metadata, records):
    """The same files as tensors of bfloat16, where there are any."""

    def as_short(record):
        short = (record["format"], record["dtype"]) == ("f32-to-bf16", "float32")
        return {**record, "format": "raw", "dtype": "bfloat16"} if short else record

    short = [{**shard, "records": [as_short(record) for record in shard["records"]]} for shard in records]
    if short != records:
        _write(path, metadata, short)
    elif os.path.exists(path):
        os.remove(path)


def _tensor_of(record, data, device):
    tensor = empty(record["shape"], record["dtype"], device=device)
    if record["format"] == "f32-to-bf16" and record["dtype"] == "float32":
        array = _convert_bf16_to_f32(np.frombuffer(data, "uint16"))
    elif record["dtype"] == "bfloat16":
        array = np.frombuffer(data, "uint16")
    elif record["dtype"].startswith("float8"):
        import ml_dtypes

        array = np.frombuffer(data, getattr(ml_dtypes, record["dtype"]))
    else:
        array = np.frombuffer(data, record["dtype"])
    return tensor.copyfrom(array.reshape(record["shape"]))


def load_tensor_cache(cachepath, device):
    """Tensors on ``device`` by name, and the metadata, from a folder or its JSON file."""
    path = cachepath if cachepath.endswith(".json") else os.path.join(cachepath, "tensor-cache.json")
    with open(path, encoding="utf-8") as file:
        cache = json.load(file)
    tensors = {}
    for shard in cache["records"]:
        file_name = os.path.join(os.path.dirname(path), shard["dataPath"])
        with open(file_name, "rb") as file:
            data = file.read()
        if shard["format"] != "raw-shard" or shard["nbytes"] != len(data):
            raise ValueError(f"{file_name} has {len(data)} bytes, not the {shard['nbytes']} of a {shard['format']} that {path} says")
        for record in shard["records"]:
            part = data[record["byteOffset"] : record["byteOffset"] + record["nbytes"]]
            if len(part) != record["nbytes"]:
                raise ValueError(f"{record['name']} ends beyond the end of {file_name}")
            tensors[record["name"]] = _tensor_of(record, part, device)
    return tensors, cache["metadata"]


def export_runtime(runtime_dir):
    """Not here: TVM's runtime for browsers is a part of its source tree."""
    raise NotImplementedError(
        f"cannot put a runtime for browsers into {runtime_dir}: TVM's is a bundle of its source tree; a model for browsers is one WebAssembly"
        " module with the runtime in it (target `wasm`, packages/npm)"
    )


__all__ = ["TensorCacheShardingManager", "dump_tensor_cache", "export_runtime", "load_tensor_cache"]
