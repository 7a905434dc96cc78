"""What keeps the project in one piece: layers, no cycles, the content of the wheel, pins."""

from __future__ import annotations

import functools
import graphlib
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import grimp
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("agentgym_jax", "envs_jax")


@functools.cache
def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def pins() -> dict[str, Version]:
    """{canonical name: version} of `constraints.txt`; fails on any line that is more than a name and a version."""
    found = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            match = re.fullmatch(r"([A-Za-z0-9][\w.-]*)==([\w.+!]+)", line)
            assert match, f"constraints.txt: {line!r} is not NAME==VERSION"
            found[canonicalize_name(match[1])] = Version(match[2])
    return found


def requirements(*extras: str) -> list[Requirement]:
    declared = list(project()["project"]["dependencies"])
    for extra in extras:
        declared += project()["project"]["optional-dependencies"][extra]
    return [Requirement(text) for text in declared]


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)


def test_imports_keep_to_the_layers():
    done = run("-c", "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))")
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_import_cycles():
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert any(imports.values())
    graphlib.TopologicalSorter(imports).prepare()  # raises CycleError, naming the modules


def test_every_module_is_importable_as_part_of_a_package():
    for package in PACKAGES:
        folders = {path.parent for path in (ROOT / package).rglob("*.py")}
        missing = [str(folder.relative_to(ROOT)) for folder in folders if not (folder / "__init__.py").exists()]
        assert not missing, f"no __init__.py in {missing}"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> zipfile.ZipFile:
    target = tmp_path_factory.mktemp("wheel")
    done = run("-m", "hatchling", "build", "-t", "wheel", "-d", str(target))
    assert done.returncode == 0, done.stderr
    (path,) = target.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def test_wheel_holds_two_packages_and_every_config(wheel):
    names = set(wheel.namelist())
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(PACKAGES)
    assert {f"{package}/py.typed" for package in PACKAGES} <= names

    sources = {str(path.relative_to(ROOT)) for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    assert sources <= names

    configs = ROOT / "experiments" / "configs"
    shipped = {f"agentgym_jax/_configs/{path.relative_to(configs)}" for path in configs.rglob("*.yaml")}
    assert shipped
    assert shipped == {name for name in names if name.startswith("agentgym_jax/_configs/")}


def test_wheel_metadata(wheel):
    (info,) = {name.partition("/")[0] for name in wheel.namelist() if ".dist-info/" in name}
    assert "agentgym = agentgym_jax.cli:main" in wheel.read(f"{info}/entry_points.txt").decode()
    metadata = wheel.read(f"{info}/METADATA").decode()
    assert "License-Expression: Apache-2.0" in metadata
    assert f"{info}/licenses/LICENSE" in wheel.namelist()


def test_version_is_stated_once():
    import agentgym_jax

    assert agentgym_jax.__version__ == project()["project"]["version"]


def test_pins_fit_the_declared_ranges():
    pinned = pins()
    for requirement in [one for extra in ("dev", "jaxmarl", "wandb", "tune") for one in requirements(extra)]:
        name = canonicalize_name(requirement.name)
        if name == "agentgym-jax":
            continue  # with the extras that are listed beside it
        assert name in pinned, f"{name} is declared but not pinned in constraints.txt"
        assert requirement.specifier.contains(pinned[name], prereleases=True), f"{requirement} excludes {pinned[name]}"


def test_extras_are_complete():
    assert set(project()["project"]["optional-dependencies"]) == {"jaxmarl", "wandb", "tune", "cuda", "dev"}
    runtime = {canonicalize_name(requirement.name) for requirement in requirements()}
    assert not runtime & {"distrax", "rlax", "jaxmarl", "wandb", "optuna"}


def test_every_test_that_the_list_of_faults_names_exists():
    """`tests/file.py::name`; a name alone is in the file before it."""
    file, found = "", 0
    for path, name in re.findall(r"`(tests/[\w/]+\.py)?::(\w+)`", (ROOT / "docs" / "pitfalls.md").read_text()):
        file, found = path or file, found + 1
        assert re.search(rf"^def {name}\b", (ROOT / file).read_text(), re.MULTILINE), f"{file} has no {name}"
    assert found > 40
