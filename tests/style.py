"""Words and sentence patterns that the prose of this project avoids, and what to write instead.

``python -m tests.style [FILES]`` prints each place as "file:line: words: write ...". Without files,
it reads the documentation, the library, the program, the benchmarks and the examples. Each pattern
is a habit of earlier texts of this project, which the documentation of NumPy hardly has.
"""

import ast
import json
import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Pattern(NamedTuple):
    """A pattern to avoid: a regular expression, in which a space is any white space."""

    words: str
    instead: str
    example: str


#: Patterns of all prose. Upper and lower case are equal, except in ``(?-i:...)``.
PATTERNS = (
    # Words for which the field has others
    Pattern(r"\bshares? of\b", "fraction of", "The share of unknown tokens."),
    Pattern(r"\b(short|long|deep)\w* ways?\b", "path", "Frequent words have short ways."),
    Pattern(
        r"\b(on|along|up|down) (the|its|their|each|a) ways?\b|\bthe way (up|down)\b",
        "on the path",
        "The nodes on the way to a leaf.",
    ),
    Pattern(r"\bmend(s|ed|ing)?\b", "fix", "What the user can mend."),
    Pattern(r"\bbring(s|ing)?\b", "include, supply", "A text that Python brings."),
    Pattern(r"\bseveral labels\b", "multi-label, more than one label", "Several labels a sample."),
    Pattern(
        r"\[figures?\]|\bfigures (of|for|in|on|are)\b|\bout of the figures\b",
        "results, numbers",
        "It leaves its row out of the figures.",
    ),
    Pattern(r"\blikeliest\b", "most probable", "The likeliest label is the first."),
    Pattern(r"\bobey(s|ed|ing)?\b", "use, follow", "It obeys what is around."),
    Pattern(r"\bbuys?\b", "save, gain", "What each costs and what it buys."),
    Pattern(
        r"\bpays?\b(?! attention)", "is faster, is worthwhile", "A tree pays from 50,000 labels on."
    ),
    Pattern(r"\bsome (\d|thousand|hundred|million)", "about", "For some 50,000 labels."),
    Pattern(r"\banew\b", "again, from the beginning", "The job begins anew."),
    Pattern(
        r"\b(told|tells?|telling) ((?!from\b)\w+ ){0,3}apart\b",
        "distinguish",
        "Two nodes of one name are told apart.",
    ),
    Pattern(
        r"\btrainings\b|\b(a|each|every|one|another|these) training"
        r"(?=[.;:)]|,(?! a validation)| (and(?! a)|as|by|has|in|is|of|that|was|which|with)\b)",
        "training run",
        "The epochs of a training, and how it ended.",
    ),
    Pattern(r"\bin turns\b", "alternately", "All were measured in turns."),
    Pattern(r"\bgo(es)? on\b|\bgoing on\b", "continue", "The better half goes on."),
    Pattern(r"\bcomes? near\b", "say within which distance", "No faster tree comes near it."),
    Pattern(r"\bin a row\b(?! (of|or)\b)", "consecutive", "All that stands in a row."),
    Pattern(r"\bin (the|their|its) place\b", "instead of", "A tree in the place of a softmax."),
    Pattern(
        r"\b(one|two|three|several|\d+) (?!(as|at|for|from|has|in|is|of|on|to|where|without)\b)"
        r"[\w-]+ an? (batch|epoch|item|label|line|node|position|sample|second|step|token|word)\b",
        "per",
        "One sentence a line.",
    ),
    # Words in the wrong place
    Pattern(
        r"\bat (most|least)(?=[.;:,)](\s|\Z)|\Z)",
        "maximum, minimum; at most N",
        "Threads at most; all cores by default.",
    ),
    Pattern(
        r", ((the|all|its) )?\w+( and \w+)? (included|counted)(?=[.,;)])",
        "including",
        "All rows train for the same time, vectors and building counted.",
    ),
    Pattern(r"\bat first\b(?! (glance|sight|use))", "initial", "Learning rate at first."),
    Pattern(r"\brarer \w+ than\b", "that occur fewer than N times", "Read rarer words than N."),
    # Clauses where a noun is clearer
    Pattern(
        r"(?-i:(\A|[.:;]\s|\n\n)What [^?]*?[.\n]\s|\AWhat [^?]*\Z)",
        "a noun as the subject",
        "What the tree is matters.",
    ),
    Pattern(
        r"\b(of|from|by|with|than|return|yield) what\b",
        "a noun that names it",
        "Sums of rows and of what goes with them.",
    ),
    Pattern(
        r"(?<!all)(?<!any)(?<!both)(?<!each)(?<!many)(?<!most)(?<!none)(?<!one)(?<!some)(?<!two)"
        r" of which\b",
        "whose, including; or a second sentence",
        "Anything of which `Corpus.of` makes one.",
    ),
    Pattern(
        r"(?-i:(\A|[.:;]\s|\n\n)Of (?!course|interest|note)\S)",
        "the subject first",
        "Of a pandas Series, the index has the labels.",
    ),
    Pattern(
        r"\bmakes? (?!all\b|one\b|some\b)\w+ of (the|an?|it|them|these|all)\b",
        "converts to, normalises to",
        "A softmax makes probabilities of the scores.",
    ),
    Pattern(r"\bgo(es)? with\b", "belongs to", "The bias that goes with a row."),
    Pattern(
        r"\bstands? (after|at|before|beside|in(?! for)|next|once|there|twice|under)\b",
        "is, occurs; is duplicate",
        "The leaf stands twice, under 'a' and under 'b'.",
    ),
    Pattern(r"\bfor want of\b", "because there is no", "For want of memory."),
    Pattern(r"\bsays? of\b", "state for", "Say of the posts what their two tables say."),
    Pattern(r"\bnothing (asks|knows|looks|sees)\b", "is not validated", "Nothing looks at inputs."),
    Pattern(r"\bthe (former|latter)\b", "the noun again", "The latter is faster."),
    Pattern(
        r"\bwhatever\b(?! whichever)"
        r"|(?-i:however) (its?|large|long|many|much|often|short|small|the|they)\b",
        "regardless of, for any",
        "The bytes are equal, however many jobs run.",
    ),
    Pattern(r"(?-i:\b(None|\w+Error) where\b)", "if", "None where there is none."),
)
#: Patterns of headings, which are nouns, imperatives or questions.
HEADINGS = (Pattern(r"^#+ [^\n]*\bwhat\b[^?\n]*$", "a noun, such as Results", "## What it buys"),)


def compiled(patterns):
    """Return each regular expression, with the text to write instead."""
    flags = re.IGNORECASE | re.MULTILINE
    return [(re.compile(p.words.replace(" ", r"\s+"), flags), p.instead) for p in patterns]


PROSE = compiled(PATTERNS)
MARKDOWN = compiled(PATTERNS + HEADINGS)


def markdown(text):
    """Return Markdown with as many lines, without code blocks, code and targets of links."""
    text = re.sub(
        r"^ *```.*?^ *```$", lambda block: "\n" * block[0].count("\n"), text, flags=re.M | re.S
    )
    return re.sub(r"`[^`\n]*`", "`x`", re.sub(r"\]\([^)]*\)", "]", text))


def python(text):
    """Yield the strings and the comments of Python code, each with the number of its first line."""
    nodes = list(ast.walk(ast.parse(text)))
    # The parts of an f-string are read together, with an x for each expression.
    formatted = [node for node in nodes if isinstance(node, ast.JoinedStr)]
    parts = {part for node in formatted for part in node.values}
    for node in formatted:
        texts = (part.value if isinstance(part, ast.Constant) else "x" for part in node.values)
        yield node.lineno, "".join(texts)
    for node in nodes:
        words = node.value if isinstance(node, ast.Constant) and node not in parts else None
        # Identifiers and other strings of one word are no prose
        if isinstance(words, str) and " " in words:
            yield node.lineno, words
    yield from comments(text)


def comments(text):
    """Yield blocks of comments after #, each with the number of its first line."""
    for block in re.finditer(r"(?:^|(?<=\s))#:? .*(?:\n[ \t]*#:? .*)*", text):
        line = 1 + text.count("\n", 0, block.start())
        yield line, re.sub(r"^[ \t]*#:? ", "", block[0], flags=re.M)


def prose(path):
    """Yield the pieces of prose in a file, each with its first line, or the number of its cell."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield 1, markdown(text)
    elif path.suffix == ".py":
        yield from python(text)
    elif path.suffix == ".ipynb":
        for number, cell in enumerate(json.loads(text)["cells"], 1):
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                yield number, markdown(source)
            else:
                yield from ((number, words) for _, words in python(source))
    elif path.suffix in (".css", ".html", ".js"):
        yield 1, text
    else:
        yield from comments(text)


def lapses(path):
    """Yield the line, the words and what to write instead, for each place in a file."""
    patterns = MARKDOWN if path.suffix in (".ipynb", ".md") else PROSE
    for first, text in prose(path):
        for pattern, instead in patterns:
            for match in pattern.finditer(text):
                words = match[0].lstrip(".:; \n")
                line = first + text.count("\n", 0, match.end() - len(words))
                yield line, " ".join(words.split()), instead


def files():
    """Return the files whose prose is checked."""
    names = (
        "*.md",
        "docs/**/*.md",
        "hstree/**/*.py",
        "hstree/report/assets/*",
        "cli/**/*.py",
        "examples/**/*.py",
        "examples/*.ipynb",
        "benchmarks/**/*.py",
        "scripts/*.py",
        "tests/**/*.py",
        ".ci/run",
        "pyproject.toml",
    )
    examples = {ROOT / "tests" / name for name in ("style.py", "test_style.py")}
    return sorted({path for name in names for path in ROOT.glob(name)} - examples)


def main(names):
    """Print each place in the files, or in all; return whether there is none."""
    is_clean = True
    for path in map(Path, names) if names else files():
        for line, words, instead in sorted(lapses(path)):
            print(f"{path}:{line}: {words!r}: write: {instead}")
            is_clean = False
    return is_clean


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
