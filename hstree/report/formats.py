"""Figures as text, for the whole page; one that is not known is a dash."""

from __future__ import annotations

from typing import Any

DASH, TIMES = "\N{EN DASH}", "\N{MULTIPLICATION SIGN}"


def figure_at(path: str, row: Any) -> Any:
    """Return a figure of a row, such as ``tree.depth``; None where the row has no such part."""
    for name in path.split("."):
        if row is None:
            return None
        row = row[name] if isinstance(row, dict) else getattr(row, name)
    return row


def number(value: float | None, digits: int = 0) -> str:
    """Format a number with thousands separators."""
    return DASH if value is None else f"{value:,.{digits}f}"


def three_digits(value: float | None) -> str:
    """Format a number to three significant digits, whole from 100 on: 9.45, 13.4, 10,000."""
    if value is None or abs(value) >= 99.95:
        return number(value)
    return f"{value:.1f}" if abs(value) >= 9.995 else f"{value:.2f}"


def short_number(value: float) -> str:
    """Format a number to some four digits: 8,120, 129k, 1.35M."""
    if value >= 999_500:
        return f"{value / 1e6:,.2f}M"
    return f"{value / 1e3:,.0f}k" if value >= 9_950 else number(value)


def perplexity(value: float | None) -> str:
    """Format a perplexity: one decimal, but two below 100."""
    return number(value, 1 if value is None or value >= 99.95 else 2)


def change(ratio: float, than: str = "") -> str:
    """Describe a ratio: "3.5% higher", "1.4% lower than flat", "the same as flat to 0.1%"."""
    per_cent = 100 * (ratio - 1)
    if round(per_cent, 1) == 0:
        return f"the same{than and f' as {than}'} to 0.1%"
    return f"{abs(per_cent):.1f}% {'higher' if per_cent > 0 else 'lower'}{than and f' than {than}'}"


def signed(ratio: float) -> str:
    """Format a ratio as a signed percentage: "+3.5%"."""
    per_cent = signed_number(100 * (ratio - 1), 1)
    return "0.0%" if per_cent[1:] == "0.0" else f"{per_cent}%"


def signed_number(value: float, digits: int = 2) -> str:
    """Format a number with its sign: "+0.52"."""
    return f"{value:+.{digits}f}".replace("-", "\N{MINUS SIGN}")
