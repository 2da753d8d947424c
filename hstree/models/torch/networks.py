"""Networks of hstree, a GRU and a transformer, and the models that train them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, ClassVar, Literal

import torch
from msgspec import Meta
from torch import Tensor, nn
from torch.nn import functional

from hstree.errors import OptionError
from hstree.layers.registry import LayerSpec
from hstree.models.base import Fraction, Width, in_sorted_order
from hstree.models.torch.model import TorchModel
from hstree.tree import Tree

Layers = Annotated[int, Meta(ge=1, le=64)]
#: Standard deviation of the initial word vectors.
EMBEDDING_SCALE = 0.1
#: Base of the wavelengths of rotary positions.
ROTARY_BASE = 10_000.0


@dataclass(eq=False)
class GRU(TorchModel):
    """Recurrent network (GRU) in PyTorch, which predicts each word from all words before it.

    Parameters
    ----------
    layers : int
        Number of recurrent layers.
    dropout : float
        Dropout probability.
    """

    name: ClassVar[str] = "gru"

    _: KW_ONLY
    warmup_ratio: Fraction = 0.0
    layers: Layers = 1
    dropout: Fraction = 0.1

    def make_network(self) -> nn.Module:
        """Return an untrained GRU."""
        words = self.spec.labels
        return GRUNetwork(words, self.dim, layers=self.layers, dropout=self.dropout)


class GRUNetwork(nn.Module):
    """Word vectors, then layers of gated recurrent units (Cho et al. 2014)."""

    def __init__(self, words: Sequence[str], dim: int, *, layers: int, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(words), dim, sparse=True)
        between = dropout if layers > 1 else 0.0  # torch warns about dropout after the only layer
        self.recurrent = nn.GRU(dim, dim, layers, batch_first=True, dropout=between)
        self.dropout = nn.Dropout(dropout)
        draw_word_vectors(self.embedding.weight, words)

    def forward(self, ids: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the hidden vectors (S, L, d), and the state of each layer (layers, S, d)."""
        hidden, state = self.recurrent(self.dropout(self.embedding(ids)), state)
        return self.dropout(hidden), state


@dataclass(eq=False)
class Transformer(TorchModel):
    """Causal transformer in PyTorch, which predicts each word from the words before it.

    Parameters
    ----------
    layers : int
        Number of blocks.
    heads : int
        Number of attention heads, which divides `dim`.
    positions : {"rotary", "learned"}
        Whether queries and keys are rotated, or vectors of positions are learned.
    dropout : float
        Dropout probability.
    """

    name: ClassVar[str] = "transformer"

    _: KW_ONLY
    length: Width = 64
    layers: Layers = 2
    heads: Layers = 4
    positions: Literal["rotary", "learned"] = "rotary"
    dropout: Fraction = 0.1

    def __post_init__(self, output: Tree | LayerSpec) -> None:
        super().__post_init__(output)
        if self.dim % (2 * self.heads):
            reason = f"is {self.heads}; twice as many must divide dim, which is {self.dim}"
            raise OptionError.about("heads", reason)

    def make_network(self) -> nn.Module:
        """Return an untrained transformer."""
        return TransformerNetwork(
            self.spec.labels,
            self.dim,
            layers=self.layers,
            heads=self.heads,
            dropout=self.dropout,
            length=self.length,
            learned=self.positions == "learned",
        )


class TransformerNetwork(nn.Module):
    """Word vectors, then causal pre-norm transformer blocks (Vaswani et al. 2017).

    Positions are rotary (Su et al. 2021) or learned. The network has no state: a token sees only
    earlier tokens of the same call.
    """

    def __init__(
        self,
        words: Sequence[str],
        dim: int,
        *,
        layers: int,
        heads: int,
        dropout: float,
        length: int,
        learned: bool,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(words), dim, sparse=True)
        self.position = nn.Parameter(torch.zeros(length, dim)) if learned else None
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            Block(dim, heads, dropout, rotary=not learned) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(dim)
        draw_word_vectors(self.embedding.weight, words)
        if self.position is not None:
            nn.init.normal_(self.position, std=EMBEDDING_SCALE)

    def forward(self, ids: Tensor, state: None) -> tuple[Tensor, None]:
        """Return the hidden vectors (S, L, d), and no state."""
        vectors = self.embedding(ids)
        if self.position is not None:
            vectors = vectors + self.position[: ids.shape[1]]
        hidden = self.dropout(vectors)
        for block in self.blocks:
            hidden = block(hidden)
        return self.norm(hidden), None


class Block(nn.Module):
    """Causal self-attention and a feed-forward layer of width 4 d, each with a residual."""

    def __init__(self, dim: int, heads: int, dropout: float, *, rotary: bool) -> None:
        super().__init__()
        self.heads = heads
        self.rotary = rotary
        self.attention_norm = nn.LayerNorm(dim)
        self.attention_in = nn.Linear(dim, 3 * dim)
        self.attention_out = nn.Linear(dim, dim)
        self.wide_norm = nn.LayerNorm(dim)
        self.wide_in = nn.Linear(dim, 4 * dim)
        self.wide_out = nn.Linear(4 * dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the hidden vectors (S, L, d) after the block."""
        s, n, d = hidden.shape
        # (3, S, heads, L, d / heads) queries, keys and values
        mixed = self.attention_in(self.attention_norm(hidden))
        query, key, value = mixed.view(s, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if self.rotary:
            query = rotated(query)
            key = rotated(key)
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        attended = self.attention_out(attended.transpose(1, 2).reshape(s, n, d))
        hidden = hidden + self.dropout(attended)

        wide = functional.gelu(self.wide_in(self.wide_norm(hidden)))
        result: Tensor = hidden + self.dropout(self.wide_out(wide))
        return result


def rotated(vectors: Tensor) -> Tensor:
    """Rotate pairs of elements of vectors (..., L, d) by angles that grow with the position."""
    n, d = vectors.shape[-2:]
    pair = torch.arange(d // 2, device=vectors.device)
    position = torch.arange(n, device=vectors.device)
    # (L, d / 2) angle of each pair at each position
    angle = position[:, None] * ROTARY_BASE ** (-2 * pair / d)
    cosine = angle.cos().to(vectors.dtype)
    sine = angle.sin().to(vectors.dtype)
    first, second = vectors.chunk(2, dim=-1)
    return torch.cat([first * cosine - second * sine, first * sine + second * cosine], dim=-1)


@torch.no_grad()
def draw_word_vectors(vectors: Tensor, words: Sequence[str]) -> None:
    """Draw initial word vectors (V, d) that do not depend on the order of the words."""
    nn.init.normal_(vectors, std=EMBEDDING_SCALE)
    vectors.copy_(torch.from_numpy(in_sorted_order(words, vectors.numpy())))
