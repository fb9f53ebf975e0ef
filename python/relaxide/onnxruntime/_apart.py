"""What a session is given beside its model: weights, contents of files, lengths of dimensions by what they stand for."""

import copy
import hashlib

from .. import _onnx_values


class Apart:
    """What is given beside a model."""

    def __init__(self):
        #: Values by name, each with whether the model must have it in a file of its own.
        self.weights = {}
        #: Contents of files by the names that the model uses.
        self.files = {}
        #: Lengths by what the model says that dimensions stand for.
        self.denoted = {}
        #: The folder of the files that belong to a model in memory.
        self.folder = None
        #: Names of weights that are inputs instead.
        self.opened = []

    def parts(self):
        """All of it, as the importer takes it."""
        if not (self.weights or self.files or self.denoted or self.folder or self.opened):
            return None
        weights = [(name, value._value, external) for name, (value, external) in self.weights.items()]
        return {"weights": weights, "files": self.files, "denoted": self.denoted, "folder": self.folder, "opened": self.opened}

    def described(self):
        """What a compiled model follows from, with checksums in the place of contents."""
        found = {}
        for name, (value, external) in self.weights.items():
            array = _onnx_values.to_numpy(value._value)
            found[name] = [external, str(array.dtype), list(array.shape), hashlib.sha256(array.tobytes()).hexdigest()]
        files = {name: hashlib.sha256(content).hexdigest() for name, content in self.files.items()}
        parts = {"weights": found, "files": files, "denoted": self.denoted, "opened": self.opened}
        return {key: value for key, value in parts.items() if value}

    def opening(self, names):
        """The same with some weights as inputs."""
        made = copy.copy(self)
        made.opened = sorted(names)
        return made


__all__ = ["Apart"]
