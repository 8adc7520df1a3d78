#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# lab_coefficients.py - the polynomials of lab/loops_exp.inc, and their errors
#
# Needs mpmath (Debian: python3-mpmath).  exp on half a binade around 0, and R in
#     1 - Phi(x) = exp(-x^2 / 2) t R(t),  t = 1 / (1 + P x),  x >= 0,
# where Phi is the normal distribution's integral (the form of Hastings 1955).  Both
# interpolate at Chebyshev points, which is within a small factor of the best.
from mpmath import cos, erfc, exp, log, lu_solve, matrix, mp, mpf, nstr, pi, sqrt

mp.prec = 160
P, FAR = mpf(float.fromhex("0x1.51eb86p-2")), mpf(6)  # 0.33 as a float


def interpolate(f, lo, hi, count):
    points = [(lo + hi) / 2 - (hi - lo) / 2 * cos(pi * (2 * k + 1) / (2 * count))
              for k in range(count)]
    a, b = matrix(count, count), matrix(count, 1)
    for row, u in enumerate(points):
        for j in range(count):
            a[row, j] = u ** j
        b[row] = f(u)
    return list(lu_solve(a, b))


def value(coefficients, u):
    result = mpf(0)
    for c in reversed(coefficients):
        result = result * u + c
    return result


def tail(x):
    return erfc(x / sqrt(2)) / 2


def show(name, coefficients, error):
    print(f"{name}: error {nstr(error, 3)} before rounding")
    print(", ".join(nstr(c, 9) + "f" for c in coefficients))


half = log(mpf(2)) / 2
c = interpolate(exp, -half, half, 7)
grid = [half * (mpf(k) / 500 - 1) for k in range(1001)]
show("exp", c, max(abs(value(c, u) / exp(u) - 1) for u in grid))

c = interpolate(lambda t: tail((1 / t - 1) / P) * exp(((1 / t - 1) / P) ** 2 / 2) / t,
                1 / (1 + P * FAR), mpf(1), 7)
grid = [mpf(13) * k / 2000 for k in range(2001)]
show("R", c, max(abs(tail(x) - exp(-x * x / 2) / (1 + P * x) * value(c, 1 / (1 + P * x)))
                 for x in grid))
