import time

start, seconds = time.perf_counter(), {}


def lap(row):
    seconds[row] = time.perf_counter() - start - sum(seconds.values())


import torch

lap("import_torch")
import torch._dynamo

lap("import_dynamo")
import torch._inductor.compile_fx

lap("import_inductor")
from torch._inductor.cpu_vec_isa import pick_vec_isa

vector_isa = str(pick_vec_isa())  # asks the C++ compiler what this CPU can do
lap("toolchain_probes")


def book(phase):  # torch's own books: a list of seconds for every phase
    return torch._dynamo.utils.compilation_time_metrics.get(phase, [])


probes = len(book("compile_file"))
nn = torch.nn
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).eval()
with torch.no_grad():
    torch.compile(model)(torch.randn(32, 64))
lap("first_call")

nested = {  # each phase contains the next one
    "dynamo": "_compile.compile_inner",
    "cache_keys": "OutputGraph.call_user_compiler",
    "aotautograd": "create_aot_dispatcher_function",
    "inductor": "compile_fx_inner",
}
*header, kernel = [0.0, *book("compile_file")[probes:]]
times = [sum(book(phase)) for phase in nested.values()] + [sum(header) + kernel]
parts = {row: max(times[i] - times[i + 1], 0.0) for i, row in enumerate(nested)}
parts |= {"cpp_header": sum(header), "cpp_kernel": kernel}
for row, value in (seconds | {f"  {part}": parts[part] for part in parts}).items():
    print(f"{row:17}{value:8.2f} s")

once_per_machine = seconds["toolchain_probes"] + parts["cpp_header"]
once_per_process = seconds["import_dynamo"] + seconds["import_inductor"]
this_model = seconds["first_call"] - parts["cpp_header"]
