import statistics
import time

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
inputs = torch.randn(6400, 1024)
classes = inputs[:, :100].reshape(6400, 10, 10).sum(-1).argmax(-1)  # can be learned
train_loader = DataLoader(TensorDataset(inputs, classes), batch_size=64)


def train(compile_it):
    torch.manual_seed(1)
    model = nn.Linear(1024, 10)
    if compile_it:
        model = torch.compile(model)  # compile ONCE, before training
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    losses, seconds = [], []
    for X, y in train_loader:  # the loop is unchanged
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = criterion(model(X), y)  # runs the compiled model
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
        losses.append(loss.item())
    return losses, seconds


eager_losses, eager_seconds = train(compile_it=False)
compiled_losses, compiled_seconds = train(compile_it=True)

steps = len(eager_losses)
first_step, eager_step = compiled_seconds[0], statistics.median(eager_seconds)
compiled_step = statistics.median(compiled_seconds[steps // 2 :])
gaps = [abs(eager - compiled) for eager, compiled in zip(eager_losses, compiled_losses)]
largest_gap = f"{max(gaps):.0e}"
print(f"{steps} steps           eager    compiled")
print(f"first loss     {eager_losses[0]:10.4f}  {compiled_losses[0]:10.4f}")
print(f"last loss      {eager_losses[-1]:10.4f}  {compiled_losses[-1]:10.4f}")
print(f"first step     {eager_seconds[0]:10.4f} s{first_step:10.4f} s")
print(f"a later step   {eager_step:10.6f} s{compiled_step:10.6f} s")
