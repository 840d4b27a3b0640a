"""A feed that agents leave."""

from prism import treatment
from prism.social import Feed


class Leaving(Feed):
    """A feed that a share of the agents leave when the treatment is applied."""

    leaving: float = 0.2

    @treatment
    def leave(self) -> None:
        for reader in self.assign("leave", self.leaving):
            reader.leave()
