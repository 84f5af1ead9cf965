"""Progress of long steps: a bar on a terminal, one line per step elsewhere; always on stderr."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

Begin = Callable[[str], Callable[[int, int], None]]
"""Begins a step by its name; returns what is called with done and total."""


@contextmanager
def steps(console: Console, *, between: bool = False) -> Iterator[Begin]:
    """Give a function that begins a step by its name and returns the callback for (done, total).

    ``between`` draws only when called, in the caller's thread: for steps that are timed, whose CPU a second thread
    would share.
    """
    if not console.is_terminal:

        def announce(name: str) -> Callable[[int, int], None]:
            console.print(f"{name} …", highlight=False)
            return lambda _done, _total: None

        yield announce
        return
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, auto_refresh=not between) as bars:

        def begin(name: str) -> Callable[[int, int], None]:
            task = bars.add_task(name, total=None)
            bars.refresh()
            return lambda done, total: bars.update(task, completed=done, total=total, refresh=between)

        yield begin
