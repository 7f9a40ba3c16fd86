"""What the command is asked for: its options, and the plan and effort that they mean."""

from __future__ import annotations

import argparse
import shlex
from contextlib import suppress
from pathlib import Path

from vitbench.case import CACHES
from vitbench.evidence import Effort
from vitbench.plan import Plan
from vitbench.refusal import Refusal, positive
from vitbench.run import ROOT
from vitbench.sweep import PROFILES, select

SECONDS = {"smoke": 0.03, "quick": 0.15, "full": 0.5}  # of samples, a case and pass
EFFORT = {  # passes at least and at most, and the seconds after which none is added
    "smoke": Effort(1, 3),
    "quick": Effort(6, 12, budget=400.0),
    "full": Effort(6, 20),
}
PRECISION = {"cpu": 0.05, "cuda": 0.02}  # half-width of an interval that is narrow enough; smoke takes any
CALIBRATION = "calibration"  # the sweep of identical cases, part of every run


def plan_of(options: argparse.Namespace, device: str) -> Plan:
    """The cases of the sweeps named, or of all, and how they are sampled."""
    asked = select(options.sweep, options.profile, device)
    with suppress(Refusal):  # a profile without identical cases
        for case, names in select([CALIBRATION], options.profile, device).items():
            asked[case] = sorted({*asked.get(case, []), *names})
    cache = options.cache or CACHES[device][0]
    if cache not in CACHES[device]:
        raise Refusal(f"--cache {cache!r} cannot be had on {device}; known: {', '.join(CACHES[device])}")
    return Plan(
        profile=options.profile,
        sweeps=tuple(sorted({name for names in asked.values() for name in names})),
        device=device,
        cache=cache,
        seconds=SECONDS[options.profile],
        seed=options.seed,
        cases=tuple(asked),
        asked_by=tuple(tuple(names) for names in asked.values()),
    )


def effort_of(options: argparse.Namespace, device: str) -> Effort:
    """As asked, else by profile and device."""
    usual = EFFORT[options.profile]
    least = options.passes or usual.least
    most = options.max_passes or (least if options.passes else usual.most)
    if most < least:
        raise Refusal(f"--max-passes {most} is less than the {least} passes of every case; expected at least {least}")
    precision = options.precision or (None if options.profile == "smoke" else PRECISION[device])
    budget = usual.budget if options.budget is None else options.budget
    return Effort(least, most, precision, budget, options.case_limit)


def again(options: argparse.Namespace, folder: Path) -> str:
    """The words that go on with a run in its folder."""
    words = ["--profile", options.profile, *(word for name in options.sweep for word in ("--sweep", name))]
    for name in ("device", "cache", "passes", "max_passes", "precision", "budget", "case_limit"):
        value = getattr(options, name)
        words += [f"--{name.replace('_', '-')}", str(value)] if value is not None else []
    return shlex.join([*words, "--seed", str(options.seed), "--run", str(folder)])


def parse(arguments: list[str] | None, description: str | None) -> argparse.Namespace:
    """The options of `python -m benchmarks`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=description)
    parser.add_argument("--profile", default="quick", help=f"{', '.join(PROFILES)} (default quick)")
    parser.add_argument("--sweep", action="append", default=[], help="only this sweep; may be repeated")
    parser.add_argument("--device", help="cpu or cuda (default: cuda if torch sees one)")
    parser.add_argument("--cache", help="cold or warm: how samples find the L2 (default: cold on cuda, warm on cpu)")
    parser.add_argument("--run", type=Path, help="folder to begin or go on in (default: a new one under --results)")
    parser.add_argument("--results", type=Path, default=ROOT / "results", help="where new runs go")
    parser.add_argument("--passes", type=_count, help="fresh processes over every case (default by profile)")
    parser.add_argument("--max-passes", type=_count, help="where the interval is wider than --precision")
    parser.add_argument(
        "--precision",
        type=positive,
        help="half-width that is narrow enough (default 0.05 on cpu, 0.02 on cuda)",
    )
    parser.add_argument("--budget", type=positive, help="seconds after which no pass is added (default by profile)")
    parser.add_argument("--case-limit", type=positive, default=600.0, help="seconds after which a case is given up")
    parser.add_argument("--seed", type=int, default=0, help="of the order of cases")
    parser.add_argument("--dry-run", action="store_true", help="list the cases and run nothing")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    return parser.parse_args(arguments)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of at least 1")
    return int(text)
