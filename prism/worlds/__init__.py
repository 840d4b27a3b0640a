"""Worlds of your own: agents with any charts, what they share, and how they act.

A world's class declares its parameters, state, steps, measures and treatments. A `Run` carries it
out.
"""

from prism.worlds._agent import Agent
from prism.worlds._agent_set import AgentSet
from prism.worlds._networks import Network, from_edges, small_world
from prism.worlds._results import WorldResults, WorldRound
from prism.worlds._run import Run
from prism.worlds._spaces import Layer, Plane, Space
from prism.worlds.decisions import Message
from prism.worlds.fields import draw, during, measure, param, picture, state, treatment, uniform
from prism.worlds.guests import Guest
from prism.worlds.repeating import replay, resume
from prism.worlds.world import World

__all__ = [
    "Agent",
    "AgentSet",
    "Guest",
    "Layer",
    "Message",
    "Network",
    "Plane",
    "Run",
    "Space",
    "World",
    "WorldResults",
    "WorldRound",
    "draw",
    "during",
    "from_edges",
    "measure",
    "param",
    "picture",
    "replay",
    "resume",
    "small_world",
    "state",
    "treatment",
    "uniform",
]
