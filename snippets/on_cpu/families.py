import statistics

import torch
from torch.nn import functional
from torch.utils.benchmark import Timer

torch.manual_seed(0)
torch.set_num_threads(1)
x, w = torch.randn(512, 1024), torch.randn(1024, 1024)
images, filters = torch.randn(4, 16, 32, 32), torch.randn(16, 16, 3, 3)
table, tokens = torch.randn(10_000, 64), torch.randint(10_000, (8192,))

families = {
    "pointwise_chain": lambda: torch.sigmoid(x) * x.tanh() + 0.5 * x.square() - x.abs(),
    "row_sum": lambda: x.sum(-1),
    "softmax": lambda: x.softmax(-1),
    "layer_norm": lambda: functional.layer_norm(x, (1024,)),
    "matrix_product": lambda: x @ w,
    "convolution": lambda: functional.conv2d(images, filters, padding=1),
    "embedding_sum": lambda: functional.embedding(tokens, table).sum(0),
    "sort": lambda: x.sort(-1).values,
}
ratios = {}
for name, function in families.items():
    compiled = torch.compile(function)
    compiled()
    once = Timer("f()", globals={"f": function}).timeit(3).median
    calls = max(1, min(50, int(0.01 / once)))
    timers = [
        Timer("f()", globals={"f": f}, label=name.replace("_", " "), description=side)
        for side, f in (("eager", function), ("compiled", compiled))
    ]
    rounds = [[timer.timeit(calls).median for timer in timers] for _ in range(11)]
    ratios[name] = statistics.median(eager / later for eager, later in rounds)
    print(f"{name:16} eager / compiled {ratios[name]:6.2f}x")
