"""The command vitbench and its subcommands.

Some must answer at once, so whatever is heavy (torch, rich) is imported inside the function that needs it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from vitbench.refusal import Refusal, exit_code


def main(arguments: list[str] | None = None) -> int:
    """0: done. 1: a published table has wrong rows. 2: refused. 130: after Ctrl-C."""
    options = _options(arguments)
    return exit_code(lambda: int(options.command(options)))


def _doctor(options: argparse.Namespace) -> int:
    try:
        from rich.console import Console

        from vitbench import doctor, doctor_page
        from vitbench.measure.environment import usable_device
    except ModuleNotFoundError as error:  # a bare checkout; without these nothing can be asked of the machine
        if str(error.name).startswith("vitbench"):
            raise
        package = str(error.name).partition(".")[0]
        raise Refusal(f"{package} is not installed: pip install {package}") from error
    found = doctor.findings(usable_device(options.device))
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        doctor_page.show(found, Console(highlight=False))
    return 0


def _list(options: argparse.Namespace) -> int:
    from vitbench.listing import KINDS, page

    if options.kind not in KINDS:
        raise Refusal(f"unknown kind {options.kind!r}; known: {', '.join(KINDS)}")
    entries = KINDS[options.kind]()
    print(json.dumps(entries, indent=1) if options.json else page(entries))
    return 0


def _count(options: argparse.Namespace) -> int:
    from vitbench.count_page import count_command

    return count_command(options)


def _scale(options: argparse.Namespace) -> int:
    from vitbench.scale.command import command

    return command(options)


def _audit(options: argparse.Namespace) -> int:
    if (options.source is None) == (options.table is None):
        raise Refusal("expected a source or --table FILE.csv, one of the two")
    if options.table is not None:
        if options.image is not None:
            raise Refusal("a table has its own image sizes; expected no --image")
        from vitbench.published.page import table_command

        return table_command(options)
    from vitbench.audits.page import audit_command

    return audit_command(options)


def _calibrate(options: argparse.Namespace) -> int:
    from vitbench.calibrate.page import calibrate_command

    return calibrate_command(options)


def _predict(options: argparse.Namespace) -> int:
    from vitbench.predict_page import predict_command

    return predict_command(options)


def _plan(options: argparse.Namespace) -> int:
    from vitbench.choice.command import command

    return command(options)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="vitbench", description="What attention in vision transformers costs.")
    commands = parser.add_subparsers(required=True, metavar="command")
    count = commands.add_parser("count", help="MACs, parameters and memory of a model, exactly")
    count.add_argument("source", help="vit_b_16, timm:NAME, torchvision:NAME, hf:CLASS or package.module:factory")
    count.add_argument("--image", metavar="H[xW]", help="pixels (default: the model's own)")
    count.add_argument("--batch", type=int, default=1, help="images (default: 1)")
    count.add_argument("--mode", choices=("inference", "training"), default="inference")
    count.add_argument("--by", choices=("term", "operator", "module"), default="term", help="what the MACs are told by")
    written = count.add_mutually_exclusive_group()
    written.add_argument("--json", action="store_true", help="everything, as docs/json.md says")
    written.add_argument("--csv", action="store_true", help="the parts and the total")
    count.set_defaults(command=_count)
    scale = commands.add_parser("scale", help="how the MACs of a model grow with its images, and what is wasted")
    scale.add_argument("source", help="as of count")
    scale.add_argument("--image", metavar="A:B[:STEP]", help="pixels a side (default: its own to 2048), or one size A")
    scale.add_argument("--batch", type=int, default=1, help="images (default: 1)")
    scale.add_argument("--figure", metavar="FILE", help="draw it into that .png, .pdf or .svg")
    written = scale.add_mutually_exclusive_group()
    written.add_argument("--json", action="store_true", help="everything, as docs/json.md says")
    written.add_argument("--csv", action="store_true", help="a row for each size")
    scale.set_defaults(command=_scale)
    audit = commands.add_parser("audit", help="what every counter says of a model, or a published table, and why")
    audit.add_argument("source", nargs="?", help="as of count")
    audit.add_argument("--image", metavar="H[xW]", help="pixels (default: the model's own)")
    audit.add_argument("--table", metavar="FILE.csv", help="instead: a table of models of timm or torchvision")
    audit.add_argument("--json", action="store_true", help="everything, as docs/json.md says")
    audit.set_defaults(command=_audit)
    predict = commands.add_parser("predict", help="seconds, images/s and memory of a model on a card that is not there")
    predict.add_argument("source", help="as of count")
    predict.add_argument("--device", help="a card of vitbench/devices.toml, or here (default: this machine's card)")
    predict.add_argument("--image", metavar="H[xW]", help="pixels (default: the model's own)")
    predict.add_argument("--batch", type=int, default=1, help="images (default: 1)")
    predict.add_argument("--dtype", help="amp (default), amp-bfloat16, float16, bfloat16, float32; on a CPU float32")
    predict.add_argument("--mode", choices=("inference", "training"), default="inference")
    predict.add_argument("--backend", default="sdpa", help="naive or sdpa; of the suite's models also a member of sdpa")
    predict.add_argument("--compiled", action="store_true", help="as torch.compile runs it")
    predict.add_argument("--memory", help="as 8GB: bytes that largest batch and image fit (default: the device's)")
    predict.add_argument("--window", type=int, help="of the suite's own models: instead of their window")
    predict.add_argument("--patch", type=int, help="of the suite's own models: instead of their patch")
    predict.add_argument("--json", action="store_true", help="everything, as docs/json.md says")
    predict.set_defaults(command=_predict)
    calibrate = commands.add_parser("calibrate", help="what this CPU gives in a second, from the records of a run")
    calibrate.add_argument("run", type=Path, help="folder of a run on the CPU; calibration.json is written there")
    calibrate.add_argument("--json", action="store_true", help="what is written, as docs/json.md says")
    calibrate.set_defaults(command=_calibrate)
    plan = commands.add_parser("plan", help="which model, image, patch, window and backend fit a budget")
    plan.add_argument("--device", required=True, help="a card of vitbench/devices.toml, or here (this CPU)")
    plan.add_argument("--latency", metavar="TIME", help="of one call at most, such as 20ms")
    plan.add_argument("--memory", metavar="SIZE", help="at the peak, such as 8GB or 8GiB (default: the device's)")
    plan.add_argument("--throughput", action="store_true", help="the batch of most images/s (default: one image)")
    plan.add_argument("--image-min", type=int, default=224, metavar="S", help="pixels a side (default: 224)")
    plan.add_argument("--image-max", type=int, default=1024, metavar="S", help="pixels a side (default: 1024)")
    plan.add_argument("--family", metavar="vit,swin", help="of deit, swin and vit (default: all)")
    plan.add_argument(
        "--dtype", help="amp, amp-bfloat16, float16, bfloat16 or float32 (default: amp; on a CPU float32)"
    )
    plan.add_argument("--all", action="store_true", help="the whole Pareto set, not the largest image of each model")
    plan.add_argument("--figure", metavar="FILE", help="draw it into that .png, .pdf or .svg")
    plan.add_argument("--json", action="store_true", help="everything, as docs/json.md says")
    plan.set_defaults(command=_plan)
    doctor = commands.add_parser("doctor", help="what this machine is, what runs on it, and what to mend")
    doctor.add_argument("--device", help="cpu or cuda (default: cuda if torch sees one)")
    doctor.add_argument("--json", action="store_true", help="the findings as JSON, in bytes, hertz and other SI units")
    doctor.set_defaults(command=_doctor)
    list_ = commands.add_parser(
        "list", help="what there is: operators, models, backends, counters, metrics, sweeps, devices"
    )
    list_.add_argument("kind", help="which of these")
    list_.add_argument("--json", action="store_true", help="with parameters and scopes")
    list_.set_defaults(command=_list)
    return parser.parse_args(arguments)
