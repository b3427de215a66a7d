"""Tests of the paper: citations, authors and length."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Words of a paper for the Journal of Open Source Software.
MOST_WORDS = 1000


def test_citations_of_the_paper_resolve() -> None:
    text = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
    entries = (ROOT / "paper" / "paper.bib").read_text(encoding="utf-8")
    listed = re.findall(r"^@\w+\{(\w+),$", entries, re.M)
    cited = set(re.findall(r"@(\w+)", text))
    assert len(set(listed)) == len(listed)
    assert cited == set(listed)
    for entry in re.split(r"^@", entries, flags=re.M)[1:]:
        assert entry.count("{") == entry.count("}"), entry
        for field in ("author", "title"):
            assert re.search(rf"^  {field} +=", entry, re.M), entry
        assert re.search(r"^  (doi|note|journal) +=", entry, re.M), entry


def test_the_paper_is_short_and_by_the_cited_authors() -> None:
    text = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
    _, heading, body = text.split("---\n", 2)
    assert 250 < len(body.split()) < MOST_WORDS
    names = re.findall(r"^  - name: (.+)\n    affiliation", heading, re.M)
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    listed = citation.partition("\nauthors:\n")[2].partition("\nkeywords:")[0]
    assert names == re.findall(r"^  - name: (.+)$", listed, re.M)
