"""Commands to start with: `hstree demo`, `hstree compare` and `hstree report`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hstree_cli import options as opt
from hstree_cli.options import argument, option
from hstree_cli.outputs import PAGE, Output, check_outputs
from hstree_cli.tables import facts, table
from hstree_cli.terminal import say, showing_progress

if TYPE_CHECKING:
    from hstree.experiments.schedule import Plan

CANDIDATES_HELP = (
    f'{opt.CANDIDATE_HELP}, a tree file, an ensemble ("2 x flat"), an n-gram model (kn5), or a '
    "named set (trees, approximations)."
)
DEMO_CORPUS = "builtin:python"
DEMO_MIN_COUNT = 5
DEMO_CANDIDATES = ("huffman", "gmm", "classes", "flat", "kn3")


def demo(
    output: Annotated[Path, option("--output -o", "Output folder.", "DIR")] = Path("demo"),
) -> None:
    """Compare three trees, the flat softmax and an n-gram model on a built-in text.

    The text is the documentation of Python; nothing is downloaded. `hstree compare` does
    the same for your own text.
    """
    check_outputs(Output("-o", output, contents=()), reads=[])
    # Before the imports, which take a second
    say(f"Comparing {', '.join(DEMO_CANDIDATES)} on the text {DEMO_CORPUS}.")
    from hstree.experiments.candidate import Candidate
    from hstree.experiments.compare import compare as run
    from hstree.experiments.results import Epochs
    from hstree.report import write
    from hstree_cli.inputs import read_splits
    from hstree_cli.results import print_comparison

    page = output / PAGE
    with showing_progress(folder=output):
        comparison = run(
            read_splits(DEMO_CORPUS, opt.SplitOptions(min_count=DEMO_MIN_COUNT)),
            [Candidate.parse(text) for text in DEMO_CANDIDATES],
            output,
            stop=Epochs(2),
            speed_rounds=1,
            updated=lambda so_far: write(so_far, page),
            batch_size=1024,
        )
    print_comparison(comparison, page, conditions=False)


@opt.spread_options
def compare(
    corpus: opt.CorpusName,
    candidates: Annotated[
        list[str] | None,
        argument(metavar="CANDIDATE", help=CANDIDATES_HELP, autocompletion=opt.candidate_names),
    ] = None,
    *,
    output: Annotated[Path, option("--output -o", "Output folder for runs and results.", "DIR")],
    plan: Annotated[bool, option("--plan", "List finished and planned jobs, then exit.")] = False,
    jobs: opt.Jobs = None,
    scheduler: opt.Scheduler = None,
    force: opt.Replace = False,
    reading: opt.SplitOptions,
    minutes: Annotated[
        float | None,
        option(
            "--minutes",
            "Maximum time in minutes for all candidates together; the better half continues after "
            "each round (default: 10).",
            "M",
            rich_help_panel="Training",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        int, option("--seeds", "Number of seeds, starting from --seed.", "N", min=1)
    ] = 1,
    training: opt.TrainingOptions,
) -> None:
    """Train the same model with several trees and output layers; compare cost and perplexity.

    By default, the candidates are the Huffman tree, a tree of Gaussian mixtures and
    word classes, each with and without n-gram features, sampled softmax, the flat
    softmax and a Kneser-Ney model. The default time is ten minutes. All candidates train
    for the same time, including vector training and tree construction; then the better
    half continues until time runs out. The candidate with the lowest validation perplexity
    is recommended.

    DIR contains results.json, results.csv, report.html and all runs. The same command
    continues an interrupted comparison; finished runs are not repeated. To add candidates,
    repeat the command with the new names. With --minutes, candidates share the time, so all
    of them train again if one is added. If a candidate is a tree file and no option
    selects words, the vocabulary is the set of its labels.
    """
    from hstree.experiments.candidate import parse_candidates
    from hstree.experiments.compare import compare as run
    from hstree.experiments.compare import plan as plan_of
    from hstree.report import write
    from hstree_cli.inputs import read_splits
    from hstree_cli.results import print_comparison

    # All options are checked before the text is read
    options: dict[str, Any] = training.model_options()
    stop = training.stopping_rule(minutes)
    parsed = parse_candidates(candidates, options) if candidates else None
    files = [file for candidate in parsed or () for file in candidate.files]
    check_outputs(Output("-o", output, contents=()), reads=[corpus, *reading.files, *files])

    options |= {"stop": stop, "seeds": seeds, "force": force}
    page = output / PAGE
    with showing_progress(folder=output, jobs=jobs, scheduler=scheduler):
        splits = read_splits(corpus, reading, parsed or ())
        if plan:
            planned = plan_of(splits, parsed, output, **options)
        else:
            # The page can be opened while the comparison runs
            options["updated"] = lambda so_far: write(so_far, page)
            comparison = run(splits, parsed, output, **options)
    if plan:
        _print_plan(planned)
    else:
        print_comparison(comparison, page)


def _print_plan(plan: "Plan") -> None:
    """Print the jobs with their seconds, then the rounds of halving."""
    from hstree._text import format_number, plural

    # One line per job; with halving, its seconds depend on the last round of its candidate
    lines = []
    for job, planned in plan.jobs.items():
        seconds = format_number(planned.seconds, 1)
        if planned.max_seconds is not None and planned.max_seconds != planned.seconds:
            seconds += f" to {format_number(planned.max_seconds, 1)}"
        state = "finished" if planned.is_finished else "to do"
        lines.append((job.candidate.name, str(job.seed), state, seconds))
    say(table(("candidate", "seed", "state", "seconds"), lines, ("candidate", "state")))
    # Rounds of halving, then the number of jobs to do
    if plan.rounds:
        rounds = [
            f"{plural(planned.candidates, 'candidate')}, {format_number(planned.seconds, 1)} s each"
            for planned in plan.rounds
        ]
        say(f"rounds, total time: {'; '.join(rounds)}")
    n_finished = sum(planned.is_finished for planned in plan.jobs.values())
    say(f"{n_finished} of {len(plan.jobs)} jobs are finished; run without --plan to finish all")
    trained = [planned for job, planned in plan.jobs.items() if job.candidate.is_trained]
    if any(planned.seconds is None for planned in trained):
        say("-: unknown until the job is finished; --seconds or --minutes sets a limit")


def report(
    folder: Annotated[
        Path,
        argument(metavar="DIR", help="Output folder of `hstree compare`, or results.json in it."),
    ],
) -> None:
    """Write report.html, a self-contained page with the table, plots and trees of a comparison.

    The page opens in any browser and needs no network. If the comparison is unfinished, the
    page names the missing candidates.
    """
    from hstree.experiments import results
    from hstree.report import write

    home = folder.parent if folder.name == results.JSON else folder
    comparison = results.load(home)
    with showing_progress():
        page = write(comparison, home / PAGE)
    size = page.stat().st_size / 1e6
    say(facts([("written", f"{page}, {size:.1f} MB: open it in a browser")]))
