"""Calls of operators that bypass PyTorch's dispatcher where only the time differs.

An operator of ``torch.library`` with kernels and gradients in Python goes from C++ to Python and
back several times a call, about ten microseconds in all. A compiler, transform, tracer, profiler or
subclass has to see the operator. A plain call on plain tensors does not need the dispatcher: it
calls the kernel directly, and a ``torch.autograd.Function``, whose layers are in C++, records it
for gradients.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.autograd import forward_ad

_TENSORS = (Tensor, torch.nn.Parameter)

# They report who takes part in a call. They are internals of PyTorch: if one is missing, no call is
# plain.
_NAMES = (
    "_len_torch_dispatch_stack",
    "_len_torch_function_stack",
    "_get_tracing_state",
    "_are_functorch_transforms_active",
    "_dispatch_keys",
)
_dispatch_modes, _function_modes, _tracing, _transforms, _keys_of = (getattr(torch._C, name, None) for name in _NAMES)
_profiling = getattr(torch.autograd, "_profiler_enabled", None)
_is_known = None not in (_dispatch_modes, _function_modes, _tracing, _transforms, _keys_of, _profiling)

#: The device type of plain tensors with these dispatch keys.
_places: dict[int, str] = {}


# ANCHOR: plain
def is_plain_call() -> bool:
    """True if only reverse mode takes part: no compiler, transform, mode, tracer or profiler."""
    if torch.compiler.is_compiling() or not _is_known:
        return False
    return not (
        forward_ad._current_level >= 0
        or _transforms()
        or _dispatch_modes()
        or _function_modes()
        or _profiling()
        or _tracing() is not None
    )
# ANCHOR_END: plain


def place_of(tensor: Tensor) -> str | None:
    """Returns the device type, ``cpu`` or ``cuda``, of a plain tensor, or ``None`` for others.

    A plain tensor is no subclass and no wrapper, and its data need no conversion. Valid in a plain
    call only.
    """
    if type(tensor) not in _TENSORS:
        return None
    keys = _keys_of(tensor).raw_repr()
    place = _places.get(keys)
    if place is None and tensor.device.type in ("cpu", "cuda"):
        _learn(tensor.device)
        place = _places.get(keys)
    return place


def _learn(device: torch.device) -> None:
    """Records the keys of a device's plain tensors, inside and outside of inference mode."""
    for inference in (False, True):
        with torch.inference_mode(inference):
            _places[_keys_of(torch.empty(0, device=device)).raw_repr()] = device.type


def past_the_dispatcher(
    operator: Callable, kernels: dict[str, Callable], save: Callable | None = None, gradient: Callable | None = None
) -> Callable:
    """Returns the operator as a function that bypasses the dispatcher wherever it can.

    Args:
        operator: an overload of ``torch.ops`` that takes tensors, or ``None`` for some, and flags.
        kernels: the functions that compute it, by device type.
        save, gradient: as for ``torch.library.register_autograd``; ``None`` without gradients.
    """

    # The device type is the last argument, so that the others have their places in `ctx`.
    def forward(ctx, *arguments):
        *arguments, place = arguments
        output = kernels[place](*arguments)
        save(ctx, arguments, output)
        return output

    def backward(ctx, *gradients):
        return *gradient(ctx, *gradients), None

    # The name of the node in a graph of autograd.
    name = operator._schema.name.replace("::", "_")
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    recorded = type(name, (torch.autograd.Function,), methods).apply

    # ANCHOR: call
    def call(*arguments):
        if not is_plain_call():
            return operator(*arguments)
        place, is_recorded = None, False
        for argument in arguments:
            # Not `isinstance`, which calls a metaclass in Python.
            if argument is None or type(argument) is bool:
                continue
            here = place_of(argument)
            if here not in kernels or (place is not None and here != place):
                return operator(*arguments)
            place = here
            is_recorded = is_recorded or argument.requires_grad
        return short(place, is_recorded, *arguments)

    def short(place, is_recorded, *arguments):
        if not (is_recorded and torch.is_grad_enabled()):
            return kernels[place](*arguments)
        return operator(*arguments) if gradient is None else recorded(*arguments, place)
    # ANCHOR_END: call

    # For callers that have checked the call and its tensors already.
    call.short = short
    return call
