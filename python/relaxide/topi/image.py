"""Operators on images, as tensors of the compute language."""

from ._operator import one


def resize2d(
    data,
    roi,
    size,
    layout="NCHW",
    method="linear",
    coordinate_transformation_mode="half_pixel",
    rounding_method="",
    bicubic_alpha=-0.75,
    bicubic_exclude=0,
    extrapolation_value=0.0,
    out_dtype=None,
    output_shape=None,
):
    """Images in another size; see the operator ``relax.image.resize2d``.

    Parameters
    ----------
    data : Tensor
        The images, in ``layout``.
    roi : sequence of float
        The region that is resized; only the whole image is supported.
    size : (int, int)
        The height and width of the result.
    """
    if roi is not None and any(float(bound) != 0.0 for bound in roi):
        raise NotImplementedError("topi.image.resize2d takes the whole image: a region (roi) is not supported")
    how = {"layout": layout, "method": method, "coordinate_transformation_mode": coordinate_transformation_mode}
    how |= {"rounding_method": rounding_method, "cubic_alpha": bicubic_alpha, "cubic_exclude": bicubic_exclude}
    return one("image.resize2d", data, list(size), **how, extrapolation_value=extrapolation_value, out_dtype=out_dtype or "void")


def grid_sample(data, grid, method="bilinear", layout="NCHW", padding_mode="zeros", align_corners=True):
    """Images at the places that ``grid`` names."""
    how = {"method": method, "layout": layout, "padding_mode": padding_mode, "align_corners": align_corners}
    return one("image.grid_sample", data, grid, **how)


def affine_grid(data, target_shape, align_corners=True):
    """The places of a grid after affine maps ``[n, 2, 3]``."""
    return one("image.affine_grid", data, list(target_shape), align_corners=align_corners)


__all__ = ["affine_grid", "grid_sample", "resize2d"]


from ._more_image import *  # noqa: E402,F403 they build on what is above
