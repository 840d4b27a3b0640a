"""Doubles for runs of the social feed."""

from typing import Any

from prism import Run
from prism.social import Draft, Feed

_OF_FEED = ("parameters", "composer", "engages", "model_acts", "writer_prompt")


def run_of_feed(
    agents: Any, posts: Any = (), *, world: Feed | None = None, **options: Any
) -> Run[Any]:
    """Return a run of a feed, some of whose arguments are the feed's own."""
    own = {name: options.pop(name) for name in _OF_FEED if name in options}
    if own.get("parameters", own) is None:
        del own["parameters"]
    if world is None:
        world = Feed(first_posts=posts, **own)
    else:
        kept = {
            name: getattr(world, name)
            for name, field in type(world).fields.items()
            if not field.declared.is_state
        }
        world = type(world)(first_posts=posts, **{**kept, **own})

    return Run(world, agents, **options)


class KindComposer:
    """Always writes one kind of post."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def compose(self, agent: Any, post: Any, stream: Any) -> Draft:
        return Draft(self.kind, "composed", ("art",))
