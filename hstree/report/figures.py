"""Figures as people read them: a dash where there is none, thousands apart."""

from __future__ import annotations

#: What stands for a figure that is not there.
NONE = "\N{EN DASH}"


def number(value: float | None, digits: int = 0) -> str:
    """Format a number; a dash for None."""
    return NONE if value is None else f"{value:,.{digits}f}"


def three_digits(value: float | None) -> str:
    """Return a figure to three significant digits, whole from 100 on: 9.45, 13.4, 10,000."""
    if value is None:
        return NONE
    if abs(value) >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 9.995 else f"{value:.2f}"


def perplexity(value: float | None) -> str:
    """Return a perplexity: one decimal, but two below 100."""
    return number(value, 1 if value is None or value >= 99.95 else 2)


def times(value: float | None) -> str:
    """Return a multiple: 0.96x, 13.2x, 120x."""
    return NONE if value is None else f"{three_digits(value)}\N{MULTIPLICATION SIGN}"


def change(ratio: float) -> str:
    """Return a ratio in words: "3.5% higher", "1.4% lower"."""
    per_cent = 100 * (ratio - 1)
    if round(per_cent, 1) == 0:
        return "the same to 0.1%"
    return f"{abs(per_cent):.1f}% {'higher' if per_cent > 0 else 'lower'}"


def signed(ratio: float) -> str:
    """Return a ratio as a signed percentage: "+3.5%"."""
    per_cent = f"{100 * (ratio - 1):+.1f}%".replace("-", "\N{MINUS SIGN}")
    return "0.0%" if per_cent[1:] == "0.0%" else per_cent


def significance(p: float | None) -> str:
    """Return a p value; very small ones as a bound."""
    if p is None:
        return NONE
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
