import torch

torch.manual_seed(0)
x = torch.randn(8)
outcomes = {}


def attempt(name, **arguments):
    try:
        torch.compile(torch.sin, **arguments)(x)
        outcomes[name] = "runs"
    except Exception as error:
        outcomes[name] = f"{type(error).__name__}: {error}"
    print(f"{name:17} {outcomes[name]}")


attempt("mistyped_backend", backend="inductr")
attempt("mistyped_mode", backend="eager", mode="reduce-overhea")
attempt("mistyped_option", backend="eager", options={"no.such.option": 1})

names = torch.compiler.list_backends()
all_names = torch.compiler.list_backends(exclude_tags=())
print(len(names), "backends listed:", *names)
print(len(all_names), "with those for debugging")
