"""What a tree file says, before anyone has asked whether it is a tree.

The types are right (vectors of int64, a list of labels), the rules of the format may be broken;
so `hstree check` can name every broken rule where `Tree` stops at its door.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hstree._typing import Int64
from hstree.tree.rules import BrokenRule, broken_rules


@dataclass(frozen=True)
class Content:
    """The content of a tree file; the fields are those of `Tree`.

    Strings may still turn out to be something else: that is a broken rule, not a bad file.
    """

    labels: list[str]
    child_start: Int64
    child: Int64
    counts: Int64 | None
    names: list[str | None] | None
    meta: dict[str, Any]

    def broken_rules(self) -> list[BrokenRule]:
        """Name every rule of the format that the content breaks; empty for a valid tree."""
        return broken_rules(self.labels, self.child_start, self.child, self.counts, self.names)
