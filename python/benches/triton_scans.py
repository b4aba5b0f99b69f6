"""The recurrence in Triton: a whole row at once, and a row in blocks with a carry."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _behind(x_left, c_left, x_right, c_right):
    """Combines a stretch with the next one: its end is scaled by the next product, and added."""
    return x_left * c_right + x_right, c_left * c_right


@triton.jit
def _tile(inputs, coeffs, outputs, length, BLOCK: tl.constexpr):
    step = tl.arange(0, BLOCK)
    row = tl.program_id(0).to(tl.int64) * length
    x = tl.load(inputs + row + step, mask=step < length, other=0.0)
    c = tl.load(coeffs + row + step, mask=step < length, other=1.0)
    y, _ = tl.associative_scan((x, c), 0, _behind)
    tl.store(outputs + row + step, y, mask=step < length)


@triton.jit
def _pipe(inputs, coeffs, outputs, length, BLOCK: tl.constexpr):
    step = tl.arange(0, BLOCK)
    row = tl.program_id(0).to(tl.int64) * length
    state = tl.full([], 0.0, tl.float32)
    for begin in tl.range(0, length, BLOCK):
        at = begin + step
        x = tl.load(inputs + row + at, mask=at < length, other=0.0)
        c = tl.load(coeffs + row + at, mask=at < length, other=1.0)
        y, product = tl.associative_scan((x, c), 0, _behind)
        y += product * state
        tl.store(outputs + row + at, y, mask=at < length)
        # After the last step of a row the inputs are 0 and the coefficients 1.
        state = tl.sum(tl.where(step == BLOCK - 1, y, 0.0), 0)


#: The longest row that `tile` takes.
LONGEST_TILE = 16384


def tile(inputs: torch.Tensor, coeffs: torch.Tensor) -> torch.Tensor:
    """Scans rows of at most `LONGEST_TILE` steps, each by one program that holds all of it."""
    rows, length = inputs.shape
    outputs = torch.empty_like(inputs)
    block = triton.next_power_of_2(length)
    warps = min(max(block // 512, 1), 16)
    _tile[(rows,)](inputs, coeffs, outputs, length, BLOCK=block, num_warps=warps)
    return outputs


def pipe(inputs: torch.Tensor, coeffs: torch.Tensor, block: int = 2048, warps: int = 4) -> torch.Tensor:
    """Scans rows of any length, each by one program that goes from block to block."""
    rows, length = inputs.shape
    outputs = torch.empty_like(inputs)
    block = min(block, triton.next_power_of_2(length))
    _pipe[(rows,)](inputs, coeffs, outputs, length, BLOCK=block, num_warps=min(warps, max(block // 128, 1)))
    return outputs
