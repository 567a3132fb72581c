"""Deep Q-learning: a replay buffer of Python's, a target network that follows softly."""

import copy
import random
from collections import deque, namedtuple

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
random.seed(0)
Transition = namedtuple("Transition", ("state", "action", "reward", "next_state", "done"))


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque(maxlen=capacity)

    def push(self, *parts):
        self.memory.append(Transition(*parts))

    def sample(self, size):
        return Transition(
            *(torch.stack(column) for column in zip(*random.sample(self.memory, size)))
        )


policy_net = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2))
target_net = copy.deepcopy(policy_net).requires_grad_(False)
optimizer = torch.optim.SGD(policy_net.parameters(), lr=0.05)
memory = ReplayMemory(20)
q_values = torch.compile(policy_net)


@torch.compile
def td_loss(batch):
    chosen = policy_net(batch.state).gather(1, batch.action[:, None]).squeeze(1)
    with torch.no_grad():
        best = target_net(batch.next_state).amax(1)
    return F.smooth_l1_loss(chosen, batch.reward + 0.9 * best * ~batch.done)


state = torch.randn(3)
for step in range(16):
    if random.random() < max(0.1, 0.9 - step / 10):
        action = torch.tensor(random.randrange(2))
    else:
        with torch.no_grad():
            action = q_values(state).argmax()
    next_state = 0.9 * state.roll(1 if action else -1) + 0.1 * torch.randn(3)
    memory.push(state, action, next_state[0], next_state, torch.tensor(step % 5 == 4))
    state = next_state
    if len(memory.memory) < 8:
        continue
    loss = td_loss(memory.sample(8))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(policy_net.parameters(), 1.0)
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(target_net.parameters(), policy_net.parameters()):
            slow.lerp_(fast, 0.1)
    print("step", step, "loss", loss.item())
