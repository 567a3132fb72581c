"""What a reader reads of a page, without what is quoted, computed or code."""

from __future__ import annotations

import html
import re
import unicodedata

DIGITS = r"(?:\d+(?:[,_]\d+)*(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?"
# Behind a word, a point or a hyphen it is part of a name: float32, 0.3, gpt-4.
NUMBER = rf"(?<![\w.])(?<!\w[-/]){DIGITS}(?:[^\S\n]?[-–—/][^\S\n]?{DIGITS})?"

_TITLE = "Five minutes"
"""A page's title, which says how long it takes to read."""

_FENCE = re.compile(
    r"^(?P<indent>[ >]*)(?P<ticks>`{3,}|~{3,})(?P<header>[^\n]*)\n(?P<body>.*?)^[ >]*(?P=ticks)",
    re.M | re.S,
)
_OUTPUT = ("", "text", "console", "output", "ansi")
"""Languages of a fence that shows what a program printed: a figure in it was typed all the same."""


def prose(markdown: str) -> str:
    """What a reader reads of a page, line for line. Code, values and quotations are a ¤."""
    text = re.sub(r"\A---\n.*?\n---\n", _front_matter, markdown, flags=re.S)
    text = _FENCE.sub(_fence, text)
    text = _hide(r"<!--.*?-->", text)
    text = _hide(r"^[^\S\n]*>[^\n]*", text)
    # A figure is a figure in whatever type it is set.
    text = re.sub(rf"`({NUMBER})`", r"\1", text)
    text = _hide(r"(?<!`)(`+)(?!`)(?:[^\n]|\n(?!\s*\n))+?(?<!`)\1(?!`)", text)
    text = _hide(r"\{\{[^{}\n]*\}\}", text)
    text = _hide(r"^[^\S\n]*\[[^\]\n]+\]:\s.*$", text)
    # What is in quotation marks here is shown, and quotes nobody.
    text = re.sub(r"^(\s*(?:!!!|\?\?\?\+?|===\+?)[^\n\"]*)\"(.*)\"\s*$", r"\1 \2", text, flags=re.M)
    text = re.sub(r"\]\([^)\s]*\s+[\"']([^\n]*?)[\"']\)", r"] \1", text)
    text = re.sub(r"<[A-Za-z/][^<>]*>|\{[:#.][^{}\n]*\}", _tag, text)
    text = _hide(r'"(?:[^"\n]|\n(?!\s*\n))*"|\u201c(?:[^\u201d\n]|\n(?!\s*\n))*\u201d', text)
    text = re.sub(r"!?\[([^\]]*)\](?:\([^)\s]*\)|\[[^\]\n]*\])?", r"\1", text)
    text = _hide(r"\bhttps?://\S+", text)
    text = html.unescape(text)
    text = unicodedata.normalize("NFKC", text).replace("μ", "µ")
    text = re.sub(r"\\(?=[^\w\s])|\*|~~|(?<!\w)_+|_+(?!\w)|[\u200b\u2060\u00ad]", "", text)
    return text.replace(_TITLE, "¤")


def _hide(pattern: str, text: str) -> str:
    return re.sub(pattern, lambda m: "¤" + "\n" * m[0].count("\n"), text, flags=re.M | re.S)


def _front_matter(match: re.Match[str]) -> str:
    # YAML's quotation marks quote nobody.
    return re.sub(r"^(\w+:\s*)([\"'])(.*)\2\s*$", r"\1\3", match[0], flags=re.M)


def _fence(match: re.Match[str]) -> str:
    title = re.search(r"title=[\"']([^\"'\n]*)", match["header"])
    language = re.match(r"\s*\{?\.?([\w-]*)", match["header"])
    typed = language and language[1] in _OUTPUT and "exec" not in match["header"]
    body = match["body"] if typed else "\n" * match["body"].count("\n")
    return f"¤ {title[1] if title else ''}\n{body.replace('`', '')}"


def _tag(match: re.Match[str]) -> str:
    """Of an element's tag, the attributes that are shown or read out."""
    attributes = re.findall(r"\b(?:alt|title|aria-label)=[\"']([^\"']*)", match[0])
    inline = re.match(
        r"</?(?:a|abbr|b|em|i|kbd|mark|small|span|strong|sub|sup|u|var)\b", match[0], re.IGNORECASE
    )
    newlines = "\n" * match[0].count("\n")
    return (" ¤ ".join(["", *attributes, ""]) if attributes else "" if inline else " ¤ ") + newlines
