"""What the kernels are given lies within its memory: shapes, strides, sizes of zero, counts, and no memory at all.

`make sanitize` runs these, and the other tests of plans, on kernels that end the process where they leave one.
"""

import os
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphwright.transport import (
    EdgeTerm,
    MatchingProblem,
    SelfLoops,
    conditional_gradient,
    l1_plan,
    mirror_descent,
    sinkhorn,
)
from graphwright.transport.checks import NotFiniteError
from graphwright.transport.native.library import Embeddings, load_kernels

pytestmark = pytest.mark.skipif(load_kernels() is None, reason="no compiled kernels here")
SANITIZED = "GRAPHWRIGHT_SANITIZED" in os.environ
some = settings(deadline=None, max_examples=60)
sizes, types = st.integers(0, 19), st.sampled_from([torch.float32, torch.float64])
strides = st.sampled_from(["plain", "transposed", "every other", "broadcast", "offset"])


def laid_out(tensor: torch.Tensor, how: str) -> torch.Tensor:
    """The same numbers, elsewhere in memory; broadcast: the first row's."""
    match how:
        case "transposed":
            return tensor.mT.contiguous().mT
        case "every other":
            return torch.stack([tensor, tensor + 9], -1)[..., 0]
        case "broadcast":
            return tensor[..., :1, :].expand_as(tensor)
        case "offset":
            return torch.cat([tensor.new_zeros(1), tensor.flatten()])[1:].view(tensor.shape)
    return tensor


def drawn(seed: int, *shape: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.rand(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


@some
@given(seed=st.integers(0, 99), b=st.integers(0, 3), n=sizes, steps=st.integers(1, 5), dtype=types, how=strides)
def test_sinkhorn_of_any_shape_and_stride(seed, b, n, steps, dtype, how):
    cost = laid_out(drawn(seed, b, n, n, dtype=dtype), how).requires_grad_()
    if n == 0:
        with pytest.raises(ValueError, match=r"at least one row"):
            sinkhorn(cost, 0.1, steps)
        return
    plan = sinkhorn(cost, 0.1, steps).matrix
    assert plan.isfinite().all()
    weights = laid_out(drawn(seed + 1, b, n, n, dtype=dtype), how)
    (gradient,) = torch.autograd.grad((plan * weights).sum(), cost)
    assert gradient.shape == cost.shape
    assert gradient.isfinite().all()


@some
@given(
    seed=st.integers(0, 99),
    n=sizes,
    d=st.integers(0, 19),
    counts=st.lists(st.integers(-1, 20), max_size=4),
    surplus=st.integers(-1, 1),
    dtype=types,
    how=strides,
    further=st.booleans(),
)
def test_embeddings_of_any_shape_stride_and_count(seed, n, d, counts, surplus, dtype, how, further):
    b, m = len(counts), max(0, sum(counts) + (surplus if seed % 3 == 0 else 0))
    slots, nodes = (
        laid_out(drawn(seed, *shape, dtype=dtype), how).requires_grad_() for shape in ((b, n, d), (m, d))
    )
    padding = drawn(seed, d, dtype=dtype)
    more = drawn(seed, b, n, 1, dtype=dtype).expand(b, n, n) if further else None
    if n == 0 or m != sum(counts) or not all(0 <= count <= n for count in counts):
        with pytest.raises(ValueError, match=r"counts|at least one row"):
            l1_plan(slots, nodes, torch.tensor(counts, dtype=torch.int64), padding, 0.1, 3, more)
        return
    plan = l1_plan(slots, nodes, torch.tensor(counts, dtype=torch.int64), padding, 0.1, 3, more)
    assert plan.shape == (b, n, n)
    for gradient in torch.autograd.grad((plan * plan).sum(), (slots, nodes)):
        assert gradient.isfinite().all()


@some
@given(
    seed=st.integers(0, 99),
    b=st.integers(0, 3),
    n=st.integers(1, 19),
    terms=st.integers(0, 2),
    dtype=types,
    how=strides,
    loops=st.sampled_from(SelfLoops),
    scale=st.sampled_from([0.0, 1.0, 1e30, 1e290]),
)
def test_solvers_of_any_shape_and_stride(seed, b, n, terms, dtype, how, loops, scale):
    linear = laid_out(drawn(seed, b, n, n, dtype=dtype), how) * scale
    if not linear.isfinite().all():
        return
    edges = tuple(
        EdgeTerm(*(laid_out(drawn(seed + at, b, n, n, dtype=dtype), how) for at in (term, 5)), "squared")
        for term in range(terms)
    )
    problem = MatchingProblem(linear, edges, (drawn(seed, b, n, dtype=dtype) > 0.3).to(dtype), loops)
    start = laid_out(drawn(seed, b, n, n, dtype=dtype), how)
    for solve in (mirror_descent, conditional_gradient):
        try:
            plan = solve(problem, start).matrix
        except NotFiniteError:
            assert scale > 1
            continue
        assert plan.isfinite().all()


def kernels():
    found = load_kernels()
    assert found is not None
    return found


def given_embeddings(**changes: torch.Tensor) -> Embeddings:
    plain = Embeddings(
        torch.rand(2, 4, 3),
        torch.rand(5, 3),
        torch.tensor([2, 3]),
        torch.tensor([0, 2]),
        torch.rand(3),
        torch.rand(2, 4, 4),
    )
    return plain._replace(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"counts": torch.tensor([2, 5])},
        {"counts": torch.tensor([2, -1])},
        {"counts": torch.tensor([2, 3, 0])},
        {"counts": torch.tensor([2, 3], dtype=torch.int32)},
        {"starts": torch.tensor([0, 3])},
        {"starts": torch.tensor([-1, 2])},
        {"nodes": torch.rand(4, 3)},
        {"nodes": torch.rand(5, 2)},
        {"nodes": torch.rand(3, 5).mT},
        {"nodes": torch.rand(5, 3).double()},
        {"padding": torch.rand(2)},
        {"slots": torch.rand(2, 0, 3)},
        {"slots": torch.rand(2, 4, 6)[..., ::2]},
        {"slots": torch.rand(2, 4, 3, device="meta")},
        {"further": torch.rand(2, 4, 3)},
    ],
)
def test_embeddings_that_do_not_fit_reach_no_pointer(changes):
    assert kernels().l1_plan_forward(given_embeddings(), 0.1, 1e-6, 2).plan.isfinite().all()
    with pytest.raises(ValueError, match=r"must|expected|do not fit"):
        kernels().l1_plan_forward(given_embeddings(**changes), 0.1, 1e-6, 2)


@pytest.mark.parametrize(
    "changes",
    [
        {"cost": torch.rand(2, 4, 3)},
        {"cost": torch.rand(2, 0, 0)},
        {"cost": torch.rand(2, 4, 4).mT},
        {"rows": torch.rand(2, 0, 4)},
        {"rows": torch.rand(2, 3, 5)},
        {"columns": torch.rand(2, 3, 4)},
        {"columns": torch.rand(2, 4, 4).double()},
        {"gradient": torch.rand(1, 4, 4)},
    ],
)
def test_steps_that_do_not_fit_reach_no_pointer(changes):
    plain = {
        "cost": torch.rand(2, 4, 4),
        "rows": torch.rand(2, 3, 4),
        "columns": torch.rand(2, 4, 4),
        "gradient": torch.rand(2, 4, 4),
    }
    assert kernels().sinkhorn_backward(epsilon=0.1, **plain).shape == (2, 4, 4)
    with pytest.raises(ValueError, match=r"must|expected"):
        kernels().sinkhorn_backward(epsilon=0.1, **(plain | changes))
    for cost, steps in ((torch.rand(2, 4, 3), 2), (torch.rand(2, 0, 0), 2), (torch.rand(2, 4, 4), 0)):
        with pytest.raises(ValueError, match=r"must|expected"):
            kernels().sinkhorn_forward(cost, 0.1, steps)


@pytest.mark.parametrize(
    "changes",
    [
        {"linear": torch.rand(2, 4, 3)},
        {"mask": torch.rand(2, 3)},
        {"mask": torch.rand(2, 4).double()},
        {"pair_cost": torch.rand(1, 4, 4)},
        {"target_cost": torch.rand(2, 4)},
        {"left": torch.rand(2, 4, 3)},
        {"right": torch.rand(2, 3, 4, 4)},
        {"start": torch.rand(2, 4, 3)},
    ],
)
def test_forms_that_do_not_fit_reach_no_pointer(changes):
    term = EdgeTerm(torch.rand(2, 4, 4), torch.rand(2, 4, 4), "squared")
    form = MatchingProblem(torch.rand(2, 4, 4), (term,), torch.ones(2, 4)).quadratic_form()
    start = changes.pop("start", torch.full((2, 4, 4), 0.25))
    with pytest.raises(ValueError, match=r"must|expected"):
        kernels().conditional_gradient(replace(form, **changes), start, iterations=2, tolerance=1e-5)
    with pytest.raises(ValueError, match=r"must|expected"):
        kernels().mirror_descent(
            replace(form, **changes), start, start.log(), step_size=1.0, outer=2, inner=2, tolerance=1e-5
        )


SHORT_OF_MEMORY = """
import resource, torch
from graphwright.transport import sinkhorn
torch.set_num_threads({threads})
sinkhorn(torch.rand(1, 3, 3), 0.1, 1)
cost = torch.rand({threads}, 4000, 4000)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
# Room for what comes back, not for what a kernel works in.
resource.setrlimit(resource.RLIMIT_AS, (used + 96 * 10**6 * {threads}, -1))
try:
    sinkhorn(cost, 0.1, 1)
except MemoryError as error:
    print("told:", error)
"""


@pytest.mark.skipif(SANITIZED or sys.platform != "linux", reason="a sanitizer has terabytes of addresses")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_kernel_without_memory_says_so_and_the_process_lives(threads):
    done = subprocess.run(
        [sys.executable, "-c", SHORT_OF_MEMORY.format(threads=threads)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout[:40]) == (0, "told: too little memory for sinkhorn_forward of "[:40])


BEYOND = """
import ctypes, torch
from graphwright.transport.native.library import _function, load_kernels
cost, out = torch.rand(1, 8, 7), [torch.empty(1, 8, 8) for _ in range(6)]
_function(load_kernels().library, "sinkhorn_forward", torch.float32)(
    cost.data_ptr(), 0.1, 1, 8, 2, 1, *[each.data_ptr() for each in out])
"""


@pytest.mark.skipif(not SANITIZED, reason="for make sanitize")
def test_the_sanitizer_sees_what_leaves_an_array():
    """Past the checks of the library: else all other tests would show nothing."""
    done = subprocess.run([sys.executable, "-c", BEYOND], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "AddressSanitizer: heap-buffer-overflow" in done.stderr
