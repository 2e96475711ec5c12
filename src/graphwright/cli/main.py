"""`graphwright`: the entry point, its exit codes and its last word on errors."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from graphwright import __version__
from graphwright.cli.shared import (
    DONE,
    INTERNAL,
    INTERRUPTED,
    SOME_FAILED,
    USAGE,
    is_first_process,
    keep_freed_memory,
)

__all__ = ["DONE", "INTERNAL", "INTERRUPTED", "SOME_FAILED", "USAGE", "guarded", "main", "parser"]

COMMANDS = {
    "train": "train a predictor from a preset, a YAML file or your own data",
    "evaluate": "a model's true metrics with intervals",
    "predict": "predict the graph of each input",
    "serve": "a page to try models in a browser, and a JSON API",
    "data": "look at a data set",
    "report": "a run as one HTML page",
    "export": "a run's model, small, with its card and record",
    "reproduce": "a table or figure of the paper, at a chosen scale",
    "debug": "the samples of one training step, each by itself",
}
"""Each is a module beside this one, which is imported when its command is given: torch takes seconds."""


class _Commands(argparse._SubParsersAction):  # type: ignore[type-arg]
    """Commands that are declared once one of them is given."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        assert isinstance(values, list)  # the command and its words
        command = self.choices.get(values[0])
        if command is not None:
            import_module(f"graphwright.cli.{values[0]}").declare(command)
        super().__call__(parser, namespace, values, option_string)


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="graphwright",
        description="Learn to predict whole graphs from anything: images, fingerprints, mass spectra, "
        "your own table.",
        epilog="Exit codes: 0 done, 1 some inputs failed, 2 usage or configuration, "
        "3 interrupted and resumable, 4 internal error.",
    )
    result.add_argument("--version", action="version", version=f"graphwright {__version__}")
    commands = result.add_subparsers(dest="command", metavar="COMMAND", required=True, action=_Commands)
    for name, summary in COMMANDS.items():
        commands.add_parser(name, help=summary)
    return result


def main(argv: Sequence[str] | None = None) -> int:
    keep_freed_memory()

    def command() -> int:
        words, overrides = _split(sys.argv[1:] if argv is None else argv)
        arguments = parser().parse_args(words, argparse.Namespace(overrides=overrides, from_shell=argv is None))
        code: int = arguments.run(arguments)
        return code

    return guarded("graphwright", command)


def _split(words: Sequence[str]) -> tuple[list[str], Sequence[Any]]:
    """The command line without the settings in it, and these; only `train` and `data inspect` take any."""
    if list(words[:1]) == ["train"]:
        from graphwright.cli.train import split

        return split(words)
    if list(words[:2]) == ["data", "inspect"]:
        from graphwright.cli.data import split_inspect

        return split_inspect(words)
    return list(words), ()


def guarded(program: str, command: Callable[[], int]) -> int:
    """The exit code of a command, which never ends in a bare traceback; `program` begins its error messages."""
    try:
        return command()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        # Python up to 3.11 hides an interrupt that strikes while a class is made.
        if isinstance(error.__cause__, KeyboardInterrupt):
            print("interrupted", file=sys.stderr)
            return INTERRUPTED
        if os.environ.get("GRAPHWRIGHT_DEBUG"):
            raise
        if isinstance(error, ValueError | ImportError | OSError):
            print(f"{program}: {error}", file=sys.stderr)
            return USAGE
        if _lacks_memory(error):
            print(f"{program}: not enough memory: {_first_line(error)}", file=sys.stderr)
            return USAGE
        # Of several processes the one that did not fail loses its connection: not a thing to report.
        further = "\nSet GRAPHWRIGHT_DEBUG=1 to see where, and please report it." if is_first_process() else ""
        print(f"{program}: internal error: {type(error).__name__}: {error}{further}", file=sys.stderr)
        return INTERNAL


def _lacks_memory(error: Exception) -> bool:
    """Whether an allocation failed: torch has a class of its own for devices, and for the host a sentence."""
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or (isinstance(error, RuntimeError) and "can't allocate memory" in str(error))
    )


def _first_line(error: Exception) -> str:
    """What was asked for, without where in torch."""
    line = (str(error).splitlines() or ["an allocation failed"])[0]
    return line.partition("DefaultCPUAllocator: ")[2] or line


if __name__ == "__main__":
    sys.exit(main())
