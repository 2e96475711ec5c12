"""`graphwright`: the entry point, its exit codes and its last word on errors."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from graphwright import __version__
from graphwright.cli import data, evaluate, export, predict, report, reproduce, serve, train
from graphwright.cli.process import DONE, INTERNAL, INTERRUPTED, SOME_FAILED, USAGE, keep_freed_memory

__all__ = ["DONE", "INTERNAL", "INTERRUPTED", "SOME_FAILED", "USAGE", "guarded", "main", "parser"]


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    result = argparse.ArgumentParser(
        prog="graphwright",
        description="Learn to predict whole graphs from anything: images, fingerprints, mass spectra, "
        "your own table.",
        epilog="Exit codes: 0 done, 1 some inputs failed, 2 usage or configuration, "
        "3 interrupted and resumable, 4 internal error.",
    )
    result.add_argument("--version", action="version", version=f"graphwright {__version__}")
    commands = result.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in (train, evaluate, predict, serve, data, report, export, reproduce):
        command.add_parser(commands)
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command."""
    keep_freed_memory()

    def command() -> int:
        words, overrides = train.split(sys.argv[1:] if argv is None else argv)
        arguments = parser().parse_args(words, argparse.Namespace(overrides=overrides, from_shell=argv is None))
        code: int = arguments.run(arguments)
        return code

    return guarded("graphwright", command)


def guarded(program: str, command: Callable[[], int]) -> int:
    """The exit code of a command, which never ends in a bare traceback; `program` begins its error messages."""
    try:
        return command()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except (ValueError, ImportError, OSError) as error:
        if os.environ.get("GRAPHWRIGHT_DEBUG"):
            raise
        print(f"{program}: {error}", file=sys.stderr)
        return USAGE
    except Exception as error:
        if os.environ.get("GRAPHWRIGHT_DEBUG"):
            raise
        # Of several processes the one that did not fail loses its connection: not a thing to report.
        further = (
            "\nSet GRAPHWRIGHT_DEBUG=1 to see where, and please report it." if train.is_first_process() else ""
        )
        print(f"{program}: internal error: {type(error).__name__}: {error}{further}", file=sys.stderr)
        return INTERNAL


if __name__ == "__main__":
    sys.exit(main())
