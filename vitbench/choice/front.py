"""The Pareto set: what nothing else is better than.

One row dominates another of its family if it has at least as many parameters, as large an image and as small a patch,
takes no longer for an image, holds no more bytes, and is not equal in all of these. A larger window has a larger table,
so more parameters. Where batches are chosen for their throughput they fill the memory, so bytes bound the choice and
are not compared. Nothing here tells accuracy: more parameters, more pixels and finer patches are what time and memory
are spent on, and families differ beyond them.
"""

from __future__ import annotations

import numpy as np

from vitbench.choice.configurations import Rows


def objectives(rows: Rows, throughput: bool) -> np.ndarray:
    """(objectives, rows): the less the better."""
    each = rows["seconds"] / rows["batch"]
    held = np.zeros(len(rows)) if throughput else rows["bytes"]
    return np.array([each, held, rows["patch"], -rows["parameters"], -rows["image"]], dtype=float)


def front(rows: Rows, throughput: bool = False) -> Rows:
    """rows: of any families. No row of it dominates another; each row given is dominated by one of it, or equal."""
    families = [rows[rows["family"] == one] for one in np.unique(rows["family"])]
    found: Rows = np.concatenate([rows[:0], *(one[_front(objectives(one, throughput))] for one in families)])
    return found


def _front(values: np.ndarray) -> np.ndarray:
    """Which of the columns."""
    order = np.lexsort(values[::-1])  # by the first objective, then the second, ...: what dominates a row is before it
    kept = np.empty_like(values)
    chosen: list[int] = []
    for n in order:
        earlier, row = kept[1:, : len(chosen)], values[1:, n, None]
        if not (earlier <= row).all(axis=0).any():
            kept[:, len(chosen)] = values[:, n]
            chosen.append(n)
    return np.array(chosen, dtype=int)
