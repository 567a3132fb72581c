import torch


def count_in_a_class(calls):
    class Counter:
        def hit(self):
            calls["n"] += 1

    def run(x):
        Counter().hit()
        return x.sin()

    return run


def count_in_a_function(calls):
    def hit():
        calls["n"] += 1

    def run(x):
        hit()
        return x.sin()

    return run


counted = {}
for make in (count_in_a_class, count_in_a_function):
    eager_calls, compiled_calls = {"n": 0}, {"n": 0}
    eager, compiled = make(eager_calls), torch.compile(make(compiled_calls))
    for _ in range(3):
        eager(torch.ones(2))
        compiled(torch.ones(2))
    counted[make.__name__] = [eager_calls["n"], compiled_calls["n"]]
    print(f"{make.__name__:20} eager {eager_calls['n']}, compiled {compiled_calls['n']}")
