"""REINFORCE on a walk: the policy is compiled, its actions are drawn from a distribution."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)


class Corridor:
    """Five cells; the last one pays, every step costs."""

    def reset(self):
        self.cell, self.steps = 2, 0
        return self.observe()

    def observe(self):
        return torch.eye(5)[self.cell]

    def step(self, action):
        self.cell = max(self.cell + (1 if action == 1 else -1), 0)
        self.steps += 1
        done = self.cell == 4 or self.steps == 6
        return self.observe(), (1.0 if self.cell == 4 else -0.1), done


policy = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2))
act = torch.compile(policy)
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
environment = Corridor()

for episode in range(4):
    state, done = environment.reset(), False
    log_probs, rewards = [], []
    while not done:
        distribution = Categorical(logits=act(state))
        action = distribution.sample()
        log_probs.append(distribution.log_prob(action))
        state, reward, done = environment.step(action.item())
        rewards.append(reward)

    returns, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + 0.9 * total
        returns.insert(0, total)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std(correction=0) + 1e-8)
    loss = -(torch.stack(log_probs) * returns).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"episode {episode}: {len(rewards)} steps, return {total!r}, loss {loss.item()!r}")
