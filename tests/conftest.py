"""Fixtures: an audit in this process. Option: how many random inputs the parity programs get."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from measured.record import Call

# Programs that the parity tests run, no modules with doctests.
collect_ignore = ["parity"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--seeds",
        type=int,
        default=1,
        help="how often each program in tests/parity runs, each time with other random inputs",
    )


@pytest.fixture
def audited() -> Iterator[Callable[[], list[Call]]]:
    """Shadows `torch.compile` in this process. Call the fixture for the verdicts so far."""
    from measured import inside

    with inside.audited() as calls:
        yield calls
