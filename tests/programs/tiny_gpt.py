"""A character transformer: trained on a line of text, then decoding greedily with a KV cache."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
text = "to be or not to be that is the question "
letters = sorted(set(text))
tokens = torch.tensor([letters.index(letter) for letter in text])
CONTEXT, WIDTH, HEADS = 16, 16, 2


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("keys", torch.zeros(1, HEADS, CONTEXT, WIDTH // HEADS), False)
        self.register_buffer("values", torch.zeros(1, HEADS, CONTEXT, WIDTH // HEADS), False)

    def forward(self, x, position=None):
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        if position is None:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            self.keys[:, :, position] = k
            self.values[:, :, position] = v
            seen = (torch.arange(CONTEXT) <= position)[None]
            mixed = F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=seen)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(WIDTH), Attention()
        self.norm2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 32), nn.GELU(), nn.Linear(32, WIDTH))

    def forward(self, x, position=None):
        x = x + self.attention(self.norm1(x), position)
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(len(letters), WIDTH)
        self.position = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, len(letters), bias=False)
        self.head.weight = self.token.weight

    def forward(self, ids, targets=None, position=None):
        places = torch.arange(ids.shape[1]) if position is None else position
        x = self.token(ids) + self.position(places)
        for block in self.blocks:
            x = block(x, position)
        logits = self.head(self.norm(x))
        loss = None if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        return logits, loss


gpt = GPT()
model = torch.compile(gpt)
optimizer = torch.optim.AdamW(gpt.parameters(), lr=1e-2)
for step in range(4):
    starts = torch.randint(len(tokens) - CONTEXT, (4,))
    batch = torch.stack([tokens[start : start + CONTEXT + 1] for start in starts])
    _, loss = model(batch[:, :-1], batch[:, 1:])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    print("step", step, "loss", loss.item())


@torch.compile
def decode_one(ids, position):
    logits, _ = gpt(ids, position=position)
    return logits[:, -1].argmax(-1, keepdim=True), logits.logsumexp(-1)


gpt.eval()
written = tokens[None, :1]
with torch.inference_mode():
    for place in range(CONTEXT - 1):
        following, scale = decode_one(written[:, -1:], torch.tensor([place]))
        written = torch.cat([written, following], dim=1)
print("decoded", repr("".join(letters[index] for index in written[0])), scale.item())
