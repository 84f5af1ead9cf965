"""What quantisation tried, as a table for people and as data for machines."""

from typing import Any

from rich.table import Table

from assay.building.choice import Goal, Ladder, Trial


def ladder_table(ladder: Ladder, goal: Goal) -> Table:
    """Return a table of every recipe tried, with the one that was kept marked."""
    accuracy = ladder.chosen.accuracy
    judged = f"{accuracy.images} images of {accuracy.groups} photos" if accuracy else "nothing"
    title = (
        f"recipes tried, judged on {judged} "
        f"(goal: top-1 agreement {goal.agreement:.1%}, top-3 containment {goal.containment:.1%})"
    )
    table = Table(title=title, title_justify="left")
    for name in ("", "recipe", "top-1", "top-3", "CPU-ms", "of FP32", "MB", "layers in FP32"):
        table.add_column(name, justify="left" if name in ("", "recipe", "layers in FP32") else "right")
    for trial in ladder.trials:
        size = f"{len(trial.pack.model) / 1e6:.1f}"
        table.add_row(_mark(trial, ladder, goal), trial.recipe.name, *_figures(trial), size, _layers(trial))
    return table


def ladder_document(ladder: Ladder) -> dict[str, Any]:
    """Return what was tried, kept and why, ready for JSON."""
    return {
        "kept": ladder.chosen.recipe.name,
        "wins": ladder.wins,
        "reason": ladder.reason,
        "notes": list(ladder.notes),
        "tried": [_document(trial) for trial in ladder.trials],
    }


def _document(trial: Trial) -> dict[str, Any]:
    accuracy, cost = trial.accuracy, trial.cost
    made = trial.pack.manifest.quantization
    shown: dict[str, Any] = {
        "recipe": trial.recipe.name,
        "what": trial.recipe.what,
        "model_bytes": len(trial.pack.model),
        "float_layers": list(made.float_layers) if made else [],
    }
    if accuracy and cost:
        shown |= {
            "images": accuracy.images,
            "top1_agreed": accuracy.agreed.count,
            "top3_contained": accuracy.contained.count,
            "cost_ratio": round(cost.ratio, 4),
            "cost_ratio_lower": round(cost.lower, 4),
            "cost_ratio_upper": round(cost.upper, 4),
        }
    return shown


def _mark(trial: Trial, ladder: Ladder, goal: Goal) -> str:
    if trial is ladder.chosen:
        return "[green]kept[/]" if ladder.wins else "[yellow]best[/]"
    if not trial.reaches(goal):
        return "[red]not right[/]"
    return "" if trial.gains else "[red]no gain[/]"


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


def _layers(trial: Trial) -> str:
    """Return the first few layers that stay in FP32, and how many more."""
    made = trial.pack.manifest.quantization
    names = made.float_layers if made else ()
    shown = ", ".join(names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown
