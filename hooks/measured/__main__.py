"""The command line: `measured build`, `measured serve`, `measured audit script.py`."""

from __future__ import annotations

import sys
import traceback

import click

from measured import commands
from measured import script as scripts
from measured.settings import Settings

_EXIT_CODES = f"""\b
Exit codes, the first that applies from the top:
  {scripts.DIVERGES}    a checked call diverges from eager; each difference is named. Or the
       compiler refused a call that eager runs, and the script died of it
  {scripts.TIMEOUT}  the script did not end within --timeout; no divergence until then
  {scripts.INTERRUPTED}  Ctrl-C or SIGTERM ended it; no divergence until then
  {scripts.FAILED}    the script failed by itself: an exception, a status other than 0, a
       signal; no divergence until then
  {scripts.NO_VERDICT}    no verdict: the audit itself failed on a call, or no compiled callable
       was called, or no call could be compared (all ran eager, were refused
       by the compiler, or were not comparable)
  {scripts.AGREES}    every checked call agrees with eager, and there is at least one
  {scripts.USAGE}   the command was mistyped; the script did not run
  {scripts.BROKEN}   an error of this command's own
"""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """torch.compile, measured."""


# What follows the script's path is the script's own.
@cli.command(context_settings={"allow_interspersed_args": False}, epilog=_EXIT_CODES)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="End each run of the script after this time.",
)
@click.option(
    "--once",
    is_flag=True,
    help="Never run the script twice: random operations then count as differences, and where in "
    "the compiler one arises stays unknown.",
)
@click.option(
    "--fallback-random",
    is_flag=True,
    help="Let compiled code draw random numbers as eager does from the start: one run.",
)
@click.option(
    "--locate/--no-locate",
    default=True,
    help="Where SCRIPT diverges, run it again to tell where in the compiler that arises (default).",
)
@click.option(
    "--reproducer",
    type=click.Path(dir_okay=False, writable=True),
    metavar="FILE",
    help="Write a program that shows the first difference with nothing but torch.",
)
@click.argument("script", type=click.Path(exists=True, dir_okay=False))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def audit(
    context: click.Context,
    script: str,
    arguments: tuple[str, ...],
    as_json: bool,
    timeout: float | None,
    once: bool,
    fallback_random: bool,
    locate: bool,
    reproducer: str | None,
) -> None:
    """Run SCRIPT as Python would, and compare its compiled calls with eager.

    The table goes to standard error, below what the script prints there; standard output is the
    script's. With --json, standard output holds the JSON alone, and the script's own output goes to
    standard error.

    A script that compiles a random operation (dropout, torch.rand) and differs runs a second time:
    compiled code draws other numbers than eager, by design, so the second run draws as eager does.

    A script that diverges runs again, silently, with a compiler that stops after each of its
    stages, and then with parts of the stage at fault switched off.
    """
    outcome = scripts.audit(
        script,
        list(arguments),
        timeout=timeout,
        once=once,
        fallback_random=fallback_random,
        explained=locate and not once,
        reproducer_path=reproducer,
        output=sys.stderr.fileno() if as_json else None,
        tell=lambda line: click.echo(f"measured: {line}", err=True),
    )
    if as_json:
        click.echo(scripts.as_json(outcome))
    else:
        click.echo(scripts.text(outcome), err=True)
    context.exit(outcome.verdict.exit_code)


_only = click.option(
    "--only",
    multiple=True,
    metavar="PAGE",
    help="Build and run this page alone, such as start/five-minutes.md. May be given several "
    "times.",
)
_fresh = click.option(
    "--fresh", is_flag=True, help="Run every snippet again, whatever results are stored."
)


@cli.command()
@_only
@_fresh
@click.option("--require-claims", is_flag=True, help="Fail for a claim that is undecided.")
@click.option("--strict", is_flag=True, help="Fail for a warning of MkDocs.")
@click.option("--site-dir", type=click.Path(), metavar="DIR", help="Where to build the site.")
def build(
    only: tuple[str, ...], fresh: bool, require_claims: bool, strict: bool, site_dir: str | None
) -> None:
    """Run the snippets that have no result yet, and build the site: `mkdocs build`."""
    given = ["--strict"] * strict + (["--site-dir", site_dir] if site_dir else [])
    commands.become(commands.command("build", given), Settings(only, fresh, require_claims))


@cli.command()
@_only
@_fresh
@click.option("--dev-addr", metavar="IP:PORT", help="Where to serve the site.")
@click.option("--open", "opened", is_flag=True, help="Open the site in a browser.")
def serve(only: tuple[str, ...], fresh: bool, dev_addr: str | None, opened: bool) -> None:
    """Show the site while it is written, and run snippets in the background: `mkdocs serve`."""
    given = (["--dev-addr", dev_addr] if dev_addr else []) + ["--open"] * opened
    commands.become(commands.command("serve", given), Settings(only, fresh))


def main() -> None:
    """Entry point. Click's own exit code for a usage error is 2, and Python's for a traceback 1:
    both would say something about the script."""
    try:
        code = cli.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = scripts.USAGE
    except (KeyboardInterrupt, click.Abort):
        code = scripts.INTERRUPTED
    except Exception:
        traceback.print_exc()
        code = scripts.BROKEN
    sys.exit(code)


if __name__ == "__main__":
    main()
