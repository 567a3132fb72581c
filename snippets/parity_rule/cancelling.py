import torch

torch.manual_seed(0)
half = torch.randn(5_000)
terms = torch.cat([half, -half])  # The exact sum is 0.
eps = torch.finfo(terms.dtype).eps


def shuffled_sum():
    return terms[torch.randperm(len(terms))].sum().item()


pairs = [(shuffled_sum(), shuffled_sum()) for _ in range(1_000)]
# How far each sum is from the exact one is its distance from 0.
rejected = [abs(other) > 2 * abs(one) + 4 * eps * abs(one) for one, other in pairs]
rejected_share = sum(rejected) / len(pairs)
print(f"twice as far from the exact sum: {rejected_share:.0%} of {len(pairs)} pairs")

moved = [terms * (1 + eps * torch.randint(-1, 2, terms.shape)) for _ in range(100)]
noise = torch.stack([t.sum() - terms.sum() for t in moved]).square().mean().sqrt().item()
largest_over_noise = max(abs(one - other) for one, other in pairs) / noise
print(f"largest distance of a pair: {largest_over_noise:.1f} times the noise")
