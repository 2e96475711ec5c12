"""The compiled kernels: built once, on first use, into a cache, and called as functions of torch tensors."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import logging
import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from filelock import FileLock
from torch import Tensor

from graphwright.files import LOCK, NoCacheError, cache_folder, cached, replacing, sha256_of, write_text

if TYPE_CHECKING:
    from graphwright.transport.problem import QuadraticForm


SOURCES = Path(__file__).parent
FLAGS = (
    "-std=c++17",
    "-O3",
    "-march=native",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fPIC",
    "-shared",
    "-pthread",
)
LIMIT = 300
"""Seconds that a compiler may take."""


class BuildError(RuntimeError):
    """The kernels could not be compiled, and why."""


def build_library() -> Path:
    """The compiled library, from the cache if it was built before by this compiler for this processor.

    One process builds it, others wait. A file without the checksum that lies beside it is built anew: to open half
    a library does not always fail, it may end the process.
    """
    compiler = find_compiler()
    try:
        target = cached(cache_folder() / f"kernels-{build_fingerprint(compiler)}.so")
        if _is_whole(target):
            return target
        with FileLock(target.with_suffix(LOCK), timeout=2 * LIMIT):
            if not _is_whole(target):  # another process may have built it meanwhile
                _checksum(target).unlink(missing_ok=True)
                with replacing(target) as draft:
                    _compile(compiler, draft)
                    digest = sha256_of(draft)
                write_text(_checksum(target), digest)
    except (NoCacheError, NotImplementedError, OSError) as error:
        raise BuildError(str(error)) from error
    return target


def _checksum(target: Path) -> Path:
    """Where the SHA-256 of a library is written once the library is there."""
    return target.with_suffix(".sha256")


def _is_whole(target: Path) -> bool:
    try:
        return _checksum(target).read_text(encoding="ascii") == sha256_of(target)
    except (OSError, UnicodeDecodeError):
        return False


def find_compiler() -> str:
    """$CXX, or the first C++ compiler on the path."""
    named = os.environ.get("CXX")
    for name in [named] if named else ["c++", "g++", "clang++"]:
        path = shutil.which(name)
        if path:
            return path
    raise BuildError(f"no C++ compiler {named!r} ($CXX)" if named else "no C++ compiler on the path")


def build_fingerprint(compiler: str) -> str:
    """A hash of what the result depends on: sources, flags, compiler, and what -march=native means here."""
    digest = hashlib.sha256()
    for source in sorted(SOURCES.glob("*.[ch]pp")):
        digest.update(source.read_bytes())
    digest.update(f"{FLAGS} {torch.__version__}".encode())
    digest.update(_run(compiler, "--version").encode())
    digest.update(f"{platform.machine()} {_processor()}".encode())
    return digest.hexdigest()[:16]


def _compile(compiler: str, target: Path) -> None:
    """With OpenMP; a compiler without it makes kernels for one thread."""
    command = [compiler, *FLAGS, str(SOURCES / "kernels.cpp"), "-o", str(target)]
    # Torch's own OpenMP library, where it brings one, so that both share their threads.
    library = Path(torch.__file__).parent
    bundled = [*library.glob("lib/libgomp*.so*"), *library.parent.glob("torch.libs/libgomp*.so*")][:1]
    try:
        _run(*command, "-fopenmp", "-Wl,--as-needed", *map(str, bundled))
    except BuildError:
        _run(*command)


def _processor() -> str:
    """The processor's capabilities, where the system tells them."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())


def _run(*command: str) -> str:
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT).stdout
    except subprocess.CalledProcessError as error:
        first = next(
            (line for line in error.stderr.splitlines() if "error" in line), f"exit code {error.returncode}"
        )
        raise BuildError(f"{command[0]} failed: {first.strip()}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{command[0]} failed: {error}") from error


WORTH_A_THREAD = 200_000
"""Elementary operations below which starting another thread costs more than it saves."""
TYPES = {torch.float32: "f32", torch.float64: "f64"}
ARGUMENTS = {"p": ctypes.c_void_p, "i": ctypes.c_int64, "d": ctypes.c_double}
SIGNATURES = {
    "sinkhorn_forward": "pdiiiipppppp",
    "sinkhorn_backward": "pdpppiiiip",
    "l1_plan_forward": "ppppppiiddiiipppppp",
    "l1_plan_backward": "ppppppiiddpppppiiippp",
    "mirror_descent": "ppppppiippiidiidipppp",
    "conditional_gradient": "ppppppiipiiidipppp",
}
"""The arguments of kernels.cpp, declared: an epsilon of 1 would else travel as an integer, where none is read."""


class SinkhornSteps(NamedTuple):
    """K Sinkhorn steps on L = (least of the row - cost) / epsilon.

    plan: (b, n, n). rows: (b, K, n) and columns: (b, K + 1, n) potentials of the steps, in units of epsilon.
    row_potential, column_potential: (b, n) of the plan, in units of the cost.
    figures: (b, 4) largest |row sum - 1|, largest |column sum - 1|, <cost, plan>, sum of L.
    """

    plan: Tensor
    rows: Tensor
    columns: Tensor
    row_potential: Tensor
    column_potential: Tensor
    figures: Tensor


class Embeddings(NamedTuple):
    """Contiguous tensors as of `transport.l1_plan`; starts: (b,) how many nodes the samples before have."""

    slots: Tensor
    nodes: Tensor
    counts: Tensor
    starts: Tensor
    padding: Tensor
    further: Tensor | None


class L1PlanSteps(NamedTuple):
    """K Sinkhorn steps on L1 distances, and further costs, divided by their sum.

    cost: (b, n, n), of which columns of padding are not set. totals: (b,) the sums. plan: (b, n, n).
    rows: (b, K, n) and columns: (b, K + 1, n) potentials. mass: (b,) of the plans, finite if all else is.
    """

    cost: Tensor
    totals: Tensor
    plan: Tensor
    rows: Tensor
    columns: Tensor
    mass: Tensor


class L1PlanGradients(NamedTuple):
    """slots: (b, n, d). nodes: (m, d). padding: (b, d), each sample's."""

    slots: Tensor
    nodes: Tensor
    padding: Tensor


class Descent(NamedTuple):
    """plan (b, n, n), potentials (b, n) of the last step, steps taken (b,), whether it froze (b,).

    Of mirror descent the potentials are the log scalings of its projection, of conditional gradient the duals of
    its assignment.
    """

    plan: Tensor
    rows: Tensor
    columns: Tensor
    taken: Tensor
    frozen: Tensor


@dataclass(frozen=True)
class Kernels:
    """One graph per thread, its matrix in the cache. Results do not depend on the number of threads."""

    library: ctypes.CDLL

    def sinkhorn_forward(self, cost: Tensor, epsilon: float, iterations: int) -> SinkhornSteps:
        """`iterations` steps on contiguous costs (b, n, n), from zero column potentials."""
        b, n = _sizes(cost, iterations)
        _check(cost, cost=(cost, b, n, n))
        plan = torch.empty_like(cost)
        rows, columns = cost.new_empty(b, iterations, n), cost.new_empty(b, iterations + 1, n)
        potentials = (cost.new_empty(b, n), cost.new_empty(b, n))
        steps = SinkhornSteps(plan, rows, columns, *potentials, cost.new_empty(b, 4))
        threads = _threads(b * n * n * iterations * 2)
        self._call("sinkhorn_forward", cost, epsilon, b, n, iterations, threads, *steps)
        return steps

    def sinkhorn_backward(
        self, cost: Tensor, epsilon: float, rows: Tensor, columns: Tensor, gradient: Tensor
    ) -> Tensor:
        """(b, n, n) gradient in the cost of the steps with these potentials, given the plan's."""
        b, iterations, n = rows.shape
        given = gradient.contiguous()
        _sizes(cost, iterations)
        _check(cost, cost=(cost, b, n, n), rows=(rows, b, iterations, n), columns=(columns, b, iterations + 1, n))
        _check(cost, gradient=(given, b, n, n))
        out = torch.empty_like(cost)
        threads = _threads(b * n * n * iterations * 6)
        self._call("sinkhorn_backward", cost, epsilon, rows, columns, given, b, n, iterations, threads, out)
        return out

    def l1_plan_forward(self, given: Embeddings, epsilon: float, least: float, iterations: int) -> L1PlanSteps:
        """`iterations` steps on the distances over their sum, which is `least` at least."""
        b, n, d = _embedded(given, iterations)
        new = given.slots.new_empty
        steps = L1PlanSteps(
            new(b, n, n), new(b), new(b, n, n), new(b, iterations, n), new(b, iterations + 1, n), new(b)
        )
        threads = _threads(b * n * n * (d + iterations * 2))
        self._call("l1_plan_forward", *given, n, d, epsilon, least, b, iterations, threads, *steps)
        return steps

    def l1_plan_backward(
        self,
        given: Embeddings,
        epsilon: float,
        least: float,
        cost: Tensor,
        totals: Tensor,
        rows: Tensor,
        columns: Tensor,
        gradient: Tensor,
    ) -> L1PlanGradients:
        """Gradients of the steps with these costs and potentials, given the plan's."""
        iterations, plans = rows.shape[1], gradient.contiguous()
        b, n, d = _embedded(given, iterations)
        _check(given.slots, cost=(cost, b, n, n), totals=(totals, b), gradient=(plans, b, n, n))
        _check(given.slots, rows=(rows, b, iterations, n), columns=(columns, b, iterations + 1, n))
        new = given.slots.new_empty
        gradients = L1PlanGradients(torch.empty_like(given.slots), torch.empty_like(given.nodes), new(b, d))
        steps = (cost, totals, rows, columns, plans)
        threads = _threads(b * n * n * (d * 2 + iterations * 6))
        self._call("l1_plan_backward", *given, n, d, epsilon, least, *steps, b, iterations, threads, *gradients)
        return gradients

    def mirror_descent(
        self,
        form: QuadraticForm,
        start: Tensor,
        log_start: Tensor,
        *,
        step_size: float,
        outer: int,
        inner: int,
        tolerance: float,
    ) -> Descent:
        """Steps from `start`, (b, n, n), each sample until it freezes."""
        b, channels, n = _checked(form, min(outer, inner))
        plan, log_row, log_column, taken = result = _results(form)
        threads = _threads(b * outer * (2 * channels * n**3 + 2 * inner * n * n))
        steps = (step_size, outer, inner, tolerance, threads)
        starts = (start.contiguous(), log_start.contiguous())
        _check(form.linear, start=(starts[0], b, n, n), log_start=(starts[1], b, n, n))
        self._call("mirror_descent", *_flat(form), *starts, b, n, *steps, *result)
        return Descent(plan, log_row, log_column, taken.abs(), taken > 0)

    def conditional_gradient(
        self, form: QuadraticForm, start: Tensor, *, iterations: int, tolerance: float
    ) -> Descent:
        """Steps from `start`, (b, n, n), each sample until it gains no more; 0 taken: not finite."""
        b, channels, n = _checked(form, iterations)
        _check(form.linear, start=(start.contiguous(), b, n, n))
        plan, rows, columns, taken = result = _results(form)
        threads = _threads(b * iterations * (2 * channels * n**3 + 10 * n * n))
        steps = (iterations, tolerance, threads)
        self._call("conditional_gradient", *_flat(form), start.contiguous(), b, n, *steps, *result)
        return Descent(plan, rows, columns, taken.abs(), taken > 0)

    def _call(self, name: str, *arguments: Tensor | int | float | None) -> None:
        first = next(argument for argument in arguments if isinstance(argument, Tensor))
        function = _function(self.library, name, first.dtype)
        given = [argument.data_ptr() if isinstance(argument, Tensor) else argument for argument in arguments]
        if not function(*given):
            raise MemoryError(f"too little memory for {name} of {tuple(first.shape)}")


def _check(like: Tensor, **tensors: tuple[Any, ...]) -> None:
    """Refuse what a kernel would read or write beyond: by name, a tensor and the shape that it must have.

    Whoever calls the kernels has checked what a person gave; this is between the kernels and a mistake of ours.
    """
    for name, (tensor, *shape) in tensors.items():
        if list(tensor.shape) != shape:
            raise ValueError(f"{name} must have shape {tuple(shape)}, got {tuple(tensor.shape)}")
        if tensor.dtype != like.dtype or tensor.device.type != "cpu":
            raise ValueError(f"{name} must be {like.dtype} on the cpu, got {tensor.dtype} on {tensor.device}")
        if not tensor.is_contiguous():
            raise ValueError(f"{name} must be contiguous")


def _sizes(square: Tensor, steps: int) -> tuple[int, int]:
    """b and n of (b, n, n); kernels take at least one row and one step."""
    if square.ndim != 3 or square.shape[1] == 0 or steps < 1:
        raise ValueError(f"at least one row and one step expected, got {tuple(square.shape)} and {steps}")
    return square.shape[0], square.shape[1]


def _embedded(given: Embeddings, steps: int) -> tuple[int, int, int]:
    """b, n and d of embeddings that fit together: every sample's nodes lie within the nodes."""
    b, n = _sizes(given.slots, steps)
    d = given.slots.shape[2]
    _check(given.slots, slots=(given.slots, b, n, d), nodes=(given.nodes, len(given.nodes), d))
    _check(given.slots, padding=(given.padding, d))
    _check(given.counts, counts=(given.counts, b), starts=(given.starts, b))
    if given.further is not None:
        _check(given.slots, further=(given.further, b, n, n))
    # As lists, which for so few numbers is the quickest.
    counts, starts = given.counts.tolist(), given.starts.tolist()
    ends = list(accumulate(counts, initial=0))
    in_order = starts == ends[:-1] and ends[-1] == len(given.nodes)
    within = not counts or 0 <= min(counts) <= max(counts) <= n
    if given.counts.dtype != torch.int64 or not in_order or not within:
        raise ValueError(f"counts {counts} from {starts} on do not fit {n} slots and {len(given.nodes)} nodes")
    return b, n, d


def _checked(form: QuadraticForm, steps: int) -> tuple[int, int, int]:
    """b, channels and n of a form whose matrices fit together."""
    b, n = _sizes(form.linear, steps)
    channels = form.right.shape[1]
    tensors = dict(zip(FORM, _flat(form), strict=False))
    squares = {name: (tensors[name], b, n, n) for name in FORM[:4] if name != "mask" and tensors[name] is not None}
    _check(form.linear, **squares, mask=(tensors["mask"], b, n))
    _check(form.linear, left=(tensors["left"], b, n, channels * n), right=(tensors["right"], b, channels, n, n))
    return b, channels, n


FORM = ("linear", "mask", "pair_cost", "target_cost", "left", "right")
"""The matrices of a form, in the order in which the kernels take them."""


@functools.cache
def _function(library: ctypes.CDLL, name: str, dtype: torch.dtype) -> Any:
    """The kernel for numbers of this type, its arguments declared."""
    function = getattr(library, f"{name}_{TYPES[dtype]}")
    function.argtypes, function.restype = [ARGUMENTS[kind] for kind in SIGNATURES[name]], ctypes.c_int64
    return function


def _flat(form: QuadraticForm) -> tuple[Tensor | int | None, ...]:
    """A form as the kernels take it."""
    matrices = [getattr(form, name) for name in FORM]
    excluded = form.self_loops.value == "excluded"
    tensors = [None if matrix is None else matrix.contiguous() for matrix in matrices]
    return *tensors, form.right.shape[1], int(excluded)


def _results(form: QuadraticForm) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Room for plan, potentials and steps taken."""
    b, n, _ = form.linear.shape
    new = form.linear.new_empty
    return new(b, n, n), new(b, n), new(b, n), torch.empty(b, dtype=torch.int64)


def kernels_for(tensor: Tensor) -> Kernels | None:
    """The kernels, if they can take this tensor and are to be had."""
    if (
        tensor.device.type != "cpu"
        or tensor.dtype not in TYPES
        or type(tensor) not in (Tensor, torch.nn.Parameter)
    ):
        return None
    return load_kernels()


@functools.cache
def load_kernels() -> Kernels | None:
    """Build or find the library; without one, say why in one line and let torch do the work.

    GRAPHWRIGHT_NATIVE=off asks for torch.
    """
    if os.environ.get("GRAPHWRIGHT_NATIVE", "on") == "off":
        return None
    try:
        return Kernels(_opened())
    except (BuildError, OSError) as error:
        log = logging.getLogger("graphwright")
        log.warning("graphwright: no compiled kernels (%s); matching runs on torch alone, more slowly", error)
        return None


def _opened() -> ctypes.CDLL:
    """The library; a whole one that cannot be opened, as of another system, is built anew, once."""
    path = build_library()
    try:
        return ctypes.CDLL(str(path))
    except OSError:
        _checksum(path).unlink(missing_ok=True)
        return ctypes.CDLL(str(build_library()))


def _threads(operations: int) -> int:
    return max(1, min(torch.get_num_threads(), operations // WORTH_A_THREAD))
