"""Draws the picture of the README from the table "Beside the fastest" of `docs/performance/networks.md`.

``python bench/chart.py`` writes `docs/images/networks.svg`; a test compares the two.
"""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
TABLE = ROOT / "docs/performance/networks.md"
PICTURE = ROOT / "docs/images/networks.svg"

#: Pixels: a column with its gap, the height of a ratio of one, and what is above, left of and below the columns.
COLUMN, UNIT, ABOVE, LEFT, BELOW = 21, 150, 44, 40, 120


def ratios():
    """Each network of the table with Relaxide's time over that of the fastest other, in the table's order."""
    section = TABLE.read_text().split("## Beside the fastest", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| ([a-z]\w+)(?: \(again\))? \| [\d.]+ \| [\d.]+ \| (?:[\d.]+|–) \| ([\d.]+) \|$", section, re.M)
    return [(name, float(ratio)) for name, ratio in rows]


def picture(found):
    """The picture as SVG: a column for each network, a line at the time of the fastest other."""
    width, floor = LEFT + COLUMN * len(found) + 10, ABOVE + round(1.1 * UNIT)
    line = floor - UNIT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {floor + BELOW}" font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="{LEFT}" y="18" font-size="13">Time over that of the faster of ONNX Runtime and OpenVINO: one thread, lower is better</text>',
    ]
    for at, (name, ratio) in enumerate(found):
        x, height = LEFT + COLUMN * at, round(ratio * UNIT)
        colour = "#2a7f62" if ratio <= 1 else "#c98a3d"
        parts.append(f'<rect x="{x}" y="{floor - height}" width="{COLUMN - 6}" height="{height}" fill="{colour}"/>')
        parts.append(f'<text x="{x + 7}" y="{floor - height - 4}" font-size="8" text-anchor="middle">{ratio:.2f}</text>')
        parts.append(f'<text transform="translate({x + 11},{floor + 8}) rotate(-60)" text-anchor="end">{name}</text>')
    parts.append(f'<line x1="{LEFT - 6}" y1="{line}" x2="{width - 6}" y2="{line}" stroke="#444" stroke-dasharray="4 3"/>')
    parts.append(f'<text x="{LEFT - 10}" y="{line + 4}" text-anchor="end">1</text>')
    parts.append(f'<text x="{LEFT - 10}" y="{floor}" text-anchor="end">0</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(ratios()))
