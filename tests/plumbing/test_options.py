"""Options read from annotations and docstrings, and the values that they refuse."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Optional

import numpy as np
import pytest
from msgspec import Meta

from hstree._options import Option, RandomState, checked_options, effective, read_options
from hstree.errors import OptionError


@pytest.mark.parametrize(
    ("interval", "legal", "illegal", "text"),
    [
        (Meta(ge=1), [1, 1e300], [0.999], "a number, 1 or more"),
        (Meta(gt=0), [1e-300], [0, -1], "a number, above 0"),
        (Meta(le=3), [3, -9], [4], "a number, 3 or less"),
        (Meta(ge=0, le=0.5), [0, 0.5], [-1e-9, 0.6], "a number from 0 to 0.5"),
        (Meta(ge=0, lt=1), [0, 0.9], [1], "a number, 0 or more and below 1"),
    ],
)
def test_a_range_contains_its_legal_values_and_is_named(interval, legal, illegal, text):
    option = Option.of("x", Annotated[float, interval])
    assert [option.checked(value) for value in legal] == legal
    for value in illegal:
        with pytest.raises(OptionError, match=f"x is .*; it must be {text}$"):
            option.checked(value)


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
    epochs: Annotated[int, Meta(ge=0)] = 10
    least: int = 0
    rate: Annotated[float, Meta(gt=0)] = 0.1
    layout: Literal["one", "two"] = "one"


class Layer:
    """An output layer.

    Parameters
    ----------
    samples : int
        Noise words per target.
    """

    def __init__(
        self, n_labels: int, *, samples: Annotated[int, Meta(ge=1)] = 10, noise: Path | None = None
    ) -> None:
        self.samples = samples


@checked_options
def grow(
    words: list[str],
    *,
    arity: Annotated[int, Meta(ge=2)] | None = 2,
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
    both = "Number of epochs, and the least."
    assert read_options(Training) == (
        Option.of("epochs", Annotated[int, Meta(ge=0)], 10, both),
        Option.of("least", int, 0, both),
        Option.of("rate", Annotated[float, Meta(gt=0)], 0.1, "Learning rate."),
        Option.of("layout", Literal["one", "two"], "one"),
    )
    assert read_options(Layer) == (
        Option.of("samples", Annotated[int, Meta(ge=1)], 10, "Noise words per target."),
        Option.of("noise", Path | None),
    )
    help = "A number of children. A second paragraph."
    assert read_options(grow) == (
        Option.of("arity", Annotated[int, Meta(ge=2)] | None, 2, help),
        Option.of("prose", str, "x"),
        Option.of("maybe", Optional[bool]),  # noqa: UP045
    )
    values = effective(read_options(Layer), {"samples": np.int64(3)}, "layer")
    assert values == {"samples": 3, "noise": None}


@pytest.mark.parametrize(
    ("annotation", "type_", "choices", "optional", "word"),
    [
        (int, int, (), False, ""),
        (Literal["one", "two"], str, ("one", "two"), False, ""),
        (Literal[3, 2] | None, int, (3, 2), True, ""),
        (Annotated[Literal["b", None, "a"] | None, ""], str, ("b", "a"), True, ""),
        (Annotated[float, Meta(gt=0)] | Literal["auto"] | None, float, (), True, "auto"),
        (Path | None, Path, (), True, ""),
    ],
)
def test_an_annotation_is_described(annotation, type_, choices, optional, word):
    option = Option.of("x", annotation)
    assert (option.type, option.choices, option.optional) == (type_, choices, optional)
    assert option.word == word


@pytest.mark.parametrize("annotation", [list[int], int | str, Literal["a", 1], None, complex])
def test_other_annotations_are_refused(annotation):
    with pytest.raises(TypeError, match="'x' must be annotated bool"):
        Option.of("x", annotation)


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
def prune(words: list[str], *, keep: Annotated[int, Meta(ge=1)] | Literal["all"] = 5) -> int | str:
    """Prune."""
    return keep


def test_an_option_may_be_a_number_or_a_word():
    (option,) = read_options(prune)
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
        (
            Annotated[int, Meta(ge=0)],
            np.int64(3),
            -1,
            "is -1; it must be a whole number, 0 or more",
        ),
        (float, 0, float("inf"), "is inf; it must be a number"),
        (float, 0, 10**400, "is 1000.*; it must be a number"),
        (float, 0, "0.5", "is '0.5'; it must be a number"),
        (float, np.float32(2), np.complex128(0.25 + 1j), ".*0.25.*; it must be a number"),
        (float, 0, np.zeros((50, 50)), "is array.*; it must be a number"),
        (str, "x", 3, "is 3; it must be text"),
        (Path, "x/y", 3, "is 3; it must be the name of a file"),
        (Literal[3, 2], 2, 4, "is 4; it must be one of 3, 2"),
        (int, 1, 2.0, r"is 2\.0; it must be a whole number"),
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
