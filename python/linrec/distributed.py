"""The recurrence and the selective scan over the ranks of a ``torch.distributed`` group.

Each rank has its stretch of every sequence, in the order of the ranks (context parallel). A rank
needs one thing of the others, the state before its stretch. A stretch maps the state before it to
``product * state + own``, where ``own`` is the final state of a scan from zero. So each rank
gathers the pairs ``(product, own)``, composes those of the ranks before it, and scans its stretch
from the state that results. Gradients with respect to states go through the ranks the other way
in the same manner. The first rank starts at once, and the last one has no pair to compute; the
others take two passes over their stretches. ``python/tests/test_distributed.py`` has the tests.

The pairs are the only numbers that ranks exchange, by the group's own collectives: ``_Line.gather``
and ``_Line.in_turn`` are the two places for a faster way inside a host.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial

import torch
import torch.distributed as dist
from torch import Tensor

from . import _selective_scan as selective
from ._operators import _deltas, gradients_with_final, scan, scan_with_final, shifted, with_d_final
from ._recurrence import is_transformed, prepared
from ._tensors import ACCUMULATORS, describe

__all__ = ["linrec", "selective_scan"]


@torch.compiler.disable
def linrec(
    inputs: Tensor,
    coeffs: Tensor | complex,
    *,
    initial: Tensor | complex | None = None,
    dim: int = -1,
    reverse: bool = False,
    log_coeffs: bool = False,
    in_order: bool = False,
    return_final: bool = False,
    group: dist.ProcessGroup | None = None,
    check: bool = True,
) -> Tensor | tuple[Tensor, Tensor]:
    """:func:`linrec.linrec` of sequences that are cut along ``dim`` over the ranks of a group.

    Each rank passes its stretch and gets the outputs of its stretch. All ranks of the group make
    the call. Their stretches may have different lengths, also none.

    Args:
        inputs, coeffs, dim, reverse, log_coeffs: as for :func:`linrec.linrec`.
        initial: the state before the first step of all, on the first rank (with ``reverse`` on the
            last rank, where the walk begins). The other ranks pass ``None``.
        in_order: take the steps one after the other. The ranks then compute one after the other.
        return_final: also return the state after the rank's stretch. On the last rank (with
            ``reverse`` on the first) it is the final state of the whole sequences.
        group: the group; ``None`` means the default group. Tensors are on a device that one of its
            backends takes, or are exchanged through the CPU.
        check: compare the arguments of all ranks before the call, so that a mistake on one rank is
            an exception on all of them. It waits for all ranks, and without a backend for the CPU
            also for the GPU. ``False``, which all ranks pass or none, leaves it out: then a mistake
            on one rank is an error of the group's backend or a wait until the group's timeout, and
            gradients have to be recorded on all ranks or on none.

    Returns:
        The outputs of the rank's stretch, as :func:`linrec.linrec` returns them.

    Outputs and gradients keep the error bound of one call for the whole sequences. Their bits
    depend on the stretches, but with ``in_order`` they are those of one call.

    Gradients are those of the sum of all ranks' losses, and of any order. A backward pass exchanges
    gradients of states, so all ranks take it, in the same order. A rank whose outputs are in no
    loss adds ``0 * y.sum()``. If a tensor requires gradients on one rank, the outputs require them
    on all ranks.

    Under ``torch.compile`` the call is not part of a graph, and ``fullgraph=True`` refuses it. If a
    rank ends, the others get an error of the group's backend, at the latest after its timeout.
    """
    line = _Line(group, reverse, inputs)
    options = (bool(reverse), bool(log_coeffs), bool(in_order))
    with _agreed("distributed.linrec", line, check) as agreement:
        _refuse_transforms("distributed.linrec")
        inputs, coeffs, initial = prepared(inputs, coeffs, initial, dim)
        _check_initial("distributed.linrec", "initial", initial, line)
        last = dim in (-1, inputs.ndim - 1)
        names = ("reverse", "log_coeffs", "in_order")
        agreement.values = {"inputs": _kind_of(inputs), **dict(zip(names, options))}
        agreement.tensors = (inputs, coeffs, initial)
    outputs, final = _over_ranks(line, agreement.is_recorded, inputs, coeffs, initial, *options)
    outputs = outputs if last else outputs.movedim(-1, dim)
    return (outputs, final) if return_final else outputs


@torch.compiler.disable
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
    group: dist.ProcessGroup | None = None,
    check: bool = True,
) -> Tensor | tuple[Tensor, Tensor]:
    """:func:`linrec.selective_scan` of sequences that are cut in time over the ranks of a group.

    Each rank passes its stretch of ``u``, ``delta``, ``z`` and of ``B`` and ``C`` if they vary, and
    gets the outputs of its stretch. ``A``, ``D``, ``delta_bias`` and constant couplings are the
    same on all ranks, and each rank gets its stretch's part of their gradients: the sum over the
    group is the gradient, as for other parameters (``torch.distributed.all_reduce``).

    Args:
        u, delta, A, B, C, D, z, delta_bias, delta_softplus: as for :func:`linrec.selective_scan`.
        return_last_state: also return the states after the rank's stretch. On the last rank they
            are the last states of the whole sequences.
        initial_state: the states before the first step of all, on the first rank; the other ranks
            pass ``None``.
        group, check: as for :func:`linrec`.

    Returns:
        The outputs of the rank's stretch, as :func:`linrec.selective_scan` returns them.

    Whatever :func:`linrec` says about gradients holds here as well.
    """
    operation, softplus = "distributed.selective_scan", bool(delta_softplus)
    line = _Line(group, False, u)
    tensors = (u, delta, A, B, C, D, z, delta_bias)
    with _agreed(operation, line, check) as agreement:
        _refuse_transforms(operation)
        selective.check_arguments(*tensors)
        _check_initial(operation, "initial_state", initial_state, line)
        if initial_state is not None:
            selective.check_initial(initial_state, (u.shape[0], *A.shape), u, A)
        names = ("u", "delta", "A", "B", "C", "D", "z", "delta_bias")
        kinds = [_kind_of(tensor, tensor is not None and tensor.ndim > 2) for tensor in tensors]
        agreement.values = {**dict(zip(names, kinds)), "delta_softplus": softplus}
        agreement.tensors = (*tensors, initial_state)
    if agreement.is_recorded and not _require_grad(*tensors, initial_state):
        u = u.detach().requires_grad_()
    tensors = (u, *tensors[1:], initial_state)
    if selective.is_fused(u, A):
        out, last = _SelectiveScan.apply(
            line, softplus, agreement.is_recorded, *selective.as_fused(*tensors)
        )
    else:
        out, last = _composed(line, agreement.is_recorded, softplus, *tensors)
    return (out, last) if return_last_state else out


# The ranks of a group in the direction of a walk, and what they exchange.


class _Line:
    """The ranks of a group in the order in which a state passes them.

    ``near`` is an argument of the call: reports are exchanged on its GPU if the group needs one.
    """

    def __init__(self, group: dist.ProcessGroup | None, reverse: bool, near: object) -> None:
        self.group, self.near = dist.group.WORLD if group is None else group, near
        self.size = dist.get_world_size(self.group)
        self.rank = dist.get_rank(self.group)
        if self.rank < 0:
            raise ValueError("linrec.distributed: this process is not in the group")
        self.is_reversed = bool(reverse)
        self.place = self.size - 1 - self.rank if reverse else self.rank

    def reversed(self) -> _Line:
        return _Line(self.group, not self.is_reversed, self.near)

    @property
    def is_first(self) -> bool:
        return self.place == 0

    @property
    def is_last(self) -> bool:
        return self.place == self.size - 1

    def _place_of(self, tensor: Tensor | None) -> torch.device:
        """Returns the device on which the group exchanges such a tensor, or a text."""
        types = [device.type for device in self.group._device_types]
        if tensor is not None and tensor.device.type in types:
            return tensor.device
        if "cpu" in types:
            return torch.device("cpu")
        is_near = isinstance(self.near, Tensor) and self.near.is_cuda
        return self.near.device if is_near else torch.device("cuda", torch.cuda.current_device())

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """Returns the tensors of all ranks, which have one shape, in the order of the line."""
        if tensor.numel() == 0:
            return [tensor] * self.size
        sent = _as_real(tensor.detach()).to(self._place_of(tensor)).contiguous()
        received = [torch.empty_like(sent) for _ in range(self.size)]
        dist.all_gather(received, sent, group=self.group)
        received = [_as_kind(one.to(tensor.device), tensor.dtype) for one in received]
        return received[::-1] if self.is_reversed else received

    def gather_text(self, text: bytes) -> list[bytes]:
        """Returns the texts, of at most ``_TEXT`` bytes, of all ranks in their order."""
        sent = torch.frombuffer(bytearray(text.ljust(_TEXT)), dtype=torch.uint8).to(
            self._place_of(None)
        )
        received = [torch.empty_like(sent) for _ in range(self.size)]
        dist.all_gather(received, sent, group=self.group)
        return [bytes(one) for one in torch.stack(received).tolist()]

    def arriving(self, product: Tensor, state: Tensor) -> Tensor:
        """Returns the state that arrives at this rank, which is not the first."""
        pairs = self.gather(torch.stack([product, state]))
        _, arriving = pairs[0]
        for product, state in pairs[1 : self.place]:
            # From zero comes zero, whether or not the product overflows.
            arriving = torch.where(arriving == 0, state, torch.addcmul(state, product, arriving))
        return arriving

    def in_turn(self, state: Tensor, run: Callable[[Tensor | None], tuple]) -> tuple:
        """Runs one rank after the other. Returns what ``run`` returns for the arriving state."""
        results = run(None) if self.is_first else ()
        for place in range(self.size - 1):
            sent = results[-1] if place == self.place else torch.empty_like(state)
            message = _as_real(sent.detach()).to(self._place_of(state)).contiguous()
            source = self.size - 1 - place if self.is_reversed else place
            if message.numel() > 0:
                dist.broadcast(message, dist.get_global_rank(self.group, source), group=self.group)
            if place + 1 == self.place:
                results = run(_as_kind(message.to(state.device), state.dtype))
        return results


#: The bytes of a rank's report about its arguments.
_TEXT = 2048


def _as_real(tensor: Tensor) -> Tensor:
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def _as_kind(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.view_as_complex(tensor) if dtype.is_complex else tensor


def _carried(
    line: _Line,
    state: Tensor,
    in_order: bool,
    run: Callable[[Tensor | None], tuple],
    alone: Callable[[], tuple[Tensor, Tensor]],
) -> tuple:
    """Returns what ``run`` returns for the arriving state, which is ``None`` at the first rank.

    Args:
        state: a tensor of the shape and type of the states.
        run: returns results of which the last is the state that leaves this rank.
        alone: returns the product, and the state that leaves if a zero arrives.
    """
    if line.size == 1:
        return run(None)
    if in_order:
        return line.in_turn(state, run)
    if line.is_first:
        results = run(None)
        line.gather(torch.stack([torch.zeros_like(results[-1]), results[-1]]))
        return results
    pair = [torch.zeros_like(state)] * 2 if line.is_last else alone()
    return run(line.arriving(*pair))


# The agreement of all ranks before a call.


class _agreed:
    """A context in which a rank checks its arguments. At its end the ranks compare ``values``.

    An exception on one rank, or values that differ, raise the same exception on all ranks.
    """

    def __init__(self, operation: str, line: _Line, is_wanted: bool) -> None:
        self.operation, self.line, self.is_wanted = operation, line, is_wanted
        self.values: dict[str, object] = {}
        self.tensors: Sequence[Tensor | None] = ()
        #: True if a tensor of one of the ranks requires gradients.
        self.is_recorded = False

    def __enter__(self) -> _agreed:
        return self

    def __exit__(self, _kind, error: BaseException | None, _trace) -> bool:
        if error is not None and not isinstance(error, Exception):
            return False  # an interrupt
        self.is_recorded = torch.is_grad_enabled() and _require_grad(*self.tensors)
        if not self.is_wanted or self.line.size == 1:
            return False
        values = {
            "the call": self.operation,
            **self.values,
            "is_grad_enabled()": torch.is_grad_enabled(),
        }
        report = {"values": values, "recorded": self.is_recorded}
        if error is not None:
            report = {"error": type(error).__name__, "text": str(error)[: _TEXT // 8]}
        text = json.dumps(report).encode()
        if len(text) > _TEXT:
            text = json.dumps(
                {"error": "ValueError", "text": "the arguments have too many axes"}
            ).encode()
        reports = [json.loads(text) for text in self.line.gather_text(text)]
        for rank, report in enumerate(reports):
            if "error" in report:
                raise _ERRORS.get(report["error"], RuntimeError)(
                    f"rank {rank}: {report['text']}"
                ) from error
        first = reports[0]["values"]
        for rank, report in enumerate(reports):
            for name, value in report["values"].items():
                if value != first.get(name):
                    raise ValueError(
                        f"{self.operation}: {name} is {first.get(name)} on rank 0 and {value} on "
                        f"rank {rank}; apart from the steps of its stretch, a rank has what the "
                        "others have"
                    )
        self.is_recorded = any(report["recorded"] for report in reports)
        return False


#: The types of exceptions that the checks of arguments raise.
_ERRORS = {kind.__name__: kind for kind in (IndexError, NotImplementedError, TypeError, ValueError)}


def _kind_of(tensor: Tensor | None, has_steps: bool = True) -> str | None:
    """Describes a tensor without its number of steps and the number of its device."""
    if tensor is None:
        return None
    shape = [*tensor.shape[:-1], "steps"] if has_steps else tensor.shape
    dtype = str(tensor.dtype).removeprefix("torch.")
    return f"{dtype}[{', '.join(map(str, shape))}] on {tensor.device.type}"


def _refuse_transforms(operation: str) -> None:
    if is_transformed():
        raise NotImplementedError(
            f"{operation}: it exchanges states with other ranks, and so cannot run under "
            "torch.func or forward-mode derivatives"
        )


def _check_initial(operation: str, name: str, initial: Tensor | None, line: _Line) -> None:
    if initial is not None and not line.is_first:
        first = line.size - 1 if line.is_reversed else 0
        raise ValueError(
            f"{operation}: {name} is {describe(initial)}; only rank {first}, where the walk "
            "begins, has one"
        )


def _require_grad(*tensors: Tensor | None) -> bool:
    return any(tensor is not None and tensor.requires_grad for tensor in tensors)


# The recurrence.


def _over_ranks(line, is_recorded, inputs, coeffs, initial, *options) -> tuple[Tensor, Tensor]:
    """Returns the outputs and the state after the rank's stretch; arguments have been checked."""
    if is_recorded and not _require_grad(inputs, coeffs, initial):
        inputs = inputs.detach().requires_grad_()
    outputs, final, _ = _Scan.apply(line, inputs, coeffs, initial, *options)
    return outputs, final


def _product(coeffs: Tensor, log_coeffs: bool) -> Tensor:
    dtype = ACCUMULATORS[coeffs.dtype]
    return coeffs.sum(-1, dtype=dtype).exp() if log_coeffs else coeffs.prod(-1, dtype=dtype)


class _Scan(torch.autograd.Function):
    """The recurrence over ranks: outputs, the state after the stretch, and the state before it.

    The gradient of a state before a stretch belongs to the rank before: ``d[l] = g[l] + c*[l+1]
    d[l+1]`` goes on from rank to rank, as a recurrence in the other direction.
    """

    @staticmethod
    def forward(ctx, line, inputs, coeffs, initial, *options):
        ctx.set_materialize_grads(False)
        ctx.line, ctx.options, ctx.has_initial = line, options, initial is not None
        ctx.product = None
        states = inputs.new_empty(inputs.shape[:-1], dtype=ACCUMULATORS[inputs.dtype])

        def run(arriving):
            before = initial if arriving is None else arriving
            outputs, final = scan_with_final(inputs, coeffs, before, *options)
            before = torch.zeros_like(states) if before is None else before.clone()
            return outputs, before, final

        def alone():
            ctx.product = _product(coeffs, options[1])
            return ctx.product, scan_with_final(inputs, coeffs, None, *options)[1]

        outputs, before, final = _carried(line, states, options[2], run, alone)
        ctx.save_for_backward(coeffs, outputs, before)
        return outputs, final, before

    @staticmethod
    def backward(ctx, d_outputs, d_final, d_before):
        gradients = _differentiable_gradients if torch.is_grad_enabled() else _gradients
        d_inputs, d_coeffs, d_initial = gradients(ctx, d_outputs, d_final, d_before)
        return None, d_inputs, d_coeffs, d_initial if ctx.has_initial else None, None, None, None


def _gradients(ctx, d_outputs, d_final, d_before):
    coeffs, outputs, before = ctx.saved_tensors
    reverse, _log_coeffs, in_order = ctx.options
    if d_outputs is None:
        d_outputs = torch.zeros_like(outputs)
    d_before = torch.zeros_like(before) if d_before is None else d_before
    saved_outputs = outputs if ctx.needs_input_grad[2] or outputs.dtype != before.dtype else None

    def run(arriving):
        d_states = (
            arriving if d_final is None else d_final if arriving is None else d_final + arriving
        )
        d_states = torch.zeros_like(before) if d_states is None else d_states
        d_inputs, d_coeffs, d_initial = gradients_with_final(
            d_outputs, d_states, coeffs, saved_outputs, before, *ctx.options
        )
        return d_inputs, d_coeffs, d_initial + d_before

    def alone():
        if coeffs.shape[-1] == 0:
            own = torch.zeros_like(before) if d_final is None else d_final
        else:
            d_rows = (
                d_outputs.to(before.dtype)
                if d_final is None
                else with_d_final(d_outputs, d_final, coeffs, reverse)
            )
            own = _deltas(scan, d_rows, coeffs.to(before.dtype), before, *ctx.options)[1]
        return ctx.product.conj(), own + d_before

    return _carried(ctx.line.reversed(), before, in_order, run, alone)


def _differentiable_gradients(ctx, d_outputs, d_final, d_before):
    """Returns the gradients in terms of the recurrence over ranks, so that they have gradients.

    ``d_before`` is one more step, after those of the stretch in the direction of the gradients: the
    state after it is the gradient that leaves for the rank before.
    """
    coeffs, outputs, before = ctx.saved_tensors
    reverse, log_coeffs, in_order = ctx.options
    dtype, wide = outputs.dtype, before.dtype
    coeffs, outputs = coeffs.to(wide), outputs.to(wide)
    zeros = torch.zeros_like(before)
    d_outputs = torch.zeros_like(outputs) if d_outputs is None else d_outputs.to(wide)
    d_before, d_final = (zeros if states is None else states for states in (d_before, d_final))
    joined = lambda parts: torch.cat(parts[::-1] if reverse else parts, dim=-1)
    d_rows = joined([d_before.unsqueeze(-1), d_outputs])
    d_rows = with_d_final(d_rows, d_final, d_rows, reverse)
    one = (zeros if log_coeffs else torch.ones_like(before)).unsqueeze(-1)
    later = joined([coeffs, one]).conj()
    line = ctx.line.reversed()
    flags = line.gather(
        torch.tensor([_require_grad(d_rows, later)], dtype=torch.uint8, device=before.device)
    )
    deltas, _ = _over_ranks(
        line, any(map(bool, flags)), d_rows, later, None, not reverse, log_coeffs, in_order
    )
    d_initial = deltas[..., -1 if reverse else 0]
    deltas = deltas[..., :-1] if reverse else deltas[..., 1:]
    d_coeffs = deltas * shifted(outputs, before, reverse).conj()
    if log_coeffs:
        d_coeffs = d_coeffs * coeffs.exp().conj()
    return deltas.to(dtype), d_coeffs.to(dtype), d_initial


# The selective scan.


def _composed(line, is_recorded, softplus, *tensors) -> tuple[Tensor, Tensor]:
    def recurrence(inputs, logs, *, initial, log_coeffs, return_final):
        inputs, logs, initial = prepared(inputs, logs, initial, -1)
        return _over_ranks(line, is_recorded, inputs, logs, initial, False, log_coeffs, False)

    return selective.composed(*tensors, None, softplus, recurrence)


class _SelectiveScan(torch.autograd.Function):
    """The fused selective scan over ranks: the outputs and the states after the stretch."""

    @staticmethod
    def forward(ctx, line, softplus, keep, *tensors):
        ctx.set_materialize_grads(False)
        ctx.line, ctx.softplus = line, softplus
        u, delta, A, *_, delta_bias, initial = tensors
        scan = partial(selective.scan, *tensors[:8])
        states = A.new_empty((*u.shape[:2], A.shape[1]))

        def run(arriving):
            before = initial if arriving is None else arriving
            out, last, checkpoints = scan(before, None, softplus, keep)
            return out, checkpoints, before, last

        def alone():
            sizes = selective.sizes_of_steps(delta, delta_bias, softplus).sum(-1)
            ctx.product = torch.exp(sizes.unsqueeze(-1) * A)
            return ctx.product, scan(None, None, softplus, False)[1]

        out, checkpoints, before, last = _carried(line, states, False, run, alone)
        ctx.save_for_backward(*tensors, before, checkpoints)
        return out, last

    @staticmethod
    def backward(ctx, d_out, d_last):
        *tensors, before, checkpoints = ctx.saved_tensors
        d_out = torch.zeros_like(tensors[0]) if d_out is None else d_out
        if torch.is_grad_enabled():
            gradients = _selective_gradients(ctx.line, ctx.softplus, tensors, d_out, d_last)
            return None, None, None, *gradients
        zeros = tensors[2].new_zeros((*tensors[0].shape[:2], tensors[2].shape[1]))
        before = zeros if before is None else before

        def run(arriving):
            d_states = (
                arriving if d_last is None else d_last if arriving is None else d_last + arriving
            )
            return selective.scan_backward(
                *tensors[:8], before, None, ctx.softplus, d_out, d_states, checkpoints
            )

        # A rank between others needs all kernels of a backward pass for `d_initial` alone.
        gradients = _carried(
            ctx.line.reversed(), zeros, False, run, lambda: (ctx.product, run(None)[-1])
        )
        gradients = [
            None if tensor is None else gradient for tensor, gradient in zip(tensors, gradients)
        ]
        return None, None, None, *gradients


def _selective_gradients(line, softplus, tensors, d_out, d_last) -> list[Tensor | None]:
    """Returns the gradients of the composition over ranks, which have gradients themselves."""
    u = tensors[0] if tensors[0].requires_grad else tensors[0].detach().requires_grad_()
    given = [u, *tensors[1:]]
    results = _composed(line, True, softplus, *given)
    # A rank without a gradient of its last states computes with zeros, since others wait for it.
    d_last = torch.zeros_like(results[1]) if d_last is None else d_last
    wanted = [tensor for tensor in given if tensor is not None and tensor.requires_grad]
    found = torch.autograd.grad(
        results, wanted, (d_out, d_last), create_graph=True, allow_unused=True
    )
    found = dict(zip(map(id, wanted), found))
    return [found.get(id(tensor)) for tensor in tensors]
