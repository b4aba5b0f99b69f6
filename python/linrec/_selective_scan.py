"""Mamba's selective scan for PyTorch, with the arguments of mamba-ssm's ``selective_scan_fn``.

It is fused, on a GPU and on the CPU: the operators ``torch.ops.linrec.selective_scan`` and
``torch.ops.linrec.selective_scan_backward``. For complex rates, under transforms and for
derivatives of higher order it is composed of :func:`linrec.linrec`.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from . import _native
from ._eager import is_plain_call, past_the_dispatcher, place_of
from ._recurrence import is_transformed, linrec
from ._tensors import ACCUMULATORS, capsule, check, describe, of_type, on_device_of, rows_like, stream_of, to_dlpack

#: The number of steps between the states that the forward pass saves for the backward pass.
CHECKPOINT_STEPS = {"cpu": 64, "cuda": 8}
#: The largest number of states of a channel on a GPU.
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
    *,
    initial_state: Tensor | None = None,
    seq_idx: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
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
        initial_state: the states before the first step, ``[batch, channels, states]``; ``None``
            means zero.
        seq_idx: the numbers of the sequences that a row is packed from, ``[batch, length]``
            integers. Where the number changes, the states begin at zero.
        cu_seqlens: the same for one row (``batch`` is 1): the ends of its sequences after a 0,
            ``[sequences + 1]`` integers from 0 to ``length``, which do not fall. A sequence may be
            empty. With it ``initial_state`` and the last states are ``[sequences, channels,
            states]``.

    Returns:
        The outputs ``[batch, channels, length]`` in the type of ``u``. With ``return_last_state``,
        the outputs and the last states ``[batch, channels, states]`` in float32 (in float64 if
        ``u`` is float64, complex if ``A`` is complex). The last states have gradients, too. As the
        next call's ``initial_state`` they continue the sequences without a loss.

    With a real ``A`` one kernel computes it without expanding anything in memory, on a GPU if ``u``
    is in float32, bfloat16 or float16 and there are at most 256 states. Gradients are of any order;
    those of higher order, complex rates and ``torch.func`` expand all states in memory. Results and
    gradients have the same bits in every run.
    """
    tensors = (u, delta, A, B, C, D, z, delta_bias)
    if initial_state is None and seq_idx is None and cu_seqlens is None and is_plain_call():
        # The common call: nothing has to be converted, so one look is enough.
        place = _place_of_all(*tensors)
        if place is not None:
            is_recorded = torch.is_grad_enabled() and _require_grad(*tensors)
            out, last, _ = scan.short(place, is_recorded, *tensors, None, None, delta_softplus, is_recorded)
            return (out, last) if return_last_state else out
    check_arguments(*tensors)
    restarts = None
    if cu_seqlens is not None:
        if seq_idx is not None:
            raise ValueError("selective_scan: seq_idx and cu_seqlens are given; they mean the same")
        _check_ends(cu_seqlens, u)
        if initial_state is not None or return_last_state:
            out, last = _unpacked(cu_seqlens, *tensors, delta_softplus, initial_state)
            return (out, last) if return_last_state else out
        ends = cu_seqlens.to(u.device, torch.int64).clamp(0, u.shape[2])
        restarts = torch.zeros(1, u.shape[2] + 1, dtype=torch.bool, device=u.device)
        restarts = restarts.index_fill_(1, ends, True)[:, :-1]
    elif seq_idx is not None:
        restarts = _changes(seq_idx, u)
    if initial_state is not None:
        check_initial(initial_state, (u.shape[0], *A.shape), u, A)
    out, last = _scan(*tensors, initial_state, restarts, delta_softplus)
    return (out, last) if return_last_state else out


def selective_state_update(
    state: Tensor,
    x: Tensor,
    dt: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    D: Tensor | None = None,
    z: Tensor | None = None,
    dt_bias: Tensor | None = None,
    dt_softplus: bool = False,
    state_batch_indices: Tensor | None = None,
) -> Tensor:
    """One step of :func:`selective_scan`, with the arguments of mamba-ssm's function of this name.

    Args:
        state: the states before the step, ``[batch, channels, states]``, or ``[batch, heads,
            channels, states]``. They are overwritten by the states after it. In float32 nothing is
            lost from step to step.
        x, dt, z: ``[batch, channels]``, or ``[batch, heads, channels]``. If one of them, or of ``B``
            and ``C``, differs from ``x`` in type, all are taken in the type of the computation.
        A: ``[channels, states]``, or ``[heads, channels, states]``.
        B, C: ``[batch, states]``, or ``[batch, groups, states]``.
        D, dt_bias: ``[channels]``, or ``[heads, channels]``.
        dt_softplus: take the softplus of the step's size.
        state_batch_indices: for each entry of the batch the place of its states in ``state``, integers
            ``[batch]`` without repetition; ``state`` may then have more entries. The others keep
            their values.

    Returns:
        The outputs, of the shape and type of ``x``.
    """
    if state_batch_indices is not None:
        _check_integers("state_batch_indices", state_batch_indices, [x.shape[0]], x)
        places = state_batch_indices.to(device=state.device, dtype=torch.int64)
        states = state[places]
        out = selective_state_update(states, x, dt, A, B, C, D, z, dt_bias, dt_softplus)
        state[places] = states
        return out
    if x.ndim not in (2, 3) or state.ndim != x.ndim + 1 or A.ndim != x.ndim:
        raise ValueError(
            f"selective_state_update: state is {describe(state)}, x is {describe(x)}, and A is {describe(A)}; they are "
            "[batch, channels, states], [batch, channels] and [channels, states], or have heads before the channels"
        )
    kind = x.dtype
    if any(tensor is not None and tensor.dtype != kind for tensor in (dt, B, C, z)):
        kind = ACCUMULATORS.get(kind, kind)  # a float32 B is not rounded to the type of x
    B, C = B.to(kind), C.to(kind)
    rows = lambda tensor: None if tensor is None else tensor.reshape(x.shape[0], -1, 1).to(kind)
    channels = lambda tensor: None if tensor is None else tensor.reshape(-1)
    A = A.reshape(-1, A.shape[-1])
    before = state.reshape(x.shape[0], -1, state.shape[-1])
    tensors = (rows(x), rows(dt), A, B.unsqueeze(-1), C.unsqueeze(-1), channels(D), rows(z), channels(dt_bias))
    out, last = selective_scan(*tensors, dt_softplus, True, initial_state=before)
    state.copy_(last.reshape(state.shape))
    return out.reshape(x.shape).to(x.dtype)


def _scan(u, delta, A, B, C, D, z, delta_bias, initial, restarts, softplus) -> tuple[Tensor, Tensor]:
    """Returns the outputs and the last states of arguments that have been checked."""
    tensors = (u, delta, A, B, C, D, z, delta_bias, initial)
    if not is_fused(u, A):
        return composed(*tensors, restarts, softplus)
    tensors = as_fused(*tensors)
    out, last, _ = scan(*tensors, restarts, softplus, _gradients_may_follow(*tensors))
    return out, last


def is_fused(u: Tensor, A: Tensor) -> bool:
    """True if the operator takes such arguments."""
    if A.is_complex() or is_transformed() or u.device.type not in CHECKPOINT_STEPS:
        return False
    return not u.is_cuda or u.dtype != torch.float64 and A.shape[1] <= MOST_STATES


def as_fused(u, delta, A, B, C, D, z, delta_bias, initial) -> tuple[Tensor | None, ...]:
    """Returns arguments that have been checked in the types that the operator takes."""
    dtype, wide = u.dtype, ACCUMULATORS[u.dtype]
    in_time = lambda tensor: None if tensor is None else tensor.to(dtype)
    others = lambda tensor: None if tensor is None else tensor.to(wide)
    B, C = (tensor.to(dtype if tensor.ndim > 2 else wide) for tensor in (B, C))
    delta, z = in_time(delta), in_time(z)
    return u, delta, others(A), B, C, others(D), z, others(delta_bias), others(initial)


def check_initial(initial: Tensor, shape: tuple[int, ...], u: Tensor, A: Tensor) -> None:
    check("selective_scan", ("u", u), [("initial_state", initial)])
    if initial.shape != shape or initial.is_complex() and not A.is_complex():
        raise ValueError(
            f"selective_scan: initial_state is {describe(initial)}, and u is {describe(u)} with A {describe(A)}; it has to "
            f"be {list(shape)}, and real if A is"
        )


def _check_integers(name: str, tensor: Tensor, shape: list, u: Tensor) -> None:
    if not isinstance(tensor, Tensor) or tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise TypeError(f"selective_scan: {name} has to be a tensor of integers")
    if tensor.ndim != len(shape) or any(size not in (None, given) for size, given in zip(shape, tensor.shape)):
        raise ValueError(f"selective_scan: {name} is {describe(tensor)}, and u is {describe(u)}; it has to be {shape}")


def _changes(seq_idx: Tensor, u: Tensor) -> Tensor:
    """Returns flags ``[batch, length]`` of the steps at which a sequence begins, but not the first."""
    _check_integers("seq_idx", seq_idx, [u.shape[0], u.shape[2]], u)
    seq_idx = seq_idx.to(u.device)
    return torch.nn.functional.pad(seq_idx[:, 1:] != seq_idx[:, :-1], (min(1, u.shape[2]), 0))


def _check_ends(cu_seqlens: Tensor, u: Tensor) -> None:
    _check_integers("cu_seqlens", cu_seqlens, [None], u)
    if u.shape[0] != 1 or len(cu_seqlens) == 0:
        raise ValueError(
            f"selective_scan: u is {describe(u)}, and cu_seqlens is {describe(cu_seqlens)}; packed sequences are one row, and "
            "cu_seqlens has a 0 and the end of each sequence"
        )
    # On a GPU a look at the numbers waits for it.
    if not cu_seqlens.is_cuda and not torch.compiler.is_compiling():
        _ends(cu_seqlens, u)


def _ends(cu_seqlens: Tensor, u: Tensor) -> list[int]:
    """Returns the numbers. An exception unless they are the ends of sequences that fill the row."""
    ends = cu_seqlens.tolist()
    if ends[0] != 0 or ends[-1] != u.shape[2] or any(one > other for one, other in zip(ends, ends[1:])):
        raise ValueError(f"selective_scan: cu_seqlens is {ends}; it has to rise from 0 to the length of u, {u.shape[2]}")
    return ends


def _unpacked(cu_seqlens, u, delta, A, B, C, D, z, delta_bias, softplus, initial) -> tuple[Tensor, Tensor]:
    """Computes packed sequences side by side, as rows that are filled up with steps of size zero.

    A step of size zero keeps the states, so the last states of a row are those of its sequence.
    """
    dtype, length = u.dtype, u.shape[2]
    # The size of the rows is needed here, so the numbers are looked at on a GPU as well: indices
    # outside of an array would lose it.
    numbers = _ends(cu_seqlens, u)
    number, longest = len(numbers) - 1, max((end - begin for begin, end in zip(numbers, numbers[1:])), default=0)
    if initial is not None:
        check_initial(initial, (number, *A.shape), u, A)
    ends, steps = cu_seqlens.to(u.device, torch.int64), torch.arange(length, device=u.device)
    sequence = torch.searchsorted(ends, steps, right=True) - 1
    places = (sequence, steps - ends[sequence])
    if not softplus and delta_bias is not None:
        # The sum with the bias has to be exactly zero.
        delta, delta_bias = delta.to(ACCUMULATORS[dtype]) + delta_bias.to(ACCUMULATORS[dtype]).unsqueeze(-1), None
        u = u.to(ACCUMULATORS[dtype])

    def rows(tensor: Tensor | None, fill: float = 0.0) -> Tensor | None:
        """Returns ``[1, ..., length]`` as ``[sequences, ..., longest]``."""
        if tensor is None:
            return None
        parts = tensor.shape[-1] // length if length > 0 else 1  # two for complex numbers
        values = tensor[0].unflatten(-1, (length, parts)).movedim(-2, 0)
        filled = torch.full((number, longest, *values.shape[1:]), fill, dtype=tensor.dtype, device=tensor.device)
        return filled.index_put(places, values).movedim(1, -2).flatten(-2)

    size_zero = float("-inf") if softplus else 0.0
    B, C = (rows(tensor) if tensor.ndim > 2 else tensor for tensor in (B, C))
    out, last = _scan(rows(u), rows(delta, size_zero), A, B, C, D, rows(z), delta_bias, initial, None, softplus)
    return out.movedim(-1, 1)[places].movedim(0, -1).unsqueeze(0).to(dtype), last


#: The types that are computed without a conversion, by the type of device.
_STORED = {
    "cpu": (torch.float32, torch.float64, torch.bfloat16, torch.float16),
    "cuda": (torch.float32, torch.bfloat16, torch.float16),
}


def _place_of_all(u, delta, A, B, C, D, z, delta_bias) -> str | None:
    """Returns the type of device if the operator takes all these tensors as they are, or ``None``."""
    place = place_of(u)
    if place not in _STORED or u.dtype not in _STORED[place] or u.ndim != 3 or place_of(A) != place:
        return None
    device, dtype, rows, rates = u.get_device(), u.dtype, u.shape, A.shape
    wide, groups = ACCUMULATORS[dtype], 0
    batch, channels, length = rows
    if A.dtype is not wide or len(rates) != 2 or rates[0] != channels or A.get_device() != device:
        return None
    if place == "cuda" and rates[1] > MOST_STATES:
        return None
    for tensor in (B, C):
        if place_of(tensor) != place or tensor.get_device() != device:
            return None
        shape = tensor.shape
        if len(shape) == 2:
            is_right = tensor.dtype is wide and shape == rates
        else:
            number = 1 if len(shape) == 3 else shape[1] if len(shape) == 4 else 0
            is_right = number > 0 and groups in (0, number) and channels % number == 0 and tensor.dtype is dtype
            is_right = is_right and shape[0] == batch and shape[-2] == rates[1] and shape[-1] == length
            groups = number
        if not is_right:
            return None
    constants = rates[:1]
    for tensor, kind, shape in ((delta, dtype, rows), (D, wide, constants), (delta_bias, wide, constants), (z, dtype, rows)):
        if tensor is None and tensor is not delta:
            continue
        if place_of(tensor) != place or tensor.dtype is not kind or tensor.shape != shape or tensor.get_device() != device:
            return None
    return place


def _require_grad(*tensors: Tensor | None) -> bool:
    return any([tensor.requires_grad for tensor in tensors if tensor is not None])


def _gradients_may_follow(*tensors: Tensor | None) -> bool:
    """True if a backward pass may need the states; compilers and transforms do not say."""
    if not torch.is_grad_enabled():
        return False
    return not is_plain_call() or _require_grad(*tensors)


def _grouped(coupling: Tensor) -> Tensor:
    return coupling.unsqueeze(1) if coupling.ndim == 3 else coupling


def check_arguments(u, delta, A, B, C, D, z, delta_bias) -> None:
    operation = "selective_scan"
    named = [("delta", delta), ("A", A), ("B", B), ("C", C), ("D", D), ("z", z), ("delta_bias", delta_bias)]
    for name, tensor in named[:4]:
        if tensor is None:
            raise TypeError(f"{operation}: {name} is None, and only D, z and delta_bias may be")
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


def sizes_of_steps(delta: Tensor, delta_bias: Tensor | None, softplus: bool) -> Tensor:
    """Returns the sizes after bias and softplus, in the type of the computation."""
    dtype = ACCUMULATORS[delta.dtype]
    sizes = delta.to(dtype)
    if delta_bias is not None:
        sizes = sizes + delta_bias.to(dtype).unsqueeze(-1)
    return functional.softplus(sizes) if softplus else sizes


def composed(
    u, delta, A, B, C, D, z, delta_bias, initial, restarts, delta_softplus, recurrence=linrec
) -> tuple[Tensor, Tensor]:
    """Computes all states at once: a recurrence with the logarithms ``s A`` as coefficients."""
    dtype = ACCUMULATORS[u.dtype]
    channels = u.shape[1]
    wide = dtype.to_complex() if A.is_complex() else dtype
    x, A = u.to(dtype), A.to(wide)
    steps = sizes_of_steps(delta.to(dtype), delta_bias, delta_softplus)

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
    if restarts is not None:
        logs = logs.masked_fill(restarts[:, None, None, :].to(torch.bool), float("-inf"))
    states, last = recurrence(inputs, logs, initial=initial, log_coeffs=True, return_final=True)
    out = (states * coupled(C)).sum(dim=2)
    if out.is_complex():
        out = 2 * out.real
    if D is not None:
        out = out + x * D.to(dtype).unsqueeze(-1)
    if z is not None:
        out = out * functional.silu(z.to(dtype))
    return out.to(u.dtype), last


# The fused scan as an operator.

_library = torch.library.Library("linrec", "FRAGMENT")
_TENSORS = "Tensor u, Tensor delta, Tensor A, Tensor B, Tensor C, Tensor? D, Tensor? z, Tensor? delta_bias, Tensor? initial"
_INPUTS = f"{_TENSORS}, Tensor? restarts, bool softplus"
_library.define(
    f"selective_scan({_INPUTS}, bool keep) -> (Tensor out, Tensor last, Tensor checkpoints)",
    tags=(torch.Tag.pt2_compliant_tag,),
)
_library.define(
    f"selective_scan_backward({_INPUTS}, Tensor d_out, Tensor? d_last, Tensor checkpoints)"
    " -> (Tensor d_u, Tensor d_delta, Tensor d_A, Tensor d_B, Tensor d_C, Tensor d_D, Tensor d_z, Tensor d_delta_bias,"
    " Tensor d_initial)",
    tags=(torch.Tag.pt2_compliant_tag,),
)


def _prepared(place: str, tensors) -> list[Tensor | None]:
    """Returns tensors as the device takes them: a GPU row after row, the CPU in the type of the computation."""
    if place == "cuda":
        return [None if tensor is None else tensor.contiguous() for tensor in tensors]
    return [None if tensor is None else of_type(ACCUMULATORS[tensor.dtype], tensor) for tensor in tensors]


def _results(u: Tensor, A: Tensor, keep: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Allocates the outputs, the last states, and the checkpoints, which are empty unless kept.

    The checkpoints have one axis: an export with a symbolic length would note that an axis of chunks
    has one element, or more.
    """
    states = (u.shape[0], u.shape[1], A.shape[1])
    return rows_like(u), A.new_empty(states), A.new_empty(_chunks(u) * math.prod(states) if keep else 0)


def _chunks(u: Tensor) -> int:
    """The number of checkpoints along a sequence."""
    steps = CHECKPOINT_STEPS[u.device.type]
    return (u.shape[2] + steps - 1) // steps


def _checkpoints(kept: Tensor, u: Tensor, A: Tensor) -> Tensor:
    return kept.view(u.shape[0], _chunks(u), u.shape[1], A.shape[1])


def _gradients(tensors) -> list[Tensor]:
    """Allocates the gradients, with an empty tensor for an absent argument."""
    u = tensors[0]
    return [u.new_empty(0) if tensor is None else rows_like(tensor) for tensor in tensors]


def _scan_on(place: str):
    """Returns the operator's function for a type of device."""

    def scan(*arguments):
        *tensors, restarts, softplus, keep = arguments
        u, initial = tensors[0], tensors[8]
        inputs = _prepared(place, tensors)
        out, last, checkpoints = _results(inputs[0], inputs[2], keep)
        if u.numel() > 0:
            written = (to_dlpack(out), to_dlpack(last), to_dlpack(_checkpoints(checkpoints, u, inputs[2])) if keep else None)
            _call(place, _native.selective_scan_forward, inputs, restarts, softplus, written)
        else:
            # Without a step the states are the initial ones.
            last = last.zero_() if initial is None else last.copy_(initial)
        return of_type(u.dtype, out), last, checkpoints

    return scan


def _scan_backward_on(place: str):
    """Returns the function of the operator for gradients, for a type of device."""

    def scan_backward(*arguments):
        *tensors, restarts, softplus, d_out, d_last, checkpoints = arguments
        u = tensors[0]
        if u.numel() == 0:
            results = [result.zero_() for result in _gradients(tensors)]
            if tensors[8] is not None and d_last is not None:
                results[8].copy_(d_last)
            return tuple(results)
        checkpoints = _checkpoints(checkpoints, u, tensors[2])
        inputs, given = _prepared(place, tensors), _prepared(place, (d_out, d_last, checkpoints))
        results = _gradients(inputs)
        wanted = [None if tensor is None else to_dlpack(result) for tensor, result in zip(tensors, results)]
        _call(place, _native.selective_scan_backward, inputs, restarts, softplus, [*map(capsule, given)], wanted)
        return tuple(result if tensor is None else of_type(tensor.dtype, result) for tensor, result in zip(tensors, results))

    return scan_backward


def _call(place: str, function, inputs, restarts, softplus, *capsules) -> None:
    flags = None if restarts is None else capsule(restarts.to(torch.uint8).contiguous())
    arguments = ([*map(capsule, inputs)], flags, softplus, *capsules)
    if place == "cpu":
        function(*arguments, threads=torch.get_num_threads())
        return
    with on_device_of(inputs[0]):
        function(*arguments, stream=stream_of(inputs[0]))


_SCANS = {place: _scan_on(place) for place in CHECKPOINT_STEPS}
_SCANS_BACKWARD = {place: _scan_backward_on(place) for place in CHECKPOINT_STEPS}
for _place in CHECKPOINT_STEPS:
    _library.impl("selective_scan", _SCANS[_place], _place.upper())
    _library.impl("selective_scan_backward", _SCANS_BACKWARD[_place], _place.upper())


@torch.library.register_fake("linrec::selective_scan")
def _(*arguments):
    return _results(arguments[0], arguments[2], arguments[-1])


@torch.library.register_fake("linrec::selective_scan_backward")
def _(*arguments):
    return tuple(_gradients(arguments[:9]))


def _save(ctx, inputs, output) -> None:
    *tensors, softplus, _keep = inputs
    ctx.save_for_backward(*tensors, output[2])
    ctx.softplus = softplus
    ctx.set_materialize_grads(False)


def _gradient(ctx, d_out, d_last, _d_checkpoints):
    *tensors, restarts, checkpoints = ctx.saved_tensors
    u = tensors[0]
    d_out = torch.zeros_like(u) if d_out is None else d_out
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        gradients = _differentiable_gradients(tensors, restarts, ctx.softplus, d_out, d_last)
    else:
        gradients = scan_backward(*tensors, restarts, ctx.softplus, d_out, d_last, checkpoints)
    return *(None if tensor is None else gradient for tensor, gradient in zip(tensors, gradients)), None, None, None


def _differentiable_gradients(tensors, restarts, softplus, d_out, d_last) -> list[Tensor | None]:
    """Returns the gradients of the composition, which have gradients themselves."""
    out, last = composed(*tensors, restarts, softplus)
    results = [(out, d_out)] if d_last is None else [(out, d_out), (last, d_last)]
    wanted = [tensor for tensor in tensors if tensor is not None and tensor.requires_grad]
    of, given = zip(*results)
    found = iter(torch.autograd.grad(of, wanted, given, create_graph=True, allow_unused=True))
    return [next(found) if tensor is not None and tensor.requires_grad else None for tensor in tensors]


torch.library.register_autograd("linrec::selective_scan", _gradient, setup_context=_save)

scan = past_the_dispatcher(torch.ops.linrec.selective_scan.default, _SCANS, _save, _gradient)
scan_backward = past_the_dispatcher(torch.ops.linrec.selective_scan_backward.default, _SCANS_BACKWARD)
