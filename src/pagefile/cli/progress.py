"""Progress bars on stderr; none where stderr is not a terminal."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich import progress as bars
from rich.text import Text

from pagefile.cli.output import err


class _Speed(bars.ProgressColumn):
    def render(self, task: bars.Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "", style="progress.data.speed")


def _bar(*columns: bars.ProgressColumn) -> bars.Progress:
    console = err()
    shown = (bars.TextColumn("{task.description}"), bars.BarColumn(), *columns)
    return bars.Progress(*shown, console=console, transient=True, disable=not console.is_terminal)


@contextmanager
def moving(what: str) -> Generator[None]:
    """A bar for work of unknown length."""
    with _bar(bars.TimeElapsedColumn()) as progress:
        progress.add_task(what, total=None)
        yield


@contextmanager
def counting(
    what: str, *, at_end: str | None = None, speed: bool = False
) -> Generator[Callable[[int, int], None]]:
    """A progress bar, and the function that updates it with (done, total); `at_end` is the description once all is done."""
    with _bar(
        bars.MofNCompleteColumn(), *((_Speed(),) if speed else ()), bars.TimeRemainingColumn()
    ) as progress:
        task = progress.add_task(what, total=None)

        def report(done: int, total: int) -> None:
            described = at_end if at_end is not None and done >= total else what
            progress.update(task, completed=done, total=total, description=described)

        yield report
