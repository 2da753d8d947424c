"""Prose: sentences of docstrings, without code, tables and signatures."""

import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hstree.data.prose import paragraphs, sentences_of

NUMPYDOC = """
    Compute the mean of some numbers.

    The mean isn't robust, e.g. against outliers [1]_.  Use `median` or
    ``scipy.stats.trim_mean`` then, as :func:`~numpy.median` does.

    Parameters
    ----------
    numbers : array_like, shape (n,)
        The numbers whose mean is
        wanted.
    weights : ndarray, optional
        One weight for each number.

    Returns
    -------
    float
        The weighted mean of them.

    See Also
    --------
    median : Return the value in the middle.

    Notes
    -----
    .. note:: Empty input is not an error here.

    .. versionadded:: 1.2
       The function was added in this version.

    For example::

        value = mean(of the numbers)

    It is :math:`\\\\sum x / n` for a vector of numbers.

    ====== ==================
    value  what it means here
    ====== ==================

    - The first of two points is long
      and goes on here.
    - The second of two points.

    >>> mean([1, 2]) is a number of course
    1.5 is what this gives back

    References
    ----------
    .. [1] A. Author, "The title of a paper", 1999.
"""


def sentences(docstring):
    return [s for paragraph in paragraphs(docstring) for s in sentences_of(paragraph)]


def of(docstring):
    return sentences(inspect.cleandoc(docstring))


def test_a_numpydoc_docstring():
    assert of(NUMPYDOC) == [
        "compute the mean of some numbers .",
        "the mean is n't robust , e.g. against outliers .",
        "use median or scipy.stats.trim_mean then , as numpy.median does .",
        "the numbers whose mean is wanted .",
        "one weight for each number .",
        "the weighted mean of them .",
        "empty input is not an error here .",
        "the first of two points is long and goes on here .",
        "the second of two points .",
    ]


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        (
            ":param name: the name of a person\n:type name: a string here\n:return: what is there",
            ["the name of a person", "what is there"],
        ),
        ("One is **very** *good* here.", ["one is very good here ."]),
        (
            "It returns x*y and then **kwargs as they are given to it.",
            ["it returns x * y and then * * kwargs as they are given to it ."],
        ),
        (
            "The dog's bone wasn't found! Was it? We'll see.",
            ["the dog 's bone was n't found !", "we 'll see ."],
        ),
        ("The \u201cdog\u2019s\u201d bone is found.", ['the " dog \'s " bone is found .']),
        ("It is 'model' that he said.", ["it is ' model ' that he said ."]),
        (
            "Use state-of-the-art and/or 0.5 of numpy.linalg.norm in this case.",
            ["use state-of-the-art and/or 0.5 of numpy.linalg.norm in this case ."],
        ),
        (
            "It goes on -> and on -- to the very end of it where a >= b...",
            ["it goes on -> and on -- to the very end of it where a >= b ..."],
        ),
        (
            "- one of some points\n- and another of them\n  goes on\nwhat stands below the list",
            ["one of some points", "and another of them goes on", "what stands below the list"],
        ),
        ("See the page at https://example.org for more of it.", []),
        ("x = f(a[0], b[1]) + {c: d}", []),
        ("Too short.", []),
        ("The matrix $A$ is what we want.", []),
        ("The byte \0 is what we want.", []),
        ("Half a \ud800 character is what we want.", []),
        ("mean(x, axis=None) -> the mean of it", []),
        ("Title of the thing\n==================\nWhat it is about.", ["what it is about ."]),
        ("+----+\n| the words in a table |\n+----+", []),
        (
            "Prose of an ordinary kind.\n\n$ run the program like this",
            ["prose of an ordinary kind ."],
        ),
        ("", []),
    ],
)
def test_pieces(docstring, expected):
    assert sentences(docstring) == expected


@given(st.text(max_size=300))
def test_any_text_gives_tokens_between_single_spaces(text):
    for sentence in sentences(text):
        assert sentence == " ".join(sentence.split())
        assert sentence == sentence.lower()
        assert len(sentence.split(" ")) >= 3
        sentence.encode()
