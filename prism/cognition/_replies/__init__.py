"""Reading what a model's reply asks for, however sloppily it is written."""

from prism.cognition._replies._answer import AgentReply, AskedAction
from prism.cognition._replies._reading import read_reply

__all__ = ["AgentReply", "AskedAction", "read_reply"]
