import re
import statistics

import torch
from torch._inductor.cpu_vec_isa import pick_vec_isa
from torch._inductor.utils import run_and_get_code
from torch.utils.benchmark import Timer

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(200_000)


def chain(x):
    return torch.sigmoid(x) * x.tanh() + 0.5 * x.square() - x.abs()


instructions = str(pick_vec_isa())
print("instructions:", instructions)
rows = {}
cases = {"as_found": {}, "bits_256": {"cpp.simdlen": 256}, "scalar": {"cpp.simdlen": 1}}
for name, options in cases.items():
    torch.compiler.reset()
    compiled = torch.compile(chain, options=options)
    _, (source,) = run_and_get_code(compiled, x)
    step = re.search(r"\w+\+=static_cast<int64_t>\((\d+)L\)", source)
    timers = [
        Timer("f(x)", globals={"f": f, "x": x}, label=name.replace("_", " "), description=side)
        for side, f in (("eager", chain), ("compiled", compiled))
    ]
    rounds = [[timer.timeit(10).median for timer in timers] for _ in range(15)]
    ratio = statistics.median(eager / later for eager, later in rounds)
    rows[name] = {"numbers": int(step[1]), "ratio": ratio}
    print(f"{name:9} {step[1]:>3} numbers at a time, eager / compiled {ratio:5.2f}x")
