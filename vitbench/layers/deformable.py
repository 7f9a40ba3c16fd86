"""The program of DAT's deformable attention."""

from __future__ import annotations

from math import atanh, gcd

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, grid_sample

from vitbench.layer import Attend, Layer, join_heads, layers, split_heads
from vitbench.operators.deformable import Deformable
from vitbench.shape import Shape


class Lattice(nn.Module):
    """Even places (x, y) of rows x columns points, from -1 in the first to 1 in the last; a single one is at 0."""

    steps: Tensor
    spans: Tensor

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__()
        steps = [torch.arange(1 - side, side, 2) for side in (rows, columns)]
        x, y = steps[1].repeat(rows), steps[0].repeat_interleave(columns)
        # Whole numbers: of low precision they would be places beside the pixels.
        self.register_buffer("steps", torch.stack((x, y), dim=-1), persistent=False)
        self.register_buffer("spans", torch.tensor((max(columns - 1, 1), max(rows - 1, 1))), persistent=False)

    def forward(self, dtype: torch.dtype) -> Tensor:
        """(rows * columns, 2)."""
        return self.steps.to(dtype) / self.spans


@layers.add
class DeformableAttention(Layer):
    """Offsets from the queries, features sampled there, attention to these (Xia 2022, section 3.2).

    State: q, proj (D, D), kv (2D, D); the offset network shared by the groups: conv (D/G, 1, k, k), norm, offset
    (2, D/G), which has no bias, to right and down; table (H, 2h - 1, 2w - 1).
    """

    name = "deformable"
    operator: Deformable
    sides: Tensor

    def __init__(self, operator: Deformable, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        dim, kernel, width = shape.dim, operator.kernel, shape.dim // operator.groups
        self.points = operator.points(shape)
        self.q, self.kv, self.proj = nn.Linear(dim, dim), nn.Linear(dim, 2 * dim), nn.Linear(dim, dim)
        self.conv = nn.Conv2d(width, width, kernel, stride=operator.stride, padding=kernel // 2, groups=width)
        self.norm, self.offset = nn.LayerNorm(width), nn.Linear(width, 2, bias=False)
        self.table = nn.Parameter(torch.empty(shape.heads, 2 * shape.height - 1, 2 * shape.width - 1))
        nn.init.normal_(self.table)
        self.tokens, self.references = Lattice(shape.height, shape.width), Lattice(*self.points)
        self.draw_offsets()
        self.register_buffer("sides", torch.tensor(self.points[::-1]), persistent=False)

    def draw_offsets(self) -> None:
        """So that points lie about midway between lines of pixels, all moved nearly alike.

        On such a line the gradient of bilinear sampling jumps: a rounding error there changes it by its own size, and
        right could not be told from wrong.
        """
        nn.init.uniform_(self.norm.weight, 0.1, 0.3)
        nn.init.uniform_(self.norm.bias, 0.9, 1.1)
        nn.init.uniform_(self.offset.weight, 0.5, 1.5)
        sides = zip((self.shape.width, self.shape.height), self.points[::-1], strict=True)
        wanted = torch.tensor([_midway(side, points, self.operator.offset_range) for side, points in sides])
        with torch.no_grad():
            self.offset.weight.mul_((wanted / self.offset(gelu(self.norm.bias)))[:, None])

    def forward(self, x: Tensor) -> Tensor:
        q, heads = self.q(x), self.shape.heads
        # Half precision has too few digits for places; torch's autocast samples in float32 too.
        places = self.places(q, torch.promote_types(x.dtype, torch.float32))
        sampled = grid_sample(self.planes(x).to(places.dtype), places[:, None], align_corners=True)
        kv = self.kv(sampled.view(len(x), self.shape.dim, -1).mT.to(x.dtype))
        (q,), (k, v) = split_heads(q.unsqueeze(1), heads), split_heads(kv.unsqueeze(1), heads, 2)
        out = self.attend(q, k, v, bias=self.bias(places).to(x.dtype))
        result: Tensor = self.proj(join_heads(out).squeeze(1))
        return result

    def planes(self, x: Tensor) -> Tensor:
        """(B, N, D) -> (B G, D / G, h, w)."""
        return x.mT.reshape(-1, x.shape[-1] // self.operator.groups, self.shape.height, self.shape.width)

    def places(self, q: Tensor, dtype: torch.dtype) -> Tensor:
        """(B G, n, 2): where each point is sampled, x and y within -1 and 1."""
        features = self.norm(self.conv(self.planes(q)).flatten(2).mT)
        offset = self.offset(gelu(features)).to(dtype).tanh()
        moved: Tensor = self.references(dtype) + offset * self.operator.offset_range / self.sides
        return moved

    def bias(self, places: Tensor) -> Tensor:
        """(B, 1, H, N, n): the table sampled at half the way from each point to each query."""
        entries, n, _ = places.shape
        images, _, *sides = (entries // self.operator.groups, *self.table.shape)
        ways = (self.tokens(places.dtype)[:, None] - places[:, None]) / 2  # (B G, N, n, 2)
        tables = self.table.to(places.dtype).expand(images, -1, -1, -1).reshape(entries, -1, *sides)
        sampled = grid_sample(tables, ways, align_corners=True)
        return sampled.view(images, 1, -1, ways.shape[1], n)


def _midway(side: int, points: int, offset_range: int) -> float:
    """Offset before tanh that moves even points of a side farthest from whole pixels, by half the way to the next."""
    nearest = gcd(side - 1, points - 1) / (points - 1) if points > 1 else 0.5  # pixels, least way of any point
    farthest = offset_range / points * (side - 1) / 2  # pixels
    return atanh(nearest / 2 / max(farthest, nearest))
