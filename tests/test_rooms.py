"""The order of rooms: a package imports only from packages above it, and never in a cycle."""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: The packages of hstree from the top down; modules beside them are above all. The models of torch
#: use the layers of `interop.torch`, so that this is a room of its own above them.
ROOMS = (
    "kernels",
    "tree",
    "data",
    "builders",
    "formats",
    "metrics",
    "ngrams",
    "layers",
    "training",
    "interop.torch",
    "models",
    "experiments",
    "report",
    "interop",
)
#: Objects of registries, "module:attribute", which are imported when they are asked for.
REGISTERED = re.compile(r"(hstree[.\w]*):\w+")


def modules(package):
    """Return {dotted name: path} of all modules of a package."""
    found = {}
    for path in package.rglob("*.py"):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


def imported(path, names):
    """Return those of the modules that a file imports anywhere, in functions and for types too.

    These count as imports:

    - ``import_module("hstree.report")``;
    - ``import_module(f"hstree.{name}")``, of every module whose name begins so;
    - ``"hstree.builders.gmm:gmm"``, an object of a registry.
    """
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in names else node.module)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            found |= lazily_imported(node.args[0], names)
        elif isinstance(node, ast.Constant) and (match := REGISTERED.fullmatch(str(node.value))):
            found.add(match[1])
    return found & names.keys()


def lazily_imported(argument, names):
    """Return the modules that an argument of `import_module` may name."""
    if isinstance(argument, ast.Constant):
        return {argument.value}
    if isinstance(argument, ast.JoinedStr) and isinstance(argument.values[0], ast.Constant):
        return {name for name in names if name.startswith(argument.values[0].value)}
    return set()


def imports_of(package):
    """Return {module: the modules of its own package that it imports}."""
    names = modules(package)
    return {name: imported(path, names) - {name} for name, path in names.items()}


@pytest.fixture(scope="module")
def imports():
    return imports_of(ROOT / "hstree")


def room(module):
    """Return the position of a module's room; -1 for the modules above all rooms."""
    _, *parts = module.split(".")
    for name in (".".join(parts[:2]), ".".join(parts[:1])):
        if name in ROOMS:
            return ROOMS.index(name)
    return -1


def test_lazy_imports_are_seen(imports):
    assert "hstree.kernels.functions" in imports["hstree.kernels.backend"]
    assert {"hstree.experiments.compare", "hstree.report"} <= imports["hstree"]
    for room, module in (("builders", "gmm"), ("layers", "flat"), ("models", "lbl")):
        assert f"hstree.{room}.{module}" in imports[f"hstree.{room}.registry"]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("import_module('hstree.report.page')", {"hstree.report.page"}),
        ("importlib.import_module(f'hstree.report.{name}')", {"hstree.report.page"}),
        ("import_module('json')", set()),
        ("KINDS = {'page': 'hstree.report.page:draw'}", {"hstree.report.page"}),
    ],
)
def test_strings_that_name_modules_are_imports(call, expected, tmp_path):
    (tmp_path / "module.py").write_text(call)
    names = {"hstree.report": None, "hstree.report.page": None}
    assert imported(tmp_path / "module.py", names) == expected


def test_every_package_is_a_room():
    packages = {path.parent.name for path in (ROOT / "hstree").glob("*/__init__.py")}
    assert packages | {"interop.torch"} == set(ROOMS)


def test_a_room_imports_from_rooms_above_it_alone(imports):
    for module in imports.keys() - {"hstree"}:
        below = {o for o in imports[module] if o == "hstree" or room(o) > room(module)}
        assert not below, module


def test_nothing_but_the_program_imports_the_report(imports):
    for module, others in imports.items():
        if module != "hstree" and not module.startswith("hstree.report"):
            assert not any(other.startswith("hstree.report") for other in others), module


def test_benchmarks_and_examples_use_neither_the_program_nor_the_report():
    for path in (*ROOT.glob("benchmarks/*.py"), *ROOT.glob("examples/**/*.py")):
        text = path.read_text(encoding="utf-8")
        assert "hstree_cli" not in text, path
        assert "hstree.report" not in text, path


def test_kinds_of_candidates_are_told_apart_in_their_module_alone():
    """Elsewhere they differ by their methods and attributes."""
    kinds = {"EnsembleCandidate", "LayerCandidate", "NGramCandidate", "TreeCandidate"}
    for path in (*ROOT.glob("hstree/**/*.py"), *ROOT.glob("cli/**/*.py")):
        if path.name == "candidate.py":
            continue
        names = {
            getattr(node, "id", None) or getattr(node, "name", None)
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        }
        assert not kinds & names, path


def test_no_imports_form_a_cycle(imports):
    try:
        TopologicalSorter(imports).prepare()
        TopologicalSorter(imports_of(ROOT / "cli" / "hstree_cli")).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(error.args[1]))


def test_the_library_does_not_import_the_program():
    """Except for `python -m hstree`, which starts it."""
    for name, path in modules(ROOT / "hstree").items():
        if name != "hstree.__main__":
            assert "hstree_cli" not in path.read_text(encoding="utf-8"), path
