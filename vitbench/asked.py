"""What a prediction is asked for: a source, and how it is to run."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from vitbench.backend import backends
from vitbench.case import Case
from vitbench.ledger.tape import PRECISIONS
from vitbench.machine import Machine
from vitbench.model import Variant, models
from vitbench.operator import MODES
from vitbench.refusal import Refusal
from vitbench.source import Image, Opened, is_builtin, of_variant, open_source

FAMILIES = ("naive", "sdpa")  # of the backends that any source runs on
OWN = "sdpa"  # if nothing is asked for
VARIED = ("window", "patch")


@dataclass(frozen=True)
class Asked:
    """dtype: None means the machine's default. backend: naive writes attention out; of the suite's models also a member
    of sdpa. window, patch: instead of the own ones of a model of the suite.
    """

    source: str
    image: Image | None = None
    batch: int = 1
    dtype: str | None = None
    mode: str = "inference"
    backend: str = OWN
    compiled: bool = False
    window: int | None = None
    patch: int | None = None

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise Refusal(f"batch {self.batch} is less than 1")
        if self.mode not in MODES:
            raise Refusal(f"unknown mode {self.mode!r}; known: {', '.join(MODES)}")
        known = [one.name for one in backends if one.name.partition(".")[0] in FAMILIES and not one.compiled]
        if self.backend not in known:
            raise Refusal(f"backend {self.backend!r} is not predicted; expected one of {', '.join(known)}")

    def dtype_on(self, machine: Machine) -> str:
        """Raises Refusal where the machine does not tell that dtype."""
        dtype = self.dtype or machine.dtypes[0]
        if dtype not in machine.dtypes:
            known = ", ".join(machine.dtypes)
            raise Refusal(f"dtype {dtype!r} is not predicted on {machine.title}; expected one of {known}")
        return dtype

    def opened(self, device: str, dtype: str) -> Opened:
        """On meta tensors. device: cuda or cpu, where it is to run. Raises Refusal."""
        if is_builtin(self.source):
            return self._of_suite(self.varied(models[self.source]), device, PRECISIONS[dtype].products)
        for name in VARIED:
            if getattr(self, name) is not None:
                raise Refusal(f"--{name} is for the suite's own models (vitbench list models), not for {self.source}")
        if self.backend not in FAMILIES:
            known = ", ".join(FAMILIES)
            raise Refusal(f"backend {self.backend!r} is for the suite's own models; expected one of {known}")
        return open_source(self.source, self.image, self.batch, eager=self.backend == FAMILIES[0])

    def varied(self, variant: Variant) -> Variant:
        """With window and patch that were asked for. Raises Refusal."""
        own = {field.name for field in fields(variant.model)}  # type: ignore[arg-type]
        for name in VARIED:
            if (value := getattr(self, name)) is None:
                continue
            if name not in own:
                raise Refusal(f"{self.source} has no {name}; expected no --{name}")
            if value < 1:
                raise Refusal(f"--{name} {value} is less than 1")
            variant = replace(variant, model=replace(variant.model, **{name: value}))  # type: ignore[type-var]
        return variant

    def _of_suite(self, variant: Variant, device: str, dtype: str) -> Opened:
        """dtype: of its attention."""
        shape = variant.shape(self.image, self.batch)
        if variant.model.attentions(shape):
            case = Case(variant.model, shape, self.backend, dtype=dtype, device=device, scope="model", mode=self.mode)
            if reason := backends[self.backend].unsupported(case):
                raise Refusal(f"{self.source}: {reason}")
        elif self.backend != OWN:
            raise Refusal(f"{self.source} hands no attention to a backend; expected no --backend")
        return of_variant(variant, self.image, self.batch, "meta", self.backend)

    def family(self) -> str | None:
        """As validation names it: timm's file of the model; None of another library."""
        library, _, name = self.source.partition(":")
        if library != "timm":
            return None
        from vitbench.validation.traces import family

        return family(name)
