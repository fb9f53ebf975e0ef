"""Draws the pictures that the demo reads: a notice, a receipt, and a sign that hangs upside down.

usage: draw_images.py [DIRECTORY]

The pictures are in the repository; this is how they were made. Needs Pillow and the DejaVu fonts.
"""

import pathlib
import sys

from PIL import Image, ImageDraw, ImageFont

FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans{}.ttf"


def font(size, style=""):
    return ImageFont.truetype(FONT.format(style), size)


def notice():
    """Black on cream, a wide picture."""
    image = Image.new("RGB", (960, 420), "#f7f1e3")
    draw = ImageDraw.Draw(image)
    draw.rectangle([18, 18, 941, 401], outline="#7a6a4f", width=4)
    draw.text((60, 50), "One file, no tools", font=font(64, "-Bold"), fill="#2b2b2b")
    draw.text((60, 160), "The network that reads this line was compiled", font=font(36), fill="#333333")
    draw.text((60, 220), "to a shared library of machine code.", font=font(36), fill="#333333")
    draw.text((60, 310), "Any width, any height: shapes stay symbolic", font=font(34, "Mono-Bold"), fill="#8b1e1e")
    return image


def receipt():
    """Small print on a narrow picture."""
    image = Image.new("RGB", (520, 560), "#ffffff")
    draw = ImageDraw.Draw(image)
    rows = [("Coffee, large", "3.40"), ("Croissant", "2.15"), ("Orange juice", "4.80"), ("Sandwich", "6.95")]
    draw.text((120, 30), "CORNER CAFE", font=font(40, "-Bold"), fill="#111111")
    draw.text((120, 90), "12 Harbour Street", font=font(26), fill="#333333")
    for i, (item, price) in enumerate(rows):
        draw.text((50, 170 + 58 * i), item, font=font(30), fill="#222222")
        draw.text((390, 170 + 58 * i), price, font=font(30), fill="#222222")
    draw.line([50, 412, 470, 412], fill="#555555", width=2)
    draw.text((50, 435), "Total", font=font(34, "-Bold"), fill="#000000")
    draw.text((370, 435), "17.30", font=font(34, "-Bold"), fill="#000000")
    draw.text((50, 500), "Thank you and goodbye", font=font(26), fill="#333333")
    return image


def sign():
    """Light on dark, and the wrong way up."""
    image = Image.new("RGB", (700, 240), "#12355b")
    draw = ImageDraw.Draw(image)
    draw.text((50, 40), "Mind the step", font=font(72, "-Bold"), fill="#f4d35e")
    draw.text((50, 150), "This sign hangs upside down", font=font(38), fill="#ffffff")
    return image.rotate(180)


def main(directory):
    directory.mkdir(parents=True, exist_ok=True)
    for draw in (notice, receipt, sign):
        draw().quantize(64).save(directory / f"{draw.__name__}.png", optimize=True)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "images"))
