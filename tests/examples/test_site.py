"""The site of the documentation has every page, and links lead to what there is."""

import importlib.util
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
SUMMARY = ROOT / "docs/site/SUMMARY.md"
# Code has brackets before parentheses, too.
CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def links(page):
    targets = LINK.findall(CODE.sub("", page.read_text()))
    return [target.split("#")[0] for target in targets if not re.match(r"[a-z]+:", target)]


def test_every_page_is_in_the_contents():
    listed = {ROOT / target for target in links(SUMMARY)}
    places = ("*.md", "docs/*.md", "docs/decisions/*.md", "docs/performance/*.md", "examples/**/README.md")
    pages = {page for place in places for page in ROOT.glob(place)}
    assert listed == pages


def test_links_lead_somewhere():
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in ({ROOT / target for target in links(SUMMARY)})
        for target in links(page)
        if target and not (page.parent / target).exists()
    ]
    assert not broken


def test_the_picture_of_the_readme_shows_what_was_measured():
    spec = importlib.util.spec_from_file_location("chart", ROOT / "bench/chart.py")
    chart = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(chart)
    found = chart.ratios()
    # Every row of the table, which says how many networks there are.
    said = re.search(r"over (\d+) networks", chart.TABLE.read_text())[1]
    assert len(found) == int(said)
    assert chart.PICTURE.read_text() == chart.picture(found), "draw it anew: python bench/chart.py"
    assert chart.PICTURE.relative_to(ROOT).as_posix() in (ROOT / "README.md").read_text()
