"""What a release says of itself is the same everywhere."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

import slotkern as sk

ROOT = Path(__file__).parents[2]


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_one_version_everywhere() -> None:
    said = {
        "changelog": re.search(r"^## (\S+)", text_of("CHANGELOG.md"), re.M),
        "citation": re.search(r"^version: (\S+)$", text_of("CITATION.cff"), re.M),
        "recipe": re.search(
            r'^  version: "(\S+)"$', text_of("packaging/recipe.yaml"), re.M
        ),
    }
    assert {name: found and found[1] for name, found in said.items()} == dict.fromkeys(
        said, sk.__version__
    )
    kept = json.loads(text_of("benchmarks/measured.json"))
    assert {part["machine"]["slotkern"] for part in kept.values()} == {sk.__version__}


def test_the_citation_agrees_with_the_project() -> None:
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    citation = text_of("CITATION.cff")
    assert f"license: {project['license']}" in citation
    assert f"abstract: {project['description']}." in citation
    for author in project["authors"]:
        assert f"  - name: {author['name']}" in citation


def test_the_recipe_asks_for_what_the_project_asks_for() -> None:
    whole = tomllib.loads(text_of("pyproject.toml"))
    recipe = text_of("packaging/recipe.yaml")
    needs = whole["build-system"]["requires"] + whole["project"]["dependencies"]
    for need in needs:
        name, limits = re.fullmatch(r"([\w-]+)(.*)", need).groups()  # type: ignore[union-attr]
        assert f"- {name} {limits}\n" in recipe, need
    assert "slotkern = slotkern.__main__:main" in recipe


def test_classifiers_name_the_versions_that_are_built() -> None:
    whole = tomllib.loads(text_of("pyproject.toml"))
    said = re.findall(r":: (3\.\d+)$", "\n".join(whole["project"]["classifiers"]), re.M)
    built = re.findall(r"cp3(\d+)-", whole["tool"]["cibuildwheel"]["build"])
    assert said == [f"3.{minor}" for minor in built]
    assert whole["project"]["requires-python"] == f">={said[0]}"


def test_everything_that_a_source_distribution_needs_is_there() -> None:
    whole = tomllib.loads(text_of("pyproject.toml"))
    for name in whole["tool"]["scikit-build"]["sdist"]["include"]:
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=str)
def test_workflows_are_yaml_and_publish_without_a_token(path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    whole = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(whole, dict)
    if path.parent.name != "workflows":
        return
    assert whole["permissions"] == {"contents": "read"}
    assert "secrets." not in path.read_text(encoding="utf-8")
    for name in re.findall(r"uses: (.*)", path.read_text(encoding="utf-8")):
        # A tag can be moved to other code, a commit cannot.
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", name), name
    for job in whole["jobs"].values():
        more = job.get("permissions", {})
        assert more in ({}, {"id-token": "write"})
        assert not more or job["environment"] == "release"
