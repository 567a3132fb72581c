import torch
from torch._inductor import list_options

torch.manual_seed(0)
outcomes = {}


def attempt(name, **arguments):
    try:
        torch.compile(torch.sin, **arguments)
        outcomes[name] = "accepted"
    except RuntimeError as error:
        outcomes[name] = str(error).partition(", known options are")[0]
    print(f"{name:17} {outcomes[name]}")


attempt("mode_and_options", mode="default", options={"max_autotune": True})
attempt("unknown", options={"max_autotunes": True})
attempt("wrong_type", options={"max_autotune": "yes"})
attempt("hyphen", options={"max-autotune": True})
attempt("a_group", options={"triton": {"cudagraphs": True}})
attempt("with_its_group", options={"triton.cudagraphs": True})

known = len(list_options())
groups = len({name.partition(".")[0] for name in list_options() if "." in name})
print(known, "options, some of them in", groups, "groups")
