"""Makes an SVG of matplotlib's fit to stand inside a page. Pure: text in, text out.

The page decides on fonts and colours; the SVG gets a name and a description, and keeps no id or
style that could meet another's.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_HREFS = ("href", f"{{{_XLINK}}}href")
_ADDRESS = re.compile(r"url\(#([^)]+)\)")
_LONG = re.compile(r"-?\d+\.\d{3,}")
_IN_PAGE = {"font-family"}
"""Declarations that the page makes."""


def inline(
    svg: str,
    *,
    prefix: str,
    title: str,
    description: str,
    colours: Mapping[str, str],
    css_class: str = "",
    in_points: bool = False,
) -> str:
    """The `svg` element, for a page in which no other has this `prefix`.

    `colours` maps colours, as `#rrggbb`, to CSS values that stand in their place. A drawing whose
    lengths are points, not pixels, is shown at its true size, or down to three quarters of it.
    Raises `xml.etree.ElementTree.ParseError` if `svg` is no XML.
    """
    root = ET.fromstring(svg)
    _drop(root)
    used = _used(root)
    for element in root.iter():
        _style(element, colours)
        _name(element, used, prefix)
        _shorten(element)
    named = {"title": title, "desc": description}
    for index, (tag, text) in enumerate(named.items()):
        told = ET.Element(f"{{{_SVG}}}{tag}", {"id": f"{prefix}-{tag}"})
        told.text = text
        root.insert(index, told)
    for attribute in ("version", "width", "height"):
        root.attrib.pop(attribute, None)
    width, height = (float(length) for length in root.attrib["viewBox"].split()[2:])
    scale = 4 / 3 if in_points else 1
    root.attrib |= {
        "width": f"{width * scale:.0f}",
        "height": f"{height * scale:.0f}",
        "role": "img",
        "aria-labelledby": " ".join(f"{prefix}-{tag}" for tag in named),
        # What matplotlib says in a style sheet that would hold for the whole page.
        "stroke-linejoin": "round",
        "stroke-linecap": "butt",
        "fill": "currentColor",
    }
    if in_points:
        root.set("style", f"min-width:{width:.0f}px")
    if css_class:
        root.set("class", css_class)
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", _XLINK)
    return ET.tostring(root, encoding="unicode")


def _drop(root: ET.Element) -> None:
    """Take out style sheets, metadata, white space and what can not be seen."""
    unseen = (f"{{{_SVG}}}style", f"{{{_SVG}}}metadata")
    for parent in list(root.iter()):
        for child in list(parent):
            # No fill and no stroke: the backgrounds of figure and axes.
            if child.tag in unseen or child.get("style") == "fill: none":
                parent.remove(child)
            if not (child.tail or "").strip():
                child.tail = None
        if not (parent.text or "").strip():
            parent.text = None


def _used(root: ET.Element) -> set[str]:
    """Ids that something in the SVG refers to."""
    used = set()
    for element in root.iter():
        for name, value in element.attrib.items():
            used |= set(_ADDRESS.findall(value))
            if name in _HREFS and value.startswith("#"):
                used.add(value[1:])
    return used


def _name(element: ET.Element, used: set[str], prefix: str) -> None:
    for name, value in list(element.attrib.items()):
        if name == "id" and value not in used:
            del element.attrib[name]
        elif name == "id":
            element.set(name, f"{prefix}-{value}")
        elif name in _HREFS and value.startswith("#"):
            element.set(name, f"#{prefix}-{value[1:]}")
        else:
            element.set(name, _ADDRESS.sub(rf"url(#{prefix}-\1)", value))


def _style(element: ET.Element, colours: Mapping[str, str]) -> None:
    declared = {
        name.strip(): value.strip()
        for name, _, value in (part.partition(":") for part in element.get("style", "").split(";"))
        if name.strip()
    }
    # A variable has no meaning in an attribute.
    declared |= {n: element.attrib.pop(n) for n in ("fill", "stroke") if element.get(n) in colours}
    kept = {n: colours.get(v, v) for n, v in declared.items() if n not in _IN_PAGE}
    if kept:
        element.set("style", ";".join(f"{name}:{value}" for name, value in kept.items()))


def _shorten(element: ET.Element) -> None:
    if element.get("transform", "").startswith("rotate(-0 "):
        del element.attrib["transform"]
    for name in ("d", "x", "y"):
        if name in element.attrib:
            short = _LONG.sub(lambda match: f"{float(match[0]):.2f}", element.attrib[name])
            element.set(name, " ".join(short.split()))
