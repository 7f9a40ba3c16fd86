"""Finds the models of a published table in timm and torchvision, and counts one again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from vitbench.published.table import Image
from vitbench.refusal import Refusal

RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")  # torch's functions
Job = tuple[str, Image | None]  # a source (`source`) and an image: None for the model's own


@dataclass(frozen=True)
class Recount:
    """One image through one model, in integers; of the MACs, those that some tool passes over.

    fused: of scaled_dot_product_attention. attention: of every softmax attention. worded: of convolutions whose padding
    is a word. constant: of weights with weights. einsum: of torch.einsum. recurrent: of LSTM, GRU and RNN. norms: what
    fvcore adds. uncounted: operators without a formula.
    """

    image: Image | None
    macs: int
    fused: int = 0
    attention: int = 0
    worded: int = 0
    constant: int = 0
    einsum: int = 0
    recurrent: int = 0
    norms: int = 0
    parameters: int = 0
    uncounted: tuple[str, ...] = ()


def recount(source: str, image: Image | None) -> Recount:
    """Raises what the source or the model raises."""
    from vitbench.exact.watch import tally
    from vitbench.published.fvcore import Fvcore
    from vitbench.source import open_source

    opened = open_source(source, image)
    with Fvcore() as fvcore:
        found = tally(opened.module, opened.inputs)
    terms, operators, functions = found.by("term"), found.by("operator"), found.by("function")
    return Recount(
        image=opened.image,
        macs=found.macs,
        fused=operators.get("scaled_dot_product_attention", 0),
        attention=terms.get("scores", 0) + terms.get("mix", 0),
        worded=fvcore.worded,
        constant=terms.get("weights", 0),
        einsum=functions.get("einsum", 0),
        recurrent=sum(functions.get(name, 0) for name in RECURRENT),
        norms=fvcore.norms,
        parameters=sum(one.numel() for one in opened.module.parameters()),
        uncounted=tuple(found.uncounted),
    )


def sources(names: Iterable[str]) -> dict[str, str | None]:
    """The source of each model, None where no library knows it; a name of both is of the library that knows more.

    Raises Refusal where a library is needed and there is none.
    """
    found: dict[str, str | None] = {name: name if ":" in name else None for name in names}
    bare = [name for name in found if found[name] is None]
    libraries = {"timm": _timm(), "torchvision": _torchvision()} if bare else {}
    if bare and not any(libraries.values()):
        raise Refusal("a table of models needs timm or torchvision, and neither is installed: pip install timm")
    for kind in sorted(libraries, key=lambda kind: sum(name in libraries[kind] for name in bare)):  # the best is last
        found |= {name: f"{kind}:{libraries[kind][name]}" for name in bare if name in libraries[kind]}
    return found


def _timm() -> Mapping[str, str]:
    """Names of today, by those and by the ones that they had before."""
    try:
        import timm
    except ImportError:
        return {}
    today = {name: name for name in (*timm.list_models(), *timm.list_pretrained())}
    before = {old: new for old, new in timm.models.get_deprecated_models().items() if new}
    return {**before, **today}


def _torchvision() -> Mapping[str, str]:
    try:
        import torchvision
    except ImportError:
        return {}
    return {name: name for name in torchvision.models.list_models()}
