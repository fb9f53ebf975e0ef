"""Calls of operators over images and boxes in them."""

from .windows import layouts, ordered


def resize(name, n):
    space = "DHW"[3 - n :]

    def call(g):
        data = [g.dim(), g.dim()] + [g.pick(6, 8, "n") for _ in range(n)]
        layout = layouts(g, "NC" + space, data[:2])
        size = [g.pick(3, 12, "m") for _ in range(n)]
        if g.chance(0.1):
            size = size + [2]
        if "m" in size:
            g.tensor(["m"], known=1)
        return (
            f"R.image.{name}({g.tensor(ordered(data, 'NC' + space, layout))}, {g.shape_arg(size)}, roi=[{', '.join(['T.float32(0.0)'] * 2 * n)}], "
            f'layout="{layout}", method="{g.pick("linear", "nearest_neighbor", "cubic")}", '
            f'coordinate_transformation_mode="half_pixel", rounding_method="round", cubic_alpha=-0.75, cubic_exclude=0, '
            f'extrapolation_value=0.0, out_dtype={g.pick("None", repr("float16"))})'
        )

    return call


def affine_grid(g):
    n = g.pick(2, 2, 3)
    size = [g.pick(4, 5, "n") for _ in range(n)]
    maps = [g.dim(), n, n + 1]
    if g.chance(0.1):
        maps[g.int(1, 2)] += 1
    if "n" in size:
        g.tensor(["n"], known=1)
    return f"R.image.affine_grid({g.tensor(maps)}, {g.shape_arg(size)}, align_corners={g.chance(0.5)})"


def grid_sample(g):
    n = g.pick(2, 2, 3)
    batch = g.dim()
    data = [batch, g.dim()] + [g.pick(6, "n") for _ in range(n)]
    layout = g.pick("NCHW", "NHWC") if n == 2 else g.pick("NCDHW", "NDHWC")
    grid = [batch, n] + [g.pick(4, "m") for _ in range(n)]
    return (
        f"R.image.grid_sample({g.tensor(ordered(data, 'NC' + 'DHW'[3 - n :], layout))}, {g.tensor(grid)}, method=\"bilinear\", "
        f'layout="{layout}", padding_mode="zeros", align_corners=False)'
    )


def roi(name):
    def call(g):
        layout = g.pick("NCHW", "NCHW", "NHWC")
        data = ordered([g.dim(), g.dim(), 8, "n"], "NCHW", layout)
        extra = f'sample_ratio={g.pick(-1, 2)}, aligned={g.chance(0.5)}, layout="{layout}", mode="{g.pick("avg", "max")}"' if name == "roi_align" else f'layout="{layout}"'
        return f"R.vision.{name}({g.tensor(data)}, {g.tensor([g.dim(), 5 if g.chance(0.93) else 4])}, pooled_size=[2, 3], spatial_scale=0.5, {extra})"

    return call


def get_valid_counts(g):
    return f"R.vision.get_valid_counts({g.tensor(g.shape(2 if g.chance(0.95) else 1) + [6])}, score_threshold=0.5, id_index={g.pick(0, -1, 7)}, score_index=1)"


def non_max_suppression(g):
    b, n = g.dim(), g.dim()
    return (
        f"R.vision.non_max_suppression({g.tensor([b, n, 6])}, {g.tensor([b if g.chance(0.93) else 5], 'int32')}, {g.tensor([b, n], 'int32')}, "
        f"max_output_size=-1, iou_threshold=0.5, force_suppress=False, top_k=-1, coord_start=2, score_index=1, id_index=0, "
        f"return_indices={g.chance(0.5)}, invalid_to_bottom=False, soft_nms_sigma={g.pick(0.0, 0.5)}, score_threshold=0.0)"
    )


def all_class(g):
    b, c, n = g.dim(), g.dim(), g.dim()
    return (
        f"R.vision.all_class_non_max_suppression({g.tensor([b, n, 4], known=1)}, {g.tensor([b, c, n], known=1)}, R.const(5, \"int64\"), "
        f'R.const(0.5, "float32"), R.const(0.1, "float32"), output_format="{g.pick("onnx", "tensorflow")}")'
    )


def multibox(g):
    b, c, n = g.dim(), g.dim(), g.pick(3, 6)
    offsets = 4 * n if g.chance(0.93) else 4 * n + 1
    return (
        f"R.vision.multibox_transform_loc({g.tensor([b, c, n])}, {g.tensor([b, offsets])}, {g.tensor([1, n, 4])}, clip=False, threshold=0.0, "
        f"variances=[0.1, 0.1, 0.2, 0.2], keep_background=True, apply_softmax=True)"
    )


CALLS = {
    "image.resize2d": resize("resize2d", 2), "image.resize3d": resize("resize3d", 3), "image.affine_grid": affine_grid,
    "image.grid_sample": grid_sample, "vision.roi_align": roi("roi_align"), "vision.roi_pool": roi("roi_pool"),
    "vision.get_valid_counts": get_valid_counts, "vision.non_max_suppression": non_max_suppression,
    "vision.all_class_non_max_suppression": all_class, "vision.multibox_transform_loc": multibox,
}
