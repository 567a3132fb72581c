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

vector_isa = str(pick_vec_isa())  # which vector instructions work? It asks the C++ compiler
lap("toolchain_probes")


def book(phase):  # what torch writes down about itself: a list of seconds for every phase
    return torch._dynamo.utils.compilation_time_metrics.get(phase, [])


probes = len(book("compile_file"))
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)).eval()
with torch.no_grad():
    torch.compile(model)(torch.randn(32, 64))
lap("first_call")

phases = "_compile.compile_inner", "OutputGraph.call_user_compiler", "create_aot_dispatcher_function"
dynamo, backend, aot = (sum(book(phase)) for phase in phases)
inductor, cpp = sum(book("compile_fx_inner")), book("compile_file")[probes:]
parts = {"dynamo": dynamo - backend, "cache_keys": backend - aot, "aotautograd": aot - inductor}
parts |= {"inductor": max(inductor - sum(cpp), 0.0), "cpp_kernel": sum(cpp[-1:]), "cpp_header": sum(cpp[:-1])}
for row, value in (seconds | {f"  {part}": value for part, value in parts.items()}).items():
    print(f"{row:17}{value:8.2f} s")

once_per_machine = seconds["toolchain_probes"] + parts["cpp_header"]
once_per_process = seconds["import_dynamo"] + seconds["import_inductor"]
this_model = seconds["first_call"] - parts["cpp_header"]
