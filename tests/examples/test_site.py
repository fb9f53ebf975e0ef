"""The site of the documentation has every page, and links lead to what there is."""

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
