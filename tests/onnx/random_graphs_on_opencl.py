"""Random graphs (:mod:`random_graphs`, :mod:`random_graphs_more`) on a device of OpenCL, against ONNX Runtime.

``python tests/onnx/random_graphs_on_opencl.py --first 0 --count 300``: says of each graph what is wrong with it as soon as that is known, and
ends with 1 where something is. Graphs are executed in processes of their own, so that one that crashes does not end the others.
"""

import argparse
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "backend_suite")]

from backends import backend  # noqa: E402
from pool import run_cases  # noqa: E402

#: How the script ends where there is no driver.
NO_DRIVER = 77


class Case:
    """The graph of a seed, as :mod:`pool` executes it."""

    def __init__(self, seed):
        self.name = f"seed {seed}"
        self.seed = seed

    def model(self):
        import random_graphs
        import random_graphs_more  # noqa: F401

        self.graph = random_graphs.Graph(self.seed)
        return self.graph.model()

    def data_sets(self, model):
        """None where ONNX Runtime refuses the graph."""
        import onnxruntime

        try:
            session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
            wanted = session.run(None, self.graph.feeds)
        except Exception:  # noqa: BLE001 - whatever it says, there is nothing to compare with
            return []
        return [([self.graph.feeds[info.name] for info in model.graph.input], wanted)]

    def check(self, wanted, given):
        from test_random_graphs import differs

        wrong = [f"output {place}: {why}" for place, (a, b) in enumerate(zip(wanted, given, strict=True)) if (why := differs(a, b))]
        assert not wrong, "; ".join(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds a graph may take")
    given = parser.parse_args()
    # Asked of another process: this one's children execute the graphs.
    program = "import sys, relaxide; sys.exit(not relaxide.opencl(0).exist)"
    if subprocess.run([sys.executable, "-c", program], check=False).returncode:
        return NO_DRIVER

    def tell(outcome):
        if not outcome.passed:
            print(f"{outcome.name}: {outcome.stage}: {outcome.reason}", flush=True)

    cases = [Case(seed) for seed in range(given.first, given.first + given.count)]
    outcomes = run_cases(cases, backend("opencl"), limit=given.limit, tell=tell)
    passed = sum(outcome.passed for outcome in outcomes)
    print(f"{passed} of {len(cases)} graphs agree")
    return int(passed < len(cases))


if __name__ == "__main__":
    sys.exit(main())
