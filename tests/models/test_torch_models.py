"""Recurrent networks, transformers and users' networks: training, scores, saved models."""

import json
import math
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest

import hstree
from hstree._parallel import limited_threads
from hstree.data.splits import Splits
from hstree.data.vocabulary import EOS
from hstree.errors import HstreeError, InputError, OptionError, TrainingError
from hstree.experiments.candidate import parse_candidates
from hstree.layers.registry import LayerSpec
from hstree.models import kind_of, load_model, new_model
from hstree.training import adagrad
from tests import needs
from tests.plugins import install
from tests.scripts import run_python
from tests.texts import markov_lines, write_lines

torch = pytest.importorskip("torch", reason=needs.TORCH)
from hstree.models.torch.heads import new_head  # noqa: E402
from hstree.models.torch.training import NetworkTrainer, RowAdagrad  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*lowest after epoch")
#: Options of models that train in a moment.
QUICK = {"dim": 8, "batch_size": 32, "length": 8}
#: A user's network: a causal convolution over the tokens of a call, without a state.
CONVOLUTION = """
from torch import nn


class Convolution(nn.Module):
    def __init__(self, n_words, dim, width):
        super().__init__()
        self.vectors = nn.Embedding(n_words, dim, sparse=True)
        self.shift = nn.ConstantPad1d((width - 1, 0), 0.0)
        self.mix = nn.Conv1d(dim, dim, width)

    def forward(self, ids, state):
        return self.mix(self.shift(self.vectors(ids).transpose(1, 2))).transpose(1, 2), None


def make(n_words, dim, width=2):
    return Convolution(n_words, dim, width)
"""
LINES = markov_lines(1_500, 0)[0]


def nan_loss(*_):
    return math.nan


def no_memory(*_):
    raise MemoryError


@pytest.fixture(scope="module")
def texts():
    return hstree.Corpus.from_lines(LINES, min_count=1).splits()


def spec_of(candidate, train):
    """Return the output layer of a candidate."""
    words = train.counted_vocabulary()
    if candidate in ("sampled", "nce"):
        return LayerSpec(words, candidate, samples=3)
    if candidate == "adaptive":
        return LayerSpec(words, "adaptive", cutoffs="2,5", factor=2.0)
    if candidate == "adaptive cutoffs=none":
        return LayerSpec(words, "adaptive", cutoffs="none")
    if candidate == "gmm epsilon=0.4":
        drawn = np.random.default_rng(0).standard_normal((len(words), 4), np.float32)
        return LayerSpec(hstree.build("gmm", hstree.WordVectors(words.words, drawn), epsilon=0.4))
    return LayerSpec(hstree.build(candidate, train))


def user_network(folder, source=CONVOLUTION, function="make", **options):
    """Return the options of a user's network whose source is in a folder."""
    file = folder / "net.py"
    file.write_text(textwrap.dedent(source), encoding="utf-8")
    return {"model": "torch", "network": f"{file}:{function}", **QUICK, **options}


def plain_log_prob(spec, arrays, hidden):
    """Return the log-probabilities (V,) after one hidden vector by a plain loop."""
    rank = np.argsort(np.argsort(-spec.vocabulary.counts, kind="stable"))
    if "head.head.weight" in arrays:  # adaptive: a head, then clusters
        scores = arrays["head.head.weight"] @ hidden + arrays["head.head.bias"]
        head = scores - np.log(np.exp(scores).sum())
        cuts = [2, 5, len(rank)]
        log_prob = list(head[:2])
        for i in range(len(cuts) - 1):
            inner = arrays[f"head.tail.{i}.0.weight"] @ hidden
            tail = arrays[f"head.tail.{i}.1.weight"] @ inner
            log_prob += list(head[2 + i] + tail - np.log(np.exp(tail).sum()))
        return np.array(log_prob)[rank]
    if "weight" in arrays:
        scores = arrays["weight"] @ hidden + arrays["bias"]
        return scores - np.log(np.exp(scores).sum())
    layer = spec.new(len(hidden))
    layer.weight[:] = arrays["node_weight"]
    layer.bias[:] = arrays["node_bias"]
    return layer.log_prob(hidden[None].astype(np.float32))[0]


def plain_perplexity(model, text):
    """Return the perplexity of a one-layer GRU by a loop over tokens in NumPy."""
    arrays = {name: array.astype(np.float64) for name, array in model.parameters().items()}
    into = arrays["network.recurrent.weight_ih_l0"], arrays["network.recurrent.bias_ih_l0"]
    over = arrays["network.recurrent.weight_hh_l0"], arrays["network.recurrent.bias_hh_l0"]
    ids = model.reencode(text).ids()
    hidden = np.zeros(model.dim)
    nll = 0.0
    for before, target in zip([model.vocabulary.index(EOS), *ids[:-1]], ids, strict=True):
        x = arrays["network.embedding.weight"][before]
        reset_x, update_x, new_x = np.split(into[0] @ x + into[1], 3)
        reset_h, update_h, new_h = np.split(over[0] @ hidden + over[1], 3)
        reset = 1 / (1 + np.exp(-reset_x - reset_h))
        update = 1 / (1 + np.exp(-update_x - update_h))
        hidden = (1 - update) * np.tanh(new_x + reset * new_h) + update * hidden
        nll -= plain_log_prob(model.spec, arrays, hidden)[target]
    return np.exp(nll / len(ids))


@pytest.mark.parametrize(
    "candidate",
    [
        "huffman",
        "gmm epsilon=0.4",
        "classes",
        "sampled",
        "nce",
        "adaptive",
        "adaptive cutoffs=none",
        "flat",
    ],
)
def test_the_perplexity_is_that_of_a_plain_loop_over_the_saved_weights(candidate, texts, tmp_path):
    train, valid, test = texts
    spec = spec_of(candidate, train)
    untrained = new_model(spec, model="gru", **QUICK, epochs=0).fit(train, valid)
    model = new_model(spec, model="gru", **QUICK, epochs=2).fit(train, valid)
    assert model.history_.kernels == f"torch {torch.__version__} on {model.torch_device}"
    model.save(tmp_path / "model")
    saved = load_model(tmp_path / "model")
    assert saved.perplexity(test) == pytest.approx(plain_perplexity(saved, test), rel=1e-5)
    assert saved.perplexity(test) < 0.95 * untrained.perplexity(test)
    assert np.array_equal(saved.nll(test), model.nll(test))
    # predictions are those of the scores, and the best words come first
    log_prob = saved.log_prob([["w1", "w2"]])
    assert np.exp(log_prob).sum() == pytest.approx(1)
    _, best = saved.top_k([["w1", "w2"]], 3)
    np.testing.assert_allclose(best[0], np.sort(log_prob[0])[:-4:-1], rtol=1e-5)
    assert len(saved.sample(5)) == len(hstree.Ensemble([saved, model]).sample(5)) == 5


def test_a_saved_head_keeps_the_order_of_the_training_counts(texts, tmp_path):
    words = texts[0].vocabulary.words
    other = hstree.Vocabulary(words, np.arange(1, len(words) + 1))  # not the counts of the text
    spec = LayerSpec(other, "adaptive", cutoffs="2,5", factor=2.0)
    model = new_model(spec, model="gru", **QUICK, epochs=1).fit(*texts[:2])
    model.save(tmp_path / "model")
    assert np.array_equal(load_model(tmp_path / "model").nll(texts[2]), model.nll(texts[2]))


@pytest.mark.parametrize("model", ["gru", "transformer"])
def test_a_score_depends_on_the_words_before_alone(model, texts):
    train, valid, test = texts
    options = {"heads": 2, "positions": "learned"} if model == "transformer" else {}
    trained = new_model(hstree.build("huffman", train), model=model, **QUICK, epochs=1, **options)
    trained.fit(train, valid)
    nll = trained.nll(test)
    assert len(nll) == len(test)
    first = test.first_tokens(50)
    np.testing.assert_allclose(trained.nll(first), nll[: len(first)], rtol=1e-4)
    words = test.words(slice(0, 7))
    log_prob = trained.log_prob([words[:6]])[0]
    label = trained.vocabulary.index(words[6])
    assert nll[6] == pytest.approx(-log_prob[label], rel=1e-4)


@pytest.mark.parametrize(
    ("model", "candidate"), [("gru", "sampled"), ("transformer", "huffman"), ("gru", "adaptive")]
)
def test_a_stopped_training_ends_with_the_same_bits(model, candidate, texts, tmp_path):
    train, valid, _ = texts
    options = {**QUICK, "epochs": 2, "dropout": 0.2}
    if model == "transformer":
        options["heads"] = 2
    spec = spec_of(candidate, train)
    whole = new_model(spec, model=model, **options).fit(train, valid)

    from hstree.models.torch.training import NetworkTrainer

    step = NetworkTrainer.step
    done = []

    def interrupted(self, *arguments):
        done.append(1)
        if len(done) == 50:  # in the second epoch
            raise KeyboardInterrupt
        return step(self, *arguments)

    stopped = new_model(spec, model=model, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NetworkTrainer, "step", interrupted)
        patch.setattr("hstree.training.checkpoints.MINUTES", 0)
        stopped.fit(train, valid, checkpoints=tmp_path)
    assert stopped.history_.interrupted
    assert len(done) == 50
    again = new_model(spec, model=model, **options).fit(train, valid, checkpoints=tmp_path)
    assert again.history_.before > 0
    for name, array in whole.parameters().items():
        assert np.array_equal(array, again.parameters()[name]), name


@pytest.mark.parametrize("form", ["sparse", "sparse, with repeated rows", "dense"])
def test_adagrad_is_that_of_the_numpy_models(form):
    """For gradients of a mean loss, if the initial sum is divided by the squared batch size."""
    n_tokens, initial, rate = 8, 3.0, 0.1
    start = np.random.default_rng(0).standard_normal((4, 2), np.float32)
    expected = adagrad.RowAdagrad(start.copy(), initial_accumulator=initial)
    parameter = torch.nn.Parameter(torch.from_numpy(start.copy()))
    optimiser = RowAdagrad([{"params": [parameter], "lr": rate}], initial / n_tokens**2)
    rows = np.array([0, 2])
    for step in range(2):
        gradient = np.random.default_rng(step).standard_normal((2, 2), np.float32)
        expected.step(rows, gradient, rate)
        mean = torch.from_numpy(gradient / n_tokens)
        index = torch.from_numpy(rows)[None]
        if form == "sparse, with repeated rows":
            # row 2 in two halves
            index = torch.tensor([[2, 0, 2]])
            mean = torch.stack([mean[1] / 2, mean[0], mean[1] / 2])
        parameter.grad = torch.sparse_coo_tensor(index, mean, (4, 2), check_invariants=True)
        if form == "dense":
            parameter.grad = parameter.grad.to_dense()
        optimiser.step()
    np.testing.assert_allclose(parameter.detach(), expected.parameter, rtol=1e-5)


@pytest.mark.parametrize("form", ["shared", "expanded", "empty"])
def test_adagrad_takes_every_gradient_of_autograd(form):
    """Gradients of tables that share memory, that have one element, and without rows; a scalar."""
    ids = torch.tensor([0, 1, 3])
    results = []
    for sparse in (False, True):
        torch.manual_seed(0)
        first, second = (torch.nn.Embedding(4, 2, sparse=sparse) for _ in range(2))
        scale = torch.nn.Parameter(torch.tensor(2.0))
        tables = {"params": [first.weight, second.weight], "lr": 0.1}
        optimiser = RowAdagrad([tables, {"params": [scale], "lr": 0.2}], 0.5)
        for _ in range(2):
            optimiser.zero_grad()
            if form == "shared":
                loss = scale * ((first(ids) + second(ids)) ** 2).sum()
            elif form == "expanded":
                loss = first(ids).sum() + scale * second(ids).sum()
            else:
                loss = first(ids[:0]).sum() + scale * (second(ids) ** 2).sum()
            loss.backward()
            optimiser.step()
        results.append(torch.cat([first.weight.ravel(), second.weight.ravel(), scale[None]]))
    torch.testing.assert_close(*results)


@pytest.mark.parametrize("streams", [1, 4])
def test_adagrad_begins_with_a_sum_of_one_for_the_summed_loss(streams, texts):
    model = new_model(spec_of("huffman", texts[0]), model="gru", **QUICK)
    trainer = NetworkTrainer(model, streams)
    sums = [a for name, a in trainer.other_arrays().items() if name.startswith("squares of Row")]
    assert len(sums) == 3  # word vectors, node vectors, biases
    for array in sums:
        np.testing.assert_allclose(array, 1 / (streams * QUICK["length"]) ** 2)


def test_learning_rates_rise_in_the_warmup_and_fall_to_zero(texts):
    options = {**QUICK, "epochs": 10, "learning_rate": 0.4}
    spec = spec_of("huffman", texts[0])
    model = new_model(spec, model="gru", **options, warmup_ratio=0.2)
    trainer = NetworkTrainer(model, 4)
    assert "warm-up of 20%" in model.describe(model.config())[1]
    rates = [trainer.learning_rate(done) for done in (0, 1, 2, 6, 10, 11)]
    np.testing.assert_allclose(rates, [0, 0.2, 0.4, 0.2, 0, 0])
    trainer = NetworkTrainer(new_model(spec, model="gru", **options), 4)
    rates = [trainer.learning_rate(done) for done in (0, 5, 10)]
    np.testing.assert_allclose(rates, [0.4, 0.2, 0])


@pytest.mark.parametrize("option", ["learning_rate", "embedding_rate", "network_rate"])
def test_head_word_vectors_and_network_have_their_own_learning_rates(option, texts):
    """A tiny rate leaves only its own part as it was; all fall together."""
    model = new_model(spec_of("huffman", texts[0]), model="gru", **QUICK, **{option: 1e-30})
    trainer = NetworkTrainer(model, 4)
    for parameter in model.head.parameters():  # with zeros, the network has no gradient
        torch.nn.init.normal_(parameter)
    before = {name: array.copy() for name, array in model.parameters().items()}
    contexts, targets, is_first = next(trainer.epoch_batches(model._streams(texts[0])))
    trainer.step(contexts, targets, trainer.rate / 2, is_first)
    parts = {"node_": "learning_rate", "network.embedding": "embedding_rate"}
    for name, array in model.parameters().items():
        own = next((parts[part] for part in parts if name.startswith(part)), "network_rate")
        assert np.array_equal(array, before[name]) == (own == option), name
    for (group, highest), rate in zip(
        trainer._highest, ("embedding_rate", "learning_rate", "network_rate"), strict=True
    ):
        assert highest == getattr(model, rate)
        assert group["lr"] == highest / 2


def test_training_leaves_the_generators_of_the_program(texts):
    train, valid, test = texts
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    model = new_model(hstree.build("huffman", train), model="gru", **QUICK, epochs=1)
    model.fit(train, valid).perplexity(test)
    assert torch.equal(torch.rand(3), expected)


def test_a_network_of_the_user_is_compared(texts, tmp_path):
    options = user_network(tmp_path, arguments="width=3")
    rule = hstree.Epochs(1)
    candidates = ["huffman", "sampled samples=3", "kn2"]
    splits = Splits(*texts)
    compared = hstree.compare(
        splits, candidates, tmp_path / "which", stop=rule, speed_rounds=0, **options
    )
    huffman, sampled, _ = compared.candidates
    assert huffman.test < 6
    assert sampled.test < 6
    folder = tmp_path / "which" / huffman.jobs[0].folder / "model"
    model = load_model(folder)
    assert model.perplexity(texts[2]) == pytest.approx(huffman.test, rel=1e-6)

    # a source that has changed is not taken for the one that trained
    file = tmp_path / "net.py"
    file.write_text(f"{CONVOLUTION}\n# changed", encoding="utf-8")
    with pytest.warns(UserWarning, match=r"net\.py:make has changed since the model was trained"):
        load_model(folder)
    with pytest.raises(InputError, match=r"its network is \S+net\.py:make .* restore the file"):
        hstree.compare(splits, ["flat"], tmp_path / "which", stop=rule, **options)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("return self.vectors(ids)[:, 1:], state", r"of shape \(\d+, 7, 8\), not \(\d+, 8, 8\)"),
        ("return self.vectors(ids)", "returns 'Tensor', not hidden vectors and state"),
        ("return self.vectors(ids) + torch.rand(1), state", "other numbers for the same ids"),
        ("return self.vectors(ids).flip(1), state", "is not causal"),
        ("return self.vectors(ids).to('meta'), state", "returns a tensor on meta"),
        ("return self.vectors(ids), {'a': ids}", "returns a state that is no tensor"),
        ("raise ValueError('too\\nbad')", "raises ValueError: too bad"),
        ("assert not self.training, 'too bad'; return self.vectors(ids), None", "too bad"),
        ("return self.vectors(ids)[:, self.training :], None", r"of shape \(\d+, 7, 8\)"),
        ("h = self.vectors(ids); return h, h[: 1 + self.training]", "state whose shapes change"),
    ],
)
def test_a_network_that_cannot_be_used_is_refused_in_one_line(body, problem, texts, tmp_path):
    source = f"""
        import torch
        from torch import nn


        class Network(nn.Module):
            def __init__(self, n_words, dim):
                super().__init__()
                self.vectors = nn.Embedding(n_words, dim)

            def forward(self, ids, state):
                {body}
    """
    options = user_network(tmp_path, source, "Network", epochs=1)
    model = new_model(hstree.build("huffman", texts[0]), **options)
    with pytest.raises(OptionError, match=problem) as caught:
        model.fit(*texts[:2])
    assert "\n" not in str(caught.value)


def test_a_state_keeps_its_type(texts, tmp_path):
    source = """
        from typing import NamedTuple

        from torch import Tensor, nn


        class State(NamedTuple):
            h: Tensor
            c: Tensor


        class Network(nn.Module):
            def __init__(self, n_words, dim):
                super().__init__()
                self.vectors = nn.Embedding(n_words, dim, sparse=True)
                self.body = nn.LSTM(dim, dim, batch_first=True)

            def forward(self, ids, state):
                hidden, new = self.body(self.vectors(ids), state and (state.h, state.c))
                return hidden, State(*new)
    """
    options = user_network(tmp_path, source, "Network")
    model = new_model(hstree.build("huffman", texts[0]), **options, epochs=1).fit(*texts[:2])
    assert model.perplexity(texts[2]) < 6


def test_a_model_with_few_weights_is_saved_and_read(tmp_path):
    source = """
        from torch import nn


        class Network(nn.Module):
            def __init__(self, n_words, dim):
                super().__init__()
                self.body = nn.Sequential(nn.Embedding(n_words, 2, sparse=True), nn.Linear(2, dim))

            def forward(self, ids, state):
                return self.body(ids), None
    """
    text = hstree.Corpus.from_lines([f"w{i} w{i // 2}" for i in range(500)], min_count=1)
    spec = LayerSpec(text.counted_vocabulary(), "adaptive")
    options = user_network(tmp_path, source, "Network")
    model = new_model(spec, **options | {"dim": 64}, epochs=0).fit(text)
    assert sum(a.size for a in model.parameters().values()) < 64 * len(spec.labels)
    model.save(tmp_path / "model")
    assert load_model(tmp_path / "model").perplexity(text) == model.perplexity(text)


def test_scores_are_computed_in_evaluation_mode(texts):
    model = new_model(spec_of("flat", texts[0]), model="gru", **QUICK, epochs=0).fit(texts[0])
    uses = {
        "perplexity": lambda: model.perplexity(texts[2]),
        "top_k": lambda: model.top_k([["a"]], 1),
        "sample": lambda: model.sample(1),
    }
    for name, use in uses.items():
        model.module.train()
        model.head.train()
        use()
        assert not model.module.training, name
        assert not model.head.training, name


def test_predictions_use_the_limit_of_threads(texts, monkeypatch):
    model = new_model(spec_of("flat", texts[0]), model="gru", **QUICK, epochs=0).fit(texts[0])
    before = torch.get_num_threads()
    threads = []
    log_prob = model.head.log_prob

    def record(hidden):
        threads.append(torch.get_num_threads())
        return log_prob(hidden)

    monkeypatch.setattr(model.head, "log_prob", record)
    for n in (1, 2):
        with limited_threads(n):
            model.log_prob([["a"]])
            model.top_k([["a"]], 1)
            model.sample(1)
            model.draw([["a"]], np.random.default_rng(0))
    assert threads == [1] * 4 + [2] * 4
    assert torch.get_num_threads() == before


def test_the_default_candidates_of_networks_have_a_head():
    names = [candidate.name for candidate in parse_candidates(None, {"model": "gru"})]
    assert names == list(kind_of({"model": "gru"}).model.default_candidates)


def test_adaptive_softmax_takes_short_hidden_vectors(texts):
    spec = LayerSpec(texts[0].counted_vocabulary(), "adaptive")
    model = new_model(spec, model="gru", **QUICK | {"dim": 2}, epochs=1).fit(*texts[:2])
    assert model.perplexity(texts[2]) < 8


def test_the_clusters_of_adaptive_softmax():
    counts = 1_000_000 // np.arange(1, 3001)
    words = hstree.Vocabulary([f"w{i}" for i in range(3000)], counts)
    assert new_head(LayerSpec(words, "adaptive"), 64).layer.cutoffs == [250, 2000, 3000]
    assert new_head(LayerSpec(words, "adaptive"), 8).layer.cutoffs == [250, 3000]
    spec = LayerSpec(words, "adaptive", cutoffs="20,600")
    assert new_head(spec, 64).layer.cutoffs == [20, 600, 3000]
    with pytest.raises(OptionError, match="too many for 4 dimensions and the factor 4"):
        new_head(spec, 4)
    for options in ({}, {"cutoffs": "none"}):  # flat: few dimensions, or no clusters
        assert new_head(LayerSpec(words, "adaptive", **options), 2).weight.shape == (3000, 2)


def test_the_flat_loss_in_chunks_is_the_same(texts, monkeypatch):
    model = new_model(spec_of("flat", texts[0]), model="gru", **QUICK, epochs=1).fit(*texts[:2])
    hidden = torch.randn(5, QUICK["dim"], generator=torch.Generator().manual_seed(0))
    target = torch.arange(5) % len(model.spec.labels)
    expected = model.head.loss(hidden, target)
    monkeypatch.setattr("hstree.models.torch.heads.CHUNKED_LOGITS", 0)
    torch.testing.assert_close(model.head.loss(hidden, target), expected)


def test_word_vectors_may_be_shared_in_any_precision(texts, tmp_path):
    source = """
        from torch import nn


        class Network(nn.Module):
            def __init__(self, n_words, dim, kind):
                super().__init__()
                self.vectors = nn.Embedding(n_words, dim, sparse=True).bfloat16()
                self.same = getattr(nn, kind)(n_words, dim, sparse=True)
                self.same.weight = self.vectors.weight

            def forward(self, ids, state):
                return self.vectors(ids), None
    """
    tree = hstree.build("huffman", texts[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # torch warns of parameters that are optimised twice
        for kind in ("Embedding", "EmbeddingBag"):
            options = user_network(tmp_path, source, "Network", arguments=f"kind={kind}")
            model = new_model(tree, **options, epochs=1).fit(*texts[:2])
            assert model.perplexity(texts[2]) < 6


def test_names_of_networks_are_checked(texts, tmp_path, monkeypatch):
    tree = hstree.build("huffman", texts[0])
    for name in ("", "json", "nowhere.py:make", "no_such_package.net:make"):
        with pytest.raises(OptionError, match="network is"):
            new_model(tree, model="torch", network=name)
    (tmp_path / "broken_package").mkdir()
    (tmp_path / "broken_package" / "__init__.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(OptionError, match="ZeroDivisionError"):
        new_model(tree, model="torch", network="broken_package.net:make")
    options = user_network(tmp_path, function="make_it")
    with pytest.raises(OptionError, match="cannot be imported: AttributeError"):
        new_model(tree, **options, epochs=1).fit(texts[0])
    with pytest.raises(OptionError, match="raises TypeError"):
        new_model(tree, **user_network(tmp_path, arguments="depth=2")).fit(texts[0])
    with pytest.raises(OptionError, match="write key=value"):
        new_model(tree, **user_network(tmp_path, arguments="deep"))


@pytest.mark.parametrize("network", ["mypackage.net:make", "mypackage/user.py:make"])
def test_the_program_finds_modules_in_the_folder_of_a_package_or_file(network, tmp_path):
    (tmp_path / "mypackage").mkdir()
    (tmp_path / "mypackage" / "net.py").write_text(CONVOLUTION)
    (tmp_path / "mypackage" / "user.py").write_text("from net import make\n")
    write_lines(tmp_path / "text.txt", LINES)
    model = f"torch network={network} dim=8"
    # -P: as an installed program, which does not search the current folder
    program = ["-P", "-m", "hstree_cli"]
    train = ["evaluate", "huffman", "text.txt", "--epochs", 1, "--model", model, "--save", "model"]
    run_python([*program, *train], tmp_path)
    assert "w1" in run_python([*program, "predict", "model", "w1 w2", "-k", 8], tmp_path)


NAN = """
    import torch
    from torch import nn


    class Network(nn.Module):
        def __init__(self, n_words, dim):
            super().__init__()
            self.vectors = nn.Embedding(n_words, dim)

        def forward(self, ids, state):
            return self.vectors(ids) + (torch.nan if self.training else 0.0), None
"""


def after_some_batches(body):
    """Return the source of a network that runs a body from the third training batch on."""
    return f"""
    import torch
    from torch import nn


    def fail(*_):
        raise ValueError("too\\nbad")


    class Network(nn.Module):
        def __init__(self, n_words, dim):
            super().__init__()
            self.vectors = nn.Embedding(n_words, dim)
            self.batches = 0

        def forward(self, ids, state):
            self.batches += self.training
            hidden = self.vectors(ids)
            if self.batches > 2:
                {body}
            return hidden, None
    """


#: Networks that fail in training, and a part of the message.
FAILING = {
    "loss": (NAN, "diverged"),
    # the loss is a number and the gradient is not
    "gradient": (after_some_batches("hidden = hidden + (0 * hidden).sqrt()"), "diverged"),
    "error": (after_some_batches("raise ValueError('too\\nbad')"), "raises ValueError: too bad"),
    "shape": (after_some_batches("hidden = hidden[1:]"), "of shape"),
    "backward": (after_some_batches("hidden.register_hook(fail)"), "failed: ValueError: too bad"),
    "memory": (after_some_batches("raise MemoryError"), "not enough; lower --batch-size"),
    "memory of a CPU": (
        after_some_batches("hidden = torch.empty(1 << 50)"),
        f"not enough for {4 << 50} bytes more; lower --batch-size",
    ),
    "memory of a GPU": (
        after_some_batches(
            "raise torch.cuda.OutOfMemoryError('CUDA out of memory. Tried to allocate 2.00 GiB.')"
        ),
        "not enough for 2.00 GiB more; lower --batch-size",
    ),
}


@pytest.mark.parametrize("kind", FAILING)
def test_a_failure_ends_the_training_of_a_candidate_alone(kind, texts, tmp_path):
    source, problem = FAILING[kind]
    options = user_network(tmp_path, source, "Network")
    tree = hstree.build("huffman", texts[0])
    with pytest.raises(HstreeError, match=problem):
        new_model(tree, **options, epochs=3).fit(*texts[:2])
    rules = {"stop": hstree.Epochs(2), "speed_rounds": 0}
    with pytest.warns(UserWarning, match=f"huffman: .*{problem}") as warned:
        compared = hstree.compare(
            Splits(*texts), ["huffman", "kn2"], tmp_path / "which", **rules, **options
        )
    assert all("\n" not in str(warning.message) for warning in warned)
    assert [candidate.name for candidate in compared.candidates] == ["huffman", "kn2"]
    assert problem in compared.candidates[0].failed
    assert compared.candidates[0].test is None
    assert compared.best is None
    assert problem in str(compared)


#: Words that occur once in the training part, and one of them in either held-out part.
VALID_WORD, TEST_WORD = "v", "t"
#: Conditions under which a user's code fails: in a network, and in a head.
PHASES = {
    "train": ("self.training", "loss"),
    "valid": ("not self.training and (ids == VALID).any()", "nll"),
    "test": ("not self.training and (ids == TEST).any()", "nll"),
    "speed": ("ids.shape == (1, 1)", "top_k"),
}


@pytest.fixture
def marked_texts():
    """Return splits with a word of its own in either held-out part, and the ids of these words."""
    train = hstree.Corpus.from_lines([*LINES[:600], f"{VALID_WORD} {TEST_WORD}"], min_count=1)
    held_out = [[*LINES[600:700], VALID_WORD], [*LINES[700:800], TEST_WORD]]
    others = [hstree.Corpus.from_lines(part, vocabulary=train.vocabulary) for part in held_out]
    # layers over words have the order of the vocabulary
    ids = [train.vocabulary.index(word) for word in (VALID_WORD, TEST_WORD)]
    return Splits(train, *others), ids


def failing_network(condition, ids, n_tokens):
    """Return the source of a network that raises under a condition."""
    return f"""
        import torch
        from torch import nn

        VALID, TEST = {ids}
        EPOCH = {n_tokens // QUICK["batch_size"] + 2}


        class Network(nn.Module):
            def __init__(self, n_words, dim):
                super().__init__()
                self.vectors = nn.Embedding(n_words, dim)
                self.calls = 0
                # a saved model has the number of its training steps
                self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

            def forward(self, ids, state):
                self.calls += 1
                self.steps += self.training
                if self.calls > 4 and {condition}:
                    raise RuntimeError("too\\nbad")
                return self.vectors(ids), None
    """


def install_failing_heads(folder, patch, phase, ids):
    """Install a package that gives two layers a form whose method of a phase raises."""
    target = {"valid": ids[0], "test": ids[1]}.get(phase)
    source = f"""
        from hstree.models.torch.heads import FlatHead

        TARGET = {target}


        class Failing(FlatHead):
            def {PHASES[phase][1]}(self, hidden, other):
                if TARGET is None or (other == TARGET).any():
                    raise RuntimeError("too\\nbad")
                return super().{PHASES[phase][1]}(hidden, other)
    """
    (folder / "failing_heads.py").write_text(textwrap.dedent(source))
    names = ["negative", "infrequent"]
    heads = dict.fromkeys(names, "failing_heads:Failing")
    install(folder, "failing-heads", {"hstree.heads": heads})
    patch.delitem(sys.modules, "failing_heads", raising=False)
    patch.syspath_prepend(folder)


@pytest.mark.parametrize(
    "condition", [*(condition for condition, _ in PHASES.values()), "self.steps > EPOCH"]
)
def test_a_network_that_fails_in_any_phase_ends_its_candidate(condition, marked_texts, tmp_path):
    splits, ids = marked_texts
    source = failing_network(condition, ids, len(splits.train))
    options = user_network(tmp_path, source, "Network")
    rules = {"stop": hstree.Epochs(1), "speed_rounds": 1}
    with pytest.warns(UserWarning, match="flat: .*raises RuntimeError: too bad"):
        compared = hstree.compare(splits, ["flat", "kn2"], tmp_path / "which", **rules, **options)
    flat, ngrams = compared.candidates
    assert "too bad" in flat.failed
    assert flat.test is None
    # the scores of a job remain where only the speed cannot be measured
    is_scored = condition in (PHASES["speed"][0], "self.steps > EPOCH")
    assert (flat.jobs[0].perplexity["test"] is not None) == is_scored
    assert ngrams.test is not None
    assert compared.best is None


@pytest.mark.parametrize("phase", PHASES)
def test_a_failed_head_is_not_recommended(phase, marked_texts, tmp_path, monkeypatch):
    splits, ids = marked_texts
    install_failing_heads(tmp_path, monkeypatch, phase, ids)
    candidates = ["negative", "2 x negative", "flat", "kn2"]
    arguments = splits, candidates, tmp_path / "which"
    options = {"stop": hstree.Epochs(1), "seeds": 2, "speed_rounds": 1, "model": "gru", **QUICK}
    with pytest.warns(UserWarning, match="negative: .*failed: RuntimeError: too bad"):
        compared = hstree.compare(*arguments, **options)
    assert compared.best.name == "flat"
    failed = {candidate.name for candidate in compared.candidates if candidate.failed}
    assert failed == {"negative", "2 x negative"}
    csv = (tmp_path / "which" / "results.csv").read_text()
    page = hstree.report.write(compared, tmp_path / "page.html").read_text()
    for shown in (str(compared), csv, page):
        assert "too bad" in shown
    # jobs that failed are kept, as others are; speeds are measured again
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if phase == "speed" else "error")
        again = hstree.compare(*arguments, **options)
    assert [candidate.test for candidate in again.candidates] == [
        candidate.test for candidate in compared.candidates
    ]


def test_a_head_that_fails_on_all_tokens_is_not_recommended(marked_texts, tmp_path, monkeypatch):
    splits, ids = marked_texts
    # the sample of the test part ends before its last line
    monkeypatch.setattr("hstree.experiments.setting.SAMPLE", len(splits.test) - 2)
    install_failing_heads(tmp_path, monkeypatch, "test", ids)
    options = {"stop": hstree.Seconds(2), "speed_rounds": 0, "model": "gru", **QUICK}
    with pytest.warns(UserWarning, match="negative: .*failed: RuntimeError: too bad"):
        compared = hstree.compare(splits, ["negative", "flat"], tmp_path / "which", **options)
    assert [candidate.failed is None for candidate in compared.candidates] == [False, True]
    assert compared.best.name == "flat"


def test_a_failed_candidate_is_in_no_further_round(marked_texts, tmp_path, monkeypatch):
    splits, ids = marked_texts
    install_failing_heads(tmp_path, monkeypatch, "train", ids)
    options = {"stop": hstree.Halving(0.3), "speed_rounds": 0, "model": "gru", **QUICK}
    candidates = ["negative", "infrequent", "flat"]
    with pytest.warns(UserWarning, match="too bad"):
        compared = hstree.compare(splits, candidates, tmp_path / "which", **options)
    assert compared.best.name == "flat"
    rounds = json.loads((tmp_path / "which" / "rounds.json").read_text())["rounds"]
    assert [later["candidates"] for later in rounds[1:]] == [["flat"]]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"network": "nowhere.py:make"}, "there is no nowhere.py"),
        ({"arguments": "depth=2"}, "raises TypeError"),
        ({"rates": "0.1,0.3"}, "needs a budget"),
    ],
)
def test_mistakes_that_candidates_share_are_refused_at_once(options, problem, texts, tmp_path):
    options = user_network(tmp_path) | options
    rule = hstree.Epochs(1)
    with pytest.raises(OptionError, match=problem):
        hstree.compare(Splits(*texts), ["huffman"], tmp_path / "which", stop=rule, **options)
    assert not (tmp_path / "which").exists()


def test_failed_trainings_are_ranked_last_by_halving(texts, tmp_path):
    options = user_network(tmp_path, NAN, "Network", stop=hstree.Halving(0.3), speed_rounds=0)
    splits = Splits(*texts)
    candidates = ["huffman", "random", "flat"]
    with pytest.warns(UserWarning, match="diverged"):
        compared = hstree.compare(splits, candidates, tmp_path / "which", **options)
    assert len(compared.candidates) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # rounds and jobs are kept
        hstree.compare(splits, candidates, tmp_path / "which", **options)


def test_layers_without_a_torch_form_are_refused(texts, tmp_path):
    splits = Splits(*texts)
    for candidate in ("huffman + ngrams", "negative", "nce ranking=true"):
        with pytest.raises(OptionError, match=r"no PyTorch form; .*(adaptive|samples)"):
            hstree.compare(splits, [candidate], tmp_path, model="gru")


def test_another_package_offers_a_head(texts, tmp_path, monkeypatch):
    (tmp_path / "their_heads.py").write_text(
        "from hstree.models.torch.heads import FlatHead\n\n\nclass Their(FlatHead):\n    pass\n"
    )
    install(tmp_path, "their-heads", {"hstree.heads": {"negative": "their_heads:Their"}})
    monkeypatch.syspath_prepend(tmp_path)
    spec = LayerSpec(texts[0].counted_vocabulary(), "negative")
    model = new_model(spec, model="gru dim=8", epochs=0).fit(texts[0])
    assert type(model.head).__name__ == "Their"


def test_a_head_of_another_package_is_a_candidate(texts, tmp_path, monkeypatch):
    source = """
        from torch.nn import functional

        from hstree.models.torch.heads import FlatHead


        class Smoothed(FlatHead):
            '''Flat softmax with smoothed labels.

            Parameters
            ----------
            strength : float
                Probability of all labels together.
            '''

            is_likelihood = False

            def __init__(self, spec, dim, counts, *, strength: float = 0.1):
                super().__init__(spec, dim, counts)
                self.strength = strength

            def loss(self, hidden, target):
                logits = functional.linear(hidden, self.weight, self.bias)
                return functional.cross_entropy(logits, target, label_smoothing=self.strength)
    """
    (tmp_path / "smoothed_head.py").write_text(textwrap.dedent(source))
    install(tmp_path, "smoothed-head", {"hstree.heads": {"smoothed": "smoothed_head:Smoothed"}})
    monkeypatch.syspath_prepend(tmp_path)
    arguments = Splits(*texts), ["smoothed strength=0.2", "flat"], tmp_path / "which"
    rules = {"stop": hstree.Epochs(2), "speed_rounds": 0}
    with pytest.raises(OptionError, match="only a head of PyTorch networks"):
        hstree.compare(*arguments, **rules)
    smoothed, flat = hstree.compare(*arguments, model="gru", **QUICK, **rules).candidates
    assert smoothed.options == {"strength": 0.2}
    assert flat.test != smoothed.test < 6
    model = load_model(tmp_path / "which" / smoothed.jobs[0].folder / "model")
    assert model.head.strength == 0.2
    assert model.perplexity(texts[2]) == pytest.approx(smoothed.test)


def test_the_best_rate_goes_on(texts, tmp_path, monkeypatch):
    """Each batch takes 5 ms, by a clock that only batches move."""
    now = [100.0]
    step = NetworkTrainer.step

    def timed(self, *arguments):
        now[0] += 0.005
        return step(self, *arguments)

    monkeypatch.setattr("hstree.training.trainer.time.perf_counter", lambda: now[0])
    monkeypatch.setattr(NetworkTrainer, "step", timed)
    train, valid, _ = texts
    options = {**QUICK, "rates": "1e-6,0.3", "network_rate": 1e-6}
    spec = spec_of("huffman", train)
    model = new_model(spec, model="gru", **options, seconds=1.0)
    model.fit(train, valid, checkpoints=tmp_path, pauses=True)
    assert model.learning_rate == 0.3
    assert model.history_.preparation + model.history_.seconds == pytest.approx(1.0, abs=0.01)
    longer = new_model(spec, model="gru", **options, seconds=1.5)
    longer.fit(train, valid, checkpoints=tmp_path, pauses=True)
    assert longer.learning_rate == 0.3
    assert longer.history_.before > 0
    longer.remove_checkpoints()
    assert not list(tmp_path.iterdir())
    with pytest.raises(OptionError, match="needs a budget"):
        new_model(spec, model="gru", **options, epochs=1).fit(train, valid)


@pytest.mark.parametrize(
    ("result", "problem"),
    [(nan_loss, "diverged with each of the rates"), (no_memory, "lower --batch-size")],
)
def test_a_rate_is_given_up_only_if_it_diverges(result, problem, texts, tmp_path, monkeypatch):
    monkeypatch.setattr(NetworkTrainer, "step", result)
    options = {**QUICK, "rates": "0.1,0.3", "seconds": 1.0}
    model = new_model(spec_of("huffman", texts[0]), model="gru", **options)
    with pytest.raises(TrainingError, match=problem):
        model.fit(*texts[:2], checkpoints=tmp_path, pauses=True)
    assert not list(tmp_path.rglob("choice.json"))


def test_a_divergence_in_the_warmup_names_the_learning_rate(texts, monkeypatch):
    monkeypatch.setattr(NetworkTrainer, "step", nan_loss)
    model = new_model(spec_of("huffman", texts[0]), model="transformer", **QUICK, epochs=2)
    with pytest.raises(TrainingError, match=r"which is 0\.15"):
        model.fit(*texts[:2])


@pytest.mark.parametrize(("values", "epoch"), [([3, 2, 4, 5], 2), ([3, 4, 2, 5], None)])
def test_overfitting_is_told(values, epoch, texts, monkeypatch):
    perplexities = iter(values)
    monkeypatch.setattr(NetworkTrainer, "validate", lambda *_: float(next(perplexities)))
    model = new_model(spec_of("huffman", texts[0]), model="gru", **QUICK, epochs=4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(*texts[:2])
    told = [str(warning.message) for warning in caught if "lowest" in str(warning.message)]
    assert [f"epoch {epoch} of 4" in message for message in told] == [True] * (epoch is not None)


def test_options_are_checked(texts):
    tree = hstree.build("huffman", texts[0])
    with pytest.raises(OptionError, match="twice as many must divide dim"):
        new_model(tree, model="transformer", dim=10, heads=4)
    with pytest.raises(OptionError, match="batch_size is 4, less than the length of a stream, 32"):
        new_model(tree, model="gru", batch_size=4)
    with pytest.raises(OptionError, match="device is 'gpu'"):
        new_model(tree, model="gru", device="gpu")
    with pytest.raises(OptionError, match="warmup_ratio"):
        new_model(tree, model="gru", warmup_ratio=1.0)
    with pytest.raises(OptionError, match=r"rates is '0\.1;0\.2'"):
        new_model(tree, model="gru", rates="0.1;0.2")
    if not torch.cuda.is_available():
        with pytest.raises(OptionError, match="which torch does not find here"):
            new_model(tree, model="gru", device="cuda").fit(texts[0])


def test_without_torch_one_line_names_the_command(tmp_path):
    code = """
        import sys
        sys.modules["torch"] = None
        import hstree
        from hstree.errors import MissingExtraError
        from hstree.models import MODELS
        print(sorted(MODELS.all()))
        try:
            hstree.compare(30 * ["a b a b"], None, "which", model="gru")
        except MissingExtraError as error:
            print(error)
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    models, error = result.stdout.splitlines()
    assert models == "['cbow', 'lbl', 'skipgram']"
    assert "pip install --upgrade torch" in error
