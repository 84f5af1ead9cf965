"""What quantisation tried, as a table for people."""

from rich.table import Table

from assay.building.ladder import Goal, Ladder, Trial


def ladder_table(ladder: Ladder, goal: Goal) -> Table:
    """Return a table of every recipe tried, with the one that was kept marked."""
    title = f"recipes tried (goal: top-1 agreement {goal.agreement:.1%}, top-3 containment {goal.containment:.1%})"
    table = Table(title=title, title_justify="left")
    for name in ("", "recipe", "top-1", "top-3", "CPU-ms", "of FP32", "MB"):
        table.add_column(name, justify="left" if name in ("", "recipe") else "right")
    for trial in ladder.trials:
        mark = "[green]kept[/]" if trial is ladder.chosen else ("" if trial.reaches(goal) else "[red]not right[/]")
        table.add_row(mark, trial.recipe.name, *_figures(trial), f"{len(trial.pack.model) / 1e6:.1f}")
    return table


def _figures(trial: Trial) -> tuple[str, ...]:
    accuracy, cost = trial.accuracy, trial.cost
    if accuracy is None or cost is None:
        return ("not run", f"needs {', '.join(trial.pack.manifest.requires_cpu)}", "", "")
    return (
        f"{accuracy.agreed.count}/{accuracy.images}",
        f"{accuracy.contained.count}/{accuracy.images}",
        f"{cost.candidate_s * 1e3:.2f}",
        f"{cost.ratio:.3f}",
    )
