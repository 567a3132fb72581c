from pathlib import Path

import torch

package = Path(torch.__file__).parent
messages = {
    "overwritten": "overwritten by a subsequent run",
    "step_begin": "To prevent overwriting, call torch.compiler.cudagraph_mark_step_begin()",
    "few_processors": "Not enough SMs to use max_autotune_gemm mode",
    "min_processors": 'min_sms = 16 if device.type == "xpu" else ',
    "tensor_float": "TensorFloat32 tensor cores for float32 matrix multiplication available",
    "skipped": "skipping cudagraphs due to",
}
sources = {path: path.read_text() for path in sorted((package / "_inductor").glob("*.py"))}
found, numbers = {}, {}
for name, message in messages.items():
    for path, text in sources.items():
        if message in text:
            line = text[: text.index(message)].count("\n") + 1
            found[name] = f"torch/_inductor/{path.name}:{line}"
            rest = text.partition(message)[2]
            numbers[name] = rest.split()[0]
            break
    print(f"{found.get(name, 'NOT FOUND')}\n    {message}")
processors_needed = int(numbers["min_processors"])
