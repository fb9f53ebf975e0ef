"""The code generator's questions under the names of the function table."""

from .codegen import (
    llvm_cpu_has_features as llvm_cpu_has_feature,
    llvm_get_cpu_archlist,
    llvm_get_cpu_features,
    llvm_get_system_cpu,
    llvm_get_system_triple,
    llvm_get_system_x86_vendor,
    llvm_get_targets,
    llvm_get_vector_width,
    llvm_version_major,
    target_has_features as target_has_feature,
)

__all__ = [
    "llvm_cpu_has_feature",
    "llvm_get_cpu_archlist",
    "llvm_get_cpu_features",
    "llvm_get_system_cpu",
    "llvm_get_system_triple",
    "llvm_get_system_x86_vendor",
    "llvm_get_targets",
    "llvm_get_vector_width",
    "llvm_version_major",
    "target_has_feature",
]
