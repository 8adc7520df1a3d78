/* SPDX-License-Identifier: MIT
 *
 * walk.c - the blocks that a tile sees, nearest first
 *
 * Near to far, so that a row's maximum is soon as high as it gets and leaving far blocks
 * out is proven by it (skip.c). */
#include "attention/tile.h"

void pe_walk_start(pe_walk *walk, const pe_tile *tile, int64_t begin, int64_t end)
{
    int64_t low = tile->doc.k_len, high = 0, sinks = 0;
    for (int64_t i = 0; i < tile->num_tokens; i++) {
        if (tile->low[i] < tile->high[i]) {
            low = low < tile->low[i] ? low : tile->low[i];
            high = high > tile->high[i] ? high : tile->high[i];
        }
        sinks = sinks > tile->sinks[i] ? sinks : tile->sinks[i];
    }
    low = low > begin ? low : begin;
    high = high < end ? high : end;
    walk->first = low / PE_KEY_BLOCK;
    walk->last = low < high ? (high - 1) / PE_KEY_BLOCK : walk->first - 1;
    const int64_t place =
        pe_tile_place_of(tile, tile->token + tile->num_tokens - 1) / PE_KEY_BLOCK;
    walk->centre = pe_clamp(place, walk->first,
                            walk->last < walk->first ? walk->first : walk->last);
    walk->down = walk->centre < walk->last ? walk->centre : walk->last;
    walk->up = walk->centre + 1;
    walk->sink_first = begin / PE_KEY_BLOCK;
    sinks = sinks < end ? sinks : end;
    walk->sink_down = (sinks + PE_KEY_BLOCK - 1) / PE_KEY_BLOCK - 1;
    if (walk->first <= walk->last && walk->sink_down >= walk->first)
        walk->sink_down = walk->first - 1;
}

int64_t pe_walk_next(pe_walk *walk)
{
    const int up = walk->up <= walk->last, down = walk->down >= walk->first;
    if (down && (!up || walk->centre - walk->down <= walk->up - walk->centre))
        return walk->down-- * PE_KEY_BLOCK;
    if (up)
        return walk->up++ * PE_KEY_BLOCK;
    if (walk->sink_down >= walk->sink_first)
        return walk->sink_down-- * PE_KEY_BLOCK;
    return -1;
}
