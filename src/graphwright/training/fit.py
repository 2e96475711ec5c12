"""Training as one call: a task's name or data in, a model out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from graphwright.inference.model import SavedModel, load_model
from graphwright.settings import Override, Run, SettingsError, data_settings, load_run, options
from graphwright.tasks import Choice, task_of
from graphwright.training.log import Display
from graphwright.training.loop import train


@dataclass(frozen=True)
class Chosen:
    """A run, and lines that say what was chosen from the data and why."""

    run: Run
    lines: tuple[str, ...] = ()


def chosen(source: str, overrides: Sequence[Override] = ()) -> Chosen:
    """What a preset, a file or data are trained with: settings that are not given may depend on the data."""
    named = load_run(source, overrides)
    choice = Choice() if data_settings(source) is None else task_of(named.task).choice()
    return Chosen(load_run(source, [*choice.overrides, *overrides]), choice.lines)


def fit_model(
    source: str | PathLike[str],
    *,
    minutes: float | None = None,
    out: str | PathLike[str] | None = None,
    verbose: bool = False,
    **settings: str | float | None,
) -> SavedModel:
    """`graphwright.fit`."""
    if not isinstance(source, str | PathLike):
        raise TypeError(
            f"fit takes a preset's name or the path of a file, got {type(source).__name__}: write rows to a file "
            'first, such as frame.to_json("pairs.jsonl", orient="records", lines=True)'
        )
    source = str(source)
    overrides = [Override(_key(name), _written(value), "fit") for name, value in settings.items()]
    if minutes is not None:
        overrides.append(Override("train.minutes", minutes, "fit"))
    plan = chosen(source, overrides)
    console = Console(quiet=not verbose, highlight=False, soft_wrap=True)
    if plan.lines:
        console.print("\n".join(plan.lines), markup=False)
    with _folder(out, Path(source).stem) as folder:
        train(plan.run, folder, display=Display(console))
        return load_model(str(folder.resolve()))


@contextmanager
def _folder(out: str | PathLike[str] | None, name: str) -> Iterator[Path]:
    """The run's folder, which must be a new one, or one that is gone afterwards."""
    if out is None:
        with TemporaryDirectory(prefix="graphwright-") as kept:
            yield Path(kept) / name
        return
    folder = Path(out)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SettingsError(f"{folder} is not empty: a new run needs a folder of its own")
    yield folder


LIKE = 0.7
"""How alike a name must be to be offered instead: blur is not what lr means."""


def _key(name: str) -> str:
    """A setting's key from its name in Python: its section may be left out where only one has it."""
    key = name.replace("__", ".")
    having = [option.key for option in options().values() if option.name == key]
    if "." in key:
        return key
    if not having:
        near = get_close_matches(key, [option.name for option in options().values()], 1, LIKE)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise SettingsError(f"fit: {name} is no setting{hint}")
    if len(having) > 1:
        meant = " or ".join(each.replace(".", "__") for each in having)
        raise SettingsError(f"fit: {name} may be {' or '.join(having)}: write {meant}")
    return having[0]


def _written(value: str | float | None) -> str | float | None:
    return str(value).lower() if isinstance(value, bool) else value
