"""What a backward pass sends into the inputs of one call, observed without touching a tensor.

The program's own backward is watched, not repeated: hooks on autograd nodes read what arrives at
the outputs of a call and what leaves towards its inputs. Hooks stand on nodes, never on tensors,
so that no tensor of the program looks different to it, to Dynamo or to AOTAutograd.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from measured import compare, twin

Node = Any
Edge = tuple[Node, int]


def entries(result: Any, reached: twin.Reach) -> dict[str, torch.Tensor]:
    """Outputs that a backward pass can enter this call through, by path."""
    return {
        path: leaf
        for path, leaf in compare.leaves(result, "result")
        if isinstance(leaf, torch.Tensor)
        and leaf.grad_fn is not None
        and id(leaf) not in reached.tensors
    }


def edges_of(tensors: dict[str, torch.Tensor]) -> dict[Edge, str]:
    """The gradient edge of each tensor that requires grad: where its gradient would arrive."""
    edges: dict[Edge, str] = {}
    for path, tensor in tensors.items():
        if tensor.requires_grad and not tensor.is_inference() and not tensor.is_sparse:
            edge = torch.autograd.graph.get_gradient_edge(tensor)
            edges.setdefault((edge.node, edge.output_nr), path)
    return edges


def boundary(outputs: list[torch.Tensor], inputs: dict[Edge, str]) -> list[tuple[Node, int, str]]:
    """Where the graph behind `outputs` meets `inputs`: (node, index into its inputs, path)."""
    found: list[tuple[Node, int, str]] = []
    pending = [output.grad_fn for output in outputs]
    seen: set[Node] = set()
    while pending:
        node = pending.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        for index, (following, number) in enumerate(node.next_functions):
            path = inputs.get((following, number))
            if path is not None:
                found.append((node, index, path))
            elif following is not None:
                pending.append(following)
    return found


def watch(
    outputs: dict[str, torch.Tensor],
    inputs: dict[Edge, str],
    done: Callable[[dict[str, torch.Tensor], dict[str, torch.Tensor], set[str]], None],
) -> None:
    """Call `done(arrived, sent)` after the first backward pass through `outputs`.

    `arrived` maps the path of an output to the gradient that reached it, `sent` the path of an
    input to the sum of what this call contributes to its gradient. Inputs whose gradient the pass
    was not asked for are left out of both sides by `asked`.
    """
    arrived: dict[str, torch.Tensor] = {}
    sent: dict[str, torch.Tensor] = {}
    handles: list[Any] = []
    asked: dict[str, bool | None] = {}
    waiting = False

    def finish() -> None:
        for handle in handles:
            handle.remove()
        # Where the engine can not say, what was sent tells.
        done(
            arrived,
            sent,
            {path for path, yes in asked.items() if yes or (yes is None and path in sent)},
        )

    def on_arrival(path: str, number: int) -> Callable[[Any], None]:
        def hook(grads: tuple[torch.Tensor | None, ...]) -> None:
            nonlocal waiting
            if not waiting:
                waiting = True
                asked.update((path, _is_asked(node)) for (node, _), path in inputs.items())
                torch.autograd.Variable._execution_engine.queue_callback(finish)
            if (grad := grads[number]) is not None and path not in arrived:
                arrived[path] = grad.detach().clone()

        return hook

    for path, output in outputs.items():
        handles.append(output.grad_fn.register_prehook(on_arrival(path, output.output_nr)))
    for node, index, path in boundary(list(outputs.values()), inputs):
        handles.append(node.register_hook(_collect(sent, index, path)))


def _is_asked(node: Node) -> bool | None:
    """Whether the backward pass under way goes to `node`; None where the engine can not say."""
    try:
        return torch._C._will_engine_execute_node(node)
    except RuntimeError:  # A leaf, in a pass of autograd.grad.
        return None


def _collect(sent: dict[str, torch.Tensor], index: int, path: str) -> Callable[[Any, Any], None]:
    """A hook for a node that adds what leaves it by one of its edges to `sent`."""

    def hook(into: tuple[torch.Tensor | None, ...], _from: Any) -> None:
        if (grad := into[index]) is not None:
            grad = grad.detach()
            sent[path] = sent[path] + grad if path in sent else grad.clone()

    return hook


def of_twin(
    outputs: dict[str, torch.Tensor],
    inputs: dict[Edge, str],
    arrived: dict[str, torch.Tensor],
) -> dict[str, torch.Tensor]:
    """What the eager twin's backward sends into the same inputs for the same arriving gradients."""
    sent: dict[str, torch.Tensor] = {}
    met = {path for _, _, path in boundary(list(outputs.values()), inputs)}
    edges = [edge for edge, path in inputs.items() if path in met]
    if not edges:
        return sent
    with _listening(outputs, inputs, sent), torch.enable_grad():
        roots = [outputs[path] for path in arrived]
        torch.autograd.grad(
            roots,
            [torch.autograd.graph.GradientEdge(*edge) for edge in edges],
            grad_outputs=[
                grad.to(root.dtype) for grad, root in zip(arrived.values(), roots, strict=True)
            ],
            allow_unused=True,
            retain_graph=True,
        )
    return sent


@contextlib.contextmanager
def _listening(
    outputs: dict[str, torch.Tensor], inputs: dict[Edge, str], sent: dict[str, torch.Tensor]
) -> Iterator[None]:
    handles = [
        node.register_hook(_collect(sent, index, path))
        for node, index, path in boundary(list(outputs.values()), inputs)
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
