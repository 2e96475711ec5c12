"""The option that says how logits become graphs."""

from __future__ import annotations

import argparse

from graphwright.inference.decoders import Decoder


def add_decode_option(parser: argparse.ArgumentParser, default: str) -> None:
    """`--decode`; `default` says in words what happens without it."""
    parser.add_argument(
        "--decode",
        choices=[decoder.value for decoder in Decoder],
        help="how logits become graphs: plain, slot by slot; valid, the likeliest molecule that obeys valence; "
        "known, the likeliest graph of the training data; fingerprint, the likeliest molecule that has the "
        f"fingerprint that was given. Default: {default}",
    )


def chosen_decoder(arguments: argparse.Namespace, otherwise: Decoder) -> Decoder:
    """What `--decode` says."""
    return otherwise if arguments.decode is None else Decoder(arguments.decode)
