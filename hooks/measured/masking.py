"""Output of a run as others may see it: without this machine's paths. Pure.

For comparing two runs, also without numbers.
"""

from __future__ import annotations

import re

# torch says this where a CUDA toolkit is installed and no GPU is: a fact of the machine that would
# stand under every block, with a time stamp.
_NO_GPU = re.compile(r"^.*No CUDA runtime is found, using CUDA_HOME=.*\n", re.MULTILINE)
_LIBRARY = re.compile(r"""/[^\s"'(),:]*/lib/python3\.\d+/(?:site-packages/)?""")
# Dynamo names what it compiles anew in every process.
_UNIQUE = re.compile(r"(\b__compiled_fn_\d+)_[0-9a-f]{8}(?:_[0-9a-f]{4}){3}_[0-9a-f]{12}\b")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
_OUR_FRAME = re.compile(
    r"""^[ ]*File "[^"]*\bmeasured/\w+\.py", line \d+, in .*\n(?:[ ]{4}.*\n)*""", re.MULTILINE
)
_NUMBER = re.compile(
    r"(?<![A-Za-z_\d])[-+]?(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"
    r"(\s?(%|(?:ns|µs|μs|us|ms|s|secs?|seconds?|min|minutes?|h|hours?|[KMGT]i?B|kB|B|bytes)\b))?"
)


def clean(output: bytes, folder: str) -> str:
    """Decode, and take out what differs from run to run and means nothing: paths of this machine,
    addresses, and random parts of names. Undecodable bytes and control characters become visible
    signs."""
    text = output.decode("utf-8", errors="replace").replace("\r\n", "\n")
    text = lasting(_NO_GPU.sub("", text), folder)
    return "".join(c if c in "\n\t\x1b" or c >= " " else "\ufffd" for c in text)


def lasting(text: str, folder: str) -> str:
    """The text without paths of this machine, addresses, and random parts of names.

    >>> lasting("<f at 0x7f00deadbeef> in /tmp/m-1/run/a.py", "/tmp/m-1/run")
    '<f at 0x…> in a.py'
    """
    return _UNIQUE.sub(r"\1", _ADDRESS.sub("0x…", paths(text, folder)))


def paths(text: str, folder: str) -> str:
    """The text with the child's own folder, and the folders of installed packages, left out.

    >>> paths('File "/tmp/m/a.py" /opt/v/lib/python3.11/site-packages/torch/nn/x.py', "/tmp/m")
    'File "a.py" torch/nn/x.py'
    """
    # Of a file's path, Dynamo's guards name the last three parts.
    short = "/".join(folder.split("/")[-2:])
    for start in (f"{folder}/", f"{short}/"):
        text = text.replace(start, "")
    return installed(text.replace(folder, "."))


def installed(text: str) -> str:
    """The text with the folders of installed packages left out.

    >>> installed("filename: '/opt/v/lib/python3.11/site-packages/torch/nn/x.py'")
    "filename: 'torch/nn/x.py'"
    """
    return _LIBRARY.sub("", text)


def masked(output: str) -> str:
    """Numbers with their units as #, and runs of blanks as one: what must not depend on timing.

    >>> masked("first call: 3.21 s, then  41 µs")
    'first call: #, then #'
    """
    # A program that prints a traceback prints the frames of the audit, which stands in between.
    output = _OUR_FRAME.sub("", output)
    lines = (re.sub(r"[ \t]+", " ", _NUMBER.sub("#", line)).strip() for line in output.splitlines())
    return "\n".join(lines)
