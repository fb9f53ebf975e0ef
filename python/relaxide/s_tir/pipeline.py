"""What lowers kernels in block form, by name (:mod:`relaxide.tirx.compilation_pipeline`)."""

from ..tirx.compilation_pipeline import default_tir_pipeline, finalize_device_passes, finalize_host_passes


def default_s_tir_pipeline():
    """The passes that every kernel is lowered by, and what makes those behind them."""
    return default_tir_pipeline()


__all__ = ["default_s_tir_pipeline", "finalize_device_passes", "finalize_host_passes"]
