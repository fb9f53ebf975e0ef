"""Finding text: from a picture to quadrilaterals around its lines.

The network gives each pixel the probability that it is in the shrunken core of a line of text (the "differentiable
binarization" of Liao et al., 2020). What is left to do: binarize, take each connected region, put the smallest rectangle
around it, and grow that by as much as the cores were shrunk.
"""

import cv2
import numpy as np

#: Probability from which a pixel is text.
PIXEL_THRESHOLD = 0.3
#: Mean probability from which a region is a line of text.
REGION_THRESHOLD = 0.5
#: How much larger a line is than its core: the growth is this times area over perimeter.
GROWTH = 1.6
#: Lines less high than this many pixels are noise.
MIN_HEIGHT = 4


def to_input(picture, shortest=384):
    """A picture (height, width, BGR) as the network wants it: sides multiples of 32, the shorter at least ``shortest``."""
    height, width = picture.shape[:2]
    scale = max(1.0, shortest / min(height, width))
    height, width = (max(32, round(side * scale / 32) * 32) for side in (height, width))
    pixels = cv2.resize(picture, (width, height)).astype("float32")
    return np.ascontiguousarray((pixels / 127.5 - 1).transpose(2, 0, 1)[None])


def quads(probability, picture_shape):
    """Corners (clockwise from the top left) of each line in the picture, from top to bottom."""
    probability = probability[0, 0]
    mask = cv2.dilate((probability > PIXEL_THRESHOLD).astype("uint8"), np.ones((2, 2), "uint8"))
    contours, _ = cv2.findContours(mask, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    to_picture = np.array(picture_shape[1::-1]) / np.array(probability.shape[::-1])
    found = []
    for contour in contours:
        center, (width, height), angle = cv2.minAreaRect(contour)
        if min(width, height) < MIN_HEIGHT or _score(probability, contour) < REGION_THRESHOLD:
            continue
        growth = GROWTH * width * height / (width + height)
        corners = cv2.boxPoints((center, (width + growth, height + growth), angle))
        found.append(_clockwise(corners * to_picture).astype("float32"))
    return _reading_order(found)


def _score(probability, contour):
    """The mean probability inside a contour."""
    x, y, width, height = cv2.boundingRect(contour)
    inside = np.zeros((height, width), "uint8")
    cv2.fillPoly(inside, [contour.reshape(-1, 2) - (x, y)], 1)
    return cv2.mean(probability[y : y + height, x : x + width], inside)[0]


def _clockwise(corners):
    """The corners from the top left on."""
    sums, differences = corners.sum(axis=1), corners[:, 1] - corners[:, 0]
    order = [sums.argmin(), differences.argmin(), sums.argmax(), differences.argmax()]
    return corners[order]


def _reading_order(found):
    """From top to bottom; what stands side by side, from left to right."""
    rows = []
    for quad in sorted(found, key=lambda q: q[:, 1].mean()):
        middle, height = quad[:, 1].mean(), np.ptp(quad[:, 1])
        if rows and abs(middle - rows[-1][-1][:, 1].mean()) < height / 2:
            rows[-1].append(quad)
        else:
            rows.append([quad])
    return [quad for row in rows for quad in sorted(row, key=lambda q: q[:, 0].min())]


def crop(picture, quad):
    """The quadrilateral as an upright picture."""
    width = round(max(np.linalg.norm(quad[0] - quad[1]), np.linalg.norm(quad[3] - quad[2])))
    height = round(max(np.linalg.norm(quad[0] - quad[3]), np.linalg.norm(quad[1] - quad[2])))
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], "float32")
    transform = cv2.getPerspectiveTransform(quad, corners)
    line = cv2.warpPerspective(picture, transform, (max(width, 1), max(height, 1)), borderMode=cv2.BORDER_REPLICATE)
    # What is much higher than wide is a line on its side.
    return np.rot90(line) if height >= 1.5 * width else line
