"""Attaches the observer or the audit in every Python process of a run, the first included.

The runner puts this folder first on PYTHONPATH, so that a worker which a snippet starts is seen
as well. Outside a run it does nothing.
"""

import importlib.machinery
import importlib.util
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))

if "MEASURED_JOB" in os.environ:
    from measured import child

    child.attach(os.environ["MEASURED_JOB"])

# Some distributions ship a sitecustomize of their own (Homebrew's sets up paths): run it too.
_rest = [entry for entry in sys.path if os.path.abspath(entry) != _here]
_theirs = importlib.machinery.PathFinder.find_spec("sitecustomize", _rest)
if _theirs and _theirs.loader:
    _theirs.loader.exec_module(importlib.util.module_from_spec(_theirs))
