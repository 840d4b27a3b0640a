"""The social feed: an ordinary world of people who read, weigh, write, like and reshare posts."""

from prism.social._feed import Feed
from prism.social._posts import Draft, Post
from prism.social._readers import Reader
from prism.social.parameters import PRESETS, Preset

__all__ = ["PRESETS", "Draft", "Feed", "Post", "Preset", "Reader"]
