"""One process that predicts, and the handle by which the server asks it, cuts it off and starts it again.

Frames on its standard input and output are a length and so many bytes: JSON, and a request's bytes. Nothing is
pickled, so neither side can make the other run anything.
"""

from __future__ import annotations

import asyncio
import faulthandler
import json
import os
import struct
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

from graphwright.server.limits import BUSY, BusyError, RefusedError, ServerLimits, TooLongError

if TYPE_CHECKING:
    from graphwright.inference import SavedModel

LENGTH = struct.Struct("!I")
CARD, PREPARE = "card", "prepare"
"""Questions about a model, not about an input: to describe it, and to load all that its answers need."""
KEPT = 8
"""Models kept in memory."""
FIRST_SECONDS = 1.0
"""For the decoder of a model's first answer, which nobody waits for."""
GRACE = 10.0
"""Seconds after which a worker whose server is gone ends itself."""


@dataclass(eq=False)
class Worker:
    """The process, asked one question at a time.

    sources: by model name where the model is, and whether it is shipped or a run.
    """

    sources: Mapping[str, tuple[str, str]]
    limits: ServerLimits
    _process: asyncio.subprocess.Process | None = None
    _prepared: frozenset[str] = frozenset()
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _waiting: int = 0

    async def start(self) -> None:
        """Start it and wait until it is ready; importing torch alone takes a minute on a cold and busy machine."""
        self._prepared = frozenset()
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "graphwright.server.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=_environment(),
        )
        try:
            async with asyncio.timeout(self.limits.loading_seconds):
                await self._send({"sources": dict(self.sources), "limits": asdict(self.limits)}, b"")
                await self._receive()
        except (TimeoutError, asyncio.IncompleteReadError, ConnectionError) as error:
            await self.stop()
            raise RuntimeError("the prediction worker does not start; what it says is above") from error

    async def stop(self) -> None:
        """End it, whatever it is doing."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
        if process is not None:
            await process.wait()

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def ask(self, question: dict[str, Any], data: bytes = b"") -> bytes:
        """The answer as JSON. A `RefusedError` says why there is none; whatever happens, the next is served."""
        if self._waiting >= self.limits.waiting:
            raise BusyError(BUSY)
        self._waiting += 1
        try:
            async with asyncio.timeout(self.limits.waiting_seconds):
                await self._turn.acquire()
        except TimeoutError:
            raise BusyError(BUSY) from None
        finally:
            self._waiting -= 1
        # Seen to the end also where nobody waits any more: a reply left in the pipe would be the next one's.
        exchange = asyncio.ensure_future(self._exchange(question, data))
        exchange.add_done_callback(self._exchanged)
        return await asyncio.shield(exchange)

    def _exchanged(self, exchange: asyncio.Future[bytes]) -> None:
        self._turn.release()
        if not exchange.cancelled():
            exchange.exception()  # whoever asked may have left, and nobody else wants to know

    async def _exchange(self, question: dict[str, Any], data: bytes) -> bytes:
        if self._process is None or self._process.returncode is not None:
            await self.stop()
            try:
                await self.start()
            except (RuntimeError, OSError) as error:  # no memory, no more processes
                raise BusyError(f"The prediction process cannot be started at the moment ({error}).") from None
        name = question["given"]["model"]
        if question["ask"] != CARD and name not in self._prepared:
            # No part of this request: one that were cut off while its model is loaded would be so for ever.
            prepared = await self._reply({"ask": PREPARE, "given": {"model": name}}, b"")
            self._prepared = frozenset(json.loads(prepared))
        return await self._reply(question, data)

    async def _reply(self, question: dict[str, Any], data: bytes) -> bytes:
        seconds = _seconds(question["ask"], self.limits)
        try:
            async with asyncio.timeout(seconds):
                await self._send(question, data)
                kind, _, reply = (await self._receive()).partition(b"\n")
        except TimeoutError:
            await self.stop()
            if question["ask"] in (CARD, PREPARE):
                raise TooLongError(f"To load this model took longer than {seconds:g} seconds.") from None
            raise TooLongError(
                f"This took longer than {seconds:g} seconds and was stopped. "
                "A smaller input may be answered in time."
            ) from None
        except (asyncio.IncompleteReadError, ConnectionError):
            await self.stop()
            raise RefusedError("The prediction of this input ended unexpectedly and gave no answer.") from None
        if kind != b"answer":
            raise RefusedError(reply.decode())
        return reply

    async def _send(self, question: dict[str, Any], data: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        for frame in (json.dumps(question).encode(), data):
            self._process.stdin.write(LENGTH.pack(len(frame)) + frame)
        await self._process.stdin.drain()

    async def _receive(self) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        (length,) = LENGTH.unpack(await self._process.stdout.readexactly(LENGTH.size))
        return await self._process.stdout.readexactly(length)


def _seconds(ask: str, limits: ServerLimits) -> float:
    """That a question may take."""
    return limits.loading_seconds if ask in (CARD, PREPARE) else limits.seconds


def _environment() -> dict[str, str]:
    """Ours, with the package where we have found it."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


# What follows runs in the process.


def main() -> None:
    """Answer questions until there are no more."""
    questions, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Whatever a library prints must not get between the frames.
    os.dup2(2, 1)
    first = json.loads(_read(questions) or b"{}")
    _read(questions)
    if not first:
        return
    limits = ServerLimits(**first["limits"])
    _bound_memory(limits.memory)
    answer = _answering(first["sources"], limits)
    _write(replies, b"ready")
    while True:
        header = _read(questions)
        data = _read(questions)
        if header is None or data is None:
            return
        question = json.loads(header)
        # Ends this process even in the middle of compiled code, should the server be gone.
        faulthandler.dump_traceback_later(_seconds(question["ask"], limits) + GRACE, exit=True)
        _write(replies, _reply(answer, question, data))
        faulthandler.cancel_dump_traceback_later()


def _reply(answer: Callable[[dict[str, Any], bytes], str], question: dict[str, Any], data: bytes) -> bytes:
    try:
        return b"answer\n" + answer(question, data).encode()
    except RefusedError as error:
        told = str(error)
    except (ValueError, ImportError, OSError) as error:
        told = f"This input cannot be used: {error}"
    except MemoryError:
        told = "This input takes too much memory."
    except Exception as error:
        traceback.print_exc()
        told = f"This input could not be answered ({type(error).__name__}); the server's log says more."
    return b"refused\n" + told.encode("utf-8", "replace")


def _answering(
    sources: Mapping[str, tuple[str, str]], limits: ServerLimits
) -> Callable[[dict[str, Any], bytes], str]:
    from graphwright.inference import load_model
    from graphwright.server.cases import card, case_of_example, case_of_file, case_of_text
    from graphwright.server.predicting import Stopwatch, answer
    from graphwright.server.schema import GivenExample, GivenText

    models: dict[str, SavedModel] = {}
    prepared: set[str] = set()

    def loaded(name: str) -> SavedModel:
        """One of those at hand, or loaded and added to them; the one not asked for longest then makes room."""
        try:
            model = models.pop(name, None) or load_model(sources[name][0])
        except (ValueError, ImportError, OSError) as error:
            raise RefusedError(f"This model cannot be loaded: {error}") from error
        models[name] = model
        if len(models) > KEPT:
            last = next(iter(models))
            del models[last]
            prepared.discard(last)
        return model

    def prepare(name: str) -> None:
        """Answer once: what a model reads at its first answer, and kernels that it compiles, are there then."""
        model = loaded(name)
        with suppress(Exception):  # what is wrong with it is told to who asks it something
            answer(name, model, case_of_example(model, GivenExample(model=name)), 1, FIRST_SECONDS, Stopwatch())
        prepared.add(name)

    def answered(question: dict[str, Any], data: bytes) -> str:
        given, name = question["given"], question["given"]["model"]
        if question["ask"] == CARD:
            return card(name, sources[name][1], loaded(name)).model_dump_json()
        if question["ask"] == PREPARE:
            prepare(name)
            return json.dumps(sorted(prepared))
        clock = Stopwatch()
        with clock.of("reading"):
            model = loaded(name)
            match question["ask"]:
                case "text":
                    case = case_of_text(model, GivenText(**given))
                case "example":
                    case = case_of_example(model, GivenExample(**given))
                case _:
                    case = case_of_file(model, data, given["name"], given["row"])
        return answer(name, model, case, given["top"], limits.decode_seconds, clock).model_dump_json()

    return answered


def _bound_memory(most: int) -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    except (ImportError, ValueError, OSError):  # not every system has such a limit
        return


def _read(stream: BinaryIO) -> bytes | None:
    """A frame; None at the end."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    data = stream.read(LENGTH.unpack(head)[0])
    return data


def _write(stream: BinaryIO, frame: bytes) -> None:
    stream.write(LENGTH.pack(len(frame)) + frame)
    stream.flush()


if __name__ == "__main__":
    main()
