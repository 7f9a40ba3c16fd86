"""One model under every counter and under what must not change the answer, each counter in a process of its own.

`audit` gives plain data, as `vitbench audit --json` prints it and docs/json.md describes it.
The baseline is eval, no_grad and fused attention.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

from vitbench.audits import children, reasons
from vitbench.counter import counters
from vitbench.refusal import Refusal

Found = dict[str, Any]
SCHEMA = 1
EXACT, BASELINE = "exact", "baseline"  # what the worker calls the exact count, and the first step
PLACES = {"device": "the CPU", "meta": "meta tensors"}
LIMIT = 300.0  # seconds that one count may take


def audit(
    source: str,
    image: tuple[int, int] | None = None,
    *,
    limit: float = LIMIT,
    said: Callable[[str], None] = lambda _: None,
) -> Found:
    """limit: seconds until a count is given up. said: told what is going on.

    Raises Refusal where the source cannot be opened or the exact count cannot be made.
    """
    keys = [(EXACT, "meta"), *((one.name, place) for one in counters for place in one.audited)]
    lacking = {one.name: reason for one in counters if (reason := one.lacking())}
    asked = [key for key in keys if key[0] not in lacking]
    found: dict[tuple[str, str], list[Found]]
    found = {key: [{"step": BASELINE, "reason": lacking[key[0]]}] for key in keys if key not in asked}
    with closing(children.all_answers(asked, source, image, limit)) as coming:
        for key, answers in coming:
            found[key] = answers
            said(f"{len(found)} of {len(keys)}: {key[0]} on {PLACES[key[1]]}")
            if key[0] == EXACT and "digest" not in answers[0]:
                raise Refusal(answers[0].get("refusal") or f"{source} cannot be counted: {answers[0]['reason']}")
    exact = found[EXACT, "meta"]
    digests: dict[str, Found] = {one["step"]: one["digest"] for one in exact if "digest" in one}
    whole = digests[BASELINE]
    return {
        "schema": SCHEMA,
        "source": source,
        "image": exact[0]["image"],
        "exact": whole["macs"],
        "closed": exact[0]["closed"],
        "uncounted": whole["uncounted"],
        "notes": whole["notes"],
        "rows": [_row(key, found[key], digests) for key in keys],
    }


def _row(key: tuple[str, str], answers: list[Found], digests: Mapping[str, Found]) -> Found:
    counter, place = key
    baseline, *others = answers
    row = {
        "counter": counter,
        "place": place,
        "convention": next((one.convention for one in counters if one.name == counter), "MACs"),
        **_compared(counter, baseline, digests),
        "uncounted": baseline.get("uncounted", []),
        "seconds": baseline.get("seconds"),
        "peak_bytes": baseline.get("peak_bytes"),
    }
    return {**row, "variations": [_variation(counter, one, row["macs"], digests) for one in others]}


def _variation(counter: str, answer: Found, before: int | None, digests: Mapping[str, Found]) -> Found:
    found = _compared(counter, answer, digests)
    changed = None if before is None or found["macs"] is None else found["macs"] != before
    return {"name": answer["step"], "changed": changed, **found}


def _compared(counter: str, answer: Found, digests: Mapping[str, Found]) -> Found:
    """A count beside the exact one of the same program."""
    macs, digest = answer.get("macs"), digests.get(answer["step"], digests[BASELINE])
    if macs is None:
        nothing = dict.fromkeys(("number", "macs", "difference", "percent", "unexplained"))
        return {**nothing, "reasons": [], "reason": answer.get("reason") or answer.get("refusal")}
    difference, why = macs - digest["macs"], reasons.explained(counter, digest, answer["setting"])
    if abs(difference - sum(one["macs"] for one in why)) > abs(difference):
        why = []  # they do not hold of this model: more would be left over than without them
    return {
        "number": answer["number"],
        "macs": macs,
        "difference": difference,
        "percent": 100 * difference / digest["macs"] if digest["macs"] else None,
        "unexplained": difference - sum(one["macs"] for one in why),
        "reasons": why,
        "reason": None,
    }
