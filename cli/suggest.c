/* SPDX-License-Identifier: MIT
 *
 * suggest.c - the name that was probably meant
 *
 * Edit distance with neighbours swapped counting as one (optimal string alignment). */
#include "suggest.h"

#include <string.h>

enum { MAX_LENGTH = 63 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t edit_distance(const char *a, size_t n, const char *b, size_t m)
{
    size_t d[MAX_LENGTH + 1][MAX_LENGTH + 1];
    for (size_t i = 0; i <= n; i++)
        for (size_t j = 0; j <= m; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            size_t change = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            d[i][j] = least(change, least(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[n][m];
}

const char *cli_suggest(const char *text, const char *(*name_at)(void *, size_t),
                        void *context)
{
    const char *best = NULL, *name;
    size_t best_cost = (size_t)-1, length = strlen(text);
    if (length < 2 || length > MAX_LENGTH)
        return NULL;
    for (size_t i = 0; (name = name_at(context, i)) != NULL; i++) {
        size_t name_length = strlen(name);
        if (name_length > MAX_LENGTH)
            continue;
        size_t cost = 2 * edit_distance(text, length, name, name_length);
        int near = cost <= 2 * (name_length / 3 + 1);
        if (length >= 3 && strstr(name, text) == name) {
            cost = least(cost, 3);
            near = 1;
        } else if (length >= 4 && strstr(name, text) != NULL) {
            cost = least(cost, 5);
            near = 1;
        }
        if (near &&
            (cost < best_cost || (cost == best_cost && name_length < strlen(best)))) {
            best = name;
            best_cost = cost;
        }
    }
    return best;
}
