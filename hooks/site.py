"""The only file MkDocs loads: its events, each a few lines, no logic.

What they call is in the package beside this file, which knows nothing of MkDocs. MkDocs 1.x is
frozen; when the builder changes, this file gets a sibling.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from pathlib import Path

from jinja2 import Environment, FileSystemBytecodeCache
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import Abort, PluginError
from mkdocs.livereload import LiveReloadServer
from mkdocs.plugins import event_priority
from mkdocs.structure.files import Files, InclusionLevel
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page
from mkdocs.utils import meta

from measured import interrupts, pages, progress, record, report, selection, settings, store
from measured.build import Build
from measured.reading import Reader
from measured.render import Renderer
from measured.results import Job, Results
from measured.serving import Desk, Edits
from measured.snippets import Mistake

log = logging.getLogger("mkdocs.hooks.measured")

_settings = settings.read(os.environ)
_results = Results(store.cache_folder(), fresh=_settings.fresh)
_reader = Reader()
_edits = Edits()
_engine = store.engine_version()
_desk: Desk | None = None
"""There while serving."""
_build: Build
_renderer: Renderer


def on_startup(*, command: str, dirty: bool) -> None:
    global _desk
    if command == "serve":
        _desk = Desk(_results, fresh=_settings.fresh, log=log.info)
        # MkDocs ends its server in an orderly way only for Ctrl-C.
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def on_shutdown() -> None:
    if _desk:
        _desk.close()


def on_serve(server: LiveReloadServer, *, config: MkDocsConfig, builder: object) -> None:
    if _desk:
        server.watch(str(_desk.folder))


@event_priority(-100)  # After markdown-exec has put its fences into the configuration.
def on_config(config: MkDocsConfig) -> MkDocsConfig:
    global _build, _renderer
    _build = Build(_results, docs=Path(config.docs_dir))
    _renderer = Renderer(_build)
    _renderer.install()
    superfences = config.mdx_configs.setdefault("pymdownx.superfences", {})
    superfences["custom_fences"] = [*superfences.get("custom_fences", []), _renderer.chart_fence]
    config.markdown_extensions.append(pages.Values(lambda body: _renderer.value(body)))
    return config


@event_priority(-100)  # After every plugin has said which files there are.
def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    documents = {file.src_uri: file for file in files.documentation_pages()}
    try:
        chosen = selection.chosen(_settings.only, documents, Path(config.docs_dir).name)
    except Mistake as mistake:
        raise PluginError(f"--only: {mistake}") from None
    texts = {path: file.content_string for path, file in documents.items()}
    read = [_read(path, text, config) for path, text in texts.items()]
    mistakes = _build.read(read, chosen)
    if mistakes and not _desk:
        raise PluginError(report.text(mistakes))  # Before minutes are spent on running the rest.
    _edits.note(texts, read)
    _renderer.urls = {path: file.url for path, file in documents.items()}
    left_out = documents.keys() - chosen
    for path in left_out:
        documents[path].inclusion = InclusionLevel.EXCLUDED
    config.nav = selection.navigation(config.nav, left_out)
    return files


def _read(path: str, content: str, config: MkDocsConfig) -> pages.Page:
    text, _ = meta.get_data(content)
    front_matter = content[: len(content) - len(text)]
    folder = Path(config.config_file_path).parent / "snippets"
    return _reader.read(
        path,
        text,
        front_matter.count("\n") + 1,
        folder,
        config.markdown_extensions,
        config.mdx_configs,
    )


@event_priority(-100)  # After every plugin has said in which order the pages stand.
def on_nav(nav: Navigation, *, config: MkDocsConfig, files: Files) -> Navigation:
    _build.order(page.file.src_uri for page in nav.pages)
    if _desk:
        _desk.collect()
        _build.waiting = _desk.want(_wanted())
    elif jobs := _build.plan():
        names = [snippet.name for snippet, _ in jobs]
        told = log.isEnabledFor(logging.INFO)
        live = told and sys.stderr.isatty() and not os.environ.get("CI")
        try:
            with (
                interrupts.raised(),
                progress.shown(names, _results.cache, write=log.info, live=live) as tell,
            ):
                _build.execute(jobs, tell)
        except KeyboardInterrupt:
            raise Abort(report.interrupted(_build.executed, len(jobs))) from None
    return nav


def _wanted() -> list[Job]:
    jobs = _build.plan()
    if jobs and store.engine_version() != _engine:
        log.warning("The engine has changed: nothing runs until mkdocs serve is started again")
        return []
    return _edits.in_order(jobs)


def on_env(env: Environment, *, config: MkDocsConfig, files: Files) -> Environment:
    # The theme's templates change less often than pages: compiled once, not in every build.
    folder = _results.cache / "templates"
    folder.mkdir(parents=True, exist_ok=True)
    env.bytecode_cache = FileSystemBytecodeCache(str(folder))
    return env


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    if instead := _renderer.mistakes(page.file.src_uri):
        return instead
    _renderer.enter(page.file.src_uri, page.url)
    return markdown


def on_post_build(*, config: MkDocsConfig) -> None:
    failures = _build.judge(_renderer.rendered, _settings.require_claims)
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
    summary = report.summary(_build.judged, failures, _build.executed, _build.facts(), claims)
    (site / "report.json").write_bytes(report.encode(summary))
    log.info("%d snippets declared, %d executed now", len(_build.judged), _build.executed)
    log.info(report.claims_line(claims))
    if failures and _desk:
        log.error(report.text(failures))
    elif failures:
        raise PluginError(report.text(failures))
