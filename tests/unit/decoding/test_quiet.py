"""What HiGHS prints does not get into the output; what others print does."""

from __future__ import annotations

import ctypes
import os
import threading

import pytest

from graphwright.decoding.valence import without_solver_noise

NOISE = b"HighsMipSolverData::transformNewIntegerFeasibleSolution tmpSolver.run();\n"


def test_only_the_solvers_lines_are_dropped(capfd):
    print("before")
    with without_solver_noise():
        os.write(1, NOISE)
        print("from another thread")
        ctypes.CDLL(None).printf(NOISE)  # stays in the buffer of C, which nobody else empties
    print("after")
    assert capfd.readouterr().out == "before\nfrom another thread\nafter\n"


def test_the_output_is_itself_again_after_an_error(capfd):
    def fail() -> None:
        with without_solver_noise():
            os.write(1, NOISE)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    print("after")
    assert capfd.readouterr().out == "after\n"


def test_threads_do_not_take_each_others_output_for_the_real_one(capfd):
    def solve() -> None:
        for _ in range(50):
            with without_solver_noise():
                os.write(1, NOISE)

    threads = [threading.Thread(target=solve) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("after")
    assert capfd.readouterr().out == "after\n"


def test_where_nobody_listens_nothing_is_caught(monkeypatch):
    def refuse(_: int) -> int:
        raise OSError("bad file descriptor")

    monkeypatch.setattr(os, "dup", refuse)
    with without_solver_noise():
        solved = True
    assert solved
