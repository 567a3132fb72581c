import torch
from torch import nn
from torch.nn.modules.utils import consume_prefix_in_state_dict_if_present

torch.manual_seed(0)


def plain():
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU())


def wrapped():
    return torch.compile(plain(), backend="eager")


def loads(model, checkpoint):
    try:
        model.load_state_dict(checkpoint)
    except RuntimeError as error:
        return "Missing key(s)" if "Missing key(s)" in str(error) else "fails"
    return "loads"


of_wrapper = wrapped().state_dict()
without_prefix = dict(of_wrapper)
consume_prefix_in_state_dict_if_present(without_prefix, "_orig_mod.")
first_key = next(iter(of_wrapper))

outcomes = {
    "wrapper_into_plain": loads(plain(), of_wrapper),
    "plain_into_wrapper": loads(wrapped(), plain().state_dict()),
    "wrapper_into_wrapper": loads(wrapped(), of_wrapper),
    "prefix_removed_into_plain": loads(plain(), without_prefix),
    "inner_module_into_plain": loads(plain(), wrapped()._orig_mod.state_dict()),
    "plain_into_inner_module": loads(wrapped()._orig_mod, plain().state_dict()),
}
print("first key of the wrapper:", first_key)
for name, outcome in outcomes.items():
    print(f"{name:27} {outcome}")
