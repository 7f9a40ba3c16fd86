"""Scikit-learn's digits: 1,797 grey images of 8 x 8 pixels, split once into those trained on and those held out."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from vitbench.model import CHANNELS
from vitbench.refusal import Refusal

CLASSES, SIDE = 10, 8  # of the digits: classes, pixels a side
TEST, SPLIT = 0.3, 0  # share that is not trained on, seed of the split


@dataclass(frozen=True)
class Digits:
    """images: (n, 3, 8, 8), standardised. digits: (n,), 0 to 9. train, test: where in them."""

    images: Tensor
    digits: Tensor
    train: Tensor
    test: Tensor

    def enlarged(self, image: int) -> Tensor:
        """(n, 3, image, image): each pixel as a square of its own."""
        return self.images.repeat_interleave(image // SIDE, 2).repeat_interleave(image // SIDE, 3)


def digits() -> Digits:
    """Raises Refusal without scikit-learn."""
    try:
        found = import_module("sklearn.datasets").load_digits()
        split = import_module("sklearn.model_selection").train_test_split
    except ModuleNotFoundError:
        raise Refusal("scikit-learn is not installed: pip install scikit-learn") from None
    places = split(range(len(found.target)), test_size=TEST, stratify=found.target, random_state=SPLIT)
    train, test = map(torch.tensor, places)
    grey = torch.tensor(found.images, dtype=torch.float32)[:, None]
    std, mean = torch.std_mean(grey[train])
    return Digits(((grey - mean) / std).repeat(1, CHANNELS, 1, 1), torch.tensor(found.target), train, test)


def said(data: Digits) -> dict[str, Any]:
    """For the record."""
    return {
        "name": "scikit-learn's load_digits",
        "train": len(data.train),
        "test": len(data.test),
        "split": f"stratified by digit, {TEST:.0%} held out, train_test_split with random_state {SPLIT}",
        "images": f"{SIDE} x {SIDE} pixels, grey in each of {CHANNELS} channels, standardised over those trained on; "
        f"where a row's image is larger than {SIDE}, each pixel is repeated to a square",
    }
