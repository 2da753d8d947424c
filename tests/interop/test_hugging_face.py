"""Causal language models of transformers with a tree as their output layer."""

import numpy as np
import pytest

import hstree
from hstree.errors import InputError, OptionError
from tests import needs

torch = pytest.importorskip("torch", reason=needs.TORCH)
transformers = pytest.importorskip("transformers", reason=needs.TRANSFORMERS)

from hstree.interop.torch import LMHead, TreeHeadMixin  # noqa: E402

V = 50
COUNTS = np.arange(V) + 1
#: As many weight rows as labels, so that the weights of a linear layer have the same shape.
TREE = hstree.build("huffman", COUNTS, short_list=10)
OTHER = hstree.build("huffman", COUNTS[::-1].copy(), short_list=10)
assert TREE.row_start[-1] == OTHER.row_start[-1] == V
SIZES = {
    "vocab_size": V,
    "tie_word_embeddings": False,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
LLAMA = {
    **SIZES,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
}


class TreeLlama(TreeHeadMixin, transformers.LlamaForCausalLM):
    pass


class TreeGPT2(TreeHeadMixin, transformers.GPT2LMHeadModel):
    pass


class TreeGemma(TreeHeadMixin, transformers.Gemma2ForCausalLM):
    """Bounds its logits (soft-capping), which would be other log-probabilities."""


def llama(**options):
    return transformers.LlamaConfig(**LLAMA, **options)


CONFIGS = {
    TreeLlama: llama(),
    TreeGPT2: transformers.GPT2Config(**SIZES, n_embd=16, n_layer=2, n_head=2, n_positions=32),
    TreeGemma: transformers.Gemma2Config(**LLAMA),
}
every_model = pytest.mark.parametrize("kind", CONFIGS)


def make(kind=TreeLlama, config=None, tree=TREE):
    """Return a model in evaluation mode, with random weights in its tree."""
    torch.manual_seed(0)
    model = kind(config or CONFIGS[kind], tree=tree)
    torch.nn.init.normal_(model.get_output_embeddings().layer.weight)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return model.eval()


def batch():
    """Return ids (2, 7), and labels with some that are ignored."""
    ids = torch.randint(3, V, (2, 7), generator=torch.Generator().manual_seed(1))
    labels = ids.clone()
    labels[0, :3] = -100
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return [parameter.grad for parameter in model.parameters()]


@every_model
def test_the_loss_is_the_cross_entropy_of_the_next_tokens(kind):
    model = make(kind)
    inputs = batch()
    scored = model(**inputs)
    log_prob = scored.logits
    torch.testing.assert_close(log_prob.exp().sum(-1), torch.ones(2, 7))
    target = inputs["labels"][:, 1:].flatten()
    expected = torch.nn.functional.cross_entropy(log_prob[:, :-1].flatten(0, 1), target)
    torch.testing.assert_close(scored.loss, expected)

    trained = model.train()(**inputs)
    assert trained.logits is None
    assert "logits" not in trained
    torch.testing.assert_close(trained.loss, expected)
    torch.testing.assert_close(gradients(model, trained.loss), gradients(model, scored.loss))
    torch.testing.assert_close(model(inputs["input_ids"]).logits, log_prob)
    assert model(**inputs, return_dict=False)[0] == trained.loss


@pytest.mark.parametrize("training", [False, True])
def test_the_loss_takes_the_options_of_transformers(training):
    model = make().train(training)
    inputs = batch()
    mean = model(**inputs).loss
    n_scored = int((inputs["labels"][:, 1:] != -100).sum())
    for number in (2 * n_scored, torch.tensor(2 * n_scored)):
        torch.testing.assert_close(model(**inputs, num_items_in_batch=number).loss, mean / 2)
    labels = inputs.pop("labels")
    shifted = torch.nn.functional.pad(labels, (0, 1), value=-100)[:, 1:]
    again = model(**inputs, labels=labels, shift_labels=shifted).loss
    torch.testing.assert_close(again, mean)
    other = model(**inputs, labels=labels.where(labels != -100, 5), ignore_index=5).loss
    known = labels.where(labels != 5, -100)
    torch.testing.assert_close(other, model(**inputs, labels=known).loss)


@pytest.mark.filterwarnings("ignore:.gradient_checkpointing_enable:FutureWarning")
def test_gradient_checkpointing_changes_nothing():
    model = make().train()
    expected = gradients(model, model(**batch()).loss)
    model.gradient_checkpointing_enable()
    torch.testing.assert_close(gradients(model, model(**batch()).loss), expected)


@every_model
@pytest.mark.parametrize("options", [{}, {"num_beams": 3}, {"do_sample": True, "top_k": 0}])
def test_generated_tokens_have_the_probabilities_of_the_tree(kind, options):
    model = make(kind)
    inputs = batch()
    del inputs["labels"]
    generated = model.generate(
        **inputs,
        **{"do_sample": False, **options},
        max_new_tokens=4,
        eos_token_id=None,
        return_dict_in_generate=True,
        output_scores=True,
        output_logits=True,
    )
    with torch.no_grad():
        log_prob = model(generated.sequences).logits[:, 6:-1]
    new = generated.sequences[:, 7:]
    steps = log_prob.gather(2, new[..., None])[..., 0]
    if "num_beams" in options:
        torch.testing.assert_close(generated.sequences_scores, steps.mean(1))
        return
    logits = torch.stack(generated.logits, 1)
    torch.testing.assert_close(logits, log_prob)
    if not options:
        assert torch.equal(new, log_prob.argmax(2))


def test_accelerate_trains_in_bfloat16():
    accelerate = pytest.importorskip("accelerate", reason=needs.TRANSFORMERS)
    accelerator = accelerate.Accelerator(cpu=True, mixed_precision="bf16")
    model = TreeLlama(llama(), tree=TREE)
    model, optimiser = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=0.01))
    model.train()
    losses = []
    for _ in range(5):
        loss = model(**batch()).loss
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


@every_model
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_saved_model_has_its_tree(kind, dtype, tmp_path):
    model = make(kind)
    model.save_pretrained(tmp_path / "folder" / "model")
    loaded = kind.from_pretrained(tmp_path / "folder" / "model", dtype=dtype)
    head = loaded.get_output_embeddings()
    assert head.layer.tree == hstree.Tree.load(tmp_path / "folder" / "model" / "tree.json") == TREE
    assert head.weight.dtype == dtype
    inputs = batch()
    tolerance = {"rtol": 0, "atol": 0} if dtype == torch.float32 else {"rtol": 0.05, "atol": 0.2}
    torch.testing.assert_close(loaded(**inputs).loss, model(**inputs).loss, **tolerance)
    loaded.train()(**inputs).loss.backward()
    assert head.weight.grad.dtype == dtype


def test_a_process_that_is_not_the_first_writes_no_tree(tmp_path):
    make().save_pretrained(tmp_path / "model", is_main_process=False)
    assert not (tmp_path / "model" / "tree.json").exists()


@pytest.mark.parametrize("is_replaced", [False, True])
def test_weights_of_another_tree_are_refused(is_replaced, tmp_path):
    make().save_pretrained(tmp_path)
    tree = None if is_replaced else OTHER
    if is_replaced:
        OTHER.save(tmp_path / "tree.json")
    with pytest.raises(InputError, match="learned on another tree"):
        TreeLlama.from_pretrained(tmp_path, tree=tree)


def test_a_tree_takes_the_place_of_the_output_layer_of_a_pretrained_model(tmp_path):
    torch.manual_seed(0)
    plain = transformers.LlamaForCausalLM(llama())
    plain.save_pretrained(tmp_path)
    with pytest.raises(OptionError, match=r"no tree; give tree="):
        TreeLlama.from_pretrained(tmp_path)
    TREE.save(tmp_path / "other.json")
    model = TreeLlama.from_pretrained(tmp_path, tree=tmp_path / "other.json")
    ids = batch()["input_ids"]
    assert torch.equal(model.model(ids).last_hidden_state, plain.model(ids).last_hidden_state)
    # A new layer is the unigram distribution
    unigram = torch.from_numpy(COUNTS / COUNTS.sum()).float().expand(2, 7, V)
    torch.testing.assert_close(model(ids).logits.exp(), unigram)


def test_what_does_not_fit_is_refused(monkeypatch):
    with pytest.raises(OptionError, match=r"tie_word_embeddings is True.*= False$"):
        TreeLlama(transformers.LlamaConfig(**{**LLAMA, "tie_word_embeddings": True}), tree=TREE)
    with pytest.raises(InputError, match="the tree has 51 labels, but the model 50 tokens"):
        TreeLlama(llama(), tree=hstree.build("huffman", np.ones(V + 1, int)))
    with pytest.raises(InputError, match="TreeBase has no output embeddings"):
        type("TreeBase", (TreeHeadMixin, transformers.LlamaModel), {})(llama(), tree=TREE)
    model = make()
    with pytest.raises(OptionError, match="number of tokens is that of the tree"):
        model.resize_token_embeddings(V + 1)
    assert model.resize_token_embeddings() is model.get_input_embeddings()
    monkeypatch.setattr(TreeLlama, "loss_function", lambda *_, **more: more["logits"].sum())
    with pytest.raises(InputError, match="TreeLlama computes its loss without its loss_function"):
        model.train()(**batch())


def test_a_subclass_and_a_tree_of_fewer_labels():
    class Longer(TreeLlama):
        def forward(self, **inputs):
            return super().forward(**inputs)

    expected = make(tree=hstree.build("huffman", COUNTS[:40]))
    model = make(Longer, llama(), expected.get_output_embeddings().layer.tree)
    ids = batch()["input_ids"] % 40
    assert isinstance(model.lm_head, LMHead)
    scored = model(input_ids=ids, labels=ids)
    assert scored.logits.shape == (2, 7, 40)
    torch.testing.assert_close(scored.logits, expected(ids).logits)
    assert model.train()(input_ids=ids, labels=ids).loss == scored.loss
