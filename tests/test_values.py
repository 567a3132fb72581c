"""Values in prose: the small grammar, the filters, and what an author is told."""

from __future__ import annotations

import pytest

from measured.snippets import Mistake
from measured.values import evaluate

VALUES = {
    "part/name": {"x": 0.0123, "n": 1234567, "rows": [{"t": 2.0}], "name": "<b>", "yes": True}
}


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("part/name.x | seconds", "12.3 ms"),
        ("part/name.x | percent", "1.23 %"),
        ("part/name.n | count", "1,234,567"),
        ("part/name.n | bytes", "1.18 MiB"),
        ("part/name.rows.0.t | times", "2.00×"),
        ("part/name.name", "<b>"),
        ("part/name.yes | text", "True"),
    ],
)
def test_a_value_is_shown_through_its_filters(expression, shown):
    assert evaluate(expression, VALUES) == ("part/name", shown)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("part/none.x", "no snippet part/none"),
        ("part/name.z", "no value z; there are: x, n, rows, name, yes"),
        ("part/name.rows.3", "no value 3"),
        ("part/name.x | second", "no filter second"),
        ("part/name.name | seconds", "seconds can not show"),
        ("part/name.yes | times", "times can not show"),
        ("part/name.x | count", "count can not show"),
        ("part/name.rows", "text can not show"),
        ("part/name", "expected part/name.value"),
        ("1 + 1", "expected part/name.value"),
    ],
)
def test_a_mistake_says_what_is_wrong(expression, message):
    with pytest.raises(Mistake, match=message.replace("|", r"\|")):
        evaluate(expression, VALUES)
