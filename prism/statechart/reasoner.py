"""A door to `prism.reasoner` at the path that the specification names."""

from prism.reasoner import *  # noqa: F403
from prism.reasoner import __all__ as __all__
