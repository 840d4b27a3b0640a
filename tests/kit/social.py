"""Doubles for runs of the social feed."""

from typing import Any

from prism import Run
from prism.social import Draft, Feed

_OF_FEED = ("composer", "engages", "model_acts", "writer_prompt")


def run_of_feed(
    agents: Any, posts: Any = (), *, world: Feed | None = None, **options: Any
) -> Run[Any]:
    """Return a run of a feed, some of whose arguments are the feed's own."""
    own = {name: options.pop(name) for name in _OF_FEED if name in options}
    parameters = options.pop("parameters", None) or {}
    if world is None:
        world = Feed(first_posts=posts, **own, **parameters)
    else:
        kept = {
            name: getattr(world, name)
            for name, field in type(world).fields.items()
            if not (field.declared.is_state or (parameters and name in Feed.fields))
        }
        world = type(world)(first_posts=posts, **{**kept, **own, **parameters})

    return Run(world, agents, **options)


def parameters_of(feed: Feed) -> dict[str, Any]:
    """Return a feed's parameters as JSON has them."""
    given = {name: getattr(feed, name) for name in Feed.fields}
    return {name: list(each) if isinstance(each, tuple) else each for name, each in given.items()}


class KindComposer:
    """Always writes one kind of post."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def compose(self, agent: Any, post: Any, stream: Any) -> Draft:
        return Draft(self.kind, "composed", ("art",))
