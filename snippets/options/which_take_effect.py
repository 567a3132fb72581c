import difflib

import torch
from torch._inductor.utils import run_and_get_code

torch.manual_seed(0)
x, w = torch.randn(64, 512), torch.randn(512, 512)


def f(x):
    y = torch.nn.functional.gelu(x @ w)
    return (y - y.mean(-1, keepdim=True)) / (1 + y.std(-1, keepdim=True))


def program(**options):
    torch.compiler.reset()
    _, (source,) = run_and_get_code(torch.compile(f, options=options), x)
    return source.splitlines()[1:]  # the first line is a running number


tried = {
    "max_fusion_size": 1,
    "inplace_buffers": False,
    "realize_opcount_threshold": 2,
    "size_asserts": False,
    "nan_asserts": True,
    "memory_planning": True,
    "epilogue_fusion": False,
    "max_autotune": True,
    "shape_padding": False,
    "freezing": True,
    "emulate_precision_casts": True,
    "pattern_matcher": False,
}
plain, changed = program(), {}
for name, value in tried.items():
    lines = program(**{name: value})
    blocks = difflib.SequenceMatcher(None, plain, lines).get_opcodes()
    changed[name] = sum(max(b - a, d - c) for tag, a, b, c, d in blocks if tag != "equal")
    print(f"{name:26} {value!s:6} {changed[name]:4} lines changed")
effective = sum(count > 0 for count in changed.values())
