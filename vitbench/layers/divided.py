"""The program of divided space-time attention."""

from __future__ import annotations

from torch import Tensor, nn

from vitbench.layer import Attend, Layer, SelfAttention, layers
from vitbench.operators.divided import Divided
from vitbench.shape import Shape


@layers.add
class DividedAttention(Layer):
    """What both attentions add to the stream: t = time(x), then t + space(norm(x + t)) (Bertasius 2021, section 3).

    State: time and space, each with qkv and proj; temporal_fc (D, D); norm. A block hands over its normed tokens, to
    which the inner residual then adds; in the paper it adds to the tokens before their norm.
    """

    name = "divided"
    operator: Divided

    def __init__(self, operator: Divided, shape: Shape, attend: Attend) -> None:
        super().__init__(operator, shape, attend)
        self.time = SelfAttention(operator, shape, attend)
        self.temporal_fc = nn.Linear(shape.dim, shape.dim)
        self.norm = nn.LayerNorm(shape.dim)
        self.space = SelfAttention(operator, shape, attend)

    def forward(self, x: Tensor) -> Tensor:
        frames = x.unflatten(1, (self.operator.frames, -1))  # (B, F, places, D)
        places = frames.transpose(1, 2).contiguous()  # one copy, not one each of q, k and v in a backend
        over_time: Tensor = self.temporal_fc(self.time.attend_groups(places)).transpose(1, 2)
        over_space = self.space.attend_groups(self.norm(frames + over_time))
        return (over_space + over_time).flatten(1, 2)
