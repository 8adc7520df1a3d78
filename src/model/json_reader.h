/* SPDX-License-Identifier: MIT
 *
 * json_reader.h - a JSON document into the settings store
 */
#ifndef PE_JSON_READER_H
#define PE_JSON_READER_H

#include "model/settings.h"

enum { PE_JSON_DEPTH_MAX = 64, PE_JSON_SIZE_MAX = 4 << 20 };

/* One JSON object, and nothing after it.  "a": {"b": 1} becomes a.b; arrays of numbers
 * and of strings become one setting, any other array a[0], a[1], ...
 * PE_E_FORMAT with the byte offset, also for duplicate keys, NaN and Infinity;
 * PE_E_LIMIT beyond the two limits above. */
pe_status pe_json_read(pe_settings *settings, const char *text, size_t size,
                       pe_error *error);

#endif /* PE_JSON_READER_H */
