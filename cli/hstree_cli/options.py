"""Options that several commands share.

Every path has ``readable=False``: that a file cannot be read is for the library to say, as bad
input; Typer would call it wrong usage.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

#: What no training comes near; the library's own limits are in `hstree.data.contexts`.
MAX_DIM, MAX_CONTEXT, MAX_BATCH_SIZE, MAX_EPOCHS = 1 << 16, 1 << 12, 1 << 22, 1_000_000
MAX_WORDS = 10_000_000
#: The largest random state, as in `hstree._options`.
MAX_SEED = (1 << 32) - 1

CORPUS_KINDS = "a text file (.txt, .txt.gz), nltk:NAME or builtin:python"
_READING = "Reading a corpus"
_TRAINING = "Training"

MinCount = Annotated[
    int,
    typer.Option(
        "--min-count",
        metavar="N",
        min=1,
        help="Words that stand fewer times become <unk>.",
        rich_help_panel=_READING,
    ),
]
MaxSize = Annotated[
    int | None,
    typer.Option(
        "--max-size",
        metavar="V",
        min=1,
        help="Keep the V most frequent words; the others become <unk>.",
        rich_help_panel=_READING,
    ),
]
Lower = Annotated[
    bool, typer.Option("--lower", help="Lower-case every word.", rich_help_panel=_READING)
]
VocabularyFile = Annotated[
    Path | None,
    typer.Option(
        "--vocabulary",
        metavar="FILE",
        help="Read the corpus through these words (word<TAB>count).",
        rich_help_panel=_READING,
        readable=False,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that exists.")]
JsonFile = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Write the figures as JSON, too.", readable=False),
]
TreeFile = Annotated[
    Path,
    typer.Argument(
        metavar="TREE", help="A tree: .json, .json.gz or .npz.", show_default=False, readable=False
    ),
]
ModelFolder = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL_DIR",
        help="A model's folder, as `hstree evaluate --save` makes it.",
        show_default=False,
        readable=False,
    ),
]

ModelName = Annotated[
    Literal["lbl", "cbow", "skipgram"],
    typer.Option(
        "--model",
        metavar="MODEL",
        help="lbl (log-bilinear), or cbow or skipgram as in word2vec, with defaults of their "
        "own: 5 epochs, batches of 1024, a rate of 0.2 (cbow) or 0.05.",
        rich_help_panel=_TRAINING,
    ),
]
Dim = Annotated[
    int,
    typer.Option(
        "--dim",
        metavar="D",
        min=1,
        max=MAX_DIM,
        help="Numbers in a word's vector.",
        rich_help_panel=_TRAINING,
    ),
]
Context = Annotated[
    int,
    typer.Option(
        "--context",
        metavar="N",
        min=1,
        max=MAX_CONTEXT,
        help="Words before the target, for lbl.",
        rich_help_panel=_TRAINING,
    ),
]
Window = Annotated[
    int,
    typer.Option(
        "--window",
        metavar="N",
        min=1,
        max=MAX_CONTEXT,
        help="Words on either side, for cbow and skipgram.",
        rich_help_panel=_TRAINING,
    ),
]
Sample = Annotated[
    float,
    typer.Option(
        "--sample",
        metavar="T",
        help="Leave out tokens of words more frequent than this share, for cbow and skipgram.",
        rich_help_panel=_TRAINING,
    ),
]
Full = Annotated[
    bool,
    typer.Option(
        "--full/--diagonal",
        help="Full or diagonal matrices for the places in a context.",
        rich_help_panel=_TRAINING,
    ),
]
Epochs = Annotated[
    int,
    typer.Option(
        "--epochs",
        metavar="N",
        min=0,
        max=MAX_EPOCHS,
        help="At the most; 0 scores the untrained model.",
        rich_help_panel=_TRAINING,
    ),
]
BatchSize = Annotated[
    int,
    typer.Option(
        "--batch-size",
        metavar="B",
        min=1,
        max=MAX_BATCH_SIZE,
        help="Positions in a minibatch.",
        rich_help_panel=_TRAINING,
    ),
]
LearningRate = Annotated[
    float,
    typer.Option(
        "--learning-rate",
        metavar="RATE",
        help="At the start.",
        rich_help_panel=_TRAINING,
    ),
]
Dropout = Annotated[
    float,
    typer.Option(
        "--dropout",
        metavar="P",
        help="Share of a context's vector left out at random.",
        rich_help_panel=_TRAINING,
    ),
]
ValidText = Annotated[
    str | None,
    typer.Option("--valid", metavar="FILE", help="A corpus to validate on, not part of CORPUS."),
]
TestText = Annotated[
    str | None,
    typer.Option("--test", metavar="FILE", help="A corpus to test on, not part of CORPUS."),
]
WeightDecay = Annotated[
    float,
    typer.Option(
        "--weight-decay",
        metavar="RATE",
        help="L2 penalty on word and node vectors, for each token.",
        rich_help_panel=_TRAINING,
    ),
]
Seed = Annotated[
    int,
    typer.Option("--seed", metavar="S", min=0, max=MAX_SEED, help="Random seed, up to 2**32 - 1."),
]
