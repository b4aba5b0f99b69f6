"""Mamba's selective scan for PyTorch, with the arguments of mamba-ssm's ``selective_scan_fn``.

On a GPU it is one kernel, and its gradients are two more: the operators
``torch.ops.linrec.selective_scan`` and ``torch.ops.linrec.selective_scan_backward``. Elsewhere, and
for complex rates, it is composed of :func:`linrec.linrec`.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from . import _native
from ._eager import is_plain_call, past_the_dispatcher
from ._recurrence import linrec
from ._tensors import ACCUMULATORS, capsule, check, describe, on_device_of, stream_of

#: The number of steps between the states that the forward pass saves for the backward pass.
CHECKPOINT_STEPS = 8
#: The largest number of states of a channel for the kernels.
MOST_STATES = 256


def selective_scan(
    u: Tensor,
    delta: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    D: Tensor | None = None,
    z: Tensor | None = None,
    delta_bias: Tensor | None = None,
    delta_softplus: bool = False,
    return_last_state: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Mamba's selective scan: for each channel ``d``, state ``n`` and step ``t``::

        s = softplus(delta[t] + delta_bias[d])
        h[t] = exp(s A[d, n]) h[t-1] + s u[t] B[n, t]
        out[t] = (sum over n of C[n, t] h[t]  +  D[d] u[t]) * silu(z[t])

    Args:
        u: ``[batch, channels, length]``.
        delta: the steps' sizes before bias and softplus, ``[batch, channels, length]``.
        A: ``[channels, states]``, real or complex.
        B: ``[channels, states]``, or varying along the sequence ``[batch, states, length]`` or
            ``[batch, groups, states, length]``. With a complex ``A``, a varying ``B`` is real and
            of length ``2 length``, with real and imaginary parts alternating, and a constant ``B``
            is complex.
        C: as ``B``.
        D: ``[channels]``; ``None`` means zero.
        z: ``[batch, channels, length]``; ``None`` leaves out the last factor.
        delta_bias: ``[channels]``; ``None`` means zero.
        delta_softplus: take the softplus of the steps' sizes.
        return_last_state: also return the states after the last step.

    Returns:
        The outputs ``[batch, channels, length]`` in the type of ``u``. With ``return_last_state``,
        the outputs and the last states ``[batch, channels, states]`` in float32 (in float64 if
        ``u`` is float64, complex if ``A`` is complex). The last states have gradients, too.

    On a GPU, with a real ``A`` and ``u`` in float32, bfloat16 or float16, one kernel computes it
    without expanding anything in memory. That kernel has gradients of first order; the composition
    has gradients of any order.
    """
    _check(u, delta, A, B, C, D, z, delta_bias)
    fused = u.is_cuda and not A.is_complex() and u.dtype != torch.float64 and A.shape[1] <= MOST_STATES
    if not fused:
        out, last = _composed(u, delta, A, B, C, D, z, delta_bias, delta_softplus)
        return (out, last) if return_last_state else out
    delta, z = delta.to(u.dtype), None if z is None else z.to(u.dtype)
    A, D, delta_bias = A.float(), _float(D), _float(delta_bias)
    B, C = (_grouped(tensor).to(u.dtype) if tensor.ndim > 2 else tensor.float() for tensor in (B, C))
    tensors = (u, delta, A, B, C, D, z, delta_bias)
    out, last, _ = scan(*tensors, delta_softplus, _gradients_may_follow(*tensors))
    return (out, last) if return_last_state else out


def _gradients_may_follow(*tensors: Tensor | None) -> bool:
    """True if a backward pass may need the states; compilers and transforms do not say."""
    if not torch.is_grad_enabled():
        return False
    return not is_plain_call() or any(tensor is not None and tensor.requires_grad for tensor in tensors)


def _float(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.float()


def _grouped(coupling: Tensor) -> Tensor:
    return coupling.unsqueeze(1) if coupling.ndim == 3 else coupling


def _check(u, delta, A, B, C, D, z, delta_bias) -> None:
    operation = "selective_scan"
    named = [("delta", delta), ("A", A), ("B", B), ("C", C), ("D", D), ("z", z), ("delta_bias", delta_bias)]
    check(operation, ("u", u), named)
    if u.ndim != 3 or A.ndim != 2:
        raise ValueError(
            f"{operation}: u is {describe(u)}, and A is {describe(A)}; they are [batch, channels, length] and "
            "[channels, states]"
        )
    (batch, channels, length), states = u.shape, A.shape[1]
    parts = 2 if A.is_complex() else 1

    def expect(name: str, tensor: Tensor | None, *shapes: list[int]) -> None:
        if tensor is not None and list(tensor.shape) not in shapes:
            wanted = " or ".join(str(shape) for shape in shapes)
            raise ValueError(
                f"{operation}: {name} is {describe(tensor)}, and u is {describe(u)} with A {describe(A)}; it has to be {wanted}"
            )

    expect("A", A, [channels, states])
    for name, tensor in [("delta", delta), ("z", z)]:
        expect(name, tensor, [batch, channels, length])
    for name, tensor in [("D", D), ("delta_bias", delta_bias)]:
        expect(name, tensor, [channels])
    groups = {tensor.shape[1] if tensor.ndim == 4 else 1 for tensor in (B, C) if tensor.ndim > 2}
    if len(groups) > 1 or any(of == 0 or channels % of != 0 for of in groups):
        raise ValueError(
            f"{operation}: B is {describe(B)}, and C is {describe(C)}; their groups are one number, which divides the "
            f"{channels} channels of u"
        )
    for name, tensor in [("B", B), ("C", C)]:
        varying = [[batch, of, states, parts * length] for of in groups] + [[batch, states, parts * length]]
        expect(name, tensor, [channels, states], *varying)
        if tensor.is_complex() != (A.is_complex() and tensor.ndim == 2):
            raise TypeError(
                f"{operation}: A is {describe(A)}, and {name} is {describe(tensor)}: with a complex A what is constant is "
                "complex, and what varies has real and imaginary parts by turns"
            )
    for name, tensor in [("u", u), ("delta", delta), ("D", D), ("z", z), ("delta_bias", delta_bias)]:
        if tensor is not None and tensor.is_complex():
            raise TypeError(f"{operation}: {name} is {describe(tensor)}; it has to be real")


def _composed(u, delta, A, B, C, D, z, delta_bias, delta_softplus) -> tuple[Tensor, Tensor]:
    """Computes all states at once: a recurrence with the logarithms ``s A`` as coefficients."""
    dtype = ACCUMULATORS[u.dtype]
    channels = u.shape[1]
    wide = dtype.to_complex() if A.is_complex() else dtype
    x, steps, A = u.to(dtype), delta.to(dtype), A.to(wide)
    if delta_bias is not None:
        steps = steps + delta_bias.to(dtype).unsqueeze(-1)
    if delta_softplus:
        steps = functional.softplus(steps)

    def coupled(coupling: Tensor) -> Tensor:
        """Returns the channels' ``B`` or ``C``, ``[batch or 1, channels, states, length or 1]``."""
        if coupling.ndim == 2:
            return coupling.to(wide)[None, :, :, None]
        coupling = _grouped(coupling).to(dtype)
        if wide.is_complex:
            coupling = torch.view_as_complex(coupling.unflatten(-1, (-1, 2)).contiguous())
        return coupling.repeat_interleave(channels // coupling.shape[1], dim=1)

    logs = steps.unsqueeze(2) * A.unsqueeze(-1)
    inputs = (steps * x).unsqueeze(2) * coupled(B)
    states, last = linrec(inputs, logs, log_coeffs=True, return_final=True)
    out = (states * coupled(C)).sum(dim=2)
    if out.is_complex():
        out = 2 * out.real
    if D is not None:
        out = out + x * D.to(dtype).unsqueeze(-1)
    if z is not None:
        out = out * functional.silu(z.to(dtype))
    return out.to(u.dtype), last


# The kernel of the GPU as an operator.

_library = torch.library.Library("linrec", "FRAGMENT")
_INPUTS = "Tensor u, Tensor delta, Tensor A, Tensor B, Tensor C, Tensor? D, Tensor? z, Tensor? delta_bias, bool softplus"
_library.define(
    f"selective_scan({_INPUTS}, bool keep) -> (Tensor out, Tensor last, Tensor checkpoints)",
    tags=(torch.Tag.pt2_compliant_tag,),
)
_library.define(
    f"selective_scan_backward({_INPUTS}, Tensor d_out, Tensor? d_last, Tensor checkpoints)"
    " -> (Tensor d_u, Tensor d_delta, Tensor d_A, Tensor d_B, Tensor d_C, Tensor d_D, Tensor d_z, Tensor d_delta_bias)",
    tags=(torch.Tag.pt2_compliant_tag,),
)


def _rows(*tensors: Tensor | None) -> list[Tensor | None]:
    return [None if tensor is None else tensor.contiguous() for tensor in tensors]


def _results(u: Tensor, A: Tensor, keep: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Allocates the outputs, the last states, and the checkpoints, which are empty unless kept."""
    (batch, channels, length), states = u.shape, A.shape[1]
    chunks = (length + CHECKPOINT_STEPS - 1) // CHECKPOINT_STEPS
    floats = {"dtype": torch.float32}
    return (
        u.new_empty(u.shape),
        u.new_empty((batch, channels, states), **floats),
        u.new_empty((batch, chunks, channels, states) if keep else 0, **floats),
    )


def _gradients(u, delta, A, B, C, D, z, delta_bias) -> list[Tensor]:
    """Allocates the gradients, with an empty tensor for an absent argument."""
    tensors = (u, delta, A, B, C, D, z, delta_bias)
    return [u.new_empty(0) if tensor is None else tensor.new_empty(tensor.shape) for tensor in tensors]


def _scan_cuda(u, delta, A, B, C, D, z, delta_bias, softplus, keep):
    inputs = _rows(u, delta, A, B, C, D, z, delta_bias)
    results = _results(u, A, keep)
    if u.numel() == 0:
        # Without a step the states are the initial ones, zeros.
        return results[0], results[1].zero_(), results[2]
    arrays = [*map(capsule, inputs), softplus, *map(capsule, (*results[:2], results[2] if keep else None))]
    with on_device_of(u):
        _native.selective_scan_forward(*arrays, stream=stream_of(u))
    return results


def _scan_backward_cuda(u, delta, A, B, C, D, z, delta_bias, softplus, d_out, d_last, checkpoints):
    optional = (D, z, delta_bias)
    inputs = _rows(u, delta, A, B, C, *optional)
    results = _gradients(u, delta, A, B, C, *optional)
    if u.numel() == 0:
        return tuple(result.zero_() for result in results)
    given = [True] * 5 + [tensor is not None for tensor in optional]
    wanted = [result if is_given else None for result, is_given in zip(results, given)]
    from_above = _rows(d_out, d_last, checkpoints)
    arrays = [*map(capsule, inputs), softplus, *map(capsule, [*from_above, *wanted])]
    with on_device_of(u):
        _native.selective_scan_backward(*arrays, stream=stream_of(u))
    return tuple(results)


_library.impl("selective_scan", _scan_cuda, "CUDA")
_library.impl("selective_scan_backward", _scan_backward_cuda, "CUDA")


@torch.library.register_fake("linrec::selective_scan")
def _(u, delta, A, B, C, D, z, delta_bias, softplus, keep):
    return _results(u, A, keep)


@torch.library.register_fake("linrec::selective_scan_backward")
def _(u, delta, A, B, C, D, z, delta_bias, softplus, d_out, d_last, checkpoints):
    return tuple(_gradients(u, delta, A, B, C, D, z, delta_bias))


def _save(ctx, inputs, output) -> None:
    *tensors, softplus, _keep = inputs
    ctx.save_for_backward(*tensors, output[2])
    ctx.softplus = softplus
    ctx.set_materialize_grads(False)


def _gradient(ctx, d_out, d_last, _d_checkpoints):
    *tensors, checkpoints = ctx.saved_tensors
    u = tensors[0]
    d_out = torch.zeros_like(u) if d_out is None else d_out
    gradients = scan_backward(*tensors, ctx.softplus, d_out, d_last, checkpoints)
    return *(None if tensor is None else gradient for tensor, gradient in zip(tensors, gradients)), None, None


torch.library.register_autograd("linrec::selective_scan", _gradient, setup_context=_save)

scan = past_the_dispatcher(torch.ops.linrec.selective_scan.default, {"cuda": _scan_cuda}, _save, _gradient)
scan_backward = past_the_dispatcher(torch.ops.linrec.selective_scan_backward.default, {"cuda": _scan_backward_cuda})
