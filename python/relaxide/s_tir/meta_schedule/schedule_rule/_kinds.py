"""The rules for kinds of targets."""


def rules_for(kind):
    """A list of rules: inlining first, then tiling, then what is spread over threads."""
    from . import AddRFactor, ApplyCustomRule, AutoInline, InlineConstantScalars, MultiLevelTiling
    from . import ParallelizeVectorizeUnroll, RandomComputeLocation, ReuseType

    if kind == "llvm":
        return [
            ApplyCustomRule(),
            InlineConstantScalars(),
            AutoInline(
                into_producer=False,
                into_consumer=True,
                inline_const_tensor=True,
                disallow_if_then_else=True,
                require_injective=True,
                require_ordered=True,
                disallow_op=["tirx.exp"],
            ),
            AddRFactor(max_jobs_per_core=16, max_innermost_factor=64),
            MultiLevelTiling(
                structure="SSRSRS",
                tile_binds=None,
                max_innermost_factor=64,
                vector_load_lens=None,
                reuse_read=None,
                reuse_write=ReuseType(req="may", levels=[1, 2], scope="global"),
            ),
            ParallelizeVectorizeUnroll(max_jobs_per_core=16, max_vectorize_extent=64, unroll_max_steps=[0, 16, 64, 512], unroll_explicit=True),
            RandomComputeLocation(),
        ]
    if kind == "cuda":
        return _for_gpu()
    raise ValueError(f"Unsupported kind {kind} for schedule rules; there are llvm, cuda")


def _for_gpu():
    from . import ApplyCustomRule, AutoBind, AutoInline, CrossThreadReduction, InlineConstantScalars, MultiLevelTiling
    from . import ParallelizeVectorizeUnroll, ReuseType

    return [
        ApplyCustomRule(),
        MultiLevelTiling(
            structure="SSSRRSRS",
            tile_binds=["blockIdx.x", "vthread.x", "threadIdx.x"],
            max_innermost_factor=64,
            vector_load_lens=[1, 2, 3, 4, 8, 16],
            reuse_read=ReuseType(req="must", levels=[4], scope="shared"),
            reuse_write=ReuseType(req="must", levels=[3], scope="local"),
        ),
        InlineConstantScalars(),
        AutoInline(
            into_producer=True,
            into_consumer=True,
            inline_const_tensor=True,
            disallow_if_then_else=False,
            require_injective=False,
            require_ordered=False,
            disallow_op=None,
        ),
        CrossThreadReduction(thread_extents=[4, 8, 16, 32, 64, 128, 256, 512]),
        ParallelizeVectorizeUnroll(
            max_jobs_per_core=-1, max_vectorize_extent=-1, unroll_max_steps=[0, 16, 64, 512, 1024], unroll_explicit=True
        ),
        AutoBind(max_threadblocks=256, thread_extents=[32, 64, 128, 256, 512, 1024]),
    ]


__all__ = ["rules_for"]
