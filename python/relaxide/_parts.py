"""Modules of TVM whose names one module holds here: ``relaxide.topi.reduction.sum`` is ``relaxide.topi.sum``.

Scripts import from the files that TVM's functions are written in. Here they are written in other files, so those names are doors: a
part looks each name up in the module that it is a part of. A part has no attribute of its module where a function has that name, as
``topi.nn.batch_norm``; importing finds it either way.
"""

import sys
from types import FunctionType, ModuleType

#: The parts of each module, by their names below it.
_PARTS = {
    "ir.prim": "expr op",
    "relax": "global_info ty",
    "relax.analysis": "analysis estimate_memory_usage",
    "relax.backend": "dispatch_sampling dispatch_sort_scan",
    "relax.backend.cpu_generic": "pipeline",
    "relax.backend.gpu_generic": "pipeline",
    "relax.dpl": "context pattern rewrite",
    "relax.op": "base binary create datatype index linear_algebra manipulate mask qdq sampling search set sorting statistical ternary unary",
    "relax.op.builtin": "builtin",
    "relax.op.ccl": "ccl",
    "relax.op.grad": "grad",
    "relax.op.image": "image",
    "relax.op.memory": "memory view",
    "relax.op.nn": "nn",
    "relax.op.vision": "multibox_transform_loc nms roi_align roi_pool",
    "relax.op.vm": "vm",
    "relax.transform": "fast_math fold_batch_norm_to_conv2d_for_inference fuse_transpose_matmul lazy_transform_params "
    "attach_external_modules legalize_ops optimize_layout_transform remove_redundant_reshape transform",
    "relax.transform.legalize_ops": "adreno binary ccl common create datatype grad image index linear_algebra manipulate nn qdq search statistical unary vision",
    "runtime": "device object_generic",
    "s_tir.meta_schedule.builder": "builder local_builder",
    "s_tir.meta_schedule.cost_model": "cost_model metric random_model xgb_model",
    "s_tir.meta_schedule.database": "database json_database memory_database ordered_union_database schedule_fn_database union_database",
    "s_tir.meta_schedule.feature_extractor": "feature_extractor per_store_feature random_feature_extractor",
    "s_tir.meta_schedule.measure_callback": "add_to_database measure_callback remove_build_artifact update_cost_model",
    "s_tir.meta_schedule.mutator": "mutate_compute_location mutate_parallel mutate_thread_binding mutate_tile_size mutate_unroll mutator",
    "s_tir.meta_schedule.search_strategy": "evolutionary_search replay_func replay_trace search_strategy",
    "s_tir.meta_schedule.space_generator": "post_order_apply schedule_fn space_generator space_generator_union",
    "s_tir.meta_schedule.task_scheduler": "gradient_based round_robin task_scheduler",
    "s_tir.schedule": "instruction",
    "s_tir.transform": "transform",
    "script.relax": "entry",
    "support": "libinfo",
    "target": "target detect_target tag_registry",
    "target.tag_registry": "arm_cpu aws_cpu registry riscv_cpu",
    "te": "operation tag tensor",
    "testing": "runner utils",
    "tirx": "build",
    "tirx.analysis": "analysis",
    "tirx.transform": "function_pass transform",
    "topi": "broadcast einsum index_put math reduction scan scatter scatter_elements searchsorted slice_scatter sort sparse_reshape tensor "
    "transform unique",
    "topi.image": "dilation2d grid_sample resize",
    "topi.vision": "multibox_transform_loc nms nms_util roi_align roi_pool",
    "topi.nn": "batch_matmul batch_norm batch_to_space_nd bitserial_conv2d bitserial_dense bitserial_util bnn conv3d_transpose correlation "
    "deformable_conv2d fifo_buffer loss qnn space_to_batch_nd winograd_util conv1d conv1d_transpose conv2d conv2d_transpose conv3d dense depth_to_space depthwise_conv2d "
    "dilate elemwise flatten group_norm instance_norm layer_norm local_response_norm mapping pad pixel_shuffle pooling rms_norm softmax "
    "space_to_depth upsampling utils",
}


class Part(ModuleType):
    """A door to the names of another module."""

    def __init__(self, whole, name):
        super().__init__(f"{whole.__name__}.{name}", f"What is also in ``{whole.__name__}``.")
        self.__dict__["_whole"] = whole

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return getattr(self._whole, name)
        except AttributeError:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None

    def __dir__(self):
        return [name for name in dir(self._whole) if not name.startswith("_")]


def open_parts(package, *names):
    """Make the parts of the modules of those names, of all that are loaded where no name is given."""
    for name in names or _PARTS:
        whole = sys.modules.get(f"{package}.{name}")
        if whole is not None and not hasattr(whole, "__path__"):
            # What has parts is a package, without a folder of its own.
            whole.__path__ = []
        for part in _PARTS[name].split() if whole is not None else ():
            full = f"{whole.__name__}.{part}"
            if full not in sys.modules:
                sys.modules[full] = Part(whole, part)
                # Some functions are made, or imported, when they are asked for.
                if not isinstance(getattr(whole, part, None), (FunctionType, ModuleType)):
                    setattr(whole, part, sys.modules[full])
