"""Examples at the end of a command's help: lines that can be typed as they stand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Command = TypeVar("Command", bound=Callable[..., Any])

_EPILOGUES: dict[Callable[..., Any], str] = {}


def examples(*lines: str) -> Callable[[Command], Command]:
    """Give a command's function its examples."""

    def attach(command: Command) -> Command:
        _EPILOGUES[command] = laid_out(*lines)
        return command

    return attach


def laid_out(*lines: str) -> str:
    """Return examples as they stand at the end of a help page."""
    title = "Example" if len(lines) == 1 else "Examples"
    return "\n\n".join([f"[bold]{title}:[/bold]", *lines])


def epilogue(command: Callable[..., Any]) -> str:
    """Return what stands at the end of a command's help page."""
    return _EPILOGUES[command]
