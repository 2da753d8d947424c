"""Hierarchical softmax as a PyTorch module, for any tree.

`HierarchicalSoftmax` has the interface of ``torch.nn.AdaptiveLogSoftmaxWithLoss`` (see
``docs/torch.md``). It computes what `hstree.layers.hierarchical` computes, with the same layout of
the weights, on any device of torch. `SampledSoftmax` and `NCE` train a flat softmax with labels
drawn from a proposal, which can be the layer of a tree. `TreeHeadMixin` uses a tree as the output
layer of a causal language model in transformers.
"""

# ruff: noqa: E402 - `require` comes first, so that a missing torch is reported in one line
from hstree._plugins import require

require("torch", at_least="2.3")

from hstree.interop.torch.hugging_face import LMHead, TreeHeadMixin
from hstree.interop.torch.module import HierarchicalSoftmax, TargetLogProb, TopK
from hstree.interop.torch.sampled import NCE, SampledSoftmax
from hstree.interop.torch.sharded import ShardedHierarchicalSoftmax

__all__ = [
    "NCE",
    "HierarchicalSoftmax",
    "LMHead",
    "SampledSoftmax",
    "ShardedHierarchicalSoftmax",
    "TargetLogProb",
    "TopK",
    "TreeHeadMixin",
]
