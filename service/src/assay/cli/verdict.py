"""A check's result as a table for people."""

from rich.table import Table

from assay.check.agreement import GROUPS_FOR_PROOF
from assay.check.report import CheckResult

_COLOURS = {"Pass": "green", "Fail": "red", "Inconclusive": "yellow", "Error": "red"}


def verdict_table(result: CheckResult) -> Table:
    """Return the table: what agreed, on how many images of how many photos, what each costs, and the verdict."""
    table = Table(title="check", title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, pack in (("candidate", result.candidate), ("yardstick", result.yardstick)):
        table.add_row(name, " ".join(part for part in (pack.uri, pack.precision, (pack.digest or "")[:19]) if part))
    table.add_row("dataset", f"{result.dataset.uri}: {_images(result)}")
    if result.top3_contained is not None:
        images = result.dataset.images
        table.add_row(
            "top-1 agreement", f"{result.top1_agreed}/{images}, at least {_percent(result.agreement_lower_permille)}"
        )
        lower = _percent(result.containment_lower_permille)
        table.add_row("top-3 containment", f"{result.top3_contained}/{images}, at least {lower}")
    if result.top1_drop_upper_permille is not None:
        table.add_row("top-1 drop", f"at most {_percent(result.top1_drop_upper_permille)}")
    if result.cost_ratio_permille is not None:
        table.add_row("cost", f"{_ms(result.candidate.cost_micros)} against {_ms(result.yardstick.cost_micros)} CPU-ms")
        low, high = result.cost_ratio_lower_permille or 0, result.cost_ratio_upper_permille or 0
        noise = _percent(result.noise_permille)
        table.add_row(
            "cost ratio",
            f"{result.cost_ratio_permille / 1000:.3f} ({low / 1000:.3f} to {high / 1000:.3f}), noise {noise}",
        )
    table.add_row("machine", f"{result.cpu_model} ({', '.join(result.cpu_features)})")
    colour = _COLOURS[result.verdict]
    table.add_row("verdict", f"[bold {colour}]{result.verdict}[/] ({result.reason})")
    table.add_row("why", result.message)
    return table


def _images(result: CheckResult) -> str:
    dataset = result.dataset
    if dataset.images is None:
        return "not measured"
    text = f"{dataset.images} images of {dataset.groups} photos"
    if dataset.left_out:
        text += f", {dataset.left_out} left out (they calibrated a pack)"
    if dataset.groups is not None and dataset.groups < GROUPS_FOR_PROOF:
        text += f" (smoke set, {dataset.groups} groups: not proof)"
    return text


def _percent(permille: int | None) -> str:
    return "unknown" if permille is None else f"{permille / 10:.1f} %"


def _ms(micros: int | None) -> str:
    return "unknown" if micros is None else f"{micros / 1000:.2f}"
