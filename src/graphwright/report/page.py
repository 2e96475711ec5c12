"""A run as one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import html
import io
import platform
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import torch

from graphwright import __version__
from graphwright.inference.decoders import PLAIN
from graphwright.inference.evaluate import Evaluated, evaluate_saved
from graphwright.inference.model import load_model
from graphwright.report.plots import learning_curves, plan_heat_map
from graphwright.report.sheet import comparison_sheet, pick_examples
from graphwright.training.log import read_log

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1 { margin-bottom: 0; } .lead { color: #555; margin-top: .3rem; }
.big { font-size: 2.6rem; font-weight: 700; margin: 1rem 0 0; }
table { border-collapse: collapse; } td, th { padding: .25rem .9rem .25rem 0; text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
img { max-width: 100%; } pre { background: #f4f4f4; padding: .8rem; overflow-x: auto; font-size: .85rem; }
"""


def write_report(run_folder: Path, out: Path, samples: int | None, title: str) -> Evaluated:
    """Evaluate a run's best checkpoint on unseen samples and write the page; returns the figures."""
    model = load_model(str(run_folder))
    begun = perf_counter()
    result = evaluate_saved(model, samples=samples, decode=PLAIN)  # what training has to show for itself
    seconds = perf_counter() - begun
    records = read_log(run_folder / "log.jsonl")
    examples = pick_examples(result.evaluation.report)
    sections = [
        ("Learning", _image(learning_curves(records), "learning curves")),
        ("Figures on unseen samples", _figures(result)),
        ("Input, prediction, truth", _legend() + _image(comparison_sheet(result, examples), "examples")),
        ("A transport plan", _plan_text() + _image(plan_heat_map(result, examples[0]), "plan")),
        ("Time", _timings(records, len(result.evaluation.targets), seconds)),
        ("Settings", f"<pre>{html.escape(model.run.model_dump_json(indent=2))}</pre>"),
    ]
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(_page(title, result, sections))
    return result


def _page(title: str, result: Evaluated, sections: list[tuple[str, str]]) -> str:
    facts = result.evaluation.report.to_json()
    low, high = facts["isomorphic_interval"]
    body = "".join(f"<h2>{heading}</h2>{content}" for heading, content in sections)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title><style>{STYLE}</style></head><body>
<h1>{html.escape(title)}</h1>
<p class="lead">{html.escape(result.model.task.summary)} The graph is predicted in one pass;
nothing tells the model which node is which.</p>
<p class="big">{facts["isomorphic"]:.1f} % of unseen graphs exactly right</p>
<p class="lead">95 % interval {low:.1f} to {high:.1f}, {facts["samples"]} samples; same nodes, same edges, same
labels.</p>
{body}
</body></html>
"""


def _figures(result: Evaluated) -> str:
    facts, rows = result.figures(), []
    for name, text in result.titles().items():
        if facts.get(name) is None:
            continue
        interval = facts.get(f"{name}_interval")
        shown = "" if interval is None else f"{interval[0]:.2f} to {interval[1]:.2f}"
        cells = f'<td class="number">{facts[name]:.2f}</td><td class="number">{shown}</td>'
        rows.append(f"<tr><td>{html.escape(text, quote=False)}</td>{cells}</tr>")
    return f"<table><tr><th></th><th>mean</th><th>95 % interval</th></tr>{''.join(rows)}</table>"


def _timings(records: list[dict[str, float]], samples: int, seconds: float) -> str:
    steps = [record for record in records if "samples_per_second" in record]
    trained = records[-1] if records else {"seconds": 0.0, "step": 0}
    speed = sum(record["samples_per_second"] for record in steps) / max(len(steps), 1)
    rows = (
        ("training", f"{trained['seconds'] / 60:.1f} minutes, {trained['step']:,} steps"),
        ("training speed", f"{speed:,.0f} samples/s"),
        ("evaluation", f"{samples:,} samples in {seconds:.1f} s"),
        ("machine", f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads"),
        ("versions", f"graphwright {__version__}, torch {torch.__version__}, Python {platform.python_version()}"),
    )
    return "<table>" + "".join(f"<tr><td>{name}</td><td>{value}</td></tr>" for name, value in rows) + "</table>"


def _legend() -> str:
    return (
        "<p>Wrong edges are red, missing ones red and dotted, wrong nodes ringed. Predicted nodes are drawn where "
        "the true nodes that they match stand.</p>"
    )


def _plan_text() -> str:
    return (
        "<p>Which predicted slot (row) is taken for which true node (column): the alignment under which the loss "
        "is computed. Inside the frame are the real nodes, outside padding.</p>"
    )


def _image(figure: Figure, text: str) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=100)
    code = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{text}" src="data:image/png;base64,{code}">'
