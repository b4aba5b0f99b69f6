"""A language model of characters: two layers of minGRU, trained on half of Alice in Wonderland.

    python python/examples/characters.py [--out FOLDER] [--steps 1000] [--device cuda]

FOLDER gets `characters.csv`, the bits per character of training and of unseen text; `baselines.csv`,
the bits that counting characters reaches; `pace.csv`, the milliseconds of the recurrence by this
package and by a loop; and `sample.txt`, a text by the model. It takes a minute or two.
"""

from __future__ import annotations

import argparse
import collections
import math
import statistics
import time
from pathlib import Path

import torch
from linrec import linrec
from records import Table
from torch import Tensor, nn
from torch.nn import functional

TEXT = Path(__file__).parents[2] / "chapters/18-back-to-pytorch/data/alice.txt"
WIDTH, STATES, LAYERS, LENGTH, BATCH, RATE, DROPPED = 96, 192, 2, 128, 16, 3e-3, 0.3


# ANCHOR: min_gru
class MinGru(nn.Module):
    """``y[l] = (1 - z[l]) y[l-1] + z[l] h[l]``, with gate and candidate from the input alone."""

    def __init__(self, scan):
        super().__init__()
        self.scan = scan
        self.norm = nn.LayerNorm(WIDTH)
        self.project_in = nn.Linear(WIDTH, 3 * STATES)
        self.project_out = nn.Linear(STATES, WIDTH)
        self.dropout = nn.Dropout(DROPPED)

    def forward(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Maps ``x`` ``[batch, length, width]`` and the state ``[batch, states]`` to the next."""
        gate, candidate, out = self.project_in(self.norm(x)).chunk(3, dim=-1)
        z = gate.sigmoid()
        y, state = self.scan(z * candidate.tanh(), 1 - z, initial=state, dim=1, return_final=True)
        return x + self.dropout(self.project_out(y * functional.silu(out))), state
# ANCHOR_END: min_gru


class Model(nn.Module):
    def __init__(self, characters: int, scan=linrec):
        super().__init__()
        self.embedding, self.dropout = nn.Embedding(characters, WIDTH), nn.Dropout(DROPPED)
        self.layers = nn.ModuleList(MinGru(scan) for _ in range(LAYERS))
        self.norm, self.answer = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, characters)

    def memory(self, batch: int) -> Tensor:
        """Returns the states before the first character."""
        return torch.zeros(LAYERS, batch, STATES, device=self.answer.weight.device)

    def forward(self, tokens: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        x, states = self.dropout(self.embedding(tokens)), []
        for layer, state in zip(self.layers, memory):
            x, state = layer(x, state)
            states.append(state)
        return self.answer(self.norm(x)), torch.stack(states)


def loop(inputs: Tensor, coeffs: Tensor, *, initial: Tensor, dim: int, return_final: bool) -> tuple[Tensor, Tensor]:
    """Runs the recurrence step by step, as one would write it without this package."""
    outputs, state = [], initial
    for x, c in zip(inputs.unbind(dim), coeffs.unbind(dim)):
        state = state * c + x
        outputs.append(state)
    return torch.stack(outputs, dim), state


def bits(model: Model, tokens: Tensor) -> float:
    """Returns the bits per character over one stretch of text, from its first character on."""
    model.eval()
    with torch.no_grad():
        logits, _ = model(tokens[None, :-1], model.memory(1))
        model.train()
        return functional.cross_entropy(logits[0], tokens[1:]).item() / math.log(2)


# ANCHOR: sample
def sample(model: Model, tokens: Tensor, count: int, temperature: float = 0.7) -> list[int]:
    """Continues ``tokens``, one character at a time, from the states after the last one."""
    model.eval()
    written = []
    with torch.no_grad():
        logits, memory = model(tokens[None], model.memory(1))
        for _ in range(count):
            following = torch.multinomial((logits[0, -1] / temperature).softmax(dim=-1), 1)
            written.append(following.item())
            logits, memory = model(following[None], memory)
    return written
# ANCHOR_END: sample


def counted(text: list[int], unseen: list[int], characters: int, order: int) -> float:
    """Returns the bits per character of unseen text, by counts in ``text``.

    The counts are of each character after the ``order`` before it, plus a tenth.
    """
    follows = collections.defaultdict(collections.Counter)
    for at in range(order, len(text)):
        follows[tuple(text[at - order : at])][text[at]] += 1
    total = 0.0
    for at in range(order, len(unseen)):
        counts = follows[tuple(unseen[at - order : at])]
        total -= math.log2((counts[unseen[at]] + 0.1) / (counts.total() + 0.1 * characters))
    return total / (len(unseen) - order)


def step(model: Model, adam: torch.optim.Optimizer, text: Tensor) -> float:
    """Trains one step on stretches of the text; returns its bits per character."""
    starts = torch.randint(len(text) - LENGTH - 1, (BATCH,)).tolist()
    batch = torch.stack([text[start : start + LENGTH + 1] for start in starts])
    logits, _ = model(batch[:, :-1], model.memory(BATCH))
    loss = functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
    adam.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    adam.step()
    return loss.item() / math.log(2)


def pace(table: Table, device: str) -> None:
    """Times both passes of the recurrence alone, by both ways in turn, at constant size."""
    for length in (128, 512, 2048):
        batch = 2048 // length
        x, c = (torch.rand(batch, length, STATES, device=device, requires_grad=True) for _ in range(2))
        state = torch.zeros(batch, STATES, device=device)
        times = {"linrec": [], "a loop": []}
        for _ in range(10):
            for name, scan in (("linrec", linrec), ("a loop", loop)):
                start = time.perf_counter()
                outputs, _ = scan(x, c, initial=state, dim=1, return_final=True)
                torch.autograd.grad(outputs.sum(), (x, c))[0].sum().item()
                times[name].append(1e3 * (time.perf_counter() - start))
        for name, runs in times.items():
            table.add(way=name, length=length, batch=batch, states=STATES, ms=f"{statistics.median(runs[1:]):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    out, device = arguments.out, arguments.device
    torch.set_num_threads(1)
    torch.manual_seed(1)
    text = TEXT.read_text()
    alphabet = sorted(set(text))
    numbers = [alphabet.index(character) for character in text]
    seen = len(numbers) * 9 // 10
    tokens = torch.tensor(numbers, device=device)
    baselines = Table(out and out / "baselines.csv", device)
    for order in range(5):
        found = counted(numbers[:seen], numbers[seen:], len(alphabet), order)
        baselines.add(before=order, bits=f"{found:.3f}")
        print(f"{order} characters before counted: {found:.3f} bits per character")
    pace(Table(out and out / "pace.csv", device), device)

    model = Model(len(alphabet)).to(device)
    adam = torch.optim.AdamW(model.parameters(), RATE, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(adam, RATE, total_steps=arguments.steps, pct_start=0.1)
    curve = Table(out and out / "characters.csv", device)
    recent, start = [], time.perf_counter()
    for number in range(arguments.steps + 1):
        if number % 50 == 0:
            training = statistics.mean(recent) if recent else math.log2(len(alphabet))
            unseen = bits(model, tokens[seen:])
            seconds = time.perf_counter() - start
            curve.add(step=number, training=f"{training:.4f}", unseen=f"{unseen:.4f}", seconds=f"{seconds:.1f}")
            print(f"step {number}: {training:.3f} bits per character, {unseen:.3f} of unseen text, {seconds:.0f} s", flush=True)
            recent.clear()
        if number < arguments.steps:
            recent.append(step(model, adam, tokens[:seen]))
            schedule.step()

    begin = "Alice was "
    prompt = torch.tensor([alphabet.index(character) for character in begin], device=device)
    written = begin + "".join(alphabet[number] for number in sample(model, prompt, 500))
    print(written)
    if out is not None:
        (out / "sample.txt").write_text(written + "\n")


if __name__ == "__main__":
    main()
