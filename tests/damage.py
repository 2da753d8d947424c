"""Damage to files: every change of JSON values, and other things instead of a file."""

import os
import socket
from collections.abc import Iterator


def changed_values(value) -> Iterator[object]:
    """Yield JSON values with one of their parts changed, or left out."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield {name: other for name, other in value.items() if name != key}
            yield from ({**value, key: other} for other in changed_values(part))
    elif isinstance(value, list):
        yield [*value, None]
        for i, part in enumerate(value):
            yield from ([*value[:i], other, *value[i + 1 :]] for other in changed_values(part))
    else:
        others = [None, True, False, 0, -1, 1.5, "", "x", [], {}]
        if isinstance(value, int | float) and not isinstance(value, bool):
            others.append(value / 1.2 + 1)
        yield from (other for other in others if (type(other), other) != (type(value), value))


def replace_by_socket(file):
    """Bind a socket instead of a file, by its name: its address has at most 100 characters."""
    with socket.socket(socket.AF_UNIX) as bound:
        before = os.getcwd()
        os.chdir(file.parent)
        try:
            bound.bind(file.name)
        finally:
            os.chdir(before)


#: Functions that put something else at the path of a file that does not exist.
IN_THE_PLACE = {
    "missing": lambda file: None,
    "empty": lambda file: file.write_bytes(b""),
    "text": lambda file: file.write_text("{}\n"),
    "null": lambda file: file.write_text("null\n"),
    "deep": lambda file: file.write_text("[" * 100_000),
    "NaN": lambda file: file.write_text('{"a": NaN, "b": 1e400}'),
    "zeros": lambda file: file.write_bytes(bytes(4096)),
    "folder": lambda file: (file / "inside").mkdir(parents=True),
    "pipe": lambda file: os.mkfifo(file),
    "socket": replace_by_socket,
    "device": lambda file: file.symlink_to("/dev/zero"),
    "circle": lambda file: file.symlink_to(file),
    "dangling": lambda file: file.symlink_to(file.parent / "nothing/there"),
}
