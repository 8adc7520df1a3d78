/* SPDX-License-Identifier: MIT
 *
 * json_reader.h - a JSON document into the settings store
 */
#ifndef PE_JSON_READER_H
#define PE_JSON_READER_H

#include "model/settings.h"

/* json-c takes about 400 bytes for a value of two characters, hence the third limit;
 * the largest real files list two labels for each of 22000 classes. */
enum {
    PE_JSON_DEPTH_MAX = 64,
    PE_JSON_SIZE_MAX = 4 << 20,
    PE_JSON_VALUES_MAX = 1 << 17
};

/* One JSON object, and nothing after it.  "a": {"b": 1} becomes a.b; arrays of numbers
 * and of strings become one setting, any other array a[0], a[1], ...
 * PE_E_FORMAT with the byte offset, also for duplicate keys, NaN and Infinity;
 * PE_E_LIMIT beyond the limits above. */
pe_status pe_json_read(pe_settings *settings, const char *text, size_t size,
                       pe_error *error);

#endif /* PE_JSON_READER_H */
