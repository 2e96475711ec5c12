"""A device that is not there: tensors that say they are elsewhere and hold their values on the processor.

It has the rules of a GPU and no hardware: tensors of two devices do not meet in an operation (but in copies, as
indices, or as single numbers of the processor), a generator draws on its own device, NumPy and compiled kernels
cannot look inside, values leave by `.cpu()`, `.item()` or `.tolist()`. It goes by the name of torch's meta device,
which every operation knows, and denies that it is that one, so that nothing is left out which a GPU would do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_flatten, tree_map

DEVICE = torch.device("meta")
aten = torch.ops.aten
COPIES = {aten.copy_.default, aten._to_copy.default}
INDEXING = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default, aten._index_put_impl_.default}
"""A GPU takes its indices from the processor, too, but nothing else."""
JOINING = {aten.stack.default, aten.cat.default}
"""They take no single numbers from elsewhere."""


class FarTensor(Tensor):
    """Its values are `near`, a tensor on the processor that nobody but this file looks at."""

    near: Tensor
    is_meta = False  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, near: Tensor) -> FarTensor:
        far: FarTensor = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            near.size(),
            strides=near.stride(),
            storage_offset=near.storage_offset(),
            dtype=near.dtype,
            device=DEVICE,
        )
        far.near = near
        return far

    def __repr__(self) -> str:
        return f"FarTensor({self.near!r})"

    def tolist(self) -> Any:
        """Torch leaves this one to subclasses."""
        return self.near.tolist()

    def new_tensor(self, data: Any, **kwargs: Any) -> FarTensor:
        """As `torch.tensor` below."""
        return FarTensor(self.near.new_tensor(data, **kwargs))

    @classmethod
    def __torch_dispatch__(cls, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _perform(operation, args, kwargs or {})


class DeviceError(RuntimeError):
    """Tensors of two devices in one operation."""


def _perform(operation: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    given, _ = tree_flatten((args, kwargs))
    far = [value for value in given if isinstance(value, FarTensor)]
    # Indices do not count where they may come from the processor.
    meeting = tree_flatten((args[:1], args[2:], kwargs))[0] if operation in INDEXING else given
    near = [
        value
        for value in meeting
        if isinstance(value, Tensor)
        and not isinstance(value, FarTensor)
        and (value.ndim or operation in JOINING or (value is args[0] and operation._schema.is_mutable))
    ]
    asked = kwargs.get("device")
    if operation in INDEXING and not isinstance(args[0], FarTensor) and far:
        raise DeviceError(f"{operation}: indices of {DEVICE} into a tensor of the processor")
    if far and near and operation not in COPIES:
        shapes = [tuple(value.shape) for value in near]
        raise DeviceError(f"{operation}: tensors {shapes} of the processor meet tensors of {DEVICE}")
    if kwargs.get("generator") is not None and (far or (asked is not None and torch.device(asked) == DEVICE)):
        raise DeviceError(f"{operation}: a generator of the processor draws on {DEVICE}")
    if asked is not None:
        kwargs = kwargs | {"device": torch.device("cpu")}
    own_args, own_kwargs = tree_map(
        lambda value: value.near if isinstance(value, FarTensor) else value, (args, kwargs)
    )
    result = operation(*own_args, **own_kwargs)
    if operation is aten.copy_.default:
        return args[0]
    goes_far = bool(far) if asked is None else torch.device(asked).type == DEVICE.type
    if not goes_far:
        return result
    wrapped = tree_map(lambda value: FarTensor(value) if isinstance(value, Tensor) else value, result)
    return return_and_correct_aliasing(operation, args, kwargs, wrapped) if far else wrapped


class _Anywhere(TorchDispatchMode):
    """What is made on the device by name is far, too."""

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _perform(operation, args, kwargs or {})


@contextmanager
def fake_device() -> Iterator[torch.device]:
    """While it lasts, `tensor.to(device)` and `torch.zeros(..., device=device)` are far away."""
    autocast, tensor = torch.autocast, torch.tensor

    def known_autocast(device: str, *args: Any, **kwargs: Any) -> Any:
        return autocast("cpu" if device == DEVICE.type else device, *args, **kwargs)

    def far_tensor(data: Any, *, device: Any = None, **kwargs: Any) -> Tensor:
        """Torch itself would make an empty one: the meta device holds no values."""
        made = tensor(data, **kwargs)
        return FarTensor(made) if device is not None and torch.device(device).type == DEVICE.type else made

    torch.autocast, torch.tensor = known_autocast, far_tensor  # type: ignore[assignment,misc]
    try:
        with _Anywhere():
            yield DEVICE
    finally:
        torch.autocast, torch.tensor = autocast, tensor  # type: ignore[misc]


def move(module: nn.Module) -> nn.Module:
    """The module's weights and buffers, far away; `Module.to` cannot make one kind of tensor of another."""
    for part in module.modules():
        for name, weight in part._parameters.items():
            if weight is not None:
                part._parameters[name] = nn.Parameter(FarTensor(weight.detach().clone()), weight.requires_grad)
        for name, buffer in part._buffers.items():
            if buffer is not None:
                part._buffers[name] = FarTensor(buffer.detach().clone())
    return module


def values(tensor: Tensor) -> Tensor:
    """What a tensor holds, wherever it is."""
    return tensor.near if isinstance(tensor, FarTensor) else tensor
