"""Which tree the closing sentence names."""

from hstree.experiments.choice import WITHIN, choice


def row(name, valid, speed, kind="tree", test=100.0):
    return {
        "name": name,
        "kind": kind,
        "perplexity": {"valid": {"mean": valid}, "test": {"mean": test}},
        "tokens_per_second": speed,
    }


ROWS = [
    row("quick", 120, 900),
    row("near", 102.9, 300),
    row("nearer", 101, 200),
    row("best", 100, 10),
    row("kn5", 90, None, "baseline"),
]


def test_the_fastest_of_those_that_are_nearly_as_good():
    assert WITHIN == 0.03
    said = {"by": "valid", "within": 0.03, "best": "best"}
    assert choice(ROWS) == {**said, "among": 4, "fastest": "near"}
    assert choice(ROWS[3:]) == {**said, "among": 1, "fastest": "best"}
    assert choice(ROWS[4:]) is None


def test_the_test_part_has_no_say():
    lucky = [row(one["name"], one["perplexity"]["valid"]["mean"], one["tokens_per_second"],
                 one["kind"], test=1.0 + number) for number, one in enumerate(ROWS)]  # fmt: skip
    assert choice(lucky)["best"] == "best"
    assert choice(lucky)["fastest"] == "near"
