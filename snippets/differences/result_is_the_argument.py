import torch


def divide(logits, temperature):
    return logits / temperature


compiled = torch.compile(divide, dynamic=False)
left = {}
for temperature in (2.0, 1.0):
    for name, function in (("eager", divide), ("compiled", compiled)):
        logits = torch.ones(3)
        result = function(logits, temperature)
        result.zero_()  # the caller's own tensor, or so it seems
        left[f"{name}_{temperature:.0f}"] = logits.tolist()
        print(f"temperature {temperature}, {name:8}: logits are now {logits.tolist()}")
