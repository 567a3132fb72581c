import statistics

import torch
from torch._dynamo.utils import counters
from torch.utils.benchmark import Timer

torch.manual_seed(0)
x = torch.randn(2_000_000)


def chain(x):
    return torch.sigmoid(x) * x.tanh() + 0.5 * x.square() - x.abs()


compiled = torch.compile(chain)
seconds, graphs_after = {}, {}
for threads in 1, 2, 1:
    torch.set_num_threads(threads)
    compiled(x)
    graphs_after[f"call_{len(graphs_after) + 1}"] = counters["stats"]["unique_graphs"]
    print(f"{threads} thread(s): {counters['stats']['unique_graphs']} graphs so far")

for threads in 1, 2:
    timers = [
        Timer(
            "f(x)",
            globals={"f": f, "x": x},
            label=f"a chain, {threads} thread{'s' * (threads - 1)}",
            description=side,
            num_threads=threads,
        )
        for side, f in (("eager", chain), ("compiled", compiled))
    ]
    rounds = [[timer.timeit(3).median for timer in timers] for _ in range(15)]
    eager, later = (statistics.median(side) for side in zip(*rounds))
    seconds[f"threads_{threads}"] = {"eager": eager, "compiled": later}
    print(f"{threads} thread(s): eager {1e3 * eager:6.2f} ms, compiled {1e3 * later:6.2f} ms")

scaling = {
    side: seconds["threads_1"][side] / seconds["threads_2"][side] for side in ("eager", "compiled")
}
print("one thread over two:", *(f"{side} {ratio:.2f}x" for side, ratio in scaling.items()))
