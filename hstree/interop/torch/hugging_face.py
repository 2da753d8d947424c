"""A tree as the output layer of a causal language model in Hugging Face transformers."""

import functools
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from hstree.errors import InputError, OptionError
from hstree.interop.torch.module import HierarchicalSoftmax
from hstree.tree import Tree, as_tree

#: File of the tree in the folder of a saved model.
TREE_FILE = "tree.json"
#: Options of `from_pretrained` that locate files.
HUB_OPTIONS = (
    "cache_dir",
    "force_download",
    "local_files_only",
    "proxies",
    "revision",
    "subfolder",
    "token",
)
#: Class of the architecture, which follows the mixin, for type checkers.
_Model: Any = object


class LMHead(nn.Module):
    """Output layer that replaces ``lm_head`` and returns log-probabilities as logits.

    Parameters
    ----------
    layer : HierarchicalSoftmax
    """

    def __init__(self, layer: HierarchicalSoftmax) -> None:
        super().__init__()
        self.layer = layer
        #: Whether the model computes only its loss, without logits.
        self.skips_logits = False
        #: Hidden vectors and logits of the current call of the model.
        self.hidden: Any = None
        self.logits: Any = None

    @property
    def weight(self) -> nn.Parameter:
        """Weight rows of the tree; some architectures read their type and device."""
        return self.layer.weight

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the log-probabilities (..., V) of all labels.

        If the model skips logits, return the hidden vectors, from which the loss is computed.
        """
        self.hidden = hidden
        if self.skips_logits:
            return hidden
        log_prob = self.layer.log_prob(hidden)
        self.logits = log_prob
        return log_prob

    def loss(
        self,
        logits: Tensor,
        labels: Any,
        vocab_size: int | None = None,
        num_items_in_batch: Tensor | int | None = None,
        ignore_index: int = -100,
        shift_labels: Tensor | None = None,
        **_: Any,
    ) -> Tensor:
        """Return the loss of the hidden vectors of this call, from the paths to their targets.

        The arguments are those of ``ForCausalLMLoss`` of transformers. `logits` are not used.
        """
        hidden = self.hidden
        self.hidden = None
        if shift_labels is None:
            # The target of each token is the token after it
            shift_labels = nn.functional.pad(labels, (0, 1), value=ignore_index)[..., 1:]
        is_ignored = shift_labels == ignore_index
        target = shift_labels.masked_fill(is_ignored, self.layer.ignore_index)
        output, mean = self.layer(hidden, target.to(hidden.device))
        loss: Tensor = mean
        if num_items_in_batch is not None:
            loss = -output.sum() / torch.as_tensor(num_items_in_batch, device=output.device)
        return loss


class TreeHeadMixin(_Model):  # type: ignore[misc]
    """Mixin that replaces the output layer of a causal language model with a tree.

    List it before the class of an architecture. It replaces ``lm_head`` by an `LMHead`::

        class TreeLlama(TreeHeadMixin, LlamaForCausalLM):
            pass

    Parameters
    ----------
    config : PretrainedConfig
        Must have ``tie_word_embeddings=False``.
    tree : Tree, or str or os.PathLike
        A tree over token ids, or the name of its file: label i is token i. The tree can have fewer
        labels than the input embedding has rows.

    Notes
    -----
    If `labels` are given, the loss is computed from the paths to the targets, and the logits are
    None in training mode. In evaluation mode and without `labels`, the logits are the exact
    log-probabilities of all tokens, without the scale or bound that an architecture applies to
    logits; their ``softmax`` is the distribution.

    `save_pretrained` writes the tree with the weights, and `from_pretrained` reads it. Weights that
    were learned with another tree are refused. From a folder without a tree, such as that of a
    pretrained model, `from_pretrained` reads all weights except those of the output layer, and
    `tree` must be given.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if TreeHeadMixin in cls.__bases__:
            cls.forward = _with_tree(cls.forward)

    def __init__(
        self,
        config: Any,
        *args: Any,
        tree: Tree | str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        text_config = config.get_text_config()
        if any(getattr(part, "tie_word_embeddings", False) for part in (config, text_config)):
            raise OptionError(
                "tie_word_embeddings is True, but the rows of a tree are those of its decisions, "
                "not of tokens; set config.tie_word_embeddings = False"
            )
        if tree is None:
            raise OptionError(f"no tree; give tree= (a saved model has {TREE_FILE} in its folder)")
        tree = as_tree(tree)
        if tree.n_labels > text_config.vocab_size:
            raise InputError(
                f"the tree has {tree.n_labels:,} labels, but the model {text_config.vocab_size:,} "
                "tokens; set config.vocab_size, or build the tree over the tokens of the model"
            )
        super().__init__(config, *args, **options)
        linear = self.get_output_embeddings()
        if linear is None:
            raise InputError(
                f"{type(self).__name__} has no output embeddings; put TreeHeadMixin before the "
                "class of a causal language model, such as LlamaForCausalLM"
            )
        layer = HierarchicalSoftmax(
            tree, linear.in_features, device=linear.weight.device, dtype=linear.weight.dtype
        )
        self.set_output_embeddings(LMHead(layer))

    @property
    def loss_function(self) -> Callable[..., Tensor]:
        """Loss function of the tree, which the architecture calls with logits and labels."""
        loss: Callable[..., Tensor] = self.get_output_embeddings().loss
        return loss

    def _init_weights(self, module: nn.Module) -> None:
        """Reset the weights of a module that are not in a file."""
        if isinstance(module, HierarchicalSoftmax):
            module.reset_parameters()
        else:
            super()._init_weights(module)

    def resize_token_embeddings(self, new_num_tokens: int | None = None, **options: Any) -> Any:
        """Return the input embedding; raise OptionError for another number of tokens."""
        if new_num_tokens is not None:
            raise OptionError(
                "the number of tokens is that of the tree; give lm_head.layer.grow(tree) a tree of "
                "more tokens, then call base_model.resize_token_embeddings"
            )
        return super().resize_token_embeddings(**options)

    def save_pretrained(
        self, save_directory: str | os.PathLike[str], is_main_process: bool = True, **options: Any
    ) -> None:
        """Save the tree with the weights and the configuration."""
        if is_main_process:
            folder = Path(save_directory)
            folder.mkdir(parents=True, exist_ok=True)
            self.get_output_embeddings().layer.tree.save(folder / TREE_FILE)
        super().save_pretrained(save_directory, is_main_process, **options)

    @classmethod
    def from_pretrained(
        cls,
        name: str | os.PathLike[str] | None,
        *args: Any,
        tree: Tree | str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> Self:
        """Load a model from a folder or the hub, by default with its tree."""
        from transformers.utils import cached_file

        if tree is None and name is not None:
            where = {key: options[key] for key in HUB_OPTIONS if key in options}
            # OSError: there is no such file
            with suppress(OSError):
                tree = cached_file(name, TREE_FILE, **where)
        model: Self = super().from_pretrained(name, *args, tree=tree, **options)
        return model


def _with_tree(forward: Callable[..., Any]) -> Callable[..., Any]:
    """Return the forward method of an architecture with the loss and the logits of a tree."""

    @functools.wraps(forward)
    def wrapped(self: Any, *args: Any, return_dict: bool | None = None, **options: Any) -> Any:
        head = self.get_output_embeddings()
        head.skips_logits = self.training and options.get("labels") is not None
        outputs = forward(self, *args, return_dict=True, **options)
        if head.skips_logits and head.hidden is not None:
            raise InputError(f"{type(self).__name__} computes its loss without its loss_function")
        # The log-probabilities, without the architecture's scale of logits
        outputs = replace(outputs, logits=head.logits)
        head.hidden = None
        head.logits = None
        if return_dict is None:
            return_dict = self.config.return_dict
        return outputs if return_dict else outputs.to_tuple()

    return wrapped
