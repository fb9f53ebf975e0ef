import pathlib
import sys

import pytest

pytest.importorskip("tvm", reason="apache-tvm is not installed; it is the other side of these tests")
sys.path.insert(0, str(pathlib.Path(__file__).parent))
