"""Values in prose: the small grammar, the filters, and what an author is told."""

from __future__ import annotations

import re

import pytest

from measured import machine
from measured.snippets import Mistake
from measured.values import claims_on, evaluate, parse

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
    assert evaluate(parse(expression), VALUES)[1] == shown


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
        ("part/name.x | seconds | number", "seconds and number: one filter shows a value"),
        ("part/name.x | seconds(2)", "seconds takes no arguments"),
        ("part/name.x | seconds()", "seconds takes no arguments"),
        ("part/name.x |", "expected a filter"),
        ("part/name.x | at_least(2", "expected a filter"),
        ('part/name.x | equals("a)', "expected a filter"),
        ("part/name.x | equals(\u201ca\u201d)", "expected a filter"),
        ("part/name.x | at_least(low=2)", "expected a filter"),
        ("part/name.x | at_least >= 2", "expected a filter"),
        ("part/name.x | at_lest(2)", "no filter at_lest; known: .*at_least"),
        ("part/name.x | at_least", "at_least expects a number, as in .* given nothing"),
        ("part/name.x | at_least()", "given nothing"),
        ("part/name.x | at_least(1, 2)", "given 1, 2"),
        ("part/name.x | at_least(true)", "given true"),
        ('part/name.x | at_most("2")', 'given "2"'),
        ("part/name.x | between(2, 1)", "the smaller one first"),
        ("part/name.x | between(1)", "two numbers"),
        ("part/name.x | equals()", "equals expects"),
        ("part/name.x | equals(same)", "same: expected a number, a text in quotation marks"),
        ("part/name.x | equals(None)", "None: expected a number"),
        ("part/name.x | equals([1])", "expected a number"),
        ("part/name.x | at_least(1 + 1)", "expected a number"),
        ("part/name.x | at_least(2j)", "expected a number"),
        ('part/name.x | on("cpu")', "needs a bound beside it: at_least"),
        ("part/name.x | at_least(2) | on()", "on expects classes of machines"),
        ("part/name.x | at_least(2) | on", "on expects classes of machines"),
        ('part/name.x | at_least(2) | on("avx")', '"avx" is no class of machines; known: cpu'),
        ("part/name.x | at_least(2) | on(1)", "1 is no class of machines"),
    ],
)
def test_a_mistake_says_what_is_wrong(expression, message):
    with pytest.raises(Mistake, match=re.escape(f"{{{{ {expression} }}}}: ")) as told:
        evaluate(parse(expression), VALUES)
    assert re.search(message, str(told.value))


@pytest.mark.parametrize(
    ("expression", "shown", "bounds", "needs"),
    [
        ("part/name.x | seconds", "12.3 ms", [], []),
        ("part/name.x | seconds | at_least(0.01)", "12.3 ms", ["at least 0.01"], []),
        ("part/name.x | at_least(0.01) | seconds", "12.3 ms", ["at least 0.01"], []),
        ("part/name.x | at_most(-1e-3)", "0.0123", ["at most -0.001"], []),
        (
            'part/name.x | between( 1,2 )|on("linux", "avx512") | on("cpu") | at_most(3)',
            "0.0123",
            ["between 1 and 2", "at most 3"],
            ["linux", "avx512", "cpu"],
        ),
        ('part/name.name | equals("a | b, (c)")', "<b>", ['equals "a | b, (c)"'], []),
        ("part/name.name | equals('it\u2019s \"b\"')", "<b>", ['equals "it\u2019s "b""'], []),
        ("part/name.yes | equals(true)", "True", ["equals true"], []),
        ("part/name.yes | equals(False)", "True", ["equals false"], []),
    ],
)
def test_bounds_stand_anywhere_and_change_nothing_that_is_shown(expression, shown, bounds, needs):
    quotation = parse(expression)
    assert evaluate(quotation, VALUES)[1] == shown
    assert [bound.words for bound in quotation.bounds] == bounds
    assert list(quotation.needs) == needs


def test_each_bound_on_a_value_is_a_claim_on_the_value_as_it_was_measured():
    quotation = parse("part/name.x | percent | at_least(0.01) | at_most(0.012)")
    made = claims_on(quotation, *evaluate(quotation, VALUES), machine.describe(), [])
    assert [(claim.outcome, claim.value, claim.shown) for claim in made] == [
        ("holds", 0.0123, "1.23 %"),
        ("broken", 0.0123, "1.23 %"),
    ]


def test_a_bound_on_the_wrong_type_names_the_expression():
    quotation = parse("part/name.name | at_least(2)")
    with pytest.raises(Mistake, match=r"\{\{ part/name.name \| at_least\(2\) \}\}: at least 2 can"):
        claims_on(quotation, *evaluate(quotation, VALUES), machine.describe(), [])
