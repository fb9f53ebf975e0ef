"""Runs a model with ONNX Runtime for the command `relaxide`, one request a line: JSON in, JSON out."""

import json
import os
import sys
import time


def main():
    replies, sys.stdout = sys.stdout, sys.stderr

    def reply(**fields):
        print(json.dumps(fields), file=replies, flush=True)

    try:
        import numpy as np
        import onnxruntime
    except ImportError as error:
        return reply(missing=error.name or str(error))
    reply(version=onnxruntime.__version__)
    session, feeds, results = None, {}, []
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["do"] == "open":
                options = onnxruntime.SessionOptions()
                options.intra_op_num_threads = request["threads"]
                options.log_severity_level = 3
                levels = onnxruntime.GraphOptimizationLevel
                options.graph_optimization_level = (
                    levels.ORT_ENABLE_ALL if request["optimize"] else levels.ORT_DISABLE_ALL
                )
                options.add_session_config_entry("session.model_external_initializers_file_folder_path", request["folder"])
                with open(request["model"], "rb") as file:
                    session = onnxruntime.InferenceSession(file.read(), options, providers=["CPUExecutionProvider"])
                reply(
                    inputs=[value.name for value in session.get_inputs()],
                    outputs=[value.name for value in session.get_outputs()],
                )
            elif request["do"] == "inputs":
                feeds = {name: np.load(path) for name, path in request["files"].items()}
                reply()
            elif request["do"] == "run":
                start = time.perf_counter()
                results = session.run(None, feeds)
                reply(seconds=time.perf_counter() - start)
            elif request["do"] == "save":
                files = []
                for i, result in enumerate(results):
                    path = os.path.join(request["folder"], f"{i}.npy")
                    if isinstance(result, np.ndarray) and result.dtype != object:
                        np.save(path, np.ascontiguousarray(result) if result.ndim else result)
                        files.append(path)
                    else:
                        files.append(None)
                reply(files=files)
        except Exception as error:  # noqa: BLE001 - whatever ONNX Runtime refuses is the answer
            reply(error=f"{type(error).__name__}: {error}")


main()
