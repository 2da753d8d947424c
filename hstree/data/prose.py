r"""Sentences of prose in a docstring, lower-cased and tokenised.

Docstrings mix English with reStructuredText, numpydoc sections, field lists, doctests, code and
tables. These are removed: doctests, literal blocks, directives (only the marker of notes and
warnings), footnotes, headings, tables, the sections *See Also* and *References*, lines of a name
and its type, and sentences with a formula, an address, or too few words among the signs. Markup is
removed, the marked words are kept; curly quotes become straight ones. The rules are heuristics,
not the grammar of reStructuredText.

Tokens are ``n't`` and ``'s 're 've 'll 'd 'm``, split from their word; abbreviations of single
letters (``e.g.``); words, which may contain ``. - ' / _`` (``scikit-learn``, ``numpy.linalg``,
``0.5``); ``... -- -> <= >= == !=``; any other sign by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

#: Version of the rules; increased whenever a docstring yields another text.
RULES_VERSION = 2
#: Indentation and text of a line; ``(0, "")`` separates blocks.
Line = tuple[int, str]
_BREAK: Line = (0, "")
_DROPPED_SECTIONS = {"see also", "references"}
_KEPT_DIRECTIVES = {"note", "warning", "tip", "hint", "important", "caution", "attention"}
_PUNCTUATION = set(".,;:!?()'\"")
_TYPEWRITER_QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")
_ABBREVIATIONS = {"e.g", "i.e", "etc", "vs", "cf", "al", "fig", "eq", "sec", "approx", "resp"} | {
    "no", "pp", "dr", "mr", "mrs", "prof", "vol", "ed", "eds", "ch", "ref", "st",
}  # fmt: skip

_UNDERLINE = re.compile(r"([=\-~^*#+.\"'`_])\1{2,}$")
_TABLE = re.compile(r"\+[-=+]+\+$|[=\-]+( +[=\-]+)+$|\|.*\|$")
_DOCTEST = re.compile(r">>>|\.\.\. |\$ |In \[\d+\]")
_DIRECTIVE = re.compile(r"\.\.(?:\s+(?:([\w-]+)::)?|$)")
_SIGNATURE = re.compile(r"\S+(?:,? \S+){0,3} : |[\w.]+\(.*\)(\s*->.*)?$|[:@]r?type\b")
_MARKER = re.compile(
    r"(?:[-*+•o]|\(?\w[.)]|\d+[.)]|#\.|[:@](?:param|returns?|raises?|keyword|[ic]?var)\b[^:]*:)"
    r"\s+(?=\S)"
)
_ROLE = re.compile(r":[\w:+-]+:`~?!?([^`<]*[^`<\s])[^`]*`")
_FORMULA = re.compile(r":math:`[^`]*`|\$[^$]+\$|[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_LITERAL = re.compile(r"``?([^`]+?)(?:\s*<[^`>]*>)?``?_{0,2}")
_FOOTNOTE = re.compile(r"\s*\[#?[\w*]+\]_")
_EMPHASIS = re.compile(r"(?<![\w*])(\*\*?)(?=\S)([^*]+?)\1(?![\w*])")
_SENTENCE_END = re.compile(r"[.!?][\"')\]]*\s+")
_LAST_WORD = re.compile(r"[\w.]+$")
_TOKEN = re.compile(
    r"\w+(?=n't\b)|n't\b|(?<=\w)'(?:s|re|ve|ll|d|m)\b|(?:[^\W\d_]\.){2,}"
    r"|\w+(?:(?!n't\b|'(?:s|re|ve|ll|d|m)\b)[.\-'/]\w+)*|\.\.\.|--+|->|[<>=!]=|\S"
)
_WORD = re.compile(r"[^\W\d_]{2,}(?:-[^\W\d_]+)*|[ai]|n't|'\w+")


def sentences_of(paragraph: str) -> Iterator[str]:
    """Yield the sentences of one paragraph of `paragraphs`, as tokens and spaces.

    Examples
    --------
    >>> list(sentences_of("Return the mean.  It isn't robust."))
    ['return the mean .', "it is n't robust ."]
    """
    for sentence in _split(_without_markup(paragraph)):
        tokens = _TOKEN.findall(sentence.lower())
        if _is_prose(sentence, tokens):
            yield " ".join(tokens)


def paragraphs(docstring: str) -> Iterator[str]:
    """Yield the paragraphs of prose of a docstring, each as one line with its markup."""
    block: list[Line] = []
    for line in [*_prose_lines(docstring), _BREAK]:
        if line != _BREAK:
            block.append(line)
            continue
        if not any(_TABLE.match(text) for _, text in block):
            yield from _block_paragraphs(block)
        block = []


def _prose_lines(docstring: str) -> Iterator[Line]:
    """Yield the lines outside headings, doctests, literal blocks and directives."""
    lines = [(len(line) - len(line.lstrip()), line.strip()) for line in docstring.split("\n")]
    skip_below: int | None = None
    in_doctest = in_dropped_section = False
    for (indent, text), (_, following) in zip(lines, [*lines[1:], _BREAK], strict=True):
        if not text:
            in_doctest = False
            yield _BREAK
            continue
        if skip_below is not None and indent > skip_below:
            continue
        skip_below = None
        if _UNDERLINE.match(text):
            yield _BREAK
            continue
        if _UNDERLINE.match(following):
            in_dropped_section = text.lower() in _DROPPED_SECTIONS
            yield _BREAK
            continue
        in_doctest = in_doctest or _DOCTEST.match(text) is not None
        if in_doctest or in_dropped_section:
            continue
        directive = _DIRECTIVE.match(text)
        if directive and (directive[1] or "").lower() in _KEPT_DIRECTIVES:
            yield _BREAK
            yield indent + 1, text[directive.end() :].strip() or "."
        elif directive:
            skip_below = indent
        elif text.endswith("::"):
            skip_below = indent
            yield indent, text[:-1]
        else:
            yield indent, text


def _block_paragraphs(block: list[Line]) -> Iterator[str]:
    """Split a block of lines at terms, markers and smaller indentations."""
    paragraph: list[str] = []
    level = 0
    for (indent, text), (next_indent, _) in zip(block, [*block[1:], _BREAK], strict=False):
        marker = _MARKER.match(text)
        is_term = next_indent > indent and not marker and len(text.split()) <= 4
        is_left_out = is_term or _SIGNATURE.match(text) is not None
        if paragraph and (marker or is_left_out or indent < level):
            yield " ".join(paragraph)
            paragraph = []
        if is_left_out:
            continue
        if not paragraph:
            # The continuation of a marked line is indented beyond the mark.
            level = indent + (marker is not None)
        paragraph.append(text[marker.end() :] if marker else text)
    if paragraph:
        yield " ".join(paragraph)


def _without_markup(text: str) -> str:
    # A backslash replaces a formula or a control character; a sentence with one is not prose.
    text = _ROLE.sub(r"\1", _FORMULA.sub(r"\\", text))
    text = _FOOTNOTE.sub("", _LITERAL.sub(r"\1", text))
    return _EMPHASIS.sub(r"\2", text).translate(_TYPEWRITER_QUOTES)


def _split(paragraph: str) -> Iterator[str]:
    """Split a paragraph after ``.``, ``!`` and ``?``, but not after an abbreviation."""
    start = 0
    for end in _SENTENCE_END.finditer(paragraph):
        last = _LAST_WORD.search(paragraph, start, end.start())
        if last is None or last[0].lower() not in _ABBREVIATIONS:
            yield paragraph[start : end.end()]
            start = end.end()
    yield paragraph[start:]


def _is_prose(sentence: str, tokens: list[str]) -> bool:
    """Return whether a sentence has three words or more, and few names, numbers and signs."""
    if "\\" in sentence or "://" in sentence:
        return False
    n_words = sum(_WORD.fullmatch(token) is not None for token in tokens)
    n_other = sum(token not in _PUNCTUATION for token in tokens) - n_words
    return n_words >= 3 and n_other <= 0.5 * n_words
