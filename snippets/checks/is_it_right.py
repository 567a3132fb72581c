import torch

torch.manual_seed(0)


def tempered_softmax(x):
    x.mul_(0.5)  # writes into its argument
    weights = (x - x.amax(-1, keepdim=True)).exp()
    return weights / weights.sum(-1, keepdim=True)


def agree(one, other):
    try:
        torch.testing.assert_close(one, other)
    except AssertionError:
        return "no"
    return "yes"


compiled = torch.compile(tempered_softmax)
data = torch.randn(256, 1000)

# Wrong: both calls get the same tensor, and the first call changes it.
shared = data.clone()
same_tensor = agree(compiled(shared), tempered_softmax(shared))

# Right: each side gets its own copy, and the changed arguments are compared, too.
mine, theirs = data.clone(), data.clone()
of_compiled, of_eager = compiled(mine), tempered_softmax(theirs)
own_copies = agree((of_compiled, mine), (of_eager, theirs))
same_bits = "yes" if torch.equal(of_compiled, of_eager) else "no"

# Who is nearer to the truth? The same function in float64.
truth = tempered_softmax(data.double())
errors = [(out - truth).abs().max().item() for out in (of_eager, of_compiled)]
eager_error, compiled_error = (f"{error:.1e}" for error in errors)

print("agree, one tensor for both:  ", same_tensor)
print("agree, a copy for each:      ", own_copies)
print("the same bits:               ", same_bits)
print(f"error against float64:        eager {eager_error}, compiled {compiled_error}")
