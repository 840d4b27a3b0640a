"""The social feed: posts, feeds, composing, and a simulation of the people who read them."""

from prism.social._composing import Composer, TemplateComposer
from prism.social._feed import Feed
from prism.social._posts import Draft, Post
from prism.social._publishing import Network
from prism.social._readers import Reader
from prism.social._results import Activity, Cascade, Results, RoundSummary
from prism.social._treatments import (
    Dislikes,
    Likes,
    PublishPost,
    RemoveAgents,
)

__all__ = [
    "Activity",
    "Cascade",
    "Composer",
    "Dislikes",
    "Draft",
    "Feed",
    "Likes",
    "Network",
    "Post",
    "PublishPost",
    "Reader",
    "RemoveAgents",
    "Results",
    "RoundSummary",
    "TemplateComposer",
]
