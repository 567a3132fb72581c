"""What a backward pass sends into the inputs of one call, observed without touching a tensor.

The program's own backward is watched, not repeated: hooks on autograd nodes read what arrives at
the outputs of a call and what leaves towards its inputs. Hooks stand on nodes, never on tensors,
so that no tensor of the program looks different to it, to Dynamo or to AOTAutograd.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any, NamedTuple

import torch

from measured import compare
from measured.reach import NotComparable, Reach

Node = Any
Edge = tuple[Node, int]


class Entry(NamedTuple):
    """A place by which a backward pass enters a call."""

    edge: Edge
    dtype: torch.dtype


@dataclasses.dataclass
class Flow:
    """The gradients of one call in one backward pass, by path."""

    arrived: dict[str, torch.Tensor] = dataclasses.field(default_factory=dict)
    """What reached each output from outside of the call."""
    sent: dict[str, torch.Tensor] = dataclasses.field(default_factory=dict)
    """What the call contributes to the gradient of each input."""
    inner: dict[str, torch.Tensor] = dataclasses.field(default_factory=dict)
    """What one output of the call contributes to the gradient of another."""
    asked: set[str] = dataclasses.field(default_factory=set)
    """Inputs whose gradient the pass was asked for."""
    ambiguous: set[str] = dataclasses.field(default_factory=set)
    """Inputs that another call sends to by the same node, such as a cast that autocast cached."""
    obstacle: str = ""
    """Why the gradients can not be compared, where they can not."""


def entries(result: Any, reached: Reach, histories: dict[int, Any]) -> dict[str, Entry]:
    """Where a backward pass can enter this call: outputs, and tensors that it wrote or stored.

    `reached` is what the call reaches when it is over; `histories` maps the identity of each tensor
    that was there before to its `grad_fn` then.
    """
    found: dict[str, Entry] = {}
    seen: set[Edge] = set()
    for path, tensor in (*compare.leaves(result, "result"), *reached.tensors.values()):
        if not isinstance(tensor, torch.Tensor) or tensor.grad_fn is None:
            continue
        if histories.get(id(tensor)) is tensor.grad_fn:
            continue  # It is what it was.
        edge = (tensor.grad_fn, tensor.output_nr)
        if edge not in seen:
            seen.add(edge)
            found[path] = Entry(edge, tensor.dtype)
    return found


def edges_of(tensors: dict[str, torch.Tensor]) -> dict[Edge, str]:
    """The gradient edge of each tensor that requires grad: where its gradient would arrive."""
    edges: dict[Edge, str] = {}
    if torch.is_inference_mode_enabled():
        return edges
    for path, tensor in tensors.items():
        if tensor.requires_grad and not tensor.is_inference() and not tensor.is_sparse:
            # A subclass may put a node of its own in between.
            with torch._C.DisableTorchFunctionSubclass():
                edge = torch.autograd.graph.get_gradient_edge(tensor)
            edges.setdefault((edge.node, edge.output_nr), path)
    return edges


class _Crossing(NamedTuple):
    """Where the graph of a call meets an input, or an output, of the call."""

    node: Node
    index: int
    """Which of the node's edges."""
    path: str
    is_input: bool


def _crossings(outputs: dict[str, Entry], inputs: dict[Edge, str]) -> list[_Crossing]:
    found: list[_Crossing] = []
    inner = {entry.edge: path for path, entry in outputs.items()}
    for node in _below((entry.edge[0] for entry in outputs.values()), inputs):
        for index, edge in enumerate(node.next_functions):
            if edge in inputs:
                found.append(_Crossing(node, index, inputs[edge], True))
            elif edge in inner:
                found.append(_Crossing(node, index, inner[edge], False))
    return found


def _below(roots: Iterable[Node], inputs: Container[Edge]) -> Iterator[Node]:
    """Every node of the graph from the outputs of a call to its inputs."""
    pending = list(roots)
    seen: set[Node] = set()
    while pending:
        node = pending.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        yield node
        pending.extend(edge[0] for edge in node.next_functions if edge not in inputs)


class Watch:
    """Calls `started()` when the first backward pass enters a call by `outputs`, and `done(flow)`
    after it."""

    def __init__(
        self,
        outputs: dict[str, Entry],
        inputs: dict[Edge, str],
        started: Callable[[], None],
        done: Callable[[Flow], None],
    ) -> None:
        # It must not hold an output's node, whose hook holds it: no collector would see that ring.
        self.inputs = inputs
        self.is_over = False
        self.is_told = False
        """Whether somebody else says when the pass is over, and not the engine."""
        self._started = started
        self._done = done
        self._flow = Flow()
        self._asked: dict[str, bool | None] = {}
        self._is_waiting = False
        self._handles: list[Any] = []
        for path, entry in outputs.items():
            node, number = entry.edge
            self._handles.append(node.register_prehook(self._on_arrival(path, number)))
            node.metadata.setdefault(_WATCHES, []).append(self)
        self._handles += _listen(_crossings(outputs, inputs), self._flow)

    def finish(self, obstacle: str = "") -> None:
        """The pass is over: look at it, and at no other. `obstacle` is why it can not be."""
        for handle in self._handles:
            handle.remove()
        self.is_over = True
        self._flow.obstacle = obstacle
        # Where the engine can not say, what was sent tells.
        self._flow.asked = {
            path
            for path, yes in self._asked.items()
            if yes or (yes is None and path in self._flow.sent)
        }
        self._done(self._flow)

    def _on_arrival(self, path: str, number: int) -> Callable[[Any], None]:
        flow = self._flow

        def hook(grads: tuple[torch.Tensor | None, ...]) -> None:
            if not self._is_waiting:
                self._is_waiting = True
                self._asked = {to: _is_asked(node) for (node, _), to in self.inputs.items()}
                if not self.is_told:
                    torch.autograd.Variable._execution_engine.queue_callback(self.finish)
                self._started()
            if (grad := grads[number]) is not None and path not in flow.arrived:
                inner = flow.inner.get(path)
                flow.arrived[path] = (grad if inner is None else grad - inner).detach().clone()

        return hook


_WATCHES = "calls that are entered by this node, and watched"


def watches(roots: Iterable[Node]) -> list[Watch]:
    """Those that a backward pass from these nodes can enter."""
    found: dict[Watch, None] = {}
    for node in _below(roots, {}):
        found |= dict.fromkeys(node.metadata.get(_WATCHES, ()))
    return [watch for watch in found if not watch.is_over]


def _is_asked(node: Node) -> bool | None:
    """Whether the backward pass under way goes to `node`; None where the engine can not say."""
    try:
        return torch._C._will_engine_execute_node(node)
    except RuntimeError:  # A leaf, in a pass of autograd.grad.
        return None


_CLAIMS = "calls that this node is part of"


def _listen(crossings: list[_Crossing], flow: Flow) -> list[Any]:
    """Hooks on nodes that add what leaves by an edge to the flow."""
    handles = []
    for node, index, path, is_input in crossings:
        claims = node.metadata.setdefault(_CLAIMS, [])
        for other, others_path in claims:
            if other is not flow.ambiguous:
                other.add(others_path)
                flow.ambiguous.add(path)
        claims.append((flow.ambiguous, path))
        target = flow.sent if is_input else flow.inner
        handles.append(node.register_hook(_collect(target, index, path)))
    return handles


def _collect(sums: dict[str, torch.Tensor], index: int, path: str) -> Callable[[Any, Any], None]:
    def hook(into: tuple[torch.Tensor | None, ...], _from: Any) -> None:
        if (grad := into[index]) is not None:
            grad = grad.detach()
            sums[path] = sums[path] + grad if path in sums else grad.clone()

    return hook


def of_twin(
    outputs: dict[str, Entry], inputs: dict[Edge, str], arrived: dict[str, torch.Tensor]
) -> Flow:
    """What the eager twin's backward does with the same gradients arriving from outside.

    Raises `NotComparable` where eager refuses to be asked for the gradients of some tensors only.
    """
    flow = Flow(arrived=arrived)
    roots = [entry.edge[0] for entry in outputs.values()]
    if any(node.name() == "CheckpointFunctionBackward" for node in _below(roots, inputs)):
        raise NotComparable(
            "its gradients were not compared: a checkpoint with use_reentrant=True adds them to "
            ".grad by a backward pass of its own"
        )
    crossings = _crossings(outputs, inputs)
    met = {path for _, _, path, is_input in crossings if is_input}
    edges = [edge for edge, path in inputs.items() if path in met]
    entered = [path for path in arrived if path in outputs]
    if not edges or not entered:
        return flow
    with _listening(crossings, flow), torch.enable_grad():
        torch.autograd.grad(
            [torch.autograd.graph.GradientEdge(*outputs[path].edge) for path in entered],
            [torch.autograd.graph.GradientEdge(*edge) for edge in edges],
            grad_outputs=[arrived[path].to(outputs[path].dtype) for path in entered],
            allow_unused=True,
            retain_graph=True,
        )
    return flow


@contextlib.contextmanager
def _listening(crossings: list[_Crossing], flow: Flow) -> Iterator[None]:
    handles = _listen(crossings, flow)
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def named(flow: Flow) -> dict[str, torch.Tensor]:
    """The gradients that the call made, by the paths that differences name."""
    return {f"gradient of {path}": _dense(grad) for path, grad in flow.sent.items()} | {
        f"gradient of {path} from the other results": _dense(grad)
        for path, grad in flow.inner.items()
    }


def _dense(grad: torch.Tensor) -> torch.Tensor:
    """A gradient's strides are autograd's choice, and AccumulateGrad normalises them."""
    return (grad.to_dense() if grad.is_sparse else grad).contiguous()


def compared(
    eager: Flow, compiled: Flow, reference: compare.Reference | None = None
) -> compare.Report:
    """Everything in which the twin's gradients and the program's differ."""
    report = compare.Report()
    left, right = named(eager), named(compiled)
    asked = {f"gradient of {path}" for path in compiled.asked - compiled.ambiguous}
    inner = left.keys() & right.keys() - {f"gradient of {path}" for path in eager.sent}
    for path in sorted((asked & (left.keys() | right.keys())) | inner):
        known = left.get(path, right.get(path))
        # No gradient and a gradient of zeros are the same to the optimizer step that follows.
        zeros = torch.zeros_like(known)
        report.merge(
            compare.tensors(left.get(path, zeros), right.get(path, zeros), path, reference)
        )
    return report
