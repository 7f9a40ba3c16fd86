"""The program of focal self-attention."""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor, nn

from vitbench.layer import Attend, Layer, join_heads, layers, split_heads
from vitbench.operators.focal import Focal
from vitbench.partition import Partition, bias_of
from vitbench.shape import Shape
from vitbench.windows import Axis


@layers.add
class FocalAttention(Layer):
    """Keys of a window: its own tokens, those around it, pooled windows (Yang 2021, section 3.2, equations 1 to 3).

    State: pool (1, n), q, proj (D, D), kv (2D, D); relative position biases: table ((2m_h - 1)(2m_w - 1), H) of the
    window, surround (H, n, S) of what is around it, far (H, 1, r^2) of the pooled windows. n tokens of a window.
    """

    name = "focal"
    index: Tensor
    places: Tensor
    allowed: Tensor | None
    table: Tensor
    surround: Tensor | None
    far: Tensor

    def __init__(self, operator: Focal, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        self.partition = Partition(*operator.axes(shape))
        expand, around = operator.surroundings(shape)
        n, dim = self.partition.inside, shape.dim
        self.pool = nn.Linear(n, 1)
        self.q, self.kv, self.proj = nn.Linear(dim, dim), nn.Linear(dim, 2 * dim), nn.Linear(dim, dim)
        sizes = {
            "table": (self.partition.offsets, shape.heads),
            "surround": (shape.heads, n, around),
            "far": (shape.heads, 1, operator.region**2),
        }
        for name, size in sizes.items():
            self.register_parameter(name, nn.Parameter(torch.randn(size)) if all(size) else None)
        pooled, inside = _region(self.partition, operator.region)
        own = torch.arange(len(pooled) * n).view(-1, n)
        keys = torch.cat((own, _surroundings(self.partition, expand), len(pooled) * n + pooled), dim=1)
        seen = torch.cat((torch.ones(len(pooled), n + around, dtype=torch.bool), inside), dim=1)
        self.register_buffer("index", self.partition.numbers(), persistent=False)
        self.register_buffer("places", keys.flatten(), persistent=False)
        self.register_buffer("allowed", seen[None, :, None, None] if operator.region > 1 else None, persistent=False)

    def masks(self) -> tuple[Tensor | None]:
        return (self.allowed,)

    def forward(self, x: Tensor) -> Tensor:
        heads = self.shape.heads
        windows = self.partition.cut(x)
        b, g, _, dim = windows.shape
        pooled = torch.bmm(self.pool.weight.expand(b * g, -1, -1), windows.flatten(0, 1)) + self.pool.bias
        tokens = torch.cat((windows.flatten(1, 2), pooled.view(b, g, dim)), dim=1)
        kv = self.kv(tokens).index_select(1, self.places).view(b, g, -1, 2 * dim)
        (q,), (k, v) = split_heads(self.q(windows), heads), split_heads(kv, heads, 2)
        out = self.attend(q, k, v, bias=self.bias(), mask=self.allowed)
        return self.partition.join(self.proj(join_heads(out)))

    def bias(self) -> Tensor:
        """(1, 1, H, n, K)."""
        parts = [bias_of(self.table, self.index), self.far.expand(-1, len(self.index), -1)]
        if self.surround is not None:
            parts.insert(1, self.surround)
        return torch.cat(parts, dim=-1)[None, None]


def _surroundings(partition: Partition, expand: int) -> Tensor:
    """(G, S): numbers, counted window by window, of the tokens that four rolls bring into each window from outside.

    Rolls up or down, then left or right, by expand: (-, -), (-, +), (+, -), (+, +).
    """
    rows, columns = partition
    found = []
    for by in product((expand, -expand), repeat=2):
        (row, column), within = map(_rolled, partition, by), product(*map(_within, partition, by))
        window = row[:, None, :, None] // rows.window * columns.windows + column[None, :, None, :] // columns.window
        token = row[:, None, :, None] % rows.window * columns.window + column[None, :, None, :] % columns.window
        number = window * rows.window * columns.window + token
        outside = [place for place, (above, beside) in enumerate(within) if not (above and beside)]
        found.append(number.flatten(2).flatten(0, 1)[:, outside])
    return torch.cat(found, dim=1)


def _rolled(axis: Axis, by: int) -> Tensor:
    """(windows, m): positions seen in each window of a rolled side."""
    positions: Tensor = (torch.arange(axis.padded) + by).view(-1, axis.window) % axis.padded
    return positions


def _within(axis: Axis, by: int) -> list[bool]:
    """Of each position of a window, whether the one seen there is of the same window."""
    return [0 <= position + by < axis.window for position in range(axis.window)]


def _region(partition: Partition, region: int) -> tuple[Tensor, Tensor]:
    """(G, r^2): numbers of the windows around each window, row by row; bool, whether they are within the grid."""
    found = []
    for axis in partition:
        number = torch.arange(axis.windows)[:, None] + torch.arange(region) - region // 2
        found.append((number.clamp(0, axis.windows - 1), (number >= 0) & (number < axis.windows)))
    (row, above), (column, beside) = found
    number = row[:, None, :, None] * partition.columns.windows + column[None, :, None, :]
    inside = above[:, None, :, None] & beside[None, :, None, :]
    return number.flatten(2).flatten(0, 1), inside.flatten(2).flatten(0, 1)
