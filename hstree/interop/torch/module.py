"""Layers of a tree as PyTorch modules: parameters, public methods and checks of the input."""

import hashlib
import os
from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import torch
from torch import Tensor, nn

from hstree._arrays import Array, Int64, Integer
from hstree._options import checked_count
from hstree.builders.carried_rows import carried_rows
from hstree.data.arrays import check_tensor
from hstree.errors import InputError
from hstree.interop.torch.functions import Inputs, without_autocast
from hstree.interop.torch.gpu import can_search, search
from hstree.interop.torch.head import Head
from hstree.interop.torch.index import (
    TreeIndex,
    index_tensor,
    is_traced,
    is_traced_by_onnx,
    not_compiled,
    refuse_large,
    refuse_traced,
    split_rows,
)
from hstree.interop.torch.probabilities import AllLabels, sample, target_log_prob
from hstree.layers import saved
from hstree.layers.registry import LayerSpec
from hstree.layers.top_k import search as search_arrays
from hstree.tree import Tree, as_tree
from hstree.tree.codes import Codes
from hstree.tree.hierarchy import Hierarchy
from hstree.tree.weight_rows import unigram_bias

#: Maximum number of elements of the (N, E) table of all edges in `top_k` and `predict`.
TABLE_LIMIT = 1 << 26
#: Types of tensors that NumPy searches.
NUMPY_DTYPES = (torch.float32, torch.float64)
#: End, chosen by torch, of the key of the tree's hash in a `state_dict`.
HASH_KEY = "_extra_state"


class TrainedModel(Protocol):
    """Trained model from which a layer is made: its output layer, and its arrays by name."""

    spec: LayerSpec

    def parameters(self) -> dict[str, Array]:
        """Return the trained arrays."""
        ...


class TargetLogProb(NamedTuple):
    """Result of the forward pass of `HierarchicalSoftmax`, float tensors."""

    output: Tensor  #: (...), log-probability of each target in nats; 0 if it is ignored
    loss: Tensor  #: (), mean negative log-likelihood of the others; nan without any


class TopK(NamedTuple):
    """The most probable labels, most probable first."""

    labels: Tensor  #: int64 (..., k)
    log_prob: Tensor  #: float (..., k)


class _Layout(NamedTuple):
    """A tree on one device."""

    codes: Codes
    tree_index: TreeIndex
    all_labels: AllLabels


class TreeLayer(Head):
    """Base class of the layers of a tree: parameters and loss.

    A layer has the weight rows `rows` of the tree, in this order. Subclasses define `_lay_out`,
    which creates the index tensors on a device, and `_target_log_prob`.
    """

    rows_are = (
        "its rows are those of the tree's decisions, not of its labels: a tree cannot be tied to "
        "an embedding (tie_word_embeddings=False in Hugging Face)"
    )

    def __init__(
        self,
        tree: Tree,
        in_features: int,
        rows: slice | Int64,
        sparse: bool,
        counts: Integer | None,
        ignore_index: int,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        in_features = checked_count("in_features", in_features)
        super().__init__()
        self.tree = tree
        self.in_features = in_features
        self.sparse = sparse
        self.n_classes = tree.n_labels
        self.ignore_index = ignore_index

        # Biases with which every label has its fraction of the counts
        counts = tree.counts if counts is None else counts
        self._start_bias = unigram_bias(tree, counts)[rows]
        n_rows = len(self._start_bias)
        self.parameter_shapes = {"weight": (n_rows, in_features), "bias": (n_rows,)}
        self.weight = nn.Parameter(torch.empty(n_rows, in_features, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(n_rows, device=device, dtype=dtype))
        self._layouts: dict[torch.device, Any] = {}
        self.reset_parameters()
        self._follow_weights()

    def reset_parameters(self) -> None:
        """Reset the weights: the layer is the unigram distribution for all hidden vectors."""
        with torch.no_grad():
            self.weight.zero_()
            bias: Any = self.bias
            start = torch.from_numpy(self._start_bias).to(bias.device)
            if hasattr(bias, "device_mesh"):  # a DTensor of fully_shard copies from a DTensor only
                start = type(bias.data).from_local(start, bias.device_mesh)
            bias.copy_(start)

    def forward(self, input: Tensor, target: Tensor) -> TargetLogProb:
        """Return the log-probabilities of the targets and the mean loss.

        `input` is a float tensor (..., d). `target`, int64 (...), contains label ids, or
        `ignore_index` for items that are not scored. Raises InputError if the shapes do not match,
        if a target is not a label id, if a finite input is so large that logits overflow (above
        1e30 in float32), or if the layer is on the meta device.
        """
        hidden, label = self._as_items(input, target)
        with without_autocast(input.device):
            if is_traced():
                output = self._dense_log_prob(hidden, label)
            else:
                output = self._target_log_prob(hidden, label)
        # The mean over the items that are scored; others have a log-probability of 0
        n_scored = (label != self.ignore_index).sum()
        return TargetLogProb(output.reshape(target.shape), -output.sum() / n_scored)

    def extra_repr(self) -> str:
        """Describe the layer in ``print(model)``."""
        return f"{self.tree!r}, in_features={self.in_features}, sparse={self.sparse}"

    def __getstate__(self) -> dict[str, Any]:
        """Exclude the index tensors from copies and pickles."""
        return {**self.__dict__, "_layouts": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._follow_weights()

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Apply a function to the weights, as ``to`` and ``to_empty`` do."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self._follow_weights()
        return self

    def get_extra_state(self) -> Tensor:
        """Return the hash of the tree, uint8 (32,), which is part of the `state_dict`."""
        return torch.from_numpy(np.frombuffer(bytes.fromhex(tree_hash(self.tree)), np.uint8).copy())

    def set_extra_state(self, state: Tensor) -> None:
        """Raise InputError if a state contains the hash of another tree."""
        if state.tolist() != self.get_extra_state().tolist():
            raise InputError(
                f"the weights were learned on another tree than {self.tree}; make the layer on "
                "that one"
            )

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *more: Any
    ) -> None:
        """Load parameters as ``nn.Module`` does; refuse weights learned with another tree."""
        _, missing, _, errors = more
        key = prefix + HASH_KEY
        if key in state_dict:
            # Check before any weight is copied
            try:
                self.set_extra_state(state_dict[key])
            except InputError as error:
                errors.append(f"{prefix}weight: {error}")
                return
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *more)
        # Weights alone are accepted for any tree
        if key in missing:
            missing.remove(key)
        self._follow_weights()

    def _follow_weights(self) -> None:
        """Create the index tensors on the device of the weights, before calls can be compiled."""
        if self._layouts.keys() != {self.weight.device}:
            self._layouts = {}
        if not (self.weight.is_meta or self.bias.is_meta):
            self._layout()

    def _layout(self) -> Any:
        """Return the tree on the device of the weights."""
        if self.weight.is_meta or self.bias.is_meta:
            raise InputError(
                "the layer is on the meta device and has no weights; call to_empty(device=...), "
                "then reset_parameters() or load_state_dict(...)"
            )
        device = self.weight.device
        if device not in self._layouts:
            self._layouts[device] = self._lay_out(device)
        return self._layouts[device]

    @abstractmethod
    def _lay_out(self, device: torch.device) -> Any: ...

    def _dense_log_prob(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Compute `_target_log_prob` in shapes that do not depend on the targets."""
        raise InputError(
            f"a {type(self).__name__} cannot be traced or exported; load its state_dict in a "
            "HierarchicalSoftmax of the same tree"
        )

    @abstractmethod
    def _target_log_prob(self, hidden: Tensor, target: Tensor) -> Tensor: ...


class HierarchicalSoftmax(TreeLayer):
    """Output layer of one tree, with the interface of ``nn.AdaptiveLogSoftmaxWithLoss``.

    Parameters
    ----------
    tree : Tree, or str or os.PathLike
        Any tree, or the name of its file. Nodes can have any number of children, labels can have
        more than one code, and the tree can be flat. Label ids are in the order of its labels,
        which need not be sorted by frequency.
    in_features : int
        d, the length of a hidden vector.
    sparse : bool, default False
        Whether the gradients of `weight` and `bias` are sparse tensors with the rows that a batch
        uses. ``SGD``, ``Adagrad`` and ``SparseAdam`` accept them. They are faster: a dense gradient
        takes O(R d) per step.
    counts : int array (V,), optional
        Training counts for the initial biases (default: `tree.counts`, or all ones).
    ignore_index : int, default -100
        Target of items that are not scored, such as padding. It can equal a label id.
    node_targets : bool, default False
        Whether a target ``V + n`` means the inner node n, for items whose label is unknown. Its
        likelihood is the probability of reaching that node (``docs/taxonomies.md``).
    device, dtype : optional
        As in every torch module.

    Attributes
    ----------
    weight : Parameter (R, d)
        Node vectors, initially zero. ``docs/tree-format.md`` defines the order of the rows.
    bias : Parameter (R,)
        Biases. Initially, the layer is the unigram distribution of `counts`.
    tree : Tree
    n_classes : int
        V, the number of labels.

    Notes
    -----
    ``P(label)`` is the sum over the codes of the label of the product of branch probabilities
    (Morin & Bengio 2005; Mnih & Hinton 2008, section 5, for more than one code). One target takes
    O(decisions x d). Losses and log-probabilities are at least float32, even with autocast.

    The tree is neither a parameter nor a buffer: its index tensors are created on the device of the
    weights. A layer can therefore be created on the meta device, and get its weights from
    ``to_empty`` and `reset_parameters`, or from `load_state_dict`. The loss is differentiable once.
    ``torch.compile`` computes the loss outside of the graph, because its shapes depend on the
    targets, and compiles the rest of a model.

    Examples
    --------
    >>> layer = HierarchicalSoftmax(tree, 256, sparse=True)              # doctest: +SKIP
    >>> output, loss = layer(hidden, target)                             # doctest: +SKIP
    """

    def __init__(
        self,
        tree: Tree | str | os.PathLike[str],
        in_features: int,
        *,
        sparse: bool = False,
        counts: Integer | None = None,
        ignore_index: int = -100,
        node_targets: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        self.node_targets = node_targets  # first, since the index is made with the weights
        super().__init__(
            as_tree(tree),
            in_features,
            slice(None),  # all weight rows
            sparse,
            counts,
            ignore_index,
            device,
            dtype,
        )

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], in_features: int, **options: Any) -> Self:
        """Create a layer from a tree file, with the options of the class.

        Raises FileFormatError if the file does not contain a tree.
        """
        return cls(Tree.load(path), in_features, **options)

    @classmethod
    def from_model(
        cls,
        model: TrainedModel | str | os.PathLike[str],
        *,
        sparse: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> Self:
        """Create a layer with the tree and the node weights of a trained model.

        `model` can be the path of a model folder; see the class for the other parameters. Raises
        FileFormatError if the folder does not contain a model, and InputError if the output layer
        of the model is not plain hierarchical softmax.
        """
        trained = saved.read(model) if isinstance(model, str | os.PathLike) else model
        spec = trained.spec
        if spec.tree is None or not spec.is_plain_tree:
            raise InputError(
                f"the model's output layer is {spec.kind.name!r}, not the hierarchical softmax of "
                "a tree alone"
            )
        # Without a node, a tree has no weights, and thus no dimension
        arrays = trained.parameters()
        dim = arrays["node_weight"].shape[-1] if "node_weight" in arrays else 1
        layer = cls(spec.tree, dim, sparse=sparse, device=device, dtype=dtype)
        with torch.no_grad():
            for name, parameter in (("node_weight", layer.weight), ("node_bias", layer.bias)):
                check_tensor(arrays.get(name), tuple(parameter.shape), f"{name} of the model")
                parameter.copy_(torch.from_numpy(arrays[name]))
        return layer

    @torch.no_grad()
    def grow(
        self,
        tree: Tree | str | os.PathLike[str],
        optimiser: torch.optim.Optimizer | None = None,
    ) -> Self:
        """Return a layer with the learned weights for a tree grown or pruned from this one.

        Weight rows follow their nodes (`hstree.carried_rows`), and new nodes are initialised as in
        a new layer. An `optimiser` of this layer continues with the parameters of the new layer and
        keeps its state of the remaining rows, such as the sums of Adagrad. The state of new rows is
        zero, or the ``initial_accumulator_value`` of Adagrad. Raises InputError if the tree was not
        grown or pruned from the tree of this layer.
        """
        tree = as_tree(tree)
        rows = carried_rows(self.tree, tree)
        new_rows, old_rows, minus = (torch.from_numpy(index) for index in rows)
        # A binary node has one row: if the node was wide, the difference of two rows
        is_difference = minus >= 0
        new = type(self)(
            tree,
            self.in_features,
            sparse=self.sparse,
            ignore_index=self.ignore_index,
            node_targets=self.node_targets,
            device=self.weight.device,
            dtype=self.weight.dtype,
        )
        for old_values, values in ((self.weight, new.weight), (self.bias, new.bias)):
            values[new_rows] = old_values[old_rows]
            values[new_rows[is_difference]] -= old_values[minus[is_difference]]
            values.requires_grad_(old_values.requires_grad)
            if optimiser is None:
                continue

            # The new parameter replaces the old one, with the state of the rows that stay
            for group in optimiser.param_groups:
                group["params"] = [values if p is old_values else p for p in group["params"]]
            start = optimiser.defaults.get("initial_accumulator_value", 0.0)
            for name, state in optimiser.state.pop(old_values, {}).items():
                if torch.is_tensor(state) and state.shape == old_values.shape:
                    row_state = torch.full_like(values, start)
                    row_state[new_rows] = state[old_rows]
                    state = row_state
                optimiser.state[values][name] = state
        return new

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the differentiable log-probabilities (..., V) of all labels.

        A dense product computes all node scores, then one pass per level follows: O(N (R d + E)).
        """
        hidden = self._as_rows(input)
        with without_autocast(input.device):
            return self._log_prob(hidden).reshape(*input.shape[:-1], self.n_classes)

    def node_log_prob(self, input: Tensor) -> Tensor:
        """Return the differentiable log-probabilities (..., N) of reaching all inner nodes.

        They are in the order of the nodes in the tree; that of the root is 0.
        """
        hidden = self._as_rows(input)
        with without_autocast(input.device):
            return self._node_log_prob(hidden).reshape(*input.shape[:-1], self.tree.n_nodes)

    @cached_property
    def levels(self) -> Hierarchy:
        """Names and depths of the tree's nodes and labels, including nodes with one child."""
        return Hierarchy(self.tree)

    def __dir__(self) -> list[str]:
        """Omit `levels` if it would raise an error: torch.jit.trace looks up all names."""
        names: list[str] = super().__dir__()  # type: ignore[no-untyped-call]
        if not self.tree.has_single_codes:
            names.remove("levels")
        return names

    @torch.no_grad()
    def predict_nodes(
        self, input: Tensor, *, depth: int | None = None, confidence: float | None = None
    ) -> Tensor:
        """Return the target of the node or label that is predicted at a level, int64 (...).

        A target is a label id, or ``V + n`` for node n; ``layer.levels.names_of(targets, depth)``
        returns names. With a `depth` (0 is the root), the result is the most probable node at this
        depth, or a label above it. With a `confidence`, it is the deepest node or label whose
        probability is at least `confidence`, down to `depth` if it is given; of more than one, the
        most probable. Raises InputError if a label has more than one code.
        """
        hidden = self._as_rows(input)
        target, level = self._candidates(depth, confidence, input.device)
        parts = []
        with without_autocast(input.device):
            for rows in split_rows(hidden, self._rows_at_once):
                log_prob = torch.cat([self._log_prob(rows), self._node_log_prob(rows)], 1)
                score = log_prob.index_select(1, target).exp()  # (n, items)
                # The deepest first, then the most probable, as in `Hierarchy.choose`
                if confidence is not None:
                    score = torch.where(score >= confidence, 2 * level + 1 + score, 0)
                parts.append(target[score.argmax(1)])
        return torch.cat(parts).reshape(input.shape[:-1])

    @not_compiled
    def _candidates(
        self, depth: int | None, confidence: float | None, device: torch.device
    ) -> tuple[Tensor, Tensor]:
        """Return the targets (m,) from which `predict_nodes` chooses, and their depths."""
        items = self.levels.candidates(depth, confidence)
        target = index_tensor(self.levels.target[items], device)
        level = index_tensor(self.levels.depth[items], device)
        return target, level

    def predict(self, input: Tensor) -> Tensor:
        """Return the most probable label of each hidden vector, int64 (...), as `top_k` does."""
        return self.top_k(input, 1).labels[..., 0]

    @torch.no_grad()
    def top_k(self, input: Tensor, k: int) -> TopK:
        """Return the k most probable labels and their log-probabilities, (..., k).

        The result is exact. If k is above V, V labels are returned. Equal log-probabilities are in
        the order of the label ids. On a CPU with float32 or float64, the tree is searched, the most
        probable branches first (`hstree.layers.top_k`). On a GPU, up to 64 labels are searched in
        trees with two children per node, and in trees with at most four levels whose nodes have up
        to 4,096 children (`hstree.interop.torch.gpu`). In all other cases, in a traced graph, and
        if a search would take too long, the log-probabilities of all labels are computed. Raises
        OptionError unless k is a whole number, 1 or more.
        """
        k = min(checked_count("k", k), self.n_classes)
        hidden = self._as_rows(input).detach()
        with without_autocast(input.device):
            # The results of a search would be constants of a traced graph
            if is_traced():
                labels, log_prob = largest(self._log_prob(hidden), k)
            else:
                labels, log_prob = self._search(hidden, k)
        shape = *input.shape[:-1], k
        return TopK(labels.reshape(shape), log_prob.reshape(shape))

    @not_compiled
    def _search(self, hidden: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return the k most probable labels of hidden vectors (N, d), and log-probabilities."""
        shape = len(hidden), k
        labels = torch.zeros(shape, dtype=torch.int64, device=hidden.device)
        dtype = torch.promote_types(hidden.dtype, torch.float32)
        log_prob = torch.zeros(shape, dtype=dtype, device=hidden.device)
        is_done = torch.zeros(len(hidden), dtype=torch.bool, device=hidden.device)
        inputs = Inputs(self.weight.data, self.bias.data, hidden)
        # Whether the tensors are memory that NumPy computes on
        are_arrays = all(
            type(tensor) is Tensor and tensor.is_cpu and tensor.dtype in NUMPY_DTYPES
            for tensor in inputs[:3]
        )
        if self.tree.n_nodes > 1:
            codes, index, _ = self._layout()
            refuse_large(hidden)
            # The compiled search, or NumPy's, on the CPU; Triton's on a GPU
            if are_arrays:
                weight, bias, vectors = (tensor.numpy() for tensor in inputs[:3])
                results = search_arrays(codes, weight, bias, vectors, k, None)
                labels, log_prob, is_done = map(torch.from_numpy, results)
            elif can_search(index, self.weight, k):
                labels, log_prob, is_done = search(index, inputs, k)
            log_prob = log_prob.to(dtype)
        # Hidden vectors without a search, or whose search was not certain
        others = (~is_done).nonzero()[:, 0]
        for rows in torch.split(others, self._rows_at_once) if len(others) else ():
            labels[rows], log_prob[rows] = largest(self._log_prob(hidden[rows]), k)
        return labels, log_prob

    @torch.no_grad()
    def sample(self, input: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Draw one label for each hidden vector by descending the tree, int64 (...).

        `input` is a float tensor (..., d), and `generator` must be on its device. Raises InputError
        in a trace, which would record the drawn labels as constants.
        """
        refuse_traced("sample", "call it outside of traced code")
        inputs = Inputs(self.weight, self.bias, self._as_rows(input))
        with without_autocast(input.device):
            label = sample(self._layout().tree_index, inputs, generator)
        return label.reshape(input.shape[:-1])

    @not_compiled
    def _lay_out(self, device: torch.device) -> _Layout:
        codes = Codes(self.tree)
        targets = Codes(self.tree, nodes=True) if self.node_targets else codes
        return _Layout(codes, TreeIndex(targets, device), AllLabels(codes, device))

    def _target_log_prob(self, hidden: Tensor, target: Tensor) -> Tensor:
        inputs = Inputs(self.weight, self.bias, hidden, self.sparse)
        return target_log_prob(self._layout().tree_index, inputs, target, self.ignore_index)

    def _dense_log_prob(self, hidden: Tensor, target: Tensor) -> Tensor:
        log_prob = self._log_prob(hidden)
        if self.node_targets:
            log_prob = torch.cat([log_prob, self._node_log_prob(hidden)], 1)
        is_scored = target != self.ignore_index
        # Label 0 stands in for items that are not scored, whose target is not a column
        label = torch.where(is_scored, target, 0)
        return torch.where(is_scored, log_prob.gather(1, label[:, None])[:, 0], 0)

    @property
    def _rows_at_once(self) -> int:
        """Number of hidden vectors whose log-probabilities of all edges are computed together."""
        return max(1, TABLE_LIMIT // max(1, len(self.tree.child)))

    def _log_prob(self, hidden: Tensor) -> Tensor:
        all_labels: AllLabels = self._layout().all_labels
        return all_labels.log_prob(self.weight, self.bias, hidden)

    def _node_log_prob(self, hidden: Tensor) -> Tensor:
        all_labels: AllLabels = self._layout().all_labels
        return all_labels.node_log_prob(self.weight, self.bias, hidden)


def tree_hash(tree: Tree) -> str:
    """Return a hash of the labels and children, on which the weight rows of each label depend."""
    digest = hashlib.sha256()
    content = tree.content_arrays()
    for name in ("labels", "label_start", "child_start", "child"):
        array = content[name]
        digest.update(f"{array.nbytes}\n".encode())
        digest.update(array.astype(array.dtype.newbyteorder("<"), copy=False).data)
    return digest.hexdigest()


def largest(log_prob: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k largest of each row, (N, k), ties in the order of the columns."""
    if not is_traced():
        return _largest(log_prob, k)
    if is_traced_by_onnx():
        # ONNX has no stable sort, and its TopK takes the first of equal values
        values, labels = log_prob.topk(k)
    else:
        values, labels = log_prob.sort(descending=True, stable=True)
    return labels[:, :k], values[:, :k]


@not_compiled
def _largest(log_prob: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the values and columns of `largest`, faster than by a sort of each row."""
    known = log_prob
    values, labels = torch.topk(log_prob, k)
    if values.isnan().any():  # topk takes nan for the largest; comparisons do not
        known = log_prob.masked_fill(log_prob.isnan(), torch.inf)
    # (N, 1) the k-th largest, which may tie with others; topk takes any of these
    least = known.gather(1, labels[:, -1:])
    if ((known >= least).sum(1) > k).any():
        above = known > least
        ties = known == least
        # The first ties fill the positions that larger values leave
        is_chosen = above | (ties & (ties.cumsum(1) <= k - above.sum(1, keepdim=True)))
        labels = is_chosen.nonzero()[:, 1].reshape(-1, k)
    # By id, then stably by value, so that ties stay in the order of the columns
    labels = labels.sort(1).values
    values, order = torch.sort(log_prob.gather(1, labels), descending=True, stable=True)
    return labels.gather(1, order), values
