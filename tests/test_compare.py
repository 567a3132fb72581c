"""The parity rule, on tensors."""

from __future__ import annotations

import collections
import dataclasses

import pytest
import torch

from measured import compare
from measured.constants import ULP_LIMIT
from measured.reference import Float64Shadow, Jitter

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


@dataclasses.dataclass
class Known:
    """A reference that is known beforehand."""

    exact: torch.Tensor | None = None
    spread: torch.Tensor | None = None
    moved: torch.Tensor | bool = False
    asked: list[int] = dataclasses.field(default_factory=list)

    def moves(self, path, value):
        return self.moved

    def float64(self, path, places):
        return None if self.exact is None else self.exact.reshape(-1)[places]

    def noise(self, path, places, runs):
        self.asked.append(runs)
        return None if self.spread is None else self.spread.reshape(-1)[places].double()


def kinds(eager, compiled, reference=None):
    return [d.kind for d in compare.trees(eager, compiled, "result", reference).differences]


def moved(values: torch.Tensor, ulps: int) -> torch.Tensor:
    """The values, some units in the last place further from zero."""
    bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}[values.element_size()]
    return (values.view(bits) + ulps).view(values.dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("scale", [1.0, 1e-3, 3e4])
def test_the_limit_is_counted_in_ulp_of_the_dtype(dtype, scale):
    eager = (torch.rand(100, dtype=torch.float64) * 0.3 + 1.1).mul(scale).to(dtype)
    limit = compare.ulp_limit(dtype)
    assert kinds(eager, moved(eager, limit)) == []
    one = eager.clone()
    one[42:43] = moved(eager[42:43], 2 * limit)
    (difference,) = compare.trees(eager, one, "result").differences
    assert (difference.kind, difference.index) == ("value", "(42,)")
    assert difference.max_ulp == pytest.approx(2 * limit)


def test_a_small_value_is_judged_by_its_own_size():
    eager = torch.full((10,), 1e-8)
    assert kinds(eager, eager * (1 + 1e-5)) == ["value"]


def test_denormals_are_evenly_spaced():
    least = torch.finfo(torch.float32).smallest_normal * torch.finfo(torch.float32).eps
    eager = torch.full((3,), 1e-40)
    assert kinds(eager, eager + ULP_LIMIT * least) == []
    assert kinds(eager, torch.zeros(3)) == ["value"]


def test_signed_zeros_are_equal():
    assert kinds(torch.tensor([0.0, -0.0]), torch.tensor([-0.0, 0.0])) == []


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("eager", "compiled", "expected"),
    [
        ([NAN, 1.0], [NAN, 1.0], []),
        ([NAN, 1.0], [2.0, 1.0], ["nan"]),
        ([2.0, 1.0], [NAN, 1.0], ["nan"]),
        ([INF, 1.0], [INF, 1.0], []),
        ([INF, 1.0], [-INF, 1.0], ["inf"]),
        ([3e38, 1.0], [INF, 1.0], ["inf"]),
        ([3e38, NAN, 2.0, 1.0], [INF, 1.0, 3.0, 1.0], ["nan", "inf", "value"]),
    ],
)
def test_nan_and_infinity_must_stand_in_the_same_places(eager, compiled, expected):
    assert kinds(torch.tensor(eager), torch.tensor(compiled)) == expected


def test_no_reference_excuses_a_wrong_nan():
    reference = Known(torch.tensor([NAN], dtype=torch.float64), torch.tensor([INF]))
    assert kinds(torch.tensor([NAN]), torch.tensor([1.0]), reference) == ["nan"]


def test_float64_excuses_what_is_as_near_to_it_as_eager():
    exact = torch.tensor([1.0], dtype=torch.float64)
    eager = moved(torch.tensor([1.0]), 100)
    assert kinds(eager, moved(torch.tensor([1.0]), 0), Known(exact)) == []
    assert kinds(eager, moved(torch.tensor([1.0]), 190), Known(exact)) == []
    assert kinds(eager, moved(torch.tensor([1.0]), 300), Known(exact)) == ["value"]


def test_float64_excuses_only_the_elements_it_speaks_for():
    exact = torch.ones(2, dtype=torch.float64)
    eager = torch.cat([moved(torch.tensor([1.0]), 100), torch.tensor([1.0])])
    compiled = torch.cat([torch.tensor([1.0]), moved(torch.tensor([1.0]), 40)])
    (difference,) = compare.trees(eager, compiled, "result", Known(exact)).differences
    assert difference.index == "(1,)"


def test_noise_excuses_what_eager_itself_does_not_hold_still():
    eager, compiled = torch.tensor([1.0, 1.0]), torch.tensor([1.001, 1.001])
    spread = torch.tensor([1e-3, 1e-5], dtype=torch.float64)
    (difference,) = compare.trees(eager, compiled, "result", Known(None, spread)).differences
    assert difference.index == "(1,)"
    assert kinds(eager, compiled, Known(None, spread[:1].expand(2))) == []


def test_further_runs_are_asked_for_only_where_elements_are_still_rejected():
    eager = torch.tensor([1.0])
    passes, fails = Known(None, torch.tensor([1.0])), Known(None, torch.tensor([0.0]))
    kinds(eager, eager + 1e-3, passes)
    kinds(eager, eager + 1e-3, fails)
    kinds(eager, eager + 1e-7, never := Known())
    assert (passes.asked, fails.asked, never.asked) == ([8], [8, 40], [])


def test_complex_numbers_are_compared_by_their_parts():
    eager = torch.tensor([1 + 2j])
    assert kinds(eager, eager + 1e-7j) == []
    assert kinds(eager, eager + 1e-3j) == ["value"]


def test_zero_dimensional_and_empty_tensors():
    assert kinds(torch.tensor(1.0), torch.tensor(1.1)) == ["value"]
    assert kinds(torch.tensor(1), torch.tensor(2)) == ["value"]
    assert kinds(torch.empty(0, 3), torch.empty(0, 3)) == []


def test_strides_count_only_where_a_program_can_see_them():
    assert kinds(torch.ones(1, 3), torch.ones(3, 1).t()) == []
    assert kinds(torch.ones(2, 3), torch.ones(3, 2).t()) == ["stride"]


def test_sparse_tensors_are_compared_by_their_values():
    eager = torch.eye(3).to_sparse()
    assert kinds(eager, torch.eye(3).to_sparse()) == []
    assert kinds(eager, (torch.eye(3) * 2).to_sparse()) == ["value"]
    assert kinds(eager, torch.eye(3)) == ["layout"]


@dataclasses.dataclass
class Pair:
    left: torch.Tensor
    right: int


Named = collections.namedtuple("Named", "first second")


@pytest.mark.parametrize(
    ("eager", "compiled", "expected"),
    [
        ({"a": 1}, {"b": 1}, ["structure"]),
        ([1, 2], [1, 2, 3], ["structure"]),
        ([1, 2], (1, 2), ["type"]),
        (1, 1.0, ["type"]),
        (True, False, ["value"]),
        (0.1 + 0.2, 0.3, []),
        (0.3, 0.301, ["value"]),
        (None, torch.ones(1), ["type"]),
        (Named(1, 2), Named(1, 3), ["value"]),
        (Pair(torch.ones(1), 1), Pair(torch.ones(1), 2), ["value"]),
    ],
)
def test_trees_of_python_objects(eager, compiled, expected):
    assert kinds(eager, compiled) == expected


def test_leaves_have_paths_a_reader_can_type():
    tree = {"a": [torch.ones(1), Named(1, Pair(torch.ones(1), 2))]}
    assert [path for path, _ in compare.leaves(tree, "out")] == [
        "out['a'][0]",
        "out['a'][1].first",
        "out['a'][1].second.left",
        "out['a'][1].second.right",
    ]


class TestFloat64Shadow:
    """The reference computes in float64 what the program computes in its own dtype."""

    def test_it_follows_views_and_writes_in_place(self):
        x = torch.full((4,), 0.1)
        with Float64Shadow() as mode:
            y = x * 3
            y[:2].add_(0.2)
            z = y.view(2, 2).sum(dim=1)
        exact = float(torch.tensor(0.1)) * 3
        expected = torch.tensor([2 * (exact + 0.2), 2 * exact], dtype=torch.float64)
        assert torch.allclose(mode.shadow(z), expected, rtol=1e-15)
        assert z.dtype is torch.float32

    def test_it_covers_backward(self):
        w = torch.full((3,), 0.1, requires_grad=True)
        with Float64Shadow() as mode:
            (grad,) = torch.autograd.grad((w.exp() * w).sum(), w)
        exact = w.detach().double()
        assert torch.allclose(mode.shadow(grad), exact.exp() * (exact + 1), rtol=1e-14)

    def test_half_precision_intermediates_are_exact(self):
        x = torch.tensor([1.0], dtype=torch.float16)
        with Float64Shadow() as mode:
            y = ((x + 1e-4) - 1) * 100
        assert mode.shadow(y).item() == pytest.approx(1e-2, rel=1e-6)

    def test_integer_state_is_counted_once(self):
        steps = torch.zeros(1, dtype=torch.int64)
        with Float64Shadow():
            steps += 1
        assert steps.item() == 1

    def test_the_program_sees_its_own_results(self):
        x = torch.rand(100)
        expected = torch.softmax(x * 3, 0)
        with Float64Shadow():
            assert torch.equal(torch.softmax(x * 3, 0), expected)

    def test_random_numbers_are_drawn_once(self):
        torch.manual_seed(0)
        expected = torch.rand(3)
        torch.manual_seed(0)
        with Float64Shadow() as mode:
            drawn = torch.rand(3)
        assert torch.equal(drawn, expected)
        assert torch.equal(mode.shadow(drawn), expected.double())


class TestJitter:
    """Eager's own sensitivity to rounding, element by element."""

    @staticmethod
    def spread(function, *args):
        plain = function(*args).double()
        worst = torch.zeros_like(plain)
        for seed in range(8):
            with Jitter(seed):
                moved = function(*args)
            worst = torch.maximum(worst, (moved.double() - plain).abs())
        return worst

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_one_operation_moves_by_a_few_ulp(self, dtype):
        x = torch.rand(1000, dtype=torch.float64).to(dtype) + 1
        spread = self.spread(lambda x: x * 2, x)
        unit = compare.ulp((x * 2).double(), dtype)
        assert float((spread / unit).max()) <= 4  # Two for the operand, two for the result.
        assert float((spread / unit).mean()) > 0.5

    def test_cancellation_shows_as_spread(self):
        x = torch.rand(100) + 1
        assert float(self.spread(lambda x: (x + 1e4) - 1e4, x).median()) > 1e-4

    def test_zero_nan_and_infinity_stay(self):
        x = torch.tensor([0.0, -0.0, NAN, INF, -INF])
        with Jitter(0):
            y = x.clone()
        assert torch.equal(y.nan_to_num(7.0), x.nan_to_num(7.0))

    def test_views_stay_views_and_arguments_what_they_are(self):
        x = torch.ones(4)
        with Jitter(0):
            x.view(2, 2)[0].zero_()
        assert x.tolist()[:2] == [0.0, 0.0]
        kept = torch.ones(4)
        with Jitter(0):
            _ = kept * 2
        assert torch.equal(kept, torch.ones(4))

    def test_the_program_s_random_stream_is_not_drawn_from(self):
        torch.manual_seed(0)
        expected = torch.rand(3)
        torch.manual_seed(0)
        with Jitter(0):
            _ = torch.ones(10) * 2
        assert torch.equal(torch.rand(3), expected)
