"""Did each case run the attention kernel that was asked for?"""

from __future__ import annotations

import pandas as pd

from analysis.page import Section
from analysis.study import Row
from vitbench.backend import backends


def kernels(cases: pd.DataFrame) -> Section:
    """Names the cases that ran another kernel than their backend asks for, or than torch said that it would choose."""
    attending = [backend.name for backend in backends if backend.attends]
    seen = pd.Series([isinstance(names, list) for names in cases["attended"]], index=cases.index, dtype=bool)
    known = cases[seen & cases["backend"].isin(attending)]
    rows = [(row, _oddity(row)) for _, row in known.iterrows()]
    odd = pd.DataFrame(
        [
            {
                "case": row["id"],
                "asked": row["asked"] if pd.notna(row["asked"]) else "torch's choice",
                "chosen": ", ".join(row["chosen"]) or "-" if isinstance(row["chosen"], list) else "-",
                "ran": ", ".join(row["attended"]) or "-",
                "why it is listed": why,
            }
            for row, why in rows
            if why
        ]
    )
    sentence = f"The kernels of {len(known)} cases were looked at: {len(known) - len(odd)} ran what was asked for"
    ending = f"; the {len(odd)} others are listed." if len(odd) else "."
    return Section(
        "kernels", "Did the kernel run that was asked for?", sentence + ending, table=odd if len(odd) else None
    )


def _oddity(row: Row) -> str | None:
    """Why a reader must know of it, in words; None where all is as asked."""
    if row["matched"] > 0:
        return f"the compiler replaced products and softmax by SDPA, {row['matched']:.0f} times"
    if not row["attended"]:
        return "no operator of attention was seen"
    if pd.notna(row["asked"]) and row["attended"] != [row["asked"]]:
        return f"{row['asked']} was asked for"
    if isinstance(row["chosen"], list) and row["chosen"] and row["attended"] != row["chosen"]:
        return f"torch said that it would choose {', '.join(row['chosen'])}"
    return None
