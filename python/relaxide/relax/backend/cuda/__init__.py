"""The pipeline of NVIDIA's GPUs, and its stages."""

from .._stages import pipeline_of

get_default_pipeline, library_dispatch_passes, legalize_passes, dataflow_lower_passes, finalize_passes = pipeline_of("cuda")

__all__ = [
    "dataflow_lower_passes",
    "finalize_passes",
    "get_default_pipeline",
    "legalize_passes",
    "library_dispatch_passes",
]
