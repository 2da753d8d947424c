"""Commands to start with: `hstree demo`, `hstree compare` and `hstree report`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hstree_cli import options as opt
from hstree_cli.options import argument, option
from hstree_cli.outputs import PAGE, Output, check_outputs
from hstree_cli.tables import facts, table
from hstree_cli.terminal import say, showing_progress

if TYPE_CHECKING:
    from hstree.experiments.candidate import Candidate
    from hstree.experiments.compare import Plan

CANDIDATES_HELP = (
    f'{opt.CANDIDATE_HELP}, several models ("2 x flat"), an n-gram model (kn5), or a set: trees, '
    "approximations."
)
DEMO_CORPUS, DEMO_MIN_COUNT = "builtin:python", 5
DEMO_CANDIDATES = ("huffman", "gmm", "classes", "flat", "kn3")


def demo(
    output: Annotated[Path, option("--output -o", "Folder of results.", "DIR")] = Path("demo"),
) -> None:
    """Train the same model on three trees and the flat softmax, of built-in text; compare.

    The text is the English of Python's own documentation; nothing is downloaded. Use
    `hstree compare` for a text of your own.
    """
    check_outputs(Output("-o", output, contents=()), reads=[])
    say(f"Comparing {', '.join(DEMO_CANDIDATES)} on the text {DEMO_CORPUS}.")
    from hstree.experiments.candidate import Candidate
    from hstree.experiments.results import Epochs

    candidates = [Candidate.parse(text) for text in DEMO_CANDIDATES]
    options = {"stop": Epochs(2), "speed_rounds": 1, "batch_size": 1024}
    reading = {"corpus": DEMO_CORPUS, "min_count": DEMO_MIN_COUNT}
    _compare(candidates, output, reading, options, conditions=False)


def compare(
    corpus: opt.CorpusName,
    candidates: Annotated[
        list[str] | None,
        argument(metavar="CANDIDATE", help=CANDIDATES_HELP, autocompletion=opt.candidate_names),
    ] = None,
    *,
    output: Annotated[Path, option("--output -o", "Folder for every run and the results.", "DIR")],
    plan: Annotated[bool, option("--plan", "List the jobs, done or to do, and stop.")] = False,
    jobs: opt.Jobs = None,
    scheduler: opt.Scheduler = None,
    no_shared_folder: Annotated[
        bool, option("--no-shared-folder", "Workers do not see DIR, and send their files.")
    ] = False,
    force: opt.Replace = False,
    valid: opt.Valid = None,
    test: opt.Test = None,
    min_count: opt.MinCount = None,
    lower: opt.Lower = False,
    text: opt.AsText = False,
    vocabulary: opt.VocabularyFile = None,
    minutes: opt.Minutes = None,
    seconds: opt.Seconds = None,
    epochs: opt.Epochs = None,
    seeds: Annotated[int, option("--seeds", "Number of seeds, from --seed on.", "N", min=1)] = 1,
    seed: opt.Seed = 0,
    model: opt.Model = "lbl",
    dim: opt.Dim = None,
    context: opt.Width = None,
    batch_size: opt.BatchSize = None,
    learning_rate: opt.Rate = None,
    dropout: opt.Dropout = None,
) -> None:
    """Train the same model with several trees and output layers; compare cost and perplexity.

    Without a candidate it compares Huffman, mixture and class trees, each with n-gram
    features, too, sampled softmax, the flat softmax and Kneser-Ney. Without a rule
    it ends after ten minutes: all candidates train equally long from the text on, vectors
    and building counted, then the better half goes on. The candidate to use is chosen
    by validation perplexity.

    DIR gets results.json, results.csv, report.html and every run. What is finished
    there is not done again: an interrupted comparison goes on, and a new candidate only adds
    itself; but under --minutes, where candidates share the time, all train anew. With a tree
    file and no option that chooses words, the words are its labels.
    """
    from hstree.experiments.candidate import parse_candidates

    of_step = {"batch_size": batch_size, "learning_rate": learning_rate, "dropout": dropout}
    options = opt.model_options(model, seed, dim=dim, context=context, **of_step)
    stop = opt.stopping_rule(epochs, seconds, minutes)
    named = parse_candidates(candidates, options) if candidates else None
    reads = [
        corpus,
        valid,
        test,
        vocabulary,
        *(file for candidate in named or () for file in candidate.files),
    ]
    check_outputs(Output("-o", output, contents=()), reads=reads)
    how = {"lower": lower, "text": text, "vocabulary": vocabulary, "min_count": min_count}
    reading = {"corpus": corpus, "valid": valid, "test": test, **how}
    options |= {"stop": stop, "seeds": seeds, "force": force}
    if not plan:
        options["is_shared"] = not no_shared_folder
    _compare(named, output, reading, options, plan=plan, jobs=jobs, scheduler=scheduler)


def _compare(
    candidates: "list[Candidate] | None",
    output: Path,
    reading: dict[str, Any],
    options: dict[str, Any],
    *,
    conditions: bool = True,
    plan: bool = False,
    jobs: int | None = None,
    scheduler: str | None = None,
) -> None:
    """Compare candidates, write the page after each, and print the results; or print the plan."""
    from hstree.experiments.compare import compare as run
    from hstree.experiments.compare import plan_of
    from hstree.report import write
    from hstree_cli.inputs import read_splits
    from hstree_cli.results import print_comparison

    page = output / PAGE
    with showing_progress(folder=output, jobs=jobs, scheduler=scheduler):
        splits = read_splits(**reading, candidates=candidates or ())
        if plan:
            planned = plan_of(splits, candidates, output, **options)
        else:
            options["updated"] = lambda so_far: write(so_far, page)
            comparison = run(splits, candidates, output, **options)
    if not plan:
        print_comparison(comparison, page, conditions=conditions)
        return
    _print_plan(planned)


def _print_plan(plan: "Plan") -> None:
    """Print the jobs with their seconds, and the rounds of halving."""
    from hstree._text import figure, plural

    lines = []
    for job, planned in plan.jobs.items():
        seconds = figure(planned.seconds, 1)
        if planned.most_seconds is not None and planned.most_seconds != planned.seconds:
            seconds += f" to {figure(planned.most_seconds, 1)}"
        state = "finished" if planned.is_finished else "to do"
        lines.append((job.candidate.name, str(job.seed), state, seconds))
    say(table(("candidate", "seed", "state", "seconds"), lines, ("candidate", "state")))
    if plan.rounds:
        rounds = [
            f"{plural(one.candidates, 'candidate')}, {figure(one.seconds, 1)} s each"
            for one in plan.rounds
        ]
        say(f"rounds, from the text on: {'; '.join(rounds)}")
    done = sum(planned.is_finished for planned in plan.jobs.values())
    say(f"{done} of {len(plan.jobs)} jobs are finished; without --plan the others are done")
    trained = [planned for job, planned in plan.jobs.items() if job.candidate.is_trained]
    if any(planned.seconds is None for planned in trained):
        say("-: known when the job is finished; --seconds and --minutes bound the seconds")


def report(
    folder: Annotated[
        Path, argument(metavar="DIR", help="Folder of `hstree compare`, or results.json in it.")
    ],
) -> None:
    """Write report.html: a self-contained page with a comparison's table, plots and trees.

    It opens in any browser and needs no network. A comparison that still runs has a
    page, too, which names the candidates that are pending.
    """
    from hstree.experiments import results
    from hstree.report import write

    home = folder.parent if folder.name == results.JSON else folder
    comparison = results.load(home)
    with showing_progress():
        page = write(comparison, home / PAGE)
    size = page.stat().st_size / 1e6
    say(facts([("written", f"{page}, {size:.1f} MB: open it in a browser")]))
