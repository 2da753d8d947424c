"""Options read from annotations and docstrings, and the values that they refuse."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Optional

import numpy as np
import pytest

from hstree._options import Option, RandomState, Range, checked_options, effective, options_of
from hstree.errors import OptionError


@pytest.mark.parametrize(
    ("interval", "legal", "illegal", "text"),
    [
        (Range(), [-1e300, 0], [], ""),
        (Range(1), [1, 10**30], [0.999], "1 or more"),
        (Range(0, exclude_min=True), [1e-300], [0, -1], "above 0"),
        (Range(max=3), [3, -9], [4], "3 or less"),
        (Range(0, 0.5), [0, 0.5], [-1e-9, 0.6], "from 0 to 0.5"),
        (Range(0, 1, exclude_max=True), [0, 0.9], [1], "0 or more and below 1"),
    ],
)
def test_a_range_holds_its_legal_values_and_reads_well(interval, legal, illegal, text):
    assert all(value in interval for value in legal)
    assert not any(value in interval for value in illegal)
    assert str(interval) == text


@dataclass
class Training:
    """How to train.

    Attributes
    ----------
    epochs, least : int
        Number of ``epochs``,
        and the least.
    rate : float
        Learning rate.
    """

    text: str
    epochs: Annotated[int, Range(0)] = 10
    least: int = 0
    rate: Annotated[float, Range(0, exclude_min=True)] = 0.1
    layout: Literal["one", "two"] = "one"


class Layer:
    """An output layer.

    Parameters
    ----------
    samples : int
        Noise words per target.
    """

    def __init__(
        self, n_labels: int, *, samples: Annotated[int, Range(1)] = 10, noise: Path | None = None
    ) -> None:
        self.samples = samples


@checked_options
def grow(
    words: list[str],
    *,
    arity: Annotated[int | None, Range(2)] = 2,
    prose: str = "x",
    maybe: Optional[bool] = None,  # noqa: UP045 - the old way to write it counts too
) -> int | None:
    """Grow.

    Parameters
    ----------
    words : list of str
    arity : int or None
        A number of children.

        A second paragraph.

    Returns
    -------
    int or None
        prose : not a parameter
    """
    return arity


def test_options_are_read_from_dataclasses_classes_and_functions():
    assert options_of(Training) == (
        Option("epochs", int, 10, range=Range(0), help="Number of epochs, and the least."),
        Option("least", int, 0, help="Number of epochs, and the least."),
        Option("rate", float, 0.1, range=Range(0, exclude_min=True), help="Learning rate."),
        Option("layout", str, "one", ("one", "two")),
    )
    assert options_of(Layer) == (
        Option("samples", int, 10, range=Range(1), help="Noise words per target."),
        Option("noise", Path, None, optional=True),
    )
    help = "A number of children. A second paragraph."
    assert options_of(grow) == (
        Option("arity", int, 2, optional=True, range=Range(2), help=help),
        Option("prose", str, "x"),
        Option("maybe", bool, None, optional=True),
    )
    assert effective(options_of(Layer), {"samples": np.int64(3)}, "layer") == {
        "samples": 3,
        "noise": None,
    }


def test_a_checked_function_refuses_at_every_call():
    assert grow([], arity=np.int64(3)) == 3
    assert grow(words=[], arity=None) is None
    with pytest.raises(OptionError, match=r"^grow: arity is 1; it must be") as caught:
        grow([], arity=1)
    assert caught.value.option == "arity"
    assert str(caught.value).endswith("2 or more, or None")
    assert caught.value.reason == "is 1; it must be a whole number, 2 or more"
    assert caught.value.owner == "grow"
    with pytest.raises(TypeError):
        grow([], width=3)


@checked_options
def prune(words: list[str], *, keep: Annotated[int | Literal["all"], Range(1)] = 5) -> int | str:
    """Prune."""
    return keep


def test_an_option_may_be_a_number_or_a_word():
    (option,) = options_of(prune)
    assert (option.type, option.word, option.expected) == (
        int, "all", "a whole number, 1 or more, or 'all'",
    )  # fmt: skip
    assert (prune([], keep="all"), prune([], keep=np.int64(2))) == ("all", 2)
    assert (option.parsed("all"), option.parsed("3")) == ("all", 3)
    for wrong in ("none", 0, "", None, np.array([1, 2])):
        with pytest.raises(OptionError, match=r"^prune: keep is .*, 1 or more, or 'all'$"):
            prune([], keep=wrong)


@pytest.mark.parametrize(
    ("annotation", "legal", "wrong", "said"),
    [
        (Annotated[int, Range(0)], np.int64(3), -1, "is -1; it must be a whole number, 0 or more"),
        (Annotated[float, Range(0)], 1, -1, "is -1; it must be a number, 0 or more"),
        (float, 0, float("inf"), "is inf; it must be a number"),
        (float, 0, 10**400, "is 1000.*; it must be a number"),
        (float, 0, "0.5", "is '0.5'; it must be a number"),
        (float, 0, np.zeros((50, 50)), "is array.*; it must be a number"),
        (str, "x", 3, "is 3; it must be text"),
        (Path, "x/y", 3, "is 3; it must be the name of a file"),
        (Literal[2, 3], 2, 4, "is 4; it must be one of 2, 3"),
        (int | None, 1, "x", "is 'x'; it must be a whole number, or None"),
        (int, 1, 2.0, r"is 2\.0; it must be a whole number"),
        (int, 1, None, "is None; it must be a whole number"),
        (Literal["one", "two"], "one", "three", "is 'three'; it must be one of 'one', 'two'"),
        (RandomState, 0, 2**32, "is 4294967296; .* from 0 to 4294967295"),
        (bool, np.True_, 1, "is 1; it must be true or false"),
        (int, 1, True, "is True; it must be a whole number"),
    ],
)
def test_values_are_converted_to_the_type_or_refused(annotation, legal, wrong, said):
    option = Option.of("x", annotation)
    assert type(option.checked(legal)) is type(option.type(legal))
    with pytest.raises(OptionError, match=f"^x {said}$"):
        option.checked(wrong)
