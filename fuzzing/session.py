"""One target under atheris, in a process of its own: libFuzzer ends the process that it runs in.

`python -m fuzzing.session TARGET [libFuzzer's options and corpus folders]`; `python -m fuzzing` starts these.
"""

import os
import sys
from random import Random

import atheris

from fuzzing.mutation import mutate_json

with atheris.instrument_imports(include=["fuzzing.targets", "graphwright", "pyteomics", "yaml"]):
    from fuzzing.targets import TARGETS, Target

BYTES = 0.3
"""Share of the changes to JSON that do not care whether it stays JSON."""


def mutator(target: Target):  # type: ignore[no-untyped-def]
    """Changes to the input of a target that reads JSON."""

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        random = Random(seed)
        changed = None if random.random() < BYTES else mutate_json(data, random, target.words)
        return atheris.Mutate(data, most) if changed is None or len(changed) > most else changed

    return mutate


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    target = TARGETS[sys.argv.pop(1)]
    atheris.Setup(sys.argv, target, **({"custom_mutator": mutator(target)} if target.is_json else {}))
    atheris.Fuzz()
