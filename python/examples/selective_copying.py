"""Chapter 13's block and task in PyTorch: which were the last three symbols?

    python python/examples/selective_copying.py [--out FOLDER] [--seeds 11,12,13] [--device cuda]

The sizes, the initial weights' distributions, the optimiser and the averaged weights are the same as in
the chapter's Rust; random numbers are PyTorch's and Python's. FOLDER gets the share of right answers:
`copying.csv` after every 50 steps, and `copied.csv` at the end. It takes a minute for a seed.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from pathlib import Path

import torch
from linrec import selective_scan
from records import Table
from torch import Tensor, nn
from torch.nn import functional

SYMBOLS, ASKED, MOST, POSITIONS = 8, 3, 12, 32
WIDTH, CHANNELS, STATES, RANK, REACH = 16, 32, 8, 2, 4
BATCH, STEPS, RATE, KEPT, TESTED = 16, 1600, 0.015, 0.99, 1024


def draw(rng: random.Random, num_seqs: int, positions: int = POSITIONS) -> tuple[Tensor, Tensor]:
    """Draws tokens ``[num_seqs, positions + 3]``, 0 for a blank, and answers ``[num_seqs, 3]``."""
    tokens = torch.zeros(num_seqs, positions + ASKED, dtype=torch.long)
    answers = torch.zeros(num_seqs, ASKED, dtype=torch.long)
    tokens[:, positions:] = 1 + SYMBOLS + torch.arange(ASKED)
    for row in range(num_seqs):
        count = rng.randint(ASKED, MOST)
        stretch = rng.randint(count, positions)
        start = rng.randint(0, positions - stretch)
        for age, place in enumerate(sorted(rng.sample(range(stretch), count), reverse=True)):
            symbol = rng.randrange(SYMBOLS)
            tokens[row, start + place] = 1 + symbol
            if age < ASKED:
                answers[row, age] = symbol
    return tokens, answers


def uniform(*shape: int, within: float) -> nn.Parameter:
    return nn.Parameter(torch.empty(shape).uniform_(-within, within))


# ANCHOR: block
class Block(nn.Module):
    """Mamba's block between embedding and answer; ``selective`` or with fixed coefficients."""

    def __init__(self, selective: bool):
        super().__init__()
        self.selective = selective
        self.embedding = uniform(1 + SYMBOLS + ASKED, WIDTH, within=math.sqrt(3))
        self.project_in = uniform(2 * CHANNELS, WIDTH, within=WIDTH**-0.5)
        self.convolution = uniform(CHANNELS, 1, REACH, within=REACH**-0.5)
        self.convolution_bias = uniform(CHANNELS, within=REACH**-0.5)
        if selective:
            self.select = uniform(RANK + 2 * STATES, CHANNELS, within=CHANNELS**-0.5)
            self.spread = uniform(CHANNELS, RANK, within=RANK**-0.5)
        else:
            self.select = uniform(2 * STATES, CHANNELS, within=1)
        steps = torch.empty(CHANNELS).uniform_(math.log(0.001), math.log(0.1)).exp()
        self.delta_bias = nn.Parameter(steps.expm1().log())
        self.log_a = nn.Parameter(torch.arange(1.0, STATES + 1).log().repeat(CHANNELS, 1))
        self.skip = nn.Parameter(torch.ones(CHANNELS))
        self.project_out = uniform(WIDTH, CHANNELS, within=CHANNELS**-0.5)
        self.answer = uniform(SYMBOLS, WIDTH, within=WIDTH**-0.5)

    def forward(self, tokens: Tensor) -> Tensor:
        """Maps tokens ``[batch, length]`` to logits ``[batch, answers, length]``."""
        embedded = self.embedding[tokens].mT
        x, z = (self.project_in @ embedded).chunk(2, dim=1)
        x = functional.conv1d(functional.pad(x, (REACH - 1, 0)), self.convolution, self.convolution_bias, groups=CHANNELS)
        u = functional.silu(x)
        if self.selective:
            low, b, c = (self.select @ u).split([RANK, STATES, STATES], dim=1)
            delta = self.spread @ low
        else:
            b, c = (half.T for half in self.select.split(STATES))
            delta = torch.zeros_like(u)
        a = -self.log_a.exp()
        y = selective_scan(u, delta, a, b, c, self.skip, z, self.delta_bias, delta_softplus=True)
        return self.answer @ (embedded + self.project_out @ y)
# ANCHOR_END: block


def right(block: nn.Module, tokens: Tensor, answers: Tensor) -> Tensor:
    """Returns the share of right answers to each question."""
    with torch.no_grad():
        return (block(tokens)[:, :, -ASKED:].argmax(dim=1) == answers).float().mean(dim=0)


def train(selective: bool, seed: int, device: str, report) -> tuple[nn.Module, random.Random]:
    rng = random.Random(seed)
    torch.manual_seed(seed)
    held_out = [tensor.to(device) for tensor in draw(rng, TESTED // 4)]
    block = Block(selective).to(device)
    # ANCHOR: train
    average = torch.optim.swa_utils.AveragedModel(block, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(KEPT))
    adam = torch.optim.Adam(block.parameters(), RATE, betas=(0.9, 0.99))
    for step in range(STEPS + 1):
        if step % 50 == 0:
            report(step, right(average, *held_out).mean().item())
        tokens, answers = (tensor.to(device) for tensor in draw(rng, BATCH))
        loss = functional.cross_entropy(block(tokens)[:, :, -ASKED:], answers)
        adam.zero_grad()
        loss.backward()
        adam.step()
        average.update_parameters(block)
# ANCHOR_END: train
    return average, rng


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seeds", default="11")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # the arrays are small: threads would only wait for each other
    curves = Table(arguments.out and arguments.out / "copying.csv", arguments.device)
    ends = Table(arguments.out and arguments.out / "copied.csv", arguments.device)
    for seed in map(int, arguments.seeds.split(",")):
        for kind in ("selective", "fixed"):
            start = time.perf_counter()
            report = lambda step, share: curves.add(block=kind, seed=seed, step=step, right=f"{share:.4f}")
            average, rng = train(kind == "selective", seed, arguments.device, report)
            seconds = time.perf_counter() - start
            shares = right(average, *(tensor.to(arguments.device) for tensor in draw(rng, TESTED)))
            longer = right(average, *(tensor.to(arguments.device) for tensor in draw(rng, TESTED, 2 * POSITIONS)))
            last, before, third = (f"{share:.4f}" for share in shares.tolist())
            ends.add(
                block=kind, weights=sum(p.numel() for p in average.module.parameters()), seed=seed, last=last, before=before,
                third=third, all=f"{shares.mean():.4f}", twice_as_long=f"{longer.mean():.4f}", seconds=f"{seconds:.1f}",
            )
            print(f"seed {seed}, {kind}: {shares.mean():.1%} right, {longer.mean():.1%} twice as long, {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
