"""Messages of the library speak Python; the program's errors name its commands instead."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest
import typer
from hstree_cli.python_names import COMMANDS, with_commands

import hstree
from hstree.errors import InputError
from hstree_cli import terminal
from hstree_cli.main import app

LIBRARY = Path(hstree.__file__).parent


def texts():
    """Return {place: text} of all strings of the library but docstrings."""
    found = {}
    for path in LIBRARY.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
        for node in constants:
            if isinstance(node.value, str) and id(node) not in docstrings:
                place = f"{path.relative_to(LIBRARY)}:{node.lineno}:{node.col_offset}"
                found[place] = node.value
    return found


def test_no_message_of_the_library_names_a_command_or_a_flag():
    commands = "|".join(typer.main.get_command(app).commands)
    spoken = re.compile(rf"`hstree (?:{commands})\b|(?<![\w-])--[a-z]{{2}}")
    wrong = {place: text for place, text in texts().items() if spoken.search(text)}
    # the page's command that makes a row again, and the command that installs an extra
    wrong = {p: text for p, text in wrong.items() if not p.startswith("report/recipe.py")}
    wrong = {place: text for place, text in wrong.items() if "pip install --upgrade" not in text}
    assert wrong == {}


def test_every_function_that_messages_name_has_its_command():
    named = set()
    for text in texts().values():
        named |= set(re.findall(r"`(?:hstree|[A-Z]\w+)\.[^`]*`", text))
    assert named == COMMANDS.keys()


@pytest.mark.parametrize("function", COMMANDS)
def test_what_is_named_is_there(function):
    """The functions in Python, the commands in the program."""
    path = re.sub(r"\(.*", "", function.strip("`")).removeprefix("hstree.")
    path = {"Vocabulary.save": "data.vocabulary.Vocabulary.save"}.get(path, path)
    *modules, name = path.split(".")
    value = hstree
    for part in modules:
        value = getattr(value, part, None) or import_module(f"{value.__name__}.{part}")
    assert callable(getattr(value, name))
    names = re.findall(r"`hstree (\w+)`", COMMANDS[function])
    assert names
    assert set(names) <= typer.main.get_command(app).commands.keys()


def test_errors_of_the_program_name_commands(capsys, tmp_path):
    with pytest.raises(InputError, match=r"`hstree\.CBOW`") as refused:
        hstree.build("kmeans", "nltk:brown")
    terminal.complain(str(refused.value))
    printed = capsys.readouterr().err
    assert "train some with `hstree embed`" in printed
    assert "hstree.CBOW" not in printed
    assert with_commands("nothing to replace") == "nothing to replace"
