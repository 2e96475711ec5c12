"""`python -m benchmarks.earlier COMMIT`: samples per second of training, by an earlier commit and now, in one run.

Both train the models that the earlier commit's presets describe, with conditional gradient and AdamW, as a person
starts them on the whole machine, and take turns. Run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from benchmarks.whole_machine import LOG_EVERY, TRAINED, steps_per_second
from graphwright.cli.main import guarded
from graphwright.cli.shared import DONE, keep_freed_memory
from graphwright.inference.export import hardware, provenance

ROOT = Path(__file__).parents[1]
STEPS = 6 * LOG_EVERY
SHORT = {"steps": STEPS, "minutes": None, "log_every": LOG_EVERY, "validation_samples": 1, "validate_every": STEPS}
NOW = {"devices": "cores", "precision": "auto", "workers": 0}
"""What today's presets leave to the machine. The earlier ones had one process, with a thread for every core."""


@dataclass
class Comparison:
    """Samples per second of every round."""

    preset: str
    batch: int
    earlier: list[float] = field(default_factory=list)
    now: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """How many times as many now, by the medians."""
        return median(self.now) / median(self.earlier)


def settings(preset: Path, *, now: bool) -> dict[str, Any]:
    """The run of an earlier preset, its network as it was: without what heads have got since."""
    was = yaml.safe_load(preset.read_text())
    train = {"batch_size": was["train"]["batch_size"], "learning_rate": 1e-3} | SHORT
    made = {
        "task": was["task"],
        "model": was["model"],
        "matching": {"kind": "conditional_gradient"},
        "train": train,
    }
    if now:
        train |= NOW
        made["model"] |= {"pairs": "sum"}
        if was["task"].get("kind", "coloring") == "coloring":
            made["task"] |= {"diffusion": False}
    return made


def measure(commit: str, rounds: int, presets: Sequence[str] = TRAINED) -> Iterator[Comparison]:
    """A comparison for each preset; the first of each side's turns only warms its caches."""
    with TemporaryDirectory() as folder:
        earlier = Path(folder) / "earlier"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(earlier)], check=True)
        subprocess.run(["git", "-C", str(earlier), "checkout", "--quiet", commit], check=True)
        for preset in presets:
            source = earlier / "configs" / f"{preset}.yaml"
            result = Comparison(preset, settings(source, now=False)["train"]["batch_size"])
            for turn in range(rounds + 1):
                for tree, rates in ((earlier, result.earlier), (ROOT, result.now)):
                    rate = result.batch * _rate(tree, settings(source, now=tree is ROOT))
                    print(f"{preset}, {tree.name}: {rate:.0f} samples/s", file=sys.stderr, flush=True)
                    if turn:
                        rates.append(rate)
            yield result


def _rate(tree: Path, run: dict[str, Any]) -> float:
    """Steps per second of one training by a tree's code."""
    with TemporaryDirectory() as folder:
        config, out = Path(folder) / "run.yaml", Path(folder) / "run"
        config.write_text(yaml.safe_dump(run))
        command = [sys.executable, "-m", "graphwright.cli.main", "train", str(config), "--out", str(out)]
        done = subprocess.run(
            command, cwd=tree, env=os.environ | {"PYTHONPATH": str(tree / "src")}, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"{tree.name} could not train: {done.stderr.strip()[-2000:]}")
        return steps_per_second(out)


def run(arguments: argparse.Namespace) -> int:
    """Measure, print, write."""
    rows = []
    for each in measure(arguments.commit, arguments.rounds):
        rows.append(asdict(each) | {"ratio": each.ratio})
        print(
            f"{each.preset}: {median(each.earlier):.0f} samples/s by {arguments.commit}, "
            f"{median(each.now):.0f} now: {each.ratio:.2f}x"
        )
        if arguments.json is not None:
            facts = {"earlier": arguments.commit, "now": provenance(), "hardware": hardware(), "rows": rows}
            arguments.json.write_text(json.dumps(facts, indent=1) + "\n")
    return DONE


def main(argv: Sequence[str] | None = None) -> int:
    """Measure as the command line says."""
    keep_freed_memory()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.earlier", description=__doc__)
    parser.add_argument("commit", help="the earlier commit")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each that count")
    parser.add_argument("--json", type=Path, metavar="OUT", help="also write the figures to this file")
    return guarded("benchmarks.earlier", lambda: run(parser.parse_args(argv)))


if __name__ == "__main__":
    sys.exit(main())
