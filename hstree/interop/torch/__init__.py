"""The hierarchical softmax as a PyTorch module, for any tree of hstree.

`HierarchicalSoftmax` has the manners of ``torch.nn.AdaptiveLogSoftmaxWithLoss``; ``docs/torch.md``
shows it at work. What it computes is what the NumPy layer computes
(`hstree.layers.hierarchical`), on the same weights; it trains on whatever device torch has.
"""

# ruff: noqa: E402 - torch is asked for first, so that its absence is one clear line
from hstree._optional import require

require("torch", "torch", at_least="2.3")

from hstree.interop.torch.module import HierarchicalSoftmax, TargetLogProb, TopK

__all__ = ["HierarchicalSoftmax", "TargetLogProb", "TopK"]
