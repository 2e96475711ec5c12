"""The page and the JSON API, served until interrupted."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from ipaddress import ip_address
from typing import Annotated, Any

import uvicorn
from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from graphwright import __version__
from graphwright.server.catalogue import Sources
from graphwright.server.connections import bounded
from graphwright.server.guard import SOON, Guard, error_response
from graphwright.server.limits import BusyError, RefusedError, ServerLimits, TooLongError
from graphwright.server.schema import (
    Answer,
    Error,
    GivenExample,
    GivenText,
    ModelCard,
    ModelName,
    Row,
    Top,
)
from graphwright.server.worker import CARD, Worker

PAGE = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/style.css": ("style.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/drawing.js": ("drawing.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
"""The only files that are ever sent."""
JSON = "application/json"
REFUSED: dict[int | str, dict[str, Any]] = {
    400: {"model": Error, "description": "Not a request that can be read."},
    404: {"model": Error, "description": "There is no such model."},
    408: {"model": Error, "description": "The request took too long to arrive."},
    413: {"model": Error, "description": "Too large."},
    422: {"model": Error, "description": "An input that cannot be used, or took too long."},
    429: {"model": Error, "description": "Too many requests at the moment."},
}


def create_app(sources: Sources, limits: ServerLimits | None = None, host: str = "127.0.0.1") -> FastAPI:
    """The application; its worker lives as long as it does. host: the name by which it may be called."""
    limits = limits or ServerLimits()
    worker = Worker(sources, limits)
    cards: dict[str, bytes] = {}
    writing = asyncio.Lock()

    async def described() -> bytes:
        async with writing:  # two hundred people who open the page at once ask the worker once
            for name in sources:
                if name not in cards:
                    try:
                        cards[name] = await worker.ask({"ask": CARD, "given": {"model": name}})
                    except BusyError:
                        raise
                    except TooLongError:  # on a busy machine; whoever asks next tries again
                        continue
                    except RefusedError:  # a run that cannot be loaded must not hide the others
                        cards[name] = b""
        return b"[" + b",".join(filter(None, cards.values())) + b"]"

    @asynccontextmanager
    async def living(app: FastAPI) -> AsyncIterator[None]:  # noqa: ARG001
        await worker.start()
        # Before there is a queue: whoever opens the page needs them first.
        with suppress(BusyError):
            await described()
        yield
        await worker.stop()

    app = FastAPI(
        title="graphwright",
        version=__version__,
        description="Whole graphs predicted from pictures, fingerprints, spectra and rows of tables.",
        lifespan=living,
        # Their pages load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        openapi_url="/api/openapi.json",
    )
    app.state.worker = worker
    app.add_middleware(Guard, limits=limits, host=host)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(RefusedError, _refused)

    def known(name: str) -> str:
        if name not in sources:
            raise HTTPException(404, f"There is no model {name[:60]!r}; /api/models lists them.")
        return name

    @app.get("/api/models", response_model=list[ModelCard], responses={429: REFUSED[429]})
    async def models() -> Response:
        """Every model that can be asked, what it takes, and examples."""
        return Response(await described(), media_type=JSON)

    @app.post("/api/predict", response_model=Answer, responses=REFUSED)
    async def predict(given: GivenText) -> Response:
        """Predict from pasted text: SMILES, a peak list or a record, or a row of a table as JSON."""
        known(given.model)
        return Response(await worker.ask({"ask": "text", "given": given.model_dump()}), media_type=JSON)

    @app.post("/api/predict/example", response_model=Answer, responses=REFUSED)
    async def example(given: GivenExample) -> Response:
        """Predict an input that the model has not seen and whose truth is known."""
        known(given.model)
        return Response(await worker.ask({"ask": "example", "given": given.model_dump()}), media_type=JSON)

    @app.post(
        "/api/predict/file",
        response_model=Answer,
        responses=REFUSED,
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
            }
        },
    )
    async def file(
        request: Request,
        model: Annotated[ModelName, Query()],
        name: Annotated[str, Query(max_length=300, description="Of the file; only its ending counts.")] = "",
        row: Annotated[Row, Query()] = 1,
        top: Annotated[Top, Query()] = 5,
    ) -> Response:
        """Predict from a file's bytes, sent as the body."""
        given = {"model": known(model), "name": name, "row": row, "top": top}
        answer = await worker.ask({"ask": "file", "given": given}, await request.body())
        return Response(answer, media_type=JSON)

    for path, (asset, kind) in PAGE.items():
        app.add_api_route(path, _asset(asset, kind), methods=["GET"], include_in_schema=False)
    return app


def _asset(name: str, kind: str) -> Any:
    content = (files("graphwright.server") / "page" / name).read_bytes()

    async def sent() -> Response:
        return Response(content, media_type=kind)

    return sent


async def _http_error(request: Request, error: Exception) -> Response:  # noqa: ARG001
    assert isinstance(error, HTTPException)
    sentences = {404: "There is nothing here.", 405: "This address does not take such a request."}
    told = str(error.detail)
    if told in ("Not Found", "Method Not Allowed"):
        told = sentences.get(error.status_code, told)
    return error_response(error.status_code, told, dict(error.headers or {}))


async def _invalid(request: Request, error: Exception) -> Response:  # noqa: ARG001
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:] if isinstance(part, str))
    told = str(first["msg"]).removeprefix("Value error, ")
    return error_response(422, f"{where[:80]}: {told}." if where else f"{told}.")


async def _refused(request: Request, error: Exception) -> Response:  # noqa: ARG001
    if isinstance(error, BusyError):
        return error_response(429, str(error), SOON)
    return error_response(422, str(error))


def serve(sources: Sources, host: str, port: int, limits: ServerLimits, say: Callable[[str], None]) -> None:
    """Bind, load, say where, and answer until interrupted. Port 0 takes a free one."""
    config = uvicorn.Config(
        create_app(sources, limits, host),
        log_level="error",  # each bad request is a warning: whoever sends many would fill the log
        access_log=False,
        server_header=False,
        proxy_headers=False,
        http=bounded(limits),
        timeout_keep_alive=10,
        timeout_graceful_shutdown=3,
        ws="none",
    )
    with _bound(host, port) as listening:
        address, taken = listening.getsockname()[:2]
        if not ip_address(address.partition("%")[0]).is_loopback:
            say(
                f"{host} is not a loopback address: whoever can reach this machine can use its processor. "
                "There is no password and no encryption."
            )
        shown = f"[{host}]" if ":" in host else host
        ready = f"graphwright is at http://{shown}:{taken}/ (Ctrl-C ends it)"
        _Announcing(config, lambda: say(ready)).run(sockets=[listening])


def _bound(host: str, port: int) -> socket.socket:
    if not 0 <= port < 2**16:
        raise ValueError(f"cannot listen at port {port}: it must be in 0..65535")
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError as error:
        raise OSError(f"cannot listen at {host}, port {port}: {error}") from error
    return listening


class _Announcing(uvicorn.Server):
    """Says when the worker is there and requests are answered."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, *arguments: Any, **named: Any) -> None:
        """Start, then say so."""
        await super().startup(*arguments, **named)
        if self.started:
            self._ready()
