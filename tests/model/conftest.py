"""A real model for these tests, which are skipped where it cannot be had."""

from collections.abc import Iterator

import pytest

from tests.kit.real_models import NoModelError, RealModel, served


@pytest.fixture(scope="session")
def real_model() -> Iterator[RealModel]:
    """Serve a real model with one slot."""
    try:
        with served() as model:
            yield model
    except NoModelError as error:
        pytest.skip(str(error))
