"""Whatever is in a file, its reader takes it or refuses it as it declares, by the file's name.

The targets are those of the fuzzer, `make fuzz`, which goes on for a million inputs; what it found is here, too.
"""

import atexit
import json
import os
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzzing import __main__ as session
from fuzzing.mutation import mutate_json
from fuzzing.targets import GOLDEN, TARGETS, Target, folder

quick = settings(deadline=None, max_examples=40)
DEEP = 900


def spoilt(draw: st.DrawFn, target: Target) -> bytes:
    """A good file with pieces cut out, doubled, or replaced by anything; JSON also as other JSON."""
    data = draw(st.sampled_from(target.seeds))
    if target.is_json and draw(st.booleans()):
        return mutate_json(data, Random(draw(st.integers(0, 2**32))), target.words) or b""
    words = st.sampled_from(target.words).map(str.encode) if target.words else st.binary(max_size=8)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 40)))
        piece = draw(st.one_of(st.binary(max_size=20), st.just(data[start:end] * 2), words))
        data = data[:start] + piece + data[end:]
    return data


@pytest.mark.parametrize("name", TARGETS)
def test_what_a_reader_can_read_is_read(name):
    for seed in TARGETS[name].seeds:
        TARGETS[name](seed)


@pytest.mark.filterwarnings("default")  # which numpy or RDKit may give of a number that is refused
@pytest.mark.parametrize("name", TARGETS)
@quick
@given(data=st.data())
def test_spoilt_files_raise_only_what_is_declared(name, data):
    TARGETS[name](spoilt(data.draw, TARGETS[name]))


def graph(**node: object) -> bytes:
    return json.dumps({"nodes": [{"id": 0, **node}], "edges": []}).encode()


def row(**changes: object) -> bytes:
    return json.dumps({"x": 1.5, "nodes": ["a"], "edges": [], "split": "train"} | changes).encode()


def facts(**changes: object) -> bytes:
    """A model's, with other settings of its network, or other facts."""
    good = json.loads(TARGETS["checkpoint-facts"].seeds[0])
    settings = {name: value for name, value in changes.items() if name in good["settings"]["model"]}
    good["settings"]["model"] |= settings
    return json.dumps(good | {name: value for name, value in changes.items() if name not in settings}).encode()


def nested(depth: int) -> list:
    value: list = []
    for _ in range(depth):
        value = [value]
    return value


FOUND = [
    ("graph", graph(id=nested(700))),
    ("graph", graph(id=10**400)),
    ("graph", graph(label=10**400)),
    ("graph", graph(weight=10**400)),
    ("table-jsonl", row(nodes=10**12)),
    ("table-jsonl", row(nodes=10**400)),
    ("table-jsonl", row(x=1e300)),
    ("table-jsonl", row(nodes=["a", "b"], attributes=[1e300, -1e300])),
    ("table-jsonl", row(peaks=[[50, 1]], collision_energy=1e300)),
    ("table-jsonl", row(id=nested(DEEP))),
    ("table-jsonl", row(nodes=nested(DEEP))),
    ("table-jsonl", json.dumps({"x": 1.5, "nodes": ["a"], "edges": [], "id": "\ud800"}).encode()),
    (
        "table-jsonl",
        row(x=["a", "b"]) + b"\n" + json.dumps({"nodes": ["a"], "edges": [], "split": "train"}).encode(),
    ),
    ("table-csv", b'text,smiles_target,id\n"[""the""]",*CCO,r1\n'),
    ("table-parquet", (GOLDEN / "false_row_counts.parquet").read_bytes()),
    ("table-parquet", (GOLDEN / "false_column.parquet").read_bytes()),
    ("smiles-parquet", TARGETS["smiles-parquet"].seeds[0].replace(b"val", b"\xfdal")),
    ("smiles-parquet", TARGETS["smiles-parquet"].seeds[0].replace(b"split", b"spli\x90")),
    ("settings", b"? &a [*a]\n: 1\n"),
    ("settings", b"model:\n  ? {a: 1}\n  : 1\n"),
    ("checkpoint", b"1" * 5000),
    ("checkpoint-facts", facts(width=2**20)),
    ("checkpoint-facts", facts(layers=10**6)),
    ("checkpoint-facts", facts(known_graphs=10**9)),
    ("checkpoint-facts", facts(test={"isomorphic": "all"})),
    ("checkpoint-facts", facts(test=None, progress=["seconds"])),
    (
        "checkpoint",
        b'{"format": 1, "tensors": "", "sha256": "", "facts": {"a": ' + b"[" * DEEP + b"]" * DEEP + b"}}",
    ),
]
"""What readers did not refuse as they declare, most of it, before it was found."""


@pytest.mark.parametrize(("name", "data"), FOUND)
def test_what_was_found_is_refused_as_declared(name, data):
    TARGETS[name](data)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="sessions are forked")
def test_a_session_that_ends_leaves_the_folder_to_the_others():
    folder()
    child = os.fork()
    if child == 0:
        atexit._run_exitfuncs()  # as libFuzzer ends a process that has found something
        os._exit(0)
    os.waitpid(child, 0)
    assert folder().is_dir()


def test_an_input_that_takes_long_is_a_finding(monkeypatch):
    target = Target("slow", "input", lambda _: sum(range(100_000)), ())
    session.timed(target, b"")
    monkeypatch.setattr(session, "SLOW", 0)
    with pytest.raises(TimeoutError, match="seconds of the processor"):
        session.timed(target, b"")
