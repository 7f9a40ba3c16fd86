"""Opens a model by its name, on meta tensors: of the suite, of timm, torchvision or transformers, or a user's own.

    vit_b_16                          a variant of the suite (`vitbench list models`)
    timm:vit_base_patch16_224         timm.create_model
    torchvision:swin_t                torchvision.models
    hf:ViTModel                       a class of transformers, with the default values of its configuration
    package.module:factory            a function (or class) that gives a module, or a module and a tuple of its inputs

Nothing is downloaded; weights are shapes without values.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from vitbench.model import CHANNELS, models
from vitbench.refusal import Refusal

if TYPE_CHECKING:
    from torch import nn

DEFAULT_IMAGE = 224
FORMS = "a model of `vitbench list models`, timm:NAME, torchvision:NAME, hf:CLASS or package.module:factory"
Image = tuple[int, int]  # pixels, height first


@dataclass(frozen=True)
class Opened:
    """A module on meta tensors and what it takes. image: None where the inputs are the factory's own."""

    source: str
    module: nn.Module
    inputs: tuple[Any, ...]
    image: Image | None


class _Library(NamedTuple):
    """package: that must be there. names: all that it has. make: of a name and the image asked for, if any."""

    package: str
    names: Callable[[], list[str]]
    make: Callable[[str, Image | None], tuple[Any, Image]]


def is_builtin(source: str) -> bool:
    return ":" not in source


def open_source(source: str, image: Image | None = None, batch: int = 1) -> Opened:
    """image: as asked for; None means the model's own. Raises Refusal, the model's own words kept."""
    if is_builtin(source):
        return _builtin(source, image, batch)
    kind, _, name = source.partition(":")
    if not kind or not name:
        raise Refusal(f"source {source!r} is none of {FORMS}")
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of deprecated names and of weights that stay random
        if kind in LIBRARIES:
            made, image = _of_library(LIBRARIES[kind], kind, name, image)
            inputs: tuple[Any, ...] | None = None
        else:
            made = _made(source, _factory(source, kind, name))
            made, inputs = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(made, torch.nn.Module):
        raise Refusal(
            f"{source} gives {_described(made)}; expected a torch.nn.Module, or one and a tuple of its inputs"
        )
    module = made.to("meta")
    if inputs is not None:
        if image is not None:
            raise Refusal(f"{source} brings its own inputs; expected no --image")
        given = inputs if isinstance(inputs, tuple) else (inputs,)
        return Opened(source, module, torch.utils._pytree.tree_map_only(torch.Tensor, _on_meta, given), None)
    image = image or (DEFAULT_IMAGE, DEFAULT_IMAGE)
    return Opened(source, module, (torch.empty(batch, CHANNELS, *image, device="meta", dtype=_dtype(module)),), image)


def _dtype(module: nn.Module) -> Any:
    import torch

    return next((one.dtype for one in module.parameters() if one.is_floating_point()), torch.get_default_dtype())


def _on_meta(tensor: Any) -> Any:
    return tensor.detach().to("meta")


def _described(made: object) -> str:
    return "a class" if isinstance(made, type) else f"a {type(made).__name__}"


def _builtin(source: str, image: Image | None, batch: int) -> Opened:
    variant = models[source]
    from vitbench.case import Case
    from vitbench.program import build

    shape = variant.shape(image, batch)
    if reason := variant.model.lacking():
        raise Refusal(reason)
    case = Case(variant.model, shape, "sdpa" if variant.model.attentions(shape) else "own", scope="model")
    program = build(case, device="meta")
    height, width = program.inputs[0].shape[-2:]
    return Opened(source, program.module.requires_grad_(), program.inputs, (height, width))


def _of_library(library: _Library, kind: str, name: str, image: Image | None) -> tuple[Any, Image]:
    if importlib.util.find_spec(library.package) is None:
        raise Refusal(f"{kind}:{name} needs {library.package}, which is not installed: pip install {library.package}")
    if name not in (known := library.names()):
        from difflib import get_close_matches

        close = ", ".join(get_close_matches(name, known, 5)) or f"{len(known)} of them, none alike"
        raise Refusal(f"unknown {kind} model {name!r}; known: {close}")
    return _made(f"{kind}:{name}", lambda: library.make(name, image))


def _factory(source: str, package: str, name: str) -> Callable[[], Any]:
    sys.path.insert(0, str(Path.cwd()))  # a console script does not look there
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


def _made(source: str, make: Callable[[], Any]) -> Any:
    """Made on meta tensors; where a value of one is needed on the way, on the CPU."""
    import torch

    try:
        with torch.device("meta"):
            return make()
    except Exception as error:
        if not isinstance(error, (RuntimeError, NotImplementedError)) or "meta" not in str(error):
            raise Refusal(f"{source} cannot be made: {said(error)}") from error
    try:
        return make()
    except Exception as error:
        raise Refusal(f"{source} cannot be made: {said(error)}") from error


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


def _timm(name: str, image: Image | None) -> tuple[Any, Image]:
    import timm

    ways = {} if image is None else {"img_size": image}
    model = _sized(lambda **given: timm.create_model(name, **given), ways)
    own = model.pretrained_cfg.get("input_size", (CHANNELS, DEFAULT_IMAGE, DEFAULT_IMAGE))
    return model, image or tuple(own[1:])


def _torchvision(name: str, image: Image | None) -> tuple[Any, Image]:
    import torchvision

    ways: dict[str, Any] = {}
    if image is not None:
        ways = {"image_size": image[0]} if image[0] == image[1] else {}
        ways["input_size"] = image
    weights = next(iter(torchvision.models.get_model_weights(name)), None)
    crop = weights.transforms.keywords.get("crop_size") if weights else None
    own = (crop, crop) if isinstance(crop, int) else (DEFAULT_IMAGE, DEFAULT_IMAGE)
    return _sized(lambda **given: torchvision.models.get_model(name, **given), ways), image or own


def _hf(name: str, image: Image | None) -> tuple[Any, Image]:
    import transformers

    kind = getattr(transformers, name)
    config = kind.config_class()
    own = getattr(config, "image_size", None) or DEFAULT_IMAGE
    own = (own, own) if isinstance(own, int) else tuple(own)
    if image is not None and hasattr(config, "image_size"):
        config.image_size = image[0] if image[0] == image[1] else image
    return kind(config), image or own


def _timm_names() -> list[str]:
    import timm

    return [*timm.list_models(), *timm.list_pretrained()]


def _torchvision_names() -> list[str]:
    import torchvision

    return list(torchvision.models.list_models())


def _hf_names() -> list[str]:
    import transformers

    return [name for name in dir(transformers) if hasattr(getattr(transformers, name, None), "config_class")]


LIBRARIES = {
    "timm": _Library("timm", _timm_names, _timm),
    "torchvision": _Library("torchvision", _torchvision_names, _torchvision),
    "hf": _Library("transformers", _hf_names, _hf),
}
