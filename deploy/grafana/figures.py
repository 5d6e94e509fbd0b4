"""Values as panels write them, and the marks of axes."""
import math

_SI = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BINARY = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))
_TIMES = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"), (1e-3, "ms"), (1e-6, "µs"))
_STRIDES = [count * size for size, counts in ((1, (1, 2, 5, 10, 15, 30)), (60, (1, 2, 5, 10, 15, 30)), (3600, (1, 2, 3, 6, 12)),
                                              (86400, (1, 2, 7, 14, 30, 90, 365))) for count in counts]  # seconds
_SUFFIX = {"percentunit": " %", "reqps": " req/s", "cps": " /s", "ops": " ops/s", "binBps": "/s", "watt": " W"}


def _digits(value):
    if value != 0 and (abs(value) < 1e-3 or abs(value) >= 1e15):
        return f"{value:.2g}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def _in_steps(value, steps):
    size, name = next((step for step in steps if abs(value) >= step[0]), steps[-1])
    return f"{_digits(value / size)} {name}"


def written(value, unit):
    """0.00153, "s" -> "1.53 ms"."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    suffix = _SUFFIX.get(unit, "")
    if unit == "percentunit":
        return _digits(100 * value) + suffix
    if unit in ("bytes", "binBps"):
        return _in_steps(value, _BINARY) + suffix
    if unit == "s":
        return "0 s" if value == 0 else _in_steps(value, _TIMES)
    if unit == "none" or abs(value) < 1000:
        return _digits(value) + suffix
    size, name = next(step for step in _SI if abs(value) >= step[0])
    return f"{_digits(value / size)}{name}{suffix}"


def _round_step(rough):
    """The next of 1, 2, 5, 10, ... that is not smaller."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))


def marks(low, high, unit="none", log=False):
    """Round values that cover [low, high], rising."""
    if log:
        first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
        stride = max(1, math.ceil((max(last, first + 1) - first) / 5))
        return [10.0 ** n for n in range(first, max(last, first + 1) + stride, stride)]
    if high <= low:
        low, high = low - abs(low) / 10, high + (abs(high) / 10 or 1)
    size = next((size for size, _ in _BINARY if high >= size), 1) if unit in ("bytes", "binBps") else 1
    step = size * _round_step((high - low) / size / 5)
    first = math.floor(low / step + 1e-9)
    return [n * step for n in range(first, math.ceil(high / step - 1e-9) + 1)]


def moments(span):
    """Seconds before the end of `span` seconds that an axis of time marks: round ones, five at most if it is less than a few years."""
    stride = next((stride for stride in _STRIDES if span <= 4.9 * stride), _STRIDES[-1])
    return [n * stride for n in range(math.floor(span / stride) + 1)]
