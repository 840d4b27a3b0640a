"""Libraries of the extra, which are loaded where they are used."""

from functools import partial

from prism._lazy import import_extra

library = partial(import_extra, room="science")
