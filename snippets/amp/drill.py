import torch

torch.manual_seed(0)
x = torch.randn(16, 16)


def f(x):
    product = x @ x
    return {
        "product": product,
        "softmax_of_float32": x.softmax(-1),
        "softmax_of_product": product.softmax(-1),
        "layer_norm_of_product": torch.nn.functional.layer_norm(product, (16,)),
        "sum_of_product": product.sum(),
        "product_plus_float32": product + x,
        "sine_of_product": product.sin(),
    }


with torch.autocast("cpu", dtype=torch.bfloat16):
    of_compiled = torch.compile(f, backend="aot_eager")(x)
    of_eager = f(x)

dtypes = {name: str(y.dtype).removeprefix("torch.") for name, y in of_compiled.items()}
same = all(of_eager[name].dtype == y.dtype for name, y in of_compiled.items())
agree = "yes" if same else "no"
for name, dtype in dtypes.items():
    print(f"{name:22} {dtype}")
print("eager has the same dtypes:", agree)
