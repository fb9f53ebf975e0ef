"""Questions about the machine that tests are run on: which devices and processors are there.

Each answers for this machine and for what Relaxide was built with; a back end that Relaxide lacks is not there.
"""

import functools
import os

from .targets import _kinds


def _enabled(kind):
    """Whether the environment's list of targets, if there is one, has a kind."""
    return kind in _kinds()


def has_llvm():
    """Whether kernels can be compiled with LLVM, and the tests want them."""
    return _enabled("llvm")


def has_llvm_min_version(major):
    """Whether kernels can be compiled with LLVM of at least a major version."""
    if not has_llvm():
        return False
    from ..target import codegen

    return codegen.llvm_version_major() >= major


@functools.lru_cache(maxsize=None)
def _exists(kind):
    from .. import runtime

    try:
        return bool(runtime.device(kind, 0).exist)
    except (ValueError, RuntimeError, NotImplementedError):
        return False


def _device(kind):
    return _enabled(kind) and _exists(kind)


def has_cuda():
    """Whether there is a CUDA device."""
    return _device("cuda")


def has_rocm():
    """Whether there is a ROCm device."""
    return _device("rocm")


def has_opencl():
    """Whether there is an OpenCL device."""
    return _device("opencl")


def has_metal():
    """Whether there is a Metal device."""
    return _device("metal")


def has_vulkan():
    """Whether there is a Vulkan device."""
    return _device("vulkan")


def has_gpu():
    """Whether there is any GPU."""
    return any(_device(kind) for kind in ("cuda", "rocm", "opencl", "metal", "vulkan"))


def has_multi_gpu(count=2):
    """Whether there are several GPUs of one kind."""
    from .. import runtime

    def present(kind):
        try:
            return all(runtime.device(kind, at).exist for at in range(count))
        except (ValueError, RuntimeError, NotImplementedError):
            return False

    return any(present(kind) for kind in ("cuda", "rocm", "opencl", "metal", "vulkan") if _device(kind))


def has_nvptx():
    """Whether kernels for NVPTX can be run."""
    return has_cuda() and has_llvm()


def cuda_arch(device_id=0):
    """The architecture of a CUDA device such as ``sm_90``, or None where there is none."""
    if not has_cuda():
        return None
    from .. import runtime

    version = runtime.cuda(device_id).compute_version
    return None if version is None else "sm_" + version.replace(".", "")


def has_cuda_compute(major, minor=0, exact=False):
    """Whether a CUDA device has a compute capability, or a higher one unless it is asked for exactly."""
    arch = cuda_arch()
    if arch is None:
        return False
    have = (int(arch[3:-1]), int(arch[-1]))
    return have == (major, minor) if exact else have >= (major, minor)


def has_cuda_arch(*arches, device_id=0):
    """Whether a CUDA device is of one of some architectures."""
    return cuda_arch(device_id) in arches


def _absent(name, what):
    def answer(*_args, **_kwargs):
        return False

    answer.__name__ = answer.__qualname__ = name
    answer.__doc__ = f"Whether there is {what}: never, since Relaxide does not call it."
    return answer


has_cublas = _absent("has_cublas", "cuBLAS")
has_cudnn = _absent("has_cudnn", "cuDNN")
has_cudagraph = _absent("has_cudagraph", "a toolkit with CUDA graphs")
has_hipblas = _absent("has_hipblas", "hipBLAS")
has_nccl = _absent("has_nccl", "NCCL")
has_nvshmem = _absent("has_nvshmem", "NVSHMEM")
has_nvcc_version = _absent("has_nvcc_version", "a version of nvcc")
has_matrixcore = _absent("has_matrixcore", "a device with AMD's matrix cores")
has_hexagon = _absent("has_hexagon", "a Hexagon device")
has_hexagon_toolchain = _absent("has_hexagon_toolchain", "Hexagon's toolchain")


def has_adreno_opencl():
    """Whether a remote Adreno device is named by ``RPC_TARGET``."""
    return bool(os.environ.get("RPC_TARGET"))


def has_cpu_feature(features):
    """Whether this processor has a feature, or all of a list, by LLVM's names or those of Linux, which sets words of them apart."""
    from ..target.codegen import llvm_get_cpu_features

    plain = str.maketrans("", "", "_-.")
    have = {name.translate(plain) for name in llvm_get_cpu_features("llvm")}
    return all(name.translate(plain) in have for name in ([features] if isinstance(features, str) else features))


def has_x86_avx512():
    """Whether this processor has what AVX-512 kernels need."""
    return has_cpu_feature(["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"])


def has_x86_vnni():
    """Whether this processor multiplies and adds bytes, in AVX-512 or AVX."""
    return has_cpu_feature("avx512_vnni") or has_cpu_feature("avx_vnni")


def build_flag_enabled(flag):
    """Whether an option of TVM's build, such as ``USE_LLVM``, is one that Relaxide has."""
    return flag in ("USE_LLVM", "USE_RPC", "USE_THREADS", "USE_PROFILER")


__all__ = sorted(name for name in dict(globals()) if name.startswith("has_")) + ["build_flag_enabled", "cuda_arch"]
