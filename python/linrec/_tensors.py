"""Tensors for the native part, and the checks of all operators."""

from __future__ import annotations

from contextlib import nullcontext

import torch
from torch import Tensor
from torch.utils.dlpack import to_dlpack

#: The types of elements, and the types in which they are computed.
ACCUMULATORS = {
    torch.float32: torch.float32,
    torch.float64: torch.float64,
    torch.complex64: torch.complex64,
    torch.complex128: torch.complex128,
    torch.bfloat16: torch.float32,
    torch.float16: torch.float32,
}


def capsule(tensor: Tensor | None) -> object | None:
    """Returns the tensor as a DLPack capsule, which keeps it alive; nothing is copied.

    A tensor's storage can be shorter than the tensor: ``resize_`` gives memory back, as FSDP does.
    """
    if tensor is None:
        return None
    if tensor.untyped_storage().nbytes() < tensor.nbytes or tensor.storage_offset() > 0 or not tensor.is_contiguous():
        _check_storage(tensor)
    return to_dlpack(tensor)


def _check_storage(tensor: Tensor) -> None:
    if tensor.numel() == 0:
        return
    distance = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    needed = (tensor.storage_offset() + distance + 1) * tensor.itemsize
    if tensor.untyped_storage().nbytes() < needed:
        raise ValueError(
            f"linrec: a tensor, {describe(tensor)}, reaches to byte {needed} of its storage, which has "
            f"{tensor.untyped_storage().nbytes()} bytes: its memory was given back"
        )


def describe(tensor: Tensor) -> str:
    """Describes a tensor for a message: ``float32[3, 100] on cuda:0``."""
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)} on {tensor.device}"


def check(operation: str, first: tuple[str, Tensor], others: list[tuple[str, Tensor | None]]) -> None:
    """Raises an exception unless all are tensors of supported types on one device."""
    for name, tensor in (first, *others):
        if tensor is None:
            continue
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{operation}: {name} is of type {type(tensor).__name__}, not a tensor")
        if tensor.dtype not in ACCUMULATORS:
            supported = ", ".join(str(dtype).removeprefix("torch.") for dtype in ACCUMULATORS)
            raise TypeError(f"{operation}: {name} is {describe(tensor)}; elements can be {supported}")
        if tensor.layout == torch.jagged:
            raise TypeError(
                f"{operation}: {name} is a nested tensor of layout torch.jagged. Pass its values() as one sequence, with "
                "coefficients of zero at offsets()[:-1], or to_padded_tensor(0.0)"
            )
        if tensor.layout != torch.strided:
            raise TypeError(f"{operation}: {name} is {describe(tensor)} of layout {tensor.layout}; it has to be strided")
        if tensor.device != first[1].device:
            raise ValueError(f"{operation}: {first[0]} is {describe(first[1])}, and {name} is {describe(tensor)}")


#: The function behind `torch.cuda.current_stream`, whose object costs a microsecond per call.
_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)


def stream_of(tensor: Tensor) -> int:
    """Returns the handle of PyTorch's current stream on the tensor's GPU."""
    if _raw_stream is not None:
        return _raw_stream(tensor.get_device())
    return torch.cuda.current_stream(tensor.device).cuda_stream


def of_type(dtype: torch.dtype, tensor: Tensor) -> Tensor:
    """Returns ``tensor.to(dtype)``, which costs a microsecond even where it does nothing."""
    return tensor if tensor.dtype is dtype else tensor.to(dtype)


def rows_like(tensor: Tensor) -> Tensor:
    """Allocates a tensor of the same shape, whose rows follow one another."""
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


_nothing = nullcontext()
#: `torch.cuda.current_device` without its check for CUDA, which has tensors already.
_current_device = getattr(torch._C, "_cuda_getDevice", torch.cuda.current_device)


def on_device_of(tensor: Tensor):
    """Returns a context in which the tensor's GPU is current, which the native part makes it."""
    if tensor.get_device() == _current_device():
        return _nothing
    return torch.cuda.device(tensor.device)
