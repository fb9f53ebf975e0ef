"""The example in C compiles with the part of ONNX Runtime's header that it uses, and prints the same with either library."""

import os
import subprocess

from c_api import ROOT, ROWS, THEIRS, built
from onnx import TensorProto, helper, save

#: What the example calls, as the interface declares it.
DECLARED = """
OrtErrorCode GetErrorCode(const OrtStatus *)
const char *GetErrorMessage(const OrtStatus *)
OrtStatus *CreateEnv(int, const char *, OrtEnv **)
OrtStatus *CreateSession(const OrtEnv *, const char *, const OrtSessionOptions *, OrtSession **)
OrtStatus *Run(OrtSession *, const void *, const char *const *, const OrtValue *const *, size_t, const char *const *, size_t, OrtValue **)
OrtStatus *CreateSessionOptions(OrtSessionOptions **)
OrtStatus *SessionGetInputCount(const OrtSession *, size_t *)
OrtStatus *SessionGetOutputCount(const OrtSession *, size_t *)
OrtStatus *SessionGetInputTypeInfo(const OrtSession *, size_t, OrtTypeInfo **)
OrtStatus *SessionGetInputName(const OrtSession *, size_t, OrtAllocator *, char **)
OrtStatus *SessionGetOutputName(const OrtSession *, size_t, OrtAllocator *, char **)
OrtStatus *CreateTensorAsOrtValue(OrtAllocator *, const int64_t *, size_t, enum ONNXTensorElementDataType, OrtValue **)
OrtStatus *GetTensorMutableData(OrtValue *, void **)
OrtStatus *CastTypeInfoToTensorInfo(const OrtTypeInfo *, const OrtTensorTypeAndShapeInfo **)
OrtStatus *GetTensorElementType(const OrtTensorTypeAndShapeInfo *, enum ONNXTensorElementDataType *)
OrtStatus *GetDimensionsCount(const OrtTensorTypeAndShapeInfo *, size_t *)
OrtStatus *GetDimensions(const OrtTensorTypeAndShapeInfo *, int64_t *, size_t)
OrtStatus *GetTensorTypeAndShape(const OrtValue *, OrtTensorTypeAndShapeInfo **)
OrtStatus *GetTensorShapeElementCount(const OrtTensorTypeAndShapeInfo *, size_t *)
OrtStatus *GetAllocatorWithDefaultOptions(OrtAllocator **)
OrtStatus *AllocatorFree(OrtAllocator *, void *)
void ReleaseStatus(OrtStatus *)
void ReleaseEnv(OrtEnv *)
void ReleaseValue(OrtValue *)
void ReleaseSession(OrtSession *)
void ReleaseSessionOptions(OrtSessionOptions *)
void ReleaseTypeInfo(OrtTypeInfo *)
void ReleaseTensorTypeAndShapeInfo(OrtTensorTypeAndShapeInfo *)
const char *GetBuildInfoString(void)
"""
KINDS = "Status Env Session SessionOptions Value TypeInfo TensorTypeAndShapeInfo Allocator".split()


def header():
    """A header with every function at its place, and types for those that are declared above."""
    declared = {}
    for line in DECLARED.strip().splitlines():
        head, args = line.split("(", 1)
        result, name = head.rsplit(" ", 1)
        name, stars = name.lstrip("*"), name.count("*")
        declared[name] = f"{result} {'*' * stars}(*{name})({args};"
    rows = [declared.pop(name, f"void (*{name})(void);") for name, _ in ROWS]
    assert not declared, declared
    return "\n".join(
        [
            "#include <stddef.h>",
            "#include <stdint.h>",
            "typedef int OrtErrorCode;",
            "enum ONNXTensorElementDataType { ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT = 1 };",
            "enum { ORT_LOGGING_LEVEL_WARNING = 2 };",
            *[f"typedef struct Ort{kind} Ort{kind};" for kind in KINDS],
            "typedef struct OrtApi {",
            *rows,
            "} OrtApi;",
            "typedef struct { const OrtApi *(*GetApi)(uint32_t); const char *(*GetVersionString)(void); } OrtApiBase;",
            "const OrtApiBase *OrtGetApiBase(void);",
        ]
    )


def test_the_example_prints_the_same_with_either_library(tmp_path):
    info = helper.make_tensor_value_info
    node = helper.make_node("Add", ["x", "x"], ["y"])
    graph = helper.make_graph([node], "g", [info("x", TensorProto.FLOAT, ["n", 3])], [info("y", TensorProto.FLOAT, ["n", 3])])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "model.onnx")
    (tmp_path / "onnxruntime_c_api.h").write_text(header())
    program, printed = tmp_path / "program", []
    for library in (THEIRS, built()):
        folder = tmp_path / library.name
        folder.mkdir()
        for name in ("libonnxruntime.so", "libonnxruntime.so.1"):
            (folder / name).symlink_to(library)
        if not program.exists():  # It is linked with their library, and runs with ours.
            source, flags = ROOT / "examples" / "c" / "onnxruntime.c", ["-Wall", "-Wextra", "-Werror", "-I", tmp_path, "-o", program]
            subprocess.run(["cc", *flags, source, "-L", folder, "-lonnxruntime"], check=True)
        environment = os.environ | {"LD_LIBRARY_PATH": str(folder), "RELAXIDE_CACHE": "0"}
        run = lambda model, e=environment: subprocess.run([program, model], env=e, capture_output=True, text=True)  # noqa: E731
        good, bad = run(tmp_path / "model.onnx"), run(tmp_path / "none.onnx")
        assert good.returncode == 0, good.stderr
        assert bad.returncode == 1 and "\n3: " in f"\n{bad.stderr}", bad.stderr
        printed.append(good.stdout.splitlines())
    assert printed[0][1:] == printed[1][1:] == ["y: 3 numbers: 2 2 2"]
    assert "Relaxide" in printed[1][0]
