"""The operators ``scan``, ``scan_with_final`` and ``scan_backward`` of ``torch.ops.linrec``.

Sequences are along the last axis. ``scan`` takes inputs and coefficients ``[..., length]`` and
initial states ``[...]`` of the accumulator's type. ``scan_with_final`` also returns the final states
in that type: the last outputs before they are rounded. ``scan_backward`` takes the results of
``scan`` and is the same recurrence, so its own gradients are a ``scan`` again. With ``y[-1]`` the
initial state, ``g`` the gradient with respect to ``y``, and ``*`` the complex conjugate::

    scan            y[l] = y[l-1] c[l] + x[l]
    scan_backward   d[l] = g[l] + c*[l+1] d[l+1],   dx = d,   dc[l] = d[l] y*[l-1],   dy[-1] = c*[0] d[0]

All take ``reverse``, ``log_coeffs`` and ``in_order``, which goes on to the operators of the gradients.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from . import _native
from ._eager import past_the_dispatcher
from ._tensors import ACCUMULATORS, capsule, check, describe, of_type, on_device_of, rows_like, stream_of, to_dlpack

_library = torch.library.Library("linrec", "DEF")
# ANCHOR: define
_library.define(
    "scan(Tensor inputs, Tensor coeffs, Tensor? initial, bool reverse, bool log_coeffs, bool in_order) -> Tensor",
    tags=(torch.Tag.pt2_compliant_tag,),
)
_library.define(
    "scan_with_final(Tensor inputs, Tensor coeffs, Tensor? initial, bool reverse, bool log_coeffs, bool in_order)"
    " -> (Tensor outputs, Tensor final)",
    tags=(torch.Tag.pt2_compliant_tag,),
)
_library.define(
    "scan_backward(Tensor d_outputs, Tensor coeffs, Tensor outputs, Tensor? initial, bool reverse, bool log_coeffs,"
    " bool in_order) -> (Tensor d_inputs, Tensor d_coeffs, Tensor d_initial)",
    tags=(torch.Tag.pt2_compliant_tag,),
)
# ANCHOR_END: define

# The checks with which every kernel of an operator begins.


def _check(operation: str, arrays: list[tuple[str, Tensor]], initial: Tensor | None) -> None:
    (name, first), others = arrays[0], arrays[1:]
    check(operation, (name, first), [*others, ("initial", initial)])
    if first.ndim == 0:
        raise ValueError(f"{operation}: {name} is {describe(first)}, and sequences need an axis")
    for other_name, other in others:
        if other.dtype != first.dtype or other.shape != first.shape:
            raise ValueError(f"{operation}: {name} is {describe(first)}, and {other_name} is {describe(other)}")
    if initial is not None:
        dtype = ACCUMULATORS[first.dtype]
        if initial.dtype != dtype or initial.shape != first.shape[:-1]:
            expected = f"{str(dtype).removeprefix('torch.')}{list(first.shape[:-1])}"
            raise ValueError(
                f"{operation}: {name} is {describe(first)}, and initial is {describe(initial)}; it has to be {expected}"
            )


def _check_forward(inputs: Tensor, coeffs: Tensor, initial: Tensor | None, *_options: bool) -> None:
    _check("linrec::scan", [("inputs", inputs), ("coeffs", coeffs)], initial)


def _check_with_final(inputs: Tensor, coeffs: Tensor, initial: Tensor | None, *_options: bool) -> None:
    _check("linrec::scan_with_final", [("inputs", inputs), ("coeffs", coeffs)], initial)


def _check_backward(
    d_outputs: Tensor, coeffs: Tensor, outputs: Tensor, initial: Tensor | None, *_options: bool
) -> None:
    arrays = [("d_outputs", d_outputs), ("coeffs", coeffs), ("outputs", outputs)]
    _check("linrec::scan_backward", arrays, initial)


def _states(rows: Tensor) -> Tensor:
    return torch.empty(rows.shape[:-1], dtype=ACCUMULATORS[rows.dtype], device=rows.device)


# On the CPU outputs have the inputs' strides, and gradients the outputs'. Numbers of 16 bits are
# converted to float32.


def _options(rows: Tensor, reverse: bool, log_coeffs: bool, in_order: bool) -> dict:
    return {"axis": rows.ndim - 1, "reverse": reverse, "log_coeffs": log_coeffs, "in_order": in_order}


def _scan_cpu(
    inputs: Tensor, coeffs: Tensor, initial: Tensor | None, *options: bool, final: Tensor | None = None
) -> Tensor:
    dtype = inputs.dtype
    wide = ACCUMULATORS[dtype]
    inputs, coeffs = of_type(wide, inputs), of_type(wide, coeffs)
    outputs = torch.empty_like(inputs)
    arrays = (*map(capsule, (inputs, coeffs, initial)), to_dlpack(outputs), None if final is None else to_dlpack(final))
    _native.forward(*arrays, **_options(inputs, *options), threads=torch.get_num_threads())
    return of_type(dtype, outputs)


def _scan_backward_cpu(
    d_outputs: Tensor, coeffs: Tensor, outputs: Tensor, initial: Tensor | None, *options: bool
) -> tuple[Tensor, Tensor, Tensor]:
    dtype = d_outputs.dtype
    wide = ACCUMULATORS[dtype]
    d_outputs, coeffs, outputs = of_type(wide, d_outputs), of_type(wide, coeffs), of_type(wide, outputs)
    results = (torch.empty_like(outputs), torch.empty_like(outputs), _states(outputs))
    arrays = (*map(capsule, (d_outputs, coeffs, outputs, initial)), *map(to_dlpack, results))
    _native.backward(*arrays, **_options(d_outputs, *options), threads=torch.get_num_threads())
    d_inputs, d_coeffs, d_initial = results
    return of_type(dtype, d_inputs), of_type(dtype, d_coeffs), d_initial


# On a GPU all arrays are contiguous; the work is queued on the current stream, without a wait.


# ANCHOR: kernel
def _scan_cuda(
    inputs: Tensor, coeffs: Tensor, initial: Tensor | None, *options: bool, final: Tensor | None = None
) -> Tensor:
    inputs, coeffs = inputs.contiguous(), coeffs.contiguous()
    initial = None if initial is None else initial.contiguous()
    outputs = rows_like(inputs)
    arrays = (*map(capsule, (inputs, coeffs, initial)), to_dlpack(outputs), None if final is None else to_dlpack(final))
    with on_device_of(inputs):
        _native.forward(*arrays, **_options(inputs, *options), stream=stream_of(inputs))
    return outputs
# ANCHOR_END: kernel


def _scan_backward_cuda(
    d_outputs: Tensor, coeffs: Tensor, outputs: Tensor, initial: Tensor | None, *options: bool
) -> tuple[Tensor, Tensor, Tensor]:
    d_outputs, coeffs, outputs = d_outputs.contiguous(), coeffs.contiguous(), outputs.contiguous()
    initial = None if initial is None else initial.contiguous()
    results = (rows_like(d_outputs), rows_like(d_outputs), _states(d_outputs))
    arrays = (*map(capsule, (d_outputs, coeffs, outputs, initial)), *map(to_dlpack, results))
    with on_device_of(d_outputs):
        _native.backward(*arrays, **_options(d_outputs, *options), stream=stream_of(d_outputs))
    return results


def _with_final(kernel: Callable) -> Callable:
    """Returns the kernel of ``scan_with_final`` that is made of one of ``scan``."""

    def with_final(inputs, coeffs, initial, *options):
        final = _states(inputs)
        if inputs.shape[-1] == 0:
            final = final.zero_() if initial is None else final.copy_(initial)
            return _like(inputs), final
        return kernel(inputs, coeffs, initial, *options, final=final), final

    return with_final


_SCANS = {"cpu": _scan_cpu, "cuda": _scan_cuda}
_SCANS_WITH_FINAL = {place: _with_final(kernel) for place, kernel in _SCANS.items()}
_SCANS_BACKWARD = {"cpu": _scan_backward_cpu, "cuda": _scan_backward_cuda}


def _checked(kernel: Callable, check: Callable) -> Callable:
    """Returns the kernel for the dispatcher, through which it may get any arguments."""

    def checked(*arguments):
        check(*arguments)
        return kernel(*arguments)

    return checked


for _place in ("cpu", "cuda"):
    _library.impl("scan", _checked(_SCANS[_place], _check_forward), _place.upper())
    _library.impl("scan_with_final", _checked(_SCANS_WITH_FINAL[_place], _check_with_final), _place.upper())
    _library.impl("scan_backward", _checked(_SCANS_BACKWARD[_place], _check_backward), _place.upper())


# Their results without data.


def _like(tensor: Tensor) -> Tensor:
    return rows_like(tensor) if tensor.is_cuda else torch.empty_like(tensor)


# ANCHOR: fake
@torch.library.register_fake("linrec::scan")
def _(inputs, coeffs, initial, *_options):
    _check_forward(inputs, coeffs, initial)
    return _like(inputs)
# ANCHOR_END: fake


@torch.library.register_fake("linrec::scan_with_final")
def _(inputs, coeffs, initial, *_options):
    _check_with_final(inputs, coeffs, initial)
    return _like(inputs), _states(inputs)


@torch.library.register_fake("linrec::scan_backward")
def _(d_outputs, coeffs, outputs, initial, *_options):
    _check_backward(d_outputs, coeffs, outputs, initial)
    return _like(outputs), _like(outputs), _states(outputs)


# Gradients.


def shifted(sequences: Tensor, first: Tensor | None, reverse: bool) -> Tensor:
    """Returns the state before each step: ``[..., length]`` shifted, after ``first`` or zeros."""
    if sequences.shape[-1] == 0:
        return sequences
    first = torch.zeros_like(sequences[..., 0]) if first is None else first.to(sequences.dtype)
    first = first.unsqueeze(-1)
    parts = [sequences[..., 1:], first] if reverse else [first, sequences[..., :-1]]
    return torch.cat(parts, dim=-1)


def _shifted_back(sequences: Tensor, reverse: bool) -> tuple[Tensor, Tensor]:
    """Returns the adjoint of ``shifted``: the sequences shifted back, and the first elements."""
    if sequences.shape[-1] == 0:
        return sequences, sequences.new_zeros(sequences.shape[:-1])
    back = shifted(sequences, None, not reverse)
    return back, sequences[..., -1 if reverse else 0]


def _save(ctx, inputs, output) -> None:
    _, coeffs, initial, *ctx.options = inputs
    outputs = output if isinstance(output, Tensor) else output[0]
    # Only the gradients of coefficients need the outputs. Numbers of 16 bits save them for the
    # gradients of initial states, too, which are of the accumulator's type.
    of_states = ctx.needs_input_grad[2] and outputs.dtype != ACCUMULATORS[outputs.dtype]
    ctx.save_for_backward(coeffs, outputs if ctx.needs_input_grad[1] or of_states else None, initial)


# ANCHOR: gradient
def _scan_gradient(ctx, d_outputs):
    return *_gradients(d_outputs, *ctx.saved_tensors, *ctx.options), None, None, None


def _gradients(d_outputs, coeffs, outputs, initial, *options):
    """Returns the gradients of inputs, coefficients and initial states, ``None`` if they are not wanted."""
    if outputs is None:
        deltas, d_initial = _deltas(scan, d_outputs, coeffs, initial, *options)
        return deltas, None, d_initial
    gradients = scan_backward(d_outputs, coeffs, outputs, initial, *options)
    d_inputs, d_coeffs, d_initial = gradients
    return d_inputs, d_coeffs, None if initial is None else d_initial
# ANCHOR_END: gradient


def _deltas(scan, d_outputs, coeffs, initial, reverse, log_coeffs, in_order) -> tuple[Tensor, Tensor | None]:
    """Returns the gradients of inputs and of the initial states, for which outputs are not needed."""
    if d_outputs.shape[-1] == 0:
        return d_outputs, None if initial is None else torch.zeros_like(initial)
    # The coefficient after the last step is 0; as a logarithm it is e^0, times a state of 0.
    later = shifted(coeffs, None, not reverse).conj()
    deltas = scan(d_outputs, later, None, not reverse, log_coeffs, in_order)
    if initial is None:
        return deltas, None
    first = coeffs[..., -1 if reverse else 0]
    factor = (first.exp() if log_coeffs else first).conj()
    return deltas, (factor * deltas[..., -1 if reverse else 0]).to(initial.dtype)


def _save_with_final(ctx, inputs, output) -> None:
    _save(ctx, inputs, output)
    ctx.set_materialize_grads(False)


def _scan_with_final_gradient(ctx, d_outputs, d_final):
    """The gradient of a final state is added to that of the last output, in the accumulator's type."""
    if d_final is None:
        return (None,) * 6 if d_outputs is None else _scan_gradient(ctx, d_outputs)
    gradients = gradients_with_final(d_outputs, d_final, *ctx.saved_tensors, *ctx.options)
    return *gradients, None, None, None


def gradients_with_final(d_outputs, d_final, coeffs, outputs, initial, *options):
    """Returns the gradients of ``scan_with_final``, as ``_gradients`` does, in their type."""
    dtype, wide = coeffs.dtype, d_final.dtype
    if coeffs.shape[-1] == 0:
        d_initial = None if initial is None else d_final
        return torch.zeros_like(coeffs), torch.zeros_like(coeffs), d_initial
    d_outputs = with_d_final(d_outputs, d_final, coeffs, options[0])
    coeffs, outputs = of_type(wide, coeffs), None if outputs is None else of_type(wide, outputs)
    d_inputs, d_coeffs, d_initial = _gradients(d_outputs, coeffs, outputs, initial, *options)
    d_coeffs = None if d_coeffs is None else of_type(dtype, d_coeffs)
    return of_type(dtype, d_inputs), d_coeffs, d_initial


def with_d_final(d_outputs: Tensor | None, d_final: Tensor, rows: Tensor, reverse: bool) -> Tensor:
    """Returns the outputs' gradient with the final states' added, in the type of the latter.

    ``rows``, which have steps, give the shape.
    """
    wide = d_final.dtype
    if d_outputs is None:
        d_outputs = torch.zeros_like(rows, dtype=wide)
    d_outputs = of_type(wide, d_outputs)
    if reverse:
        first, others = d_outputs[..., :1] + d_final.unsqueeze(-1), d_outputs[..., 1:]
        return torch.cat([first, others], dim=-1)
    others, last = d_outputs[..., :-1], d_outputs[..., -1:] + d_final.unsqueeze(-1)
    return torch.cat([others, last], dim=-1)


def _save_backward(ctx, inputs, output) -> None:
    _, coeffs, outputs, initial, *ctx.options = inputs
    ctx.save_for_backward(coeffs, outputs, initial, output[0])


# ANCHOR: double
def _scan_backward_gradient(ctx, of_d_inputs, of_d_coeffs, of_d_initial):
    """Computes gradients of the gradients: one ``scan`` in the first direction, and products."""
    coeffs, outputs, initial, deltas = ctx.saved_tensors
    reverse, log_coeffs, _in_order = ctx.options
    before = shifted(outputs, initial, reverse)
    factors = coeffs.exp() if log_coeffs else coeffs
    # d_coeffs is a product of the deltas, the states before, and with logarithms the factors.
    of_products = of_d_coeffs * factors if log_coeffs else of_d_coeffs
    of_deltas = scan(of_d_inputs + of_products * before, coeffs, of_d_initial, *ctx.options)
    of_coeffs = deltas * shifted(of_deltas, of_d_initial, reverse).conj()
    if log_coeffs:
        of_coeffs = (of_coeffs + of_d_coeffs.conj() * deltas * before.conj()) * factors.conj()
    of_outputs, of_initial = _shifted_back(of_products.conj() * deltas, reverse)
    of_initial = None if initial is None else of_initial.to(initial.dtype)
    return of_deltas, of_coeffs, of_outputs, of_initial, None, None, None
# ANCHOR_END: double


torch.library.register_autograd("linrec::scan", _scan_gradient, setup_context=_save)
torch.library.register_autograd("linrec::scan_with_final", _scan_with_final_gradient, setup_context=_save_with_final)
torch.library.register_autograd("linrec::scan_backward", _scan_backward_gradient, setup_context=_save_backward)

scan = past_the_dispatcher(torch.ops.linrec.scan.default, _SCANS, _save, _scan_gradient)
scan_with_final = past_the_dispatcher(
    torch.ops.linrec.scan_with_final.default, _SCANS_WITH_FINAL, _save_with_final, _scan_with_final_gradient
)
scan_backward = past_the_dispatcher(
    torch.ops.linrec.scan_backward.default, _SCANS_BACKWARD, _save_backward, _scan_backward_gradient
)


# Batches: one more axis in front.


def _batched(info, in_dims, tensors):
    def in_front(tensor, dim):
        if tensor is None:
            return None
        if dim is None:
            return tensor.expand(info.batch_size, *tensor.shape)
        return tensor.movedim(dim, 0)

    return [in_front(tensor, dim) for tensor, dim in zip(tensors, in_dims)]


@torch.library.register_vmap("linrec::scan")
def _(info, in_dims, inputs, coeffs, initial, *options):
    inputs, coeffs, initial = _batched(info, in_dims, (inputs, coeffs, initial))
    return scan(inputs, coeffs, initial, *options), 0


@torch.library.register_vmap("linrec::scan_with_final")
def _(info, in_dims, inputs, coeffs, initial, *options):
    inputs, coeffs, initial = _batched(info, in_dims, (inputs, coeffs, initial))
    return scan_with_final(inputs, coeffs, initial, *options), (0, 0)


@torch.library.register_vmap("linrec::scan_backward")
def _(info, in_dims, d_outputs, coeffs, outputs, initial, *options):
    tensors = _batched(info, in_dims, (d_outputs, coeffs, outputs, initial))
    return scan_backward(*tensors, *options), (0, 0, 0)


# Forward mode and the transforms of `torch.func`, which operators of `torch.library` lack.


class DifferentiableScan(torch.autograd.Function):
    """``scan`` with derivatives in both modes; its gradients are ``scan`` again."""

    generate_vmap_rule = True

    @staticmethod
    def forward(inputs, coeffs, initial, reverse, log_coeffs, in_order):
        return scan(inputs, coeffs, initial, reverse, log_coeffs, in_order)

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, coeffs, initial, *ctx.options = inputs
        ctx.save_for_backward(coeffs, output, initial)
        ctx.save_for_forward(coeffs, output, initial)

    @staticmethod
    def backward(ctx, d_outputs):
        coeffs, outputs, initial = ctx.saved_tensors
        reverse, log_coeffs, _in_order = ctx.options
        deltas, d_initial = _deltas(DifferentiableScan.apply, d_outputs, coeffs, initial, *ctx.options)
        d_coeffs = deltas * shifted(outputs, initial, reverse).conj()
        if log_coeffs:
            d_coeffs = d_coeffs * coeffs.exp().conj()
        return deltas, d_coeffs, d_initial, None, None, None

    @staticmethod
    def jvp(ctx, d_inputs, d_coeffs, d_initial, *_options):
        coeffs, outputs, initial = ctx.saved_tensors
        reverse, log_coeffs, _in_order = ctx.options
        changes = torch.zeros_like(outputs) if d_inputs is None else d_inputs
        if d_coeffs is not None:
            if log_coeffs:
                d_coeffs = d_coeffs * coeffs.exp()
            changes = changes + d_coeffs * shifted(outputs, initial, reverse)
        return DifferentiableScan.apply(changes, coeffs, d_initial, *ctx.options)
