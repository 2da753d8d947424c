"""The table of the page: its rows and how each is drawn, its columns and their cells.

Figures are formatted here for the whole page; one that is not known is a dash.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hstree.experiments import results
from hstree.experiments.results import Comparison, Scored, TreeFigures
from hstree.experiments.significance import BLOCK, FEWEST

#: Number of colours, the classes ``c0`` and so on of the style sheet, and the markers.
COLOURS = 12
MARKERS = ("circle", "square", "triangle", "diamond", "inverted", "hex", "star")
DASH = "\N{EN DASH}"


# Rows


@dataclass(frozen=True)
class PageRow:
    """One row of the results and how it is drawn; `index` is its position in the table."""

    index: int
    result: results.Row

    @property
    def name(self) -> str:
        """Name of the row."""
        return self.result.name

    @property
    def tree(self) -> TreeFigures | None:
        """Figures of the tree; None for a baseline, or where there are none."""
        return self.result.tree

    @property
    def is_tree(self) -> bool:
        """Whether it is a tree (the flat softmax included), not another layer or a baseline."""
        return self.result.kind == "tree"

    @property
    def is_trained(self) -> bool:
        """Whether it is an output layer, tree or not; baselines are not."""
        return self.result.kind != "baseline"

    @property
    def has_epochs(self) -> bool:
        """Whether it is one training; baselines and ensembles are not."""
        return self.is_trained and self.result.models == 1

    @property
    def is_flat(self) -> bool:
        """Whether it is the flat softmax."""
        return self.result.is_flat

    @property
    def marker(self) -> str:
        """Marker; colours repeat after the twelfth row, with other markers."""
        return MARKERS[self.index % len(MARKERS)]

    @property
    def dash(self) -> str:
        """Line style: dashed for what has no epochs, dotted where colours repeat."""
        if not self.has_epochs:
            return "dashed"
        return "solid" if self.index < COLOURS else "dotted"

    def perplexity(self, split: Scored = "test") -> float | None:
        """Return the mean perplexity over seeds."""
        return self.result.perplexity[split].mean

    @property
    def tokens_per_second(self) -> float | None:
        """Training speed."""
        return self.result.tokens_per_second

    def scoring(self, what: str) -> float | None:
        """Return the tokens per second in testing: of ``nll`` or of ``top_k``."""
        speeds = self.result.scoring
        return None if speeds is None else float(getattr(speeds, what))

    @property
    def memory(self) -> int | None:
        """Bytes of the weights, which are kept in single precision; None for a baseline."""
        parameters = self.result.parameters
        return None if parameters is None or not self.is_trained else 4 * parameters


def rows_of(comparison: Comparison) -> list[PageRow]:
    """Return the rows in the order of the table."""
    return [PageRow(index, result) for index, result in enumerate(comparison.rows)]


def best_row(rows: Sequence[PageRow]) -> PageRow | None:
    """Return the output layer of lowest validation perplexity but flat; the first of equals."""
    scored = [row for row in rows if row.is_trained and not row.is_flat and row.perplexity("valid")]
    return min(scored, key=lambda row: row.perplexity("valid") or 0.0, default=None)


def flat_row(rows: Sequence[PageRow]) -> PageRow | None:
    """Return the flat softmax, if it was compared."""
    return next((row for row in rows if row.is_flat), None)


def row_named(rows: Sequence[PageRow], name: str) -> PageRow:
    """Return the row of a name."""
    return next(row for row in rows if row.name == name)


def row_class(row: PageRow) -> str:
    """Return the classes of what is drawn of a row: its number and its colour."""
    return f"row-{row.index} c{row.index % COLOURS}"


def seconds_before_training(row: PageRow) -> float:
    """Return the seconds from the text to the first epoch; 0 where they are not known."""
    from_text = row.result.from_text
    if from_text is None:
        return 0.0
    return sum(part or 0.0 for part in (from_text.vectors, from_text.tree, from_text.preparation))


# Figures


def number(value: float | None, digits: int = 0) -> str:
    """Format a number with thousands separators."""
    return DASH if value is None else f"{value:,.{digits}f}"


def three_digits(value: float | None) -> str:
    """Format a number to three significant digits, whole from 100 on: 9.45, 13.4, 10,000."""
    if value is None or abs(value) >= 99.95:
        return number(value)
    return f"{value:.1f}" if abs(value) >= 9.995 else f"{value:.2f}"


def perplexity(value: float | None) -> str:
    """Format a perplexity: one decimal, but two below 100."""
    return number(value, 1 if value is None or value >= 99.95 else 2)


def times(value: float | None) -> str:
    """Format a multiple: 0.96x, 13.2x, 120x."""
    return DASH if value is None else f"{three_digits(value)}\N{MULTIPLICATION SIGN}"


def change(ratio: float, than: str = "") -> str:
    """Describe a ratio: "3.5% higher", "1.4% lower than flat", "the same as flat to 0.1%"."""
    per_cent = 100 * (ratio - 1)
    if round(per_cent, 1) == 0:
        return f"the same{than and f' as {than}'} to 0.1%"
    return f"{abs(per_cent):.1f}% {'higher' if per_cent > 0 else 'lower'}{than and f' than {than}'}"


def signed(ratio: float) -> str:
    """Format a ratio as a signed percentage: "+3.5%"."""
    per_cent = f"{100 * (ratio - 1):+.1f}%".replace("-", "\N{MINUS SIGN}")
    return "0.0%" if per_cent[1:] == "0.0%" else per_cent


def signed_number(value: float, digits: int = 2) -> str:
    """Format a number with its sign: "+0.52"."""
    return f"{value:+.{digits}f}".replace("-", "\N{MINUS SIGN}")


def p_value(p: float | None) -> str:
    """Format a p value; below 0.001 as a bound."""
    if p is None:
        return DASH
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


# Columns


@dataclass(frozen=True)
class Cell:
    """Text and note of a cell, and the value that it is sorted by; None goes last."""

    text: str
    value: float | None
    note: str = ""


@dataclass(frozen=True)
class Column:
    """Title, unit and meaning of a column, and the function that makes a row's cell."""

    title: str
    unit: str
    meaning: str
    cell: Callable[[PageRow], Cell]


def columns_of(rows: Sequence[PageRow], *, oov: bool) -> list[Column]:
    """Return the columns; `oov` adds the perplexity without words out of vocabulary."""
    without = Column("no OOV", "perplexity", "on the test split without words out of vocabulary",
                     lambda row: _cell(perplexity, row.perplexity("test_without_oov")))  # fmt: skip
    wordnet = Column(
        "WordNet",
        "% of tokens",
        "share of the training tokens that WordNet has, and "
        "the test perplexity over the tokens of its words",
        _in_wordnet,
    )
    log_z = [
        Column("ln Z", "nats", "log of the normaliser that the layer is trained to have at 0: its "
               "mean and standard deviation over the test tokens", _log_z),
        Column("unnormalised", "perplexity", "on the test split if every score were read as a "
               "log-probability: not to be compared with perplexities", _unnormalised),
    ]  # fmt: skip
    scoring = [
        Column("one word", "words/s", "speed of a trained model: the probability of one word in "
               "its context", lambda row: _cell(_short_number, row.scoring("nll"))),
        Column("top 10", "words/s", "speed of a trained model: the ten most probable words of a "
               "context", lambda row: _cell(_short_number, row.scoring("top_k"))),
    ]  # fmt: skip
    return [
        Column("test", "perplexity", "lower is better; ± is the standard deviation over n seeds; "
               "* stopped at the limit of epochs, before the validation perplexity had stopped "
               "falling: more epochs may lower it", _test),
        Column("speed", "tokens/s", "in training, and as a multiple of the flat softmax\u2019s",
               lambda row: _cell(number, row.tokens_per_second, _times_flat(row.result.speed_up))),
        Column("to flat", "perplexity", "difference from the flat softmax, with its 95% interval "
               f"over blocks of {BLOCK:,} test tokens or more; fewer than {FEWEST} blocks are too "
               "few for one", of_to_flat),
        Column("p", "", "p value of no difference from the flat softmax: paired t-test over test "
               "blocks", _p),
        Column("from text", "seconds", "to build the tree and train all epochs on it, including "
               "the model that learned its vectors, excluding validation; and how many times as "
               "fast as the flat softmax that is", _from_text),
        *(scoring if any(row.result.scoring for row in rows) else []),
        Column("memory", "of weights", "bytes of the trained numbers in single precision, and how "
               "many there are; the words that n-gram features are of are not counted", _memory),
        Column("valid", "perplexity", "lower is better; the answer is chosen by it",
               lambda row: _cell(perplexity, row.perplexity("valid"))),
        *([without] if oov else []),
        Column("scores", "per target", "node scores computed for one prediction: 1 at a binary "
               "node, k at one with k branches",
               lambda row: _cell(three_digits, row.tree.scores_per_target if row.tree else None)),
        Column("length", "decisions", "code length of a word of running text, all its codes "
               "together; and how many codes a word has on average, where not one", _length),
        *([wordnet] if any(row.result.in_wordnet is not None for row in rows) else []),
        *(log_z if any(row.result.log_normaliser for row in rows) else []),
    ]  # fmt: skip


def _in_wordnet(row: PageRow) -> Cell:
    covered = row.result.covered
    note = "" if covered is None else f"{perplexity(covered)} there"
    return _cell("{:.0%}".format, row.result.in_wordnet, note)


def _cell(form: Callable[[float], str], value: float | None, note: str = "") -> Cell:
    return Cell(DASH if value is None else form(value), value, note)


def _length(row: PageRow) -> Cell:
    if row.tree is None:
        return Cell(DASH, None)
    codes = row.tree.codes_per_label
    note = "" if codes in (None, 1) else f"{three_digits(codes)} codes"
    return _cell(three_digits, row.tree.code_length.mean, note)


def _millions(value: float) -> str:
    return f"{value / 1e6:.2f} M" if value >= 1e6 else number(value)


def _short_number(value: float) -> str:
    return f"{value / 1e3:,.0f}k" if value >= 99_500 else number(value)


def in_bytes(value: float) -> str:
    """Format a number of bytes: 640 kB, 4.31 MB."""
    for size, unit in ((1e9, "GB"), (1e6, "MB")):
        if value >= size:
            return f"{three_digits(value / size)} {unit}"
    return f"{three_digits(value / 1e3)} kB"


def _memory(row: PageRow) -> Cell:
    parameters = row.result.parameters
    note = "" if parameters is None else _millions(parameters)
    return _cell(in_bytes, row.memory, note)


def _test(row: PageRow) -> Cell:
    test = row.result.perplexity["test"]
    spread = "" if test.sd is None else f"± {test.sd:.2f}, "
    mark = "*" if row.result.at_epoch_limit else ""
    note = f"{spread}n = {test.n}" if row.is_trained else ""
    return Cell(perplexity(test.mean) + mark, test.mean, note)


def of_to_flat(row: PageRow) -> Cell:
    """Return the cell of a row's ratio to flat."""
    ratio, interval = row.result.to_flat, "no interval"
    if ratio is None:
        return Cell(DASH, None)
    if row.is_flat:
        return Cell("0", 1.0)
    if ratio.low is not None and ratio.high is not None:
        interval = f"{signed(ratio.low)} to {signed(ratio.high)}"
    return Cell(signed(ratio.ratio), ratio.ratio, interval)


def _log_z(row: PageRow) -> Cell:
    log_z = row.result.log_normaliser
    if log_z is None or log_z.mean is None:
        return Cell(DASH, None)
    mean = f"{log_z.mean:.3f}".replace("-", "\N{MINUS SIGN}")
    return Cell(mean, log_z.mean, "" if log_z.sd is None else f"± {log_z.sd:.3f}")


def _unnormalised(row: PageRow) -> Cell:
    log_z = row.result.log_normaliser
    return _cell(perplexity, None if log_z is None else log_z.unnormalised_perplexity)


def _p(row: PageRow) -> Cell:
    return _cell(p_value, None if row.result.to_flat is None else row.result.to_flat.p)


def _from_text(row: PageRow) -> Cell:
    from_text = row.result.from_text
    if from_text is None:
        return Cell(DASH, None)
    return _cell(three_digits, from_text.seconds, _times_flat(from_text.speed_up))


def _times_flat(value: float | None) -> str:
    return "" if value is None else f"{times(value)} flat"
