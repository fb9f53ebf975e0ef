"""Sessions, under the name of ONNX Runtime's own module."""

from .._binding import IOBinding
from .._session import InferenceSession
from .._values import OrtDevice, OrtValue

#: The class that sessions are of.
Session = InferenceSession

__all__ = ["IOBinding", "InferenceSession", "OrtDevice", "OrtValue", "Session"]
