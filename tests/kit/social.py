"""Doubles for runs of the social feed."""

from typing import Any

from prism.social import Draft


class KindComposer:
    """Always writes one kind of post."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def compose(self, agent: Any, post: Any, stream: Any) -> Draft:
        return Draft(self.kind, "composed", ("art",))
