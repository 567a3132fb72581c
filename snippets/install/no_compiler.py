import torch
import torch._dynamo.config
import torch._inductor.config
from torch._inductor.exc import InvalidCxxCompiler

torch.manual_seed(0)
torch._logging.set_logs(all=50)
torch._inductor.config.cpp.cxx = (None, "/no/such/g++")  # as CXX=/no/such/g++ does
x = torch.randn(8)
outcomes = {}


def f(x):
    return x.sin() + 1


def attempt(name, **arguments):
    torch.compiler.reset()
    try:
        torch.compile(f, **arguments)(x)
        outcomes[name] = "runs"
    except Exception as error:
        outcomes[name] = f"{type(error).__name__}: {error}".partition(" in torch.")[0]
    print(f"{name:12} {outcomes[name]}")


attempt("inductor", backend="inductor")
attempt("aot_eager", backend="aot_eager")
attempt("eager", backend="eager")

on_windows = str(InvalidCxxCompiler("cl"))
print("\nthe same exception for a missing cl.exe:", on_windows)
