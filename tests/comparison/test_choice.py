"""Which tree the closing sentence names."""

from hstree.comparison.choice import WITHIN, choice


def row(name, test, speed, kind="tree"):
    return {
        "name": name,
        "kind": kind,
        "perplexity": {"test": {"mean": test}},
        "tokens_per_second": speed,
    }


def test_the_fastest_of_those_that_are_nearly_as_good():
    assert WITHIN == 0.03
    rows = [
        row("quick", 120, 900),
        row("near", 102.9, 300),
        row("nearer", 101, 200),
        row("best", 100, 10),
        row("kn5", 90, None, "baseline"),
    ]
    assert choice(rows) == {"best": "best", "within": 0.03, "fastest": "near"}
    assert choice(rows[3:]) == {"best": "best", "within": 0.03, "fastest": "best"}
    assert choice(rows[4:]) is None
