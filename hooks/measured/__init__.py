"""The engine behind *torch.compile, measured*: run snippets, audit them, keep what was seen.

Data goes one way: pages are read (`pages`), each snippet is looked up or run (`plan`, `run`),
what both children saw becomes a record (`record`, `store`), pages are drawn from records
(`render`, `values`), and the build is judged (`report`). Nothing here imports torch except the
modules that run inside a child: `child`, `observe`, `audit`, `twin`, `gradients`, `reference`
and `compare`.
"""
