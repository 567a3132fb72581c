import torch
import torch._inductor.config

torch.manual_seed(0)
torch._logging.set_logs(all=50)
torch._inductor.config.cpp.cxx = (None, "/no/such/compiler")


def break_in_the_middle(x):  # forbidden by fullgraph=True
    print(end="")
    return x.sin().sum()


def twice_differentiated(x):  # no double backward through AOTAutograd
    return x.sin().sum()


def fine(x):
    return x.sin().sum()


def use(function, compiled):
    x = torch.randn(4, requires_grad=True)
    twice = function is twice_differentiated
    (gradient,) = torch.autograd.grad(compiled(x), x, create_graph=twice)
    if twice:
        gradient.sum().backward()


outcomes = {}
for function in break_in_the_middle, twice_differentiated, fine:
    for backend in "eager", "aot_eager", "inductor":
        torch.compiler.reset()
        compiled = torch.compile(function, backend=backend, fullgraph=True)
        try:
            use(function, compiled)
            outcome = "runs"
        except Exception as error:
            outcome = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        outcomes.setdefault(function.__name__, {})[backend] = outcome
        print(f"{function.__name__:21} {backend:10} {outcome[:55]}")
