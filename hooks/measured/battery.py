"""Programs by which the parity rule is calibrated.

`programs` are innocent: compiled and eager may round them differently, and neither is wrong.
`different` are not. Most are a function of named tensors; the gradients of its results with respect
to those that require one are results too.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import torch

from measured import compare

F = torch.nn.functional

Tensors = dict[str, torch.Tensor]
Read = Callable[[torch.Tensor], torch.Tensor]
Mode = contextlib.AbstractContextManager[Any]

FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
USUAL = (torch.float32, torch.bfloat16)
SINGLE = (torch.float32,)
WIDE = (torch.float32, torch.float64)
THREE = (torch.float32, torch.float64, torch.bfloat16)
COMPLEX = (torch.complex64,)

SCALES = (1.0, 1e-3, 30.0, 1e-8)
"""Standard deviations of inputs, one after the other."""
HALF_SCALES = (1.0, 0.1, 4.0)
"""The same for float16, whose range is short."""


class Draw:
    """Random inputs of one dtype, from one seed."""

    def __init__(self, seed: int, dtype: torch.dtype) -> None:
        self._generator = torch.Generator().manual_seed(seed)
        self.dtype = dtype
        self.seed = seed
        scales = HALF_SCALES if dtype == torch.float16 else SCALES
        self.scale = scales[seed % len(scales)]

    def normal(
        self, *shape: int, scale: float | None = None, mean: float = 0.0, grad: bool = True
    ) -> torch.Tensor:
        scale = self.scale if scale is None else scale
        wide = torch.complex128 if self.dtype.is_complex else torch.float64
        values = torch.randn(shape, generator=self._generator, dtype=wide) * scale + mean
        return values.to(self.dtype).requires_grad_(grad)

    def uniform(self, low: float, high: float, *shape: int, grad: bool = True) -> torch.Tensor:
        values = torch.rand(shape, generator=self._generator, dtype=torch.float64)
        return (values * (high - low) + low).to(self.dtype).requires_grad_(grad)

    def integers(self, high: int, *shape: int) -> torch.Tensor:
        return torch.randint(high, shape, generator=self._generator)

    def shuffled(self, values: torch.Tensor) -> torch.Tensor:
        order = torch.randperm(values.numel(), generator=self._generator)
        return values.detach()[order].requires_grad_()


class Program(Protocol):
    """Something that runs in eager and compiled from the same inputs."""

    name: str
    dtypes: tuple[torch.dtype, ...]

    def draw(self, seed: int, dtype: torch.dtype) -> Any:
        """Inputs of one run."""

    def run(self, inputs: Any, mode: Mode, read: Read, *, compiled: bool) -> Tensors:
        """Path -> `read` of each result, with the program's operations under `mode`."""


@dataclasses.dataclass(frozen=True)
class Function:
    """A function of named tensors, and its gradients."""

    name: str
    function: Callable[..., Any]
    inputs: Callable[[Draw], Tensors]
    dtypes: tuple[torch.dtype, ...] = USUAL

    def draw(self, seed: int, dtype: torch.dtype) -> Tensors:
        return self.inputs(Draw(seed, dtype))

    def run(self, inputs: Tensors, mode: Mode, read: Read, *, compiled: bool) -> Tensors:
        function = torch.compile(self.function) if compiled else self.function
        given = {
            name: tensor.detach().clone().requires_grad_(tensor.requires_grad)
            for name, tensor in inputs.items()
        }
        with torch.enable_grad(), mode:
            outcome = function(**given)
        results = dict(compare.leaves(outcome, "result"))
        found = {path: read(value.detach()).clone() for path, value in results.items()}
        asked = {name: tensor for name, tensor in given.items() if tensor.requires_grad}
        flowing = [value for value in results.values() if value.requires_grad]
        if asked and flowing:
            arriving = list(_cotangents(flowing))
            with torch.enable_grad(), mode:
                gradients = torch.autograd.grad(
                    flowing, list(asked.values()), arriving, allow_unused=True
                )
            for name, gradient in zip(asked, gradients, strict=True):
                if gradient is not None:
                    # Strides of a gradient are autograd's choice.
                    found[f"gradient.{name}"] = read(gradient).contiguous().clone()
        for name, tensor in given.items():
            if not tensor.requires_grad and not torch.equal(tensor, inputs[name]):
                found[f"written.{name}"] = read(tensor).clone()
        return found


def _cotangents(results: list[torch.Tensor]) -> Iterator[torch.Tensor]:
    """What arrives at each result in the backward pass: the same in every run."""
    generator = torch.Generator().manual_seed(0)
    for result in results:
        wide = torch.complex128 if result.is_complex() else torch.float64
        yield torch.randn(result.shape, generator=generator, dtype=wide).to(result.dtype)


class Optimizer:
    """One step of an optimizer, after as many steps as the seed says; one parameter began at 0."""

    STEPS = 5

    def __init__(
        self,
        name: str,
        make: Callable[[list[torch.Tensor]], torch.optim.Optimizer],
        dtypes: tuple[torch.dtype, ...] = SINGLE,
    ) -> None:
        self.name = name
        self.dtypes = dtypes
        self._make = make

    def draw(self, seed: int, dtype: torch.dtype) -> dict[str, Any]:
        draw = Draw(seed, dtype)
        first = [draw.normal(1000), torch.zeros(1000, dtype=dtype), draw.normal(1000, scale=1.0)]
        parameters = [value.detach().requires_grad_() for value in first]
        optimizer = self._make(parameters)
        for _ in range(seed % self.STEPS):
            self._give_gradients(parameters, draw)
            optimizer.step()
        self._give_gradients(parameters, draw)
        return {
            "parameters": [parameter.detach().clone() for parameter in parameters],
            "gradients": [parameter.grad.clone() for parameter in parameters],
            "state": copy.deepcopy(optimizer.state_dict()),
        }

    @staticmethod
    def _give_gradients(parameters: list[torch.Tensor], draw: Draw) -> None:
        for parameter in parameters:
            parameter.grad = draw.normal(*parameter.shape, grad=False)

    def run(self, inputs: dict[str, Any], mode: Mode, read: Read, *, compiled: bool) -> Tensors:
        parameters = [value.clone().requires_grad_() for value in inputs["parameters"]]
        for parameter, gradient in zip(parameters, inputs["gradients"], strict=True):
            parameter.grad = gradient.clone()
        optimizer = self._make(parameters)
        optimizer.load_state_dict(copy.deepcopy(inputs["state"]))
        step = torch.compile(optimizer.step) if compiled else optimizer.step
        with mode:
            step()
        found = {f"parameter.{i}": read(p.detach()).clone() for i, p in enumerate(parameters)}
        for index, parameter in enumerate(parameters):
            for key, value in optimizer.state[parameter].items():
                if isinstance(value, torch.Tensor):
                    found[f"state.{index}.{key}"] = read(value.detach()).clone()
        return found


def each(functions: Mapping[str, Callable[[torch.Tensor], Any]]) -> Callable[..., Any]:
    """One function that applies each of `functions` to an input of its own: one compile for all."""

    def together(**inputs: torch.Tensor) -> dict[str, Any]:
        return {name: function(inputs[name]) for name, function in functions.items()}

    return together


_N = 4096

_ANYWHERE = {
    "exp": torch.exp, "expm1": torch.expm1, "sin": torch.sin, "cos": torch.cos, "tanh": torch.tanh,
    "sinh": torch.sinh, "cosh": torch.cosh, "atan": torch.atan,
    "erfc": torch.erfc, "sigmoid": torch.sigmoid, "exp2": torch.exp2, "asinh": torch.asinh,
    "atan2": lambda x: torch.atan2(x, x.flip(0)), "tan": torch.tan,
    "reciprocal": torch.reciprocal, "square": torch.square, "cube": lambda x: x**3,
}  # fmt: skip
_POSITIVE = {
    "log": torch.log, "log2": torch.log2, "log10": torch.log10, "log1p": torch.log1p,
    "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "lgamma": torch.lgamma, "digamma": torch.digamma,
    "pow": lambda x: x**2.7, "xlogy": lambda x: torch.xlogy(x, x),
    "hypot": lambda x: torch.hypot(x, x.flip(0)),
}  # fmt: skip
_INSIDE = {
    "asin": torch.asin, "acos": torch.acos,
    "logit": lambda x: torch.logit(x.abs(), 0.01),
}  # fmt: skip
_ACTIVATIONS = {
    "gelu": F.gelu, "gelu-tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu,
    "softplus": F.softplus, "mish": F.mish, "elu": F.elu, "selu": F.selu, "celu": F.celu,
    "hardswish": F.hardswish, "leaky-relu": F.leaky_relu, "logsigmoid": F.logsigmoid,
    "softsign": F.softsign, "tanhshrink": F.tanhshrink,
    "glu": lambda x: F.glu(x, dim=0), "relu6": F.relu6,
}  # fmt: skip


def _each(
    name: str,
    functions: Mapping[str, Callable[[torch.Tensor], Any]],
    make: Callable[[Draw], torch.Tensor],
    dtypes: tuple[torch.dtype, ...] = USUAL,
) -> Function:
    return Function(
        name, each(functions), lambda draw: {key: make(draw) for key in functions}, dtypes
    )


def _chain(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> dict[str, torch.Tensor]:
    short = a * b + c
    mixed = torch.tanh(a * 1.7 + b) * torch.exp(-c.abs()) + a / (1 + b * b)
    long = a
    for _ in range(10):
        long = long * 0.9 + b * c
    return {"short": short, "mixed": mixed, "long": long}


def _fused_forms(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> dict[str, torch.Tensor]:
    return {
        "addcmul": torch.addcmul(a, b, c, value=0.7),
        "addcdiv": torch.addcdiv(a, b, c.abs() + 1, value=0.7),
        "lerp": torch.lerp(a, b, 0.3),
        "lerp-far": torch.lerp(a, b, 0.9),
        "alpha": torch.add(a, b, alpha=-0.37),
        "clamp": (a * 3).clamp(-1, 1) - b,
    }


_SUMS = {
    "sum-1e3": (torch.sum, 1_000),
    "sum-1e4": (torch.sum, 10_000),
    "sum-1e5": (torch.sum, 100_000),
    "sum-1e6": (torch.sum, 1_000_000),
    "mean": (torch.mean, 100_000),
    "norm": (torch.linalg.vector_norm, 100_000),
    "std": (torch.std, 10_000),
    "var": (torch.var, 10_000),
    "square-mean": (lambda x: (x * x).mean(), 10_000),
    "abs-sum": (lambda x: x.abs().sum(), 50_000),
    "logsumexp": (lambda x: torch.logsumexp(x, 0), 10_000),
    "rows": (lambda x: x.view(100, -1).sum(1), 50_000),
    "columns": (lambda x: x.view(-1, 100).sum(0), 50_000),
}


def _cancelling(draw: Draw) -> torch.Tensor:
    half = draw.normal(50_000).detach()
    return draw.shuffled(torch.cat([half, -half]))


def _nearly_equal(draw: Draw) -> torch.Tensor:
    return draw.normal(64, 256, mean=1000.0, scale=0.01 if draw.dtype in WIDE else 2.0)


_SPREADS = {
    "var": lambda x: x.var(1),
    "std": lambda x: x.std(1),
    "var-0": lambda x: x.var(0, unbiased=False),
    "centred": lambda x: x - x.mean(1, keepdim=True),
    "norm": lambda x: F.layer_norm(x, (256,)),
}
_SOFT = {
    "softmax": lambda x: x.softmax(1),
    "softmax-0": lambda x: x.softmax(0),
    "log-softmax": lambda x: x.log_softmax(1),
    "logsumexp": lambda x: x.logsumexp(1),
    "written-out": lambda x: (
        torch.exp(x - x.amax(1, keepdim=True))
        / torch.exp(x - x.amax(1, keepdim=True)).sum(1, keepdim=True)
    ),
    "entropy": lambda x: -(x.softmax(1) * x.log_softmax(1)).sum(1),
}


def _losses(x: torch.Tensor, y: torch.Tensor, classes: torch.Tensor) -> dict[str, torch.Tensor]:
    return {
        "cross-entropy": F.cross_entropy(x, classes),
        "smoothed": F.cross_entropy(x, classes, label_smoothing=0.1),
        "mse": F.mse_loss(x, y),
        "smooth-l1": F.smooth_l1_loss(x, y),
        "bce": F.binary_cross_entropy_with_logits(x, y.sigmoid().detach()),
        "kl": F.kl_div(x.log_softmax(1), y.softmax(1).detach(), reduction="batchmean"),
        "cosine": F.cosine_similarity(x, y),
        "normalised": F.normalize(x, dim=1),
    }


def _norms(
    x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, mean: torch.Tensor, var: torch.Tensor
) -> dict[str, torch.Tensor]:
    return {
        "layer": F.layer_norm(x, x.shape[2:], None, None),
        "group": F.group_norm(x, 4, w, b),
        "batch": F.batch_norm(x, mean, var, w, b, training=True),
        "instance": F.instance_norm(x),
        "rms": F.rms_norm(x, x.shape[2:]),
    }


def _conv_norm(
    x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, g: torch.Tensor, h: torch.Tensor
) -> torch.Tensor:
    y = F.conv2d(x, w, b, padding=1)
    return F.relu(F.batch_norm(y, None, None, g, h, training=True))


def _bias_before_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.batch_norm(F.linear(x, w, b), None, None, training=True)


def _products(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> dict[str, torch.Tensor]:
    return {
        "matmul": x @ y,
        "bmm": torch.bmm(z, z.transpose(1, 2)),
        "einsum": torch.einsum("ij,kj->ik", x, y),
        "outer": torch.outer(x[0], y[0]),
        "gram": x.t() @ x / x.shape[0],
    }


def _attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> dict[str, torch.Tensor]:
    return {
        "fused": F.scaled_dot_product_attention(q, k, v),
        "causal": F.scaled_dot_product_attention(q, k, v, is_causal=True),
        "written-out": _attend(q, k, v),
    }


def _attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return ((q @ k.transpose(-2, -1)) / q.shape[-1] ** 0.5).softmax(-1) @ v


def _mlp(
    x: torch.Tensor, w1: torch.Tensor, b1: torch.Tensor, w2: torch.Tensor, classes: torch.Tensor
) -> torch.Tensor:
    return F.cross_entropy(F.gelu(F.linear(x, w1, b1)) @ w2, classes)


def _block(
    x: torch.Tensor, qkv: torch.Tensor, out: torch.Tensor, up: torch.Tensor, down: torch.Tensor
) -> torch.Tensor:
    q, k, v = (F.layer_norm(x, x.shape[-1:]) @ qkv).chunk(3, -1)
    heads = [t.unflatten(-1, (4, -1)).transpose(1, 2) for t in (q, k, v)]
    mixed = F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2)
    x = x + mixed @ out
    return x + F.gelu(F.layer_norm(x, x.shape[-1:]) @ up) @ down


def _recurrent(x: torch.Tensor, w: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    h = torch.zeros_like(x[0])
    for step in range(x.shape[0]):
        h = torch.tanh(x[step] @ w + h @ u)
    return h


def _duplicates(
    table: torch.Tensor, x: torch.Tensor, where: torch.Tensor
) -> dict[str, torch.Tensor]:
    return {
        "embedding": F.embedding(where, table).sum(1),
        "scatter-add": torch.zeros_like(table).scatter_add(
            0, where[:, :1].expand(-1, table.shape[1]), x
        ),
        "index-add": torch.zeros_like(table).index_add(0, where[:, 0], x),
        "bincount": torch.zeros_like(table[:, 0]).index_put((where[:, 0],), x[:, 0], True),
    }


def _scans(x: torch.Tensor, near_one: torch.Tensor) -> dict[str, torch.Tensor]:
    return {
        "cumsum": x.cumsum(0),
        "cumsum-1": x.view(64, -1).cumsum(1),
        "cumprod": near_one.cumprod(0),
        "prod": near_one[:256].prod(),
        "logcumsumexp": x[:512].logcumsumexp(0),
        "differences": x.diff(),
    }


def _pools(x: torch.Tensor) -> dict[str, torch.Tensor]:
    return {
        "average": F.avg_pool2d(x, 3, 2, padding=1),
        "adaptive": F.adaptive_avg_pool2d(x, 5),
        "maximum": F.max_pool2d(x, 2),
        "bilinear": F.interpolate(x, scale_factor=1.7, mode="bilinear"),
        "bicubic": F.interpolate(x, scale_factor=1.7, mode="bicubic"),
    }


def _complex(a: torch.Tensor, b: torch.Tensor) -> dict[str, torch.Tensor]:
    return {
        "mul": a * b,
        "div": a / b,
        "abs": a.abs(),
        "exp": (a / (1 + a.abs())).exp(),
        "chain": a * b + a.conj() * 0.3 - b,
        "square": a * a,
        "sum": (a * b).sum(),
        "real": (a * b).real * 2,
        "matmul": a.view(64, 64) @ b.view(64, 64),
    }


def _autocast(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return F.gelu(F.linear(x, w, b)).float().softmax(1)


def _float8(x: torch.Tensor) -> dict[str, torch.Tensor]:
    return {
        "e4m3fn": (x * 1.3).clamp(-400, 400).to(torch.float8_e4m3fn),
        "e5m2": (x * 1.3).to(torch.float8_e5m2),
        "back": x.clamp(-400, 400).to(torch.float8_e4m3fn).to(x.dtype) * 1.1,
        "quantised": (x / x.abs().amax().clamp_min(1e-12) * 448).to(torch.float8_e4m3fn),
    }


def _linear(size: int) -> Function:
    return Function(
        f"linear {size}",
        F.linear,
        lambda draw: {
            "input": draw.normal(64, size),
            "weight": draw.normal(size, size, scale=size**-0.5),
            "bias": draw.normal(size),
        },
        USUAL if size < 1024 else SINGLE,
    )


def programs() -> list[Program]:
    """The innocent ones."""
    return [
        _each(
            "functions, anywhere", _ANYWHERE, lambda d: d.normal(_N, scale=min(d.scale, 4.0)), THREE
        ),
        _each("functions of positives", _POSITIVE, lambda d: d.uniform(0.01, 6.0, _N)),
        Function("erfinv", torch.erfinv, lambda d: {"input": d.uniform(-0.999, 0.999, _N)}, SINGLE),
        _each("functions inside (-1, 1)", _INSIDE, lambda d: d.uniform(-0.999, 0.999, _N), WIDE),
        _each("activations", _ACTIVATIONS, lambda d: d.normal(_N, scale=min(d.scale, 4.0)), THREE),
        Function(
            "element-wise chains",
            _chain,
            lambda d: {name: d.normal(10_000) for name in "abc"},
            THREE,
        ),
        Function(
            "fused element-wise forms",
            _fused_forms,
            lambda d: {name: d.normal(10_000) for name in "abc"},
            WIDE,
        ),
        Function(
            "sums",
            each({name: function for name, (function, _) in _SUMS.items()}),
            lambda d: {name: d.normal(size) for name, (_, size) in _SUMS.items()},
            THREE,
        ),
        _each("cancelling sums", {"sum": torch.sum, "mean": torch.mean}, _cancelling, WIDE),
        _each("nearly equal numbers", _SPREADS, _nearly_equal, WIDE),
        _each("softmax", _SOFT, lambda d: d.normal(64, 200), FLOATS),
        Function(
            "losses",
            _losses,
            lambda d: {
                "x": d.normal(128, 100),
                "y": d.normal(128, 100),
                "classes": d.integers(100, 128),
            },
        ),
        Function(
            "norms",
            _norms,
            lambda d: {
                "x": d.normal(8, 16, 12, 12),
                "w": d.normal(16, scale=1.0),
                "b": d.normal(16, scale=1.0),
                "mean": d.normal(16, scale=1.0, grad=False),
                "var": d.uniform(0.5, 2.0, 16, grad=False),
            },
            USUAL,
        ),
        Function(
            "conv, batch norm",
            _conv_norm,
            lambda d: {
                "x": d.normal(8, 8, 16, 16),
                "w": d.normal(16, 8, 3, 3, scale=0.1),
                "b": d.normal(16),
                "g": d.normal(16, scale=1.0),
                "h": d.normal(16, scale=1.0),
            },
            WIDE,
        ),
        Function(
            "bias before batch norm",
            _bias_before_norm,
            lambda d: {
                "x": d.normal(256, 64),
                "w": d.normal(64, 64, scale=0.1),
                "b": d.normal(64),
            },
            SINGLE,
        ),
        *(_linear(size) for size in (64, 1024)),
        Function(
            "products of matrices",
            _products,
            lambda d: {
                "x": d.normal(128, 128),
                "y": d.normal(128, 128),
                "z": d.normal(4, 32, 64),
            },
        ),
        Function(
            "attention",
            _attention,
            # Larger scores are among the real differences.
            lambda d: {name: d.normal(2, 4, 48, 32, scale=min(d.scale, 2.0)) for name in "qkv"},
        ),
        Function(
            "perceptron, loss",
            _mlp,
            lambda d: {
                "x": d.normal(64, 96),
                "w1": d.normal(128, 96, scale=0.1),
                "b1": d.normal(128),
                "w2": d.normal(128, 10, scale=0.1),
                "classes": d.integers(10, 64),
            },
        ),
        Function(
            "transformer block",
            _block,
            lambda d: {
                "x": d.normal(2, 24, 64),
                "qkv": d.normal(64, 192, scale=0.125),
                "out": d.normal(64, 64, scale=0.125),
                "up": d.normal(64, 128, scale=0.125),
                "down": d.normal(128, 64, scale=0.1),
            },
        ),
        Function(
            "recurrence",
            _recurrent,
            lambda d: {
                "x": d.normal(12, 16, 32),
                "w": d.normal(32, 32, scale=0.2),
                "u": d.normal(32, 32, scale=0.2),
            },
            SINGLE,
        ),
        Function(
            "duplicate indices",
            _duplicates,
            lambda d: {
                "table": d.normal(50, 16),
                "x": d.normal(2000, 16),
                "where": d.integers(50, 2000, 3),
            },
        ),
        Function(
            "scans",
            _scans,
            lambda d: {"x": d.normal(8192), "near_one": d.normal(2048, scale=0.01, mean=1.0)},
        ),
        Function("pools, resampling", _pools, lambda d: {"x": d.normal(2, 4, 20, 20)}, SINGLE),
        Function(
            "complex",
            _complex,
            lambda d: {"a": d.normal(4096), "b": d.normal(4096)},
            COMPLEX,
        ),
        Function(
            "autocast",
            _autocast,
            lambda d: {
                "x": d.normal(32, 64),
                "w": d.normal(64, 64, scale=0.2),
                "b": d.normal(64),
            },
            SINGLE,
        ),
        Function(
            "float8 casts",
            _float8,
            lambda d: {"x": d.normal(20_000, grad=False)},
            SINGLE,
        ),
        Optimizer("SGD with momentum", lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)),
        Optimizer("RMSprop", lambda p: torch.optim.RMSprop(p, 0.01)),
        Optimizer("Adagrad", lambda p: torch.optim.Adagrad(p, 0.01)),
    ]


def _whole(value: float, *values: float) -> Callable[[Draw], Tensors]:
    return lambda draw: {"x": torch.tensor([value, *values] * 8, dtype=draw.dtype)}


def different() -> list[Program]:
    """What compiled and eager really do differently: bugs, and shorter formulas."""
    half = (torch.float16,)
    return [
        Function(
            "remainder of a large quotient",
            lambda x: torch.remainder(x, 3.0),
            _whole(1e10, 2e10, -1e10, 3e8, 5e12, 10.0),
            SINGLE,
        ),
        Function(
            "floor_divide by 0.1",
            lambda x: torch.floor_divide(x, torch.full_like(x, 0.1)),
            _whole(2.5, 1.0, 0.3, -7.5),
            SINGLE,
        ),
        Function(
            "gradient of avg_pool2d, ceil_mode",
            lambda x: F.avg_pool2d(x, 3, stride=2, ceil_mode=True),
            lambda d: {"x": d.normal(1, 2, 6, 6, scale=1.0)},
            SINGLE,
        ),
        Function(
            "erf near 0",
            torch.erf,
            lambda d: {"input": d.normal(_N, scale=1e-3, grad=False)},
            SINGLE,
        ),
        Function(
            "atanh near 0",
            torch.atanh,
            lambda d: {"input": d.normal(_N, scale=1e-4, grad=False)},
            WIDE,
        ),
        Function(
            "erfinv near 1",
            torch.erfinv,
            lambda d: {"input": d.uniform(0.9, 0.999, _N, grad=False)},
            (torch.float64,),
        ),
        Function(
            # Inductor makes it the fused kind, whose backward pass starts from a logarithm.
            "gradient of attention written out, scores near 1000",
            _attend,
            lambda d: {name: d.normal(2, 4, 48, 32, scale=30.0) for name in "qkv"},
            SINGLE,
        ),
        Optimizer("Adam, default step", lambda p: torch.optim.Adam(p, 0.001)),
        Optimizer("AdamW, default step", lambda p: torch.optim.AdamW(p, 0.001)),
        Function(
            "gradient of reciprocal, overflow inside",
            torch.reciprocal,
            lambda d: {"input": d.normal(_N, scale=0.01)},
            half,
        ),
        Function(
            "gradient of x ** x, overflow inside",
            lambda x: x**x,
            lambda d: {"x": d.uniform(0.01, 6.0, _N)},
            half,
        ),
    ]
