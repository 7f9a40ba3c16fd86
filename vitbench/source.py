"""Opens a model by its name: of the suite, of timm, torchvision or transformers, or a user's own module.

    vit_b_16                          a variant of the suite (`vitbench list models`)
    timm:vit_base_patch16_224         timm.create_model
    torchvision:swin_t                torchvision.models
    hf:ViTModel                       a class of transformers, with the default values of its configuration
    package.module:factory            a function (or class) that gives a module, or a module and a tuple of its inputs

Nothing is downloaded: weights are shapes alone on meta tensors, random on the CPU.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from vitbench.model import CHANNELS, Variant, models
from vitbench.refusal import Refusal

if TYPE_CHECKING:
    from torch import nn

DEFAULT_IMAGE = 224
TENSOR = 2**63 - 1  # bytes of the largest
FORMS = "a model of `vitbench list models`, timm:NAME, torchvision:NAME, hf:CLASS or package.module:factory"
Image = tuple[int, int]  # pixels, height first


@dataclass(frozen=True)
class Opened:
    """A module, in eval mode, and what it takes, on the same device. image: None where the inputs are the factory's."""

    source: str
    module: nn.Module
    inputs: tuple[Any, ...]
    image: Image | None


class _Library(NamedTuple):
    """package: that must be there. names: of all that it has. make: the model and the image that it takes, of a name,
    the image asked for if any, and whether attention is to be written out as products and softmax.
    """

    package: str
    names: Callable[[], list[str]]
    make: Callable[[str, Image | None, bool], tuple[Any, Image]]


def image_of(text: str | None) -> Image | None:
    """224 or 224x320, height first. Raises Refusal."""
    if text is None:
        return None
    sides = text.split("x")
    if len(sides) > 2 or not all(side.isascii() and side.isdigit() and 0 < int(side) < 10**6 for side in sides):
        raise Refusal(f"image {text!r} is no size in pixels; expected such as 224, or 224x320 (height x width)")
    return int(sides[0]), int(sides[-1])


def is_builtin(source: str) -> bool:
    return ":" not in source


def open_source(
    source: str, image: Image | None = None, batch: int = 1, *, device: str = "meta", eager: bool = False
) -> Opened:
    """image: as asked for; None means the model's own. device: meta or cpu. eager: no fused attention.

    Raises Refusal, the model's own words kept.
    """
    if is_builtin(source):
        return of_variant(models[source], image, batch, device, "naive" if eager else "sdpa")
    kind, _, name = source.partition(":")
    if not name or not all(part.isidentifier() for part in kind.split(".")):
        raise Refusal(f"source {source!r} is none of {FORMS}")
    if eager and kind not in EAGER:
        raise Refusal(f"{source}: its attention cannot be written out by a switch; {', '.join(EAGER)} have one")
    import torch

    with warnings.catch_warnings(), redirect_stdout(sys.stderr):  # what it prints is no answer
        warnings.simplefilter("ignore")  # of deprecated names and of weights that stay random
        if kind in LIBRARIES:
            made, image = _of_library(LIBRARIES[kind], kind, name, image, device, eager)
            inputs: tuple[Any, ...] | None = None
        else:
            made = _made(source, _factory(source, kind, name), device)
            made, inputs = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(made, torch.nn.Module):
        expected = "a torch.nn.Module, or one and a tuple of its inputs"
        raise Refusal(f"{source} gives {_described(made)}; expected {expected}")
    if any(map(torch.nn.parameter.is_lazy, made.parameters())):
        raise Refusal(f"{source} has lazy parameters, without a size; expected its factory to call the module once")
    module = made.to(device).eval()
    if inputs is not None:
        if image is not None or batch != 1:
            raise Refusal(f"{source} brings its own inputs; expected neither an image size nor a batch")
        given = inputs if isinstance(inputs, tuple) else (inputs,)
        moved: dict[int, torch.Tensor] = {}  # one tensor given twice stays one: nn.MultiheadAttention asks for that

        def move(one: torch.Tensor) -> torch.Tensor:
            return moved.setdefault(id(one), one.detach().to(device).requires_grad_(one.requires_grad))

        return Opened(source, module, torch.utils._pytree.tree_map_only(torch.Tensor, move, given), None)
    image = image or (DEFAULT_IMAGE, DEFAULT_IMAGE)
    refuse_size(image, batch)
    return Opened(source, module, (torch.zeros(batch, CHANNELS, *image, dtype=_dtype(module), device=device),), image)


def refuse_size(image: Image, batch: int) -> None:
    """Raises Refusal where torch has no tensor of so many bytes, whatever the dtype."""
    most = TENSOR // (8 * CHANNELS * image[0] * image[1])
    if batch > most:
        raise Refusal(f"batch {batch} of {image[0]}x{image[1]} pixels is no tensor; expected at most {most:,} images")


def _dtype(module: nn.Module) -> Any:
    import torch

    return next((one.dtype for one in module.parameters() if one.is_floating_point()), torch.get_default_dtype())


def _described(made: object) -> str:
    return "a class" if isinstance(made, type) else f"a {type(made).__name__}"


def of_variant(variant: Variant, image: Image | None, batch: int, device: str, backend: str) -> Opened:
    """A model of the suite. backend: of its softmax attention, if it has any."""
    from vitbench.case import Case
    from vitbench.program import build

    shape = variant.shape(image, batch)
    if reason := variant.model.lacking():
        raise Refusal(reason)
    refuse_size(image or (variant.image, variant.image), batch)
    case = Case(variant.model, shape, backend if variant.model.attentions(shape) else "own", scope="model")
    program = build(case, device=device)
    height, width = program.inputs[0].shape[-2:]
    return Opened(variant.name, program.module.requires_grad_().eval(), program.inputs, (height, width))


def _of_library(
    library: _Library, kind: str, name: str, image: Image | None, device: str, eager: bool
) -> tuple[Any, Image]:
    if importlib.util.find_spec(library.package) is None:
        raise Refusal(f"{kind}:{name} needs {library.package}, which is not installed: pip install {library.package}")
    try:
        known = library.names()
    except Exception as error:  # as of a variable of the environment that it cannot read
        raise Refusal(f"{kind}:{name}: importing {library.package} raises {said(error)}") from error
    if name not in known:
        from difflib import get_close_matches

        close = ", ".join(get_close_matches(name, known, 5)) or f"{len(known)} of them, none alike"
        raise Refusal(f"unknown {kind} model {name!r}; known: {close}")
    made: tuple[Any, Image] = _made(f"{kind}:{name}", lambda: library.make(name, image, eager), device)
    return made


def _factory(source: str, package: str, name: str) -> Callable[[], Any]:
    if (here := str(Path.cwd())) not in sys.path:  # a console script does not look there
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(package)
    except ModuleNotFoundError as error:
        missing = error.name or package
        remedy = f"pip install {missing.partition('.')[0]}, or run where it lies"
        raise Refusal(f"{source}: there is no module {missing}: {remedy}; expected {FORMS}") from error
    except Exception as error:
        raise Refusal(f"{source}: importing {package} raises {said(error)}") from error
    if not hasattr(module, name):
        raise Refusal(f"{source}: {package} has no {name!r}; expected a function that gives a torch.nn.Module")
    found = getattr(module, name)
    return (
        found if (callable(found) and not hasattr(found, "named_modules")) or isinstance(found, type) else lambda: found
    )


def _made(source: str, make: Callable[[], Any], device: str) -> Any:
    """Made on the device; where a value of a meta tensor is needed on the way, on the CPU."""
    import torch

    try:
        with torch.device(device):
            return make()
    except Refusal:
        raise
    except (Exception, SystemExit) as error:
        if device != "meta" or "meta" not in str(error):
            raise Refusal(f"{source} cannot be made: {said(error)}") from error
    return _made(source, make, "cpu")


def said(error: BaseException) -> str:
    """What an error says, in one line."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def _sized(make: Callable[..., Any], ways: Mapping[str, Any]) -> Any:
    """Made with the first of the ways, keyword by keyword, that it knows to be told a size; else without."""
    for keyword, value in ways.items():
        try:
            return make(**{keyword: value})
        except TypeError as error:
            if keyword not in str(error):
                raise
    return make()


def _timm(name: str, image: Image | None, eager: bool) -> tuple[Any, Image]:
    import timm
    from timm.layers.config import set_fused_attn, use_fused_attn

    before = use_fused_attn(), use_fused_attn(experimental=True)
    set_fused_attn(not eager)  # models ask as they are made
    try:
        ways = {} if image is None else {"img_size": image}
        model = _sized(lambda **given: timm.create_model(name, **given), ways)
    finally:
        set_fused_attn(*before)
    own = model.pretrained_cfg.get("input_size", (CHANNELS, DEFAULT_IMAGE, DEFAULT_IMAGE))
    return model, image or tuple(own[1:])


def _torchvision(name: str, image: Image | None, _: bool) -> tuple[Any, Image]:
    import torchvision

    ways: dict[str, Any] = {}
    if image is not None:
        ways = {"image_size": image[0]} if image[0] == image[1] else {}
        ways["input_size"] = image
    weights = next(iter(torchvision.models.get_model_weights(name)), None)
    transforms: Any = weights.transforms if weights else None
    crop = transforms.keywords.get("crop_size") if isinstance(transforms, partial) else None  # of detectors none
    own = (crop, crop) if isinstance(crop, int) else (DEFAULT_IMAGE, DEFAULT_IMAGE)
    known = signature(torchvision.models.get_model_builder(name)).parameters
    backbone = {one: None for one in ("weights_backbone",) if one in known}  # which else are downloaded
    return _sized(lambda **given: torchvision.models.get_model(name, **backbone, **given), ways), image or own


def _hf(name: str, image: Image | None, eager: bool) -> tuple[Any, Image]:
    import transformers

    kind = getattr(transformers, name)
    if getattr(kind, "config_class", None) is None:
        raise Refusal(f"hf:{name} is no model of transformers; expected a class such as ViTModel")
    config = kind.config_class(**({"attn_implementation": "eager"} if eager else {}))
    own = getattr(config, "image_size", None) or DEFAULT_IMAGE
    own = (own, own) if isinstance(own, int) else tuple(own)
    if image is not None and hasattr(config, "image_size"):
        config.image_size = image[0] if image[0] == image[1] else image
    return kind(config), image or own


def _timm_names() -> list[str]:
    import timm
    from timm.models import get_deprecated_models

    return [*timm.list_models(), *timm.list_pretrained(), *get_deprecated_models()]


def _torchvision_names() -> list[str]:
    import torchvision

    return list(torchvision.models.list_models())


def _hf_names() -> list[str]:
    import transformers

    return [name for name in dir(transformers) if name[0].isupper()]


EAGER = ("timm", "hf", "the suite's own models")
LIBRARIES = {
    "timm": _Library("timm", _timm_names, _timm),
    "torchvision": _Library("torchvision", _torchvision_names, _torchvision),
    "hf": _Library("transformers", _hf_names, _hf),
}
