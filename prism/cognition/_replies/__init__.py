"""Reading what a model's reply asks for, however sloppily it is written."""

from prism.cognition._replies._reading import AgentReply, AskedAction, read_reply

__all__ = ["AgentReply", "AskedAction", "read_reply"]
