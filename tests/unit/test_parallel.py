"""Engines: the same results from any, and workers that die or are asked to stop."""

import os
import signal
import time
from contextlib import closing
from itertools import count

import pytest

from graphwright.parallel import InProcess, Lost, Processes


def squared(number: int) -> int:
    return number**2


def long_text(length: int) -> str:
    return "x" * length


def deadly(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def patient(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def never() -> bool:
    return False


@pytest.mark.parametrize("engine", [InProcess(), Processes(2)], ids=["in process", "processes"])
def test_results_come_in_order_and_items_are_taken_as_they_are_needed(engine):
    taken = []
    with closing(engine):
        results = engine.map(squared, (taken.append(number) or number for number in count()))
        assert [next(results) for _ in range(20)] == [(number, number**2) for number in range(20)]
        assert len(taken) <= 20 + 8
        assert engine.alone(squared, 7) == 49


def test_items_are_lost_with_their_pool_and_the_rest_is_done_in_another():
    with closing(Processes(1)) as engine:
        results = dict(engine.map(deadly, range(12)))
        assert isinstance(results[3], Lost)
        assert not results[3].interrupted
        kept = {number: result for number, result in results.items() if not isinstance(result, Lost)}
        assert kept
        assert all(number == result for number, result in kept.items())
        assert isinstance(engine.alone(deadly, 3), Lost)
        assert engine.alone(deadly, 4) == 4


def test_a_task_that_dies_is_lost_alone_and_says_what_ended_it():
    ended = dict(Processes(2).tasks(deadly, range(5), never))
    assert ended == {0: 0, 1: 1, 2: 2, 3: Lost("its process was ended by SIGKILL"), 4: 4}


def test_a_result_longer_than_a_pipe_holds_is_heard():
    (ended,) = Processes(1).tasks(long_text, [2**20], never)
    assert ended == (2**20, "x" * 2**20)


def test_tasks_that_are_asked_to_stop_are_interrupted_and_none_is_begun():
    asked = iter([False, True])
    start = time.perf_counter()
    ended = list(Processes(2).tasks(patient, [60.0, 61.0, 62.0], lambda: next(asked, True)))
    assert time.perf_counter() - start < 50
    assert sorted(ended, key=lambda each: each[0]) == [(60.0, Lost("", True)), (61.0, Lost("", True))]


def test_in_this_process_an_interrupt_ends_all_tasks():
    def interrupted(number: int) -> int:
        if number == 1:
            raise KeyboardInterrupt
        return number

    assert list(InProcess().tasks(interrupted, [0, 1, 2], never)) == [(0, 0), (1, Lost("", True))]
    assert list(InProcess().tasks(squared, [1, 2], lambda: True)) == []
