"""The Sinkhorn benchmark: all sides compute the same plans and gradients; peers that are absent are named."""

import json
import subprocess
import sys
from dataclasses import replace

import ot
import pytest
import torch

from benchmarks import Remark, Row, ott_peer
from benchmarks import sinkhorn as benchmark
from benchmarks.measurement import can_measure
from benchmarks.plans import pot_sinkhorn
from benchmarks.sinkhorn import Pass, measure_pass
from benchmarks.sinkhorn_case import SinkhornCase, eager_sinkhorn, make_sinkhorn_case, our_plans


def double(case: SinkhornCase, *, softer: float = 1.0) -> SinkhornCase:
    return SinkhornCase(case.cost.double(), case.gradient.double(), softer * case.epsilon)


@pytest.mark.parametrize("sharp", [False, True])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_the_eager_version_computes_what_ours_does(n, sharp):
    case = double(make_sinkhorn_case(3, n, sharp=sharp))
    for ours, eager in zip(case.pass_through(our_plans), case.pass_through(eager_sinkhorn), strict=True):
        torch.testing.assert_close(ours, eager, rtol=1e-6, atol=1e-8)


def test_pot_converges_to_the_same_plans_and_gradients():
    case = double(make_sinkhorn_case(3, 6), softer=100)
    theirs = case.pass_through(lambda *arguments: pot_sinkhorn(ot, *arguments))
    for ours, other in zip(case.pass_through(our_plans), theirs, strict=True):
        torch.testing.assert_close(ours, other, rtol=1e-5, atol=1e-7)


def test_sharp_costs_give_permutations_and_others_do_not():
    plain = make_sinkhorn_case(4, 12).pass_through(our_plans)[0]
    sharp = make_sinkhorn_case(4, 12, sharp=True).pass_through(our_plans)[0]
    assert sharp.amax(2).mean() > 0.99
    assert plain.amax(2).mean() < 0.95


@pytest.fixture
def alone(monkeypatch, tmp_path):
    """No ott-jax, and no processes that measure memory."""
    monkeypatch.delenv(ott_peer.VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    passes = {"ours": Pass(10.0, 30.0), "eager": Pass(50.0, 90.0)}
    monkeypatch.setattr(benchmark, "measure_pass", lambda name, n, batch: passes[name])  # noqa: ARG005
    monkeypatch.setattr(benchmark, "can_measure", lambda: True)


def measure():
    return list(benchmark.measure_sinkhorn(sizes=(3,), batch=2, repeats=1, memory=(5, 30)))


@pytest.mark.usefixtures("alone")
def test_rows_cover_every_peer_and_thread_count_and_memory():
    remark, *rows = measure()
    assert isinstance(remark, Remark)
    assert ott_peer.VARIABLE in remark.text
    *timed, memory = rows
    assert [(row.name, row.peer, row.threads) for row in timed] == [
        (name, peer, count)
        for count in (1, 2)
        for name, peer in (
            (f"{benchmark.NAME}, sharp", "eager autograd"),
            (benchmark.NAME, "eager autograd"),
            (benchmark.NAME, "ot.batch.solve_batch, autodiff"),
        )
    ]
    for row in timed:
        assert (row.n, row.batch) == (3, 2)
        assert row.ours_objective == pytest.approx(row.peer_objective, rel=0.05)
    assert (memory.n, memory.batch, memory.ours_ms, memory.peer_ms) == (5, 30, 1.0, 3.0)
    assert memory.extras == {"ours_peak_mib": 10.0, "peer_peak_mib": 50.0, "memory_share": 0.2}


@pytest.mark.usefixtures("alone")
def test_without_proc_the_reader_is_told(monkeypatch):
    monkeypatch.setattr(benchmark, "can_measure", lambda: False)
    last = measure()[-1]
    assert isinstance(last, Remark)
    assert "Linux" in last.text


def executable(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return path


FAKE = f"""#!{sys.executable}
import json, sys
from pathlib import Path
import numpy as np
isolated, script, folder, epsilon, iterations, threads, repeats = sys.argv[1:]
assert isolated == "-I" and script.endswith("ott_script.py") and (threads, iterations) == ("1", "20")
cost = np.load(Path(folder) / "cost.npy")
np.save(Path(folder) / "plan.npy", np.full_like(cost, 1 / cost.shape[1]))
np.save(Path(folder) / "cost_gradient.npy", float(epsilon) * np.load(Path(folder) / "gradient.npy"))
print(json.dumps([5.0, 1.0, 3.0][: int(repeats)]))
"""


def test_the_other_python_is_given_the_case_and_its_answer_is_read(tmp_path):
    case = make_sinkhorn_case(2, 4)
    result = ott_peer.ott_pass(executable(tmp_path / "python", FAKE), case, 1, 3)
    assert result.milliseconds == 3.0
    torch.testing.assert_close(result.plan, torch.full((2, 4, 4), 0.25))
    torch.testing.assert_close(result.cost_gradient, case.epsilon * case.gradient)


@pytest.mark.usefixtures("alone")
def test_a_row_of_ott_stands_beside_the_others(monkeypatch, tmp_path):
    monkeypatch.setenv(ott_peer.VARIABLE, str(executable(tmp_path / "python", FAKE.replace('"1", ', '*"1", '))))
    rows = list(benchmark.measure_sinkhorn(sizes=(3,), batch=2, repeats=1, thread_counts=(1,)))
    assert all(isinstance(row, Row) for row in rows)
    row = next(row for row in rows if row.peer.startswith("ott-jax"))
    assert row.peer_ms == 5.0 / 2


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("broken", ["#!/bin/sh\necho first >&2; echo no module named ott >&2; exit 1\n", None])
def test_an_environment_that_does_not_work_is_named_once(monkeypatch, tmp_path, broken):
    path = tmp_path / "python"
    if broken:
        executable(path, broken)
    monkeypatch.setenv(ott_peer.VARIABLE, str(path))
    found = measure()
    (remark,) = [each for each in found if isinstance(each, Remark)]
    assert str(path) in remark.text
    assert ("no module named ott" if broken else "cannot be started") in remark.text
    assert len(found) == 8


def test_the_environment_is_the_variable_s_or_the_folder_s(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(ott_peer.VARIABLE, raising=False)
    assert ott_peer.ott_python() is None
    (tmp_path / ".venv-ott" / "bin").mkdir(parents=True)
    (tmp_path / ".venv-ott" / "bin" / "python").touch()
    assert ott_peer.ott_python() == ott_peer.FOLDER / "bin" / "python"
    monkeypatch.setenv(ott_peer.VARIABLE, "/elsewhere/python")
    assert str(ott_peer.ott_python()) == "/elsewhere/python"


@pytest.mark.slow
@pytest.mark.skipif(ott_peer.ott_python() is None, reason=ott_peer.HOW)
def test_ott_converges_to_the_same_plans_and_gradients():
    case = make_sinkhorn_case(3, 6)
    case = replace(case, epsilon=100 * case.epsilon)
    result = ott_peer.ott_pass(ott_peer.ott_python(), case, 1, 1)
    plan, gradient = case.pass_through(our_plans)
    torch.testing.assert_close(result.plan, plan, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(result.cost_gradient, gradient, rtol=1e-2, atol=1e-2 * float(gradient.abs().max()))


@pytest.mark.slow
@pytest.mark.skipif(not can_measure(), reason="Linux only")
def test_memory_is_that_of_the_pass():
    """A plain pass keeps some 2 K matrices, ours a few, whatever the processes took before."""
    n, batch = 32, 512
    matrix = 4 * batch * n * n / 2**20
    ours, eager = measure_pass("ours", n, batch), measure_pass("eager", n, batch)
    assert eager.mebibytes > 40 * matrix
    assert matrix < ours.mebibytes < eager.mebibytes / 4
    assert ours.milliseconds > 0


@pytest.mark.slow
@pytest.mark.skipif(not can_measure(), reason="Linux only")
def test_a_peak_before_the_call_does_not_count_and_one_inside_does():
    code = """
import json
import numpy as np
from benchmarks.measurement import peak_mebibytes
np.ones(200 * 2**17).sum()
print(json.dumps([peak_mebibytes(lambda: None), peak_mebibytes(lambda: np.ones(60 * 2**17).sum())]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    nothing, sixty = json.loads(done.stdout)
    assert nothing < 5
    assert sixty == pytest.approx(60, abs=5)


@pytest.mark.slow
def test_a_failure_in_the_other_process_is_told():
    with pytest.raises(RuntimeError, match=r"(?s)memory of nobody failed: Traceback .*KeyError: 'nobody'"):
        measure_pass("nobody", 3, 2)
