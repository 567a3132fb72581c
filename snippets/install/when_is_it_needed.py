import torch
import torch._inductor.config

torch.manual_seed(0)
torch._logging.set_logs(all=50)
torch._inductor.config.cpp.cxx = (None, "/no/such/g++")
x = torch.randn(8, 8)
answers = {}


def attempt(name, function, call=True, **arguments):
    torch.compiler.reset()
    try:
        compiled = torch.compile(function, **arguments)
        if call:
            compiled(x)
        answers[name] = "works"
    except Exception as error:
        answers[name] = type(error).__name__
    print(f"{name:24} {answers[name]}")


attempt("wrapping", torch.sin, call=False)
attempt("a_call", lambda x: x.sin())
attempt("one_matrix_product", lambda x: x @ x)
attempt("a_view", lambda x: x.t())
