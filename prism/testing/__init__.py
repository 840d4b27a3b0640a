"""Parts for testing agents and simulations: a model server that does what it is told."""

from prism.testing.fake_ollama import Asked, FakeOllama
from prism.testing.faults import Fault

__all__ = ["Asked", "FakeOllama", "Fault"]
