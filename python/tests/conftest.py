"""The fixtures of all tests."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def seed():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
