#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# sincos_coefficients.py - the polynomials of src/kernels/sincos.h, by Remez exchange
#
# Needs mpmath (Debian: python3-mpmath).  x is the distance to the nearest quarter turn
# in units of 2^-66 turns, or, for quick rows, to the nearest quarter or sixteenth in
# units of those:
#     sin = x S(x^2), relative error     cos = 1 + x^2 C(x^2), absolute error
# Coefficients are rounded to double one after the other from the lowest, the rest being
# fitted anew each time, so that rounding the leading ones costs no accuracy.  The scale
# is a power of two and folded into them.
from mpmath import mp, mpf, matrix, lu_solve, sin, cos, pi, sqrt, log

mp.prec = 300


def chebyshev(lo, hi, count):
    points = [(lo + hi) / 2 - (hi - lo) / 2 * mp.cos(pi * k / count)
              for k in range(count + 1)]
    points[0] = lo + (hi - lo) * mpf(10) ** -8  # the weights divide by it
    return points


def extrema(error, lo, hi, wanted):
    """The places of alternating extreme errors, at most wanted of them."""
    grid = chebyshev(lo, hi, 40 * wanted)
    values = [error(u) for u in grid]
    found, best = [], 0
    for k in range(1, len(grid)):
        if values[k] * values[best] < 0:
            found.append(best)
            best = k
        elif abs(values[k]) > abs(values[best]):
            best = k
    found.append(best)
    while len(found) > wanted:
        found.pop(0 if abs(values[found[0]]) < abs(values[found[-1]]) else -1)
    return [grid[k] for k in found]


def remez(f, weight, powers, lo, hi, rounds):
    """Coefficients of u^powers that minimise max |weight (f - p)| on [lo, hi]."""
    n = len(powers)
    points = chebyshev(lo, hi, n)
    for _ in range(rounds):
        a, b = matrix(n + 1, n + 1), matrix(n + 1, 1)
        for r, u in enumerate(points):
            for j, p in enumerate(powers):
                a[r, j] = u ** p * weight(u)
            a[r, n] = (-1) ** r
            b[r] = f(u) * weight(u)
        solved = lu_solve(a, b)
        c = [solved[j] for j in range(n)]

        def error(u):
            return weight(u) * (f(u) - sum(x * u ** p for x, p in zip(c, powers)))

        points = extrema(error, lo, hi, n + 1)
        if len(points) < n + 1:
            break
    return c


def fit(f, weight, powers, reach):
    """Double coefficients in u = turns^2, turns up to reach, and the error of the
    rounded set."""
    hi = reach ** 2
    done = []
    for k in range(len(powers)):
        def rest(u):
            return f(u) - sum(mpf(c) * u ** p for c, p in zip(done, powers))

        done.append(float(remez(rest, weight, powers[k:], mpf(0), hi,
                                10 if k == 0 else 6)[0]))
    grid = [hi * (k + mpf(1) / 2) / 2000 for k in range(2000)]
    worst = max(abs(weight(u) * (f(u) - sum(mpf(c) * u ** p
                                            for c, p in zip(done, powers))))
                for u in grid)
    return done, worst


def show(name, coefficients, first, step, worst):
    for i, c in enumerate(coefficients):
        scaled = float(mpf(c) * mpf(2) ** (first + step * i))
        print(f"#define {name}_{i} {scaled.hex()}")
    print(f"/* error 2^{float(log(worst, 2)):.2f} */")


def show_both(sin_name, cos_name, unit, reach, sines, cosines):
    """x counts 2^unit turns, up to reach turns; so many coefficients of each."""
    c, e = fit(lambda u: sin(2 * pi * sqrt(u)) / sqrt(u),
               lambda u: sqrt(u) / sin(2 * pi * sqrt(u)), list(range(sines)), reach)
    show(sin_name, c, unit, 2 * unit, e)
    c, e = fit(lambda u: cos(2 * pi * sqrt(u)) - 1, lambda u: mpf(1),
               list(range(1, cosines + 1)), reach)
    show(cos_name, c, 2 * unit, 2 * unit, e)


show_both("PE_SIN", "PE_COS", -66, mpf(1) / 8, 7, 6)
show_both("PE_QUARTER_SIN", "PE_QUARTER_COS", -2, mpf(1) / 8, 6, 5)
show_both("PE_SIXTEENTH_SIN", "PE_SIXTEENTH_COS", -4, mpf(1) / 32, 4, 3)
