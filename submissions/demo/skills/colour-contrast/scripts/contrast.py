"""Print the contrast of two colours by WCAG 2.2, from 1 to 21."""

import sys


def luminance(colour):
    """Return the relative luminance of a colour written as #rgb or #rrggbb."""
    digits = colour.lstrip("#")
    if len(digits) == 3:
        digits = "".join(digit * 2 for digit in digits)
    channels = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    """Return the contrast ratio of two colours, whichever is the lighter."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


if __name__ == "__main__":
    ratio = contrast(*sys.argv[1:3])
    print(f"{ratio:.2f}:1  text {'passes' if ratio >= 4.5 else 'fails'}, large text {'passes' if ratio >= 3 else 'fails'}")
