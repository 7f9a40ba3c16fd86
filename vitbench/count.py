"""What a model costs, as one account: by closed form for the suite's own, counted on meta tensors for every other.

The account as JSON (`vitbench count SOURCE --json`; docs/json.md) is versioned by SCHEMA.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vitbench.attention import Stage
from vitbench.exact.tally import OTHER, PAIRS
from vitbench.model import Variant, models
from vitbench.operator import MODES
from vitbench.refusal import Refusal
from vitbench.source import Image, Opened, is_builtin, open_source, said

if TYPE_CHECKING:
    from vitbench.exact.tally import Tally

SCHEMA = 1
BY = ("term", "operator", "module")
OFF_PAPER = "peak_activation_bytes are not on paper: --by operator counts them"
ON_PAPER, COUNTED = "closed form", "counted on meta tensors"


@dataclass(frozen=True)
class Account:
    """Of one call on a batch. macs: multiply-accumulates, 1 MAC = 2 FLOPs. terms: they, by term.

    image: pixels, height first; None where the source brings its own inputs. parts: MACs by what was asked for; module
    paths are those that called the products. peak_bytes: of activations held at once, by
    mode; None where not known, and then notes says why. uncounted: operators without a formula that may hold products.
    """

    source: str
    image: Image | None
    batch: int
    mode: str
    method: str
    terms: Mapping[str, int]
    by: str
    parts: Mapping[str, int]
    parameters: int
    trainable: int
    score_elements: int
    elementwise: int
    peak_bytes: Mapping[str, int | None]
    uncounted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def macs(self) -> int:
        return sum(self.terms.values())

    @property
    def pair_macs(self) -> int:
        """Products of data with data."""
        return sum(macs for term, macs in self.terms.items() if term in PAIRS)

    @property
    def other_macs(self) -> int:
        """Products of weights with weights, and gradients of what is not known."""
        return sum(macs for term, macs in self.terms.items() if term in OTHER)

    @property
    def weight_macs(self) -> int:
        """Products of weights with data."""
        return self.macs - self.pair_macs - self.other_macs

    def to_dict(self) -> dict[str, Any]:
        """As docs/json.md says."""
        return {
            "schema": SCHEMA,
            "source": self.source,
            "image": list(self.image) if self.image else None,
            "batch": self.batch,
            "mode": self.mode,
            "method": self.method,
            "macs": self.macs,
            "flops": 2 * self.macs,
            "terms": dict(self.terms),
            "weight_macs": self.weight_macs,
            "pair_macs": self.pair_macs,
            "other_macs": self.other_macs,
            "parameters": {"total": self.parameters, "trainable": self.trainable},
            "score_elements": self.score_elements,
            "elementwise": self.elementwise,
            "peak_activation_bytes": dict(self.peak_bytes),
            "uncounted": list(self.uncounted),
            "notes": list(self.notes),
            "by": {"key": self.by, "macs": dict(self.parts)},
        }


def count(
    source: str, image: Image | None = None, batch: int = 1, mode: str = "inference", by: str = "term"
) -> Account:
    """image: pixels; None means the source's own. mode: inference or training. by: term, operator or module.

    Raises Refusal: an unknown source, one that cannot be made, or one that refuses the image, in its own words.
    """
    if batch < 1:
        raise Refusal(f"batch {batch} is less than 1")
    if is_builtin(source) and by != "operator":
        return _on_paper(models[source], image, batch, mode, by)
    return _counted(open_source(source, image, batch), batch, mode, by)


def _on_paper(variant: Variant, image: Image | None, batch: int, mode: str, by: str) -> Account:
    image = image or (variant.image, variant.image)
    shape = variant.shape(image, batch)
    if reason := variant.model.refused(shape, "model"):
        raise Refusal(f"{variant.name}: {reason}")
    cost = variant.model.cost(shape, "model", mode)
    peaks = {each: variant.model.peak_bytes(shape, each) for each in MODES}

    def macs(stage: Stage) -> int:
        whole = stage.cost().training() if mode == "training" else stage.cost()
        return int(whole.total_macs)

    terms = {term: int(macs) for term, macs in cost.macs.items()}
    return Account(
        source=variant.name,
        image=image,
        batch=batch,
        mode=mode,
        method=ON_PAPER,
        terms=terms,
        by=by,
        parts={name: macs(stage) for name, stage in variant.model.stages(shape).items()} if by == "module" else terms,
        parameters=int(cost.parameters),
        trainable=int(cost.parameters),
        score_elements=int(cost.score_elements),
        elementwise=int(cost.elementwise),
        peak_bytes=peaks,
        notes=(OFF_PAPER,) if None in peaks.values() else (),
    )


def _counted(opened: Opened, batch: int, mode: str, by: str) -> Account:
    found, notes = {}, []
    for training, name in ((False, "inference"), (True, "training")):
        try:
            found[name] = _tallied(opened, training)
        except (Exception, SystemExit) as error:
            if name == mode:
                raise Refusal(_refused(opened, name, error)) from error
            notes.append(_refused(opened, name, error))
    tally = found[mode]
    weights = list(opened.module.parameters())
    return Account(
        source=opened.source,
        image=opened.image,
        batch=batch,
        mode=mode,
        method=COUNTED,
        terms=tally.by("term"),
        by=by,
        parts=tally.by(by),
        parameters=sum(weight.numel() for weight in weights),
        trainable=sum(weight.numel() for weight in weights if weight.requires_grad),
        score_elements=tally.score_elements,
        elementwise=sum(tally.elementwise.values()),
        peak_bytes={name: found[name].peak_bytes if name in found else None for name in ("inference", "training")},
        uncounted=tuple(f"{operator} in {path or 'the model'}" for operator, path in tally.uncounted.items()),
        notes=(*tally.notes, *notes),
    )


def _tallied(opened: Opened, training: bool) -> Tally:
    from vitbench.exact.watch import tally

    return tally(opened.module.train(training), opened.inputs, training=training)


def _refused(opened: Opened, mode: str, error: BaseException) -> str:
    what = f"images of {opened.image[0]}x{opened.image[1]}" if opened.image else "its inputs"
    return f"{opened.source} refuses {what} in {mode}: {said(error)}"
