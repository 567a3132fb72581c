"""Formulas written out step by step: without a step moved, they are what torch computes."""

from __future__ import annotations

import pytest
import torch

from measured import formulas, resampling
from measured.reference import Jitter

aten = torch.ops.aten
SIZES = [(5, 8), (9, 4), (1, 3), (6, 1)]
RESAMPLINGS = [name for name in resampling.FORMULAS if not name.endswith("backward")]


def same(name, *args, **kwargs):
    formula = (formulas.FORMULAS | resampling.FORMULAS)[name]
    found = formula(stays, *args, **kwargs)
    torch.testing.assert_close(found, getattr(aten, name).default(*args, **kwargs))
    operands = [arg for arg in args if isinstance(arg, torch.Tensor)]
    before = [operand.clone() for operand in operands]
    formula(lambda tensor: tensor.mul_(1.5), *args, **kwargs)
    for operand, known in zip(operands, before, strict=True):
        assert torch.equal(operand, known)


def stays(tensor):
    return tensor


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(approximate):
    x, grad = torch.linspace(-6, 6, 1001, dtype=torch.float64), torch.rand(1001).double()
    same("gelu", x, approximate=approximate)
    same("gelu_backward", grad, x, approximate=approximate)


def test_mish_backward():
    same("mish_backward", torch.rand(1001).double(), torch.linspace(-6, 6, 1001).double())


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("name", ["_softmax", "_log_softmax"])
def test_softmax(name, dim):
    x, grad = torch.randn(3, 5, 7, dtype=torch.float64) * 20, torch.rand(3, 5, 7).double()
    same(name, x, dim, False)
    result = getattr(aten, name)(x, dim, False)
    same(f"{name}_backward_data", grad, result, dim, torch.float64)


@pytest.mark.parametrize("name", ["_softmax", "_log_softmax"])
def test_softmax_of_16_bits_and_of_nothing(name):
    for x in (torch.randn(4, 8).bfloat16(), torch.empty(0, 3)):
        found = formulas.FORMULAS[name](stays, x, 1, False)
        assert (found.dtype, found.shape) == (x.dtype, x.shape)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("name", RESAMPLINGS)
def test_resampling(name, align_corners, sizes):
    # Another size in each dimension: a dimension taken for another would show.
    dims = range(int(name[-2]))
    old, new = ([size + dim if size > 1 else 1 for dim in dims] for size in sizes)
    x, grad = (torch.rand(2, 3, *shape, dtype=torch.float64) for shape in (old, new))
    same(name, x, new, align_corners)
    same(f"{name}_backward", grad, new, [2, 3, *old], align_corners)


@pytest.mark.parametrize("name", RESAMPLINGS)
def test_resampling_by_a_given_scale(name):
    dims = range(int(name[-2]))
    old = [5 + dim for dim in dims]
    new = [int(size * 1.7) for size in old]
    scales = [1.7 for _ in dims]
    x, grad = (torch.rand(2, 3, *shape, dtype=torch.float64) for shape in (old, new))
    same(name, x, new, False, *scales)
    same(f"{name}_backward", grad, new, [2, 3, *old], False, *scales)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_resampling_keeps_dtype_and_layout(dtype):
    x = torch.rand(2, 3, 5, 5).to(dtype).contiguous(memory_format=torch.channels_last)
    found = resampling.FORMULAS["upsample_bicubic2d"](stays, x, [8, 8], False)
    assert found.dtype == dtype
    assert found.is_contiguous(memory_format=torch.channels_last)


def test_a_position_far_from_the_start_moves_further():
    ramp = torch.where(torch.arange(4096) % 2 == 0, 1.0, -1.0).view(1, 1, -1)
    plain = aten.upsample_linear1d(ramp, [6963], False, 1.7)
    moved = torch.zeros_like(plain)
    for seed in range(8):
        with Jitter(seed):
            moved += (aten.upsample_linear1d(ramp, [6963], False, 1.7) - plain).abs()
    assert float(moved[..., -500:].mean()) > 4 * float(moved[..., :500].mean())


def test_a_sum_near_one_shows_in_a_sure_softmax():
    x = torch.full((1, 200), -1000.0, dtype=torch.float64)
    x[0, :2] = torch.tensor([0.0, -24.0])
    plain, moved = x.log_softmax(1)[0, 0], 0.0
    for seed in range(8):
        with Jitter(seed):
            moved = max(moved, float((x.log_softmax(1)[0, 0] - plain).abs()))
    assert moved > 1e-16
