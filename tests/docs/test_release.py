"""Tests that version, authors and dependencies of a release agree in all files."""

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


def test_version_is_equal_in_all_files() -> None:
    versions = {
        "changelog": re.search(r"^## (\S+)", text_of("CHANGELOG.md"), re.M),
        "citation": re.search(r"^version: (\S+)$", text_of("CITATION.cff"), re.M),
        "recipe": re.search(
            r'^  version: "(\S+)"$', text_of("packaging/recipe.yaml"), re.M
        ),
    }
    found = {name: match and match[1] for name, match in versions.items()}
    assert found == dict.fromkeys(versions, sk.__version__)
    figures = json.loads(text_of("benchmarks/measured.json")).values()
    assert {part["machine"]["slotkern"] for part in figures} == {sk.__version__}


def test_citation_agrees_with_project() -> None:
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    citation = text_of("CITATION.cff")
    assert f"license: {project['license']}" in citation
    assert f"abstract: {project['description']}." in citation
    for author in project["authors"]:
        assert f"  - name: {author['name']}" in citation


def test_recipe_has_dependencies_of_project() -> None:
    whole = tomllib.loads(text_of("pyproject.toml"))
    recipe = text_of("packaging/recipe.yaml")
    needs = whole["build-system"]["requires"] + whole["project"]["dependencies"]
    for need in needs:
        name, limits = re.fullmatch(r"([\w-]+)(.*)", need).groups()  # type: ignore[union-attr]
        assert f"- {name} {limits}\n" in recipe, need
    assert "slotkern = slotkern.__main__:main" in recipe


def test_classifiers_list_built_versions() -> None:
    whole = tomllib.loads(text_of("pyproject.toml"))
    listed = re.findall(
        r":: (3\.\d+)$", "\n".join(whole["project"]["classifiers"]), re.M
    )
    built = re.findall(r"cp3(\d+)-", whole["tool"]["cibuildwheel"]["build"])
    assert listed == [f"3.{minor}" for minor in built]
    assert whole["project"]["requires-python"] == f">={listed[0]}"


def test_files_of_source_distribution_exist() -> None:
    whole = tomllib.loads(text_of("pyproject.toml"))
    for name in whole["tool"]["scikit-build"]["sdist"]["include"]:
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=str)
def test_workflows_pin_actions_and_need_no_token(path: Path) -> None:
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


def test_containers_run_make_demo_on_the_oldest_python() -> None:
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    oldest = project["requires-python"].removeprefix(">=")
    image = text_of("Dockerfile")
    assert f"\nFROM python:{oldest}-slim\n" in image
    assert "\nRUN make demo\n" in image
    container = json.loads(text_of(".devcontainer/devcontainer.json"))
    assert container["image"].startswith(f"python:{oldest}-")
    assert container["postCreateCommand"] == "make demo"
