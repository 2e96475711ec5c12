"""`graphwright serve`: a page and a JSON API in front of the models, on this machine."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console


def declare(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Serve one page and a JSON API (/api/openapi.json) for the shipped models and your runs, to "
        "this machine alone unless --host says otherwise. Nothing is loaded from or sent to anywhere else."
    )
    parser.add_argument("--runs", type=Path, metavar="DIR", help="also the runs in this folder")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (default 127.0.0.1: loopback)")
    parser.add_argument("--port", type=int, default=8100, help="port to listen at (default 8100; 0: any free one)")
    parser.add_argument(
        "--seconds", type=float, default=30.0, help="a prediction that takes longer is cut off (default 30)"
    )
    parser.add_argument(
        "--megabytes", type=float, default=5.0, help="a file that is larger is refused (default 5)"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    try:
        from graphwright.server.app import serve
    except ImportError as error:
        raise ImportError(f"serving needs more ({error}): pip install 'graphwright[serve]'") from error
    from graphwright.server.catalogue import catalogue
    from graphwright.server.limits import ServerLimits

    limits = ServerLimits(seconds=arguments.seconds, megabytes=arguments.megabytes)
    console = Console(markup=False, highlight=False)
    say = lambda text: console.print(text, soft_wrap=True)  # noqa: E731
    serve(catalogue(arguments.runs), arguments.host, arguments.port, limits, say)
    return 0
