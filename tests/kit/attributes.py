"""Where Python keeps the attributes of an instance."""

import gc
from typing import Any


def has_dict(instance: Any, attribute: str) -> bool:
    """Return whether an instance keeps its attributes in a dict, where Python reads them slower.

    It does from the moment at which anybody asks for its ``__dict__``.
    """
    return any(type(each) is dict and attribute in each for each in gc.get_referents(instance))
