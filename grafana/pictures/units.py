"""Grafana's units, as far as the dashboards use them, in words."""

import math

# Unit -> (what to multiply by, what to write after it).
_PLAIN = {"percentunit": (100.0, " %"), "reqps": (1.0, " req/s"), "ops": (1.0, " ops/s"), "Mpixel": (1.0, " MP")}
_KIB = 1024.0


def text(value: float, unit: str) -> str:
    """A value with its unit, in three significant digits."""
    if math.isnan(value):
        return "no data"
    if unit == "s":
        return _digits(value * 1000, " ms") if abs(value) < 1 else _digits(value, " s")
    if unit == "bytes":
        for name in ("B", "KiB", "MiB"):
            if abs(value) < _KIB:
                return _digits(value, f" {name}")
            value /= _KIB
        return _digits(value, " GiB")
    factor, ending = _PLAIN.get(unit, (1.0, ""))
    return _digits(value * factor, ending)


def _digits(value: float, ending: str) -> str:
    shown = f"{value:.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
    return shown + ending
