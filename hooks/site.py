"""The only file MkDocs loads: its events, each a few lines, no logic.

What they call is in the package beside this file, which knows nothing of MkDocs. MkDocs 1.x is
frozen; when the builder changes, this file gets a sibling.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page
from mkdocs.utils import meta

from measured import pages, record, report
from measured.build import Build
from measured.render import Renderer

log = logging.getLogger("mkdocs.hooks.measured")

_serving = False
_build: Build
_renderer: Renderer


def on_startup(*, command: str, dirty: bool) -> None:
    global _serving
    _serving = command == "serve"


@event_priority(-100)  # After markdown-exec has put its fences into the configuration.
def on_config(config: MkDocsConfig) -> MkDocsConfig:
    global _build, _renderer
    _build = Build(docs=Path(config.docs_dir))
    _renderer = Renderer(_build)
    _renderer.install()
    superfences = config.mdx_configs.setdefault("pymdownx.superfences", {})
    superfences["custom_fences"] = [*superfences.get("custom_fences", []), _renderer.chart_fence]
    config.markdown_extensions.append(pages.Values(lambda body: _renderer.value(body)))
    return config


@event_priority(-100)  # After every plugin has said which files there are.
def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    read = [
        _read(file.src_uri, file.content_string, config) for file in files.documentation_pages()
    ]
    if mistakes := _build.read(read):
        raise PluginError(report.text(mistakes))  # Before minutes are spent on running the rest.
    _build.execute(log.info)
    _renderer.urls = {file.src_uri: file.url for file in files.documentation_pages()}
    return files


def _read(path: str, content: str, config: MkDocsConfig) -> pages.Page:
    text, _ = meta.get_data(content)
    front_matter = content[: len(content) - len(text)]
    folder = Path(config.config_file_path).parent / "snippets"
    return pages.read_page(
        path,
        text,
        front_matter.count("\n") + 1,
        folder,
        config.markdown_extensions,
        config.mdx_configs,
    )


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    _renderer.enter(page.file.src_uri, page.url)
    return markdown


def on_post_build(*, config: MkDocsConfig) -> None:
    required = bool(os.environ.get("MEASURED_REQUIRE_CLAIMS"))
    failures = _build.judge(_renderer.rendered, required)
    site = Path(config.site_dir)
    for snippet, made in _build.pairs:
        if made:
            path = site / "records" / report.file_name(snippet)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(record.encode(made))
    for path, text in _renderer.downloads():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text, encoding="utf-8")
    claims = _build.claims
    summary = report.summary(_build.pairs, failures, _build.executed, _build.facts(), claims)
    (site / "report.json").write_bytes(report.encode(summary))
    log.info("%d snippets declared, %d executed now", len(_build.pairs), _build.executed)
    log.info(report.claims_line(claims))
    if failures and _serving:
        log.error(report.text(failures))
    elif failures:
        raise PluginError(report.text(failures))
