"""Perplexity of a torch language model after equal seconds, by the length of a tree's short list.

`short_list=N` puts the N most frequent words directly under the root. A longer list makes the root,
one dense product for a whole batch, more expensive, and more words end there. Models, training and
options are those of `benchmarks.torch_perplexity`, which also trains sampled softmax.

    python -m benchmarks.short_lists [--builders huffman gmm] [--lengths 0 250 1000]
                                     [--model transformer] [--corpus brown | --text FILE]
                                     [--seconds 120] [--json FILE]
"""

from __future__ import annotations

from pathlib import Path

from benchmarks import common, torch_perplexity


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--builders", nargs="+", default=["huffman", "gmm"])
    lengths = [0, 100, 250, 500, 1000, 2000, 5000]
    parser.add_argument("--lengths", type=int, nargs="+", default=lengths)
    parser.add_argument("--folder", type=Path, default=Path("runs/short_lists"))
    options = torch_perplexity.parse(parser)
    candidates = [
        f"{builder} short_list={n}" if n else builder
        for builder in options.builders
        for n in options.lengths
    ]
    common.report("short_lists", torch_perplexity.rows(candidates, options), options.json)


if __name__ == "__main__":
    main()
