/* SPDX-License-Identifier: MIT
 *
 * hf_lookup.c - picking a value from several places, and saying so when they disagree
 */
#include "model/hf.h"

#include "base/error.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 256 };

typedef enum want { WANT_NUMBER, WANT_STRING, WANT_BOOL } want;

const pe_entry *pe_hf_entry(const pe_hf *hf, const char *name)
{
    char path[PATH_SIZE];
    if ((size_t)snprintf(path, sizeof path, "%s%s", hf->prefix, name) >= sizeof path)
        return NULL;
    const pe_entry *entry = pe_settings_find(hf->settings, path);
    return entry == NULL || entry->setting.type == PE_SETTING_NULL ? NULL : entry;
}

const pe_setting *pe_hf_get(const pe_hf *hf, const char *name)
{
    const pe_entry *entry = pe_hf_entry(hf, name);
    return entry == NULL ? NULL : &entry->setting;
}

static int same(const pe_setting *a, const pe_setting *b, want kind)
{
    if (kind == WANT_STRING)
        return strcmp(a->text, b->text) == 0;
    return a->number == b->number;
}

/* v5 of the library writes what JSON cannot as {"__float__": "Infinity"}. */
static pe_status check_marker(const pe_hf *hf, const char *name)
{
    char marker[PATH_SIZE];
    int size = snprintf(marker, sizeof marker, "%s.__float__", name);
    const pe_setting *setting =
        (size_t)size < sizeof marker ? pe_hf_get(hf, marker) : NULL;
    if (setting == NULL)
        return PE_OK;
    return pe_fail(hf->error, PE_E_ARGUMENT,
                   "%s%s is {\"__float__\": \"%.40s\"}, must be a finite number",
                   hf->prefix, name, setting->text);
}

static pe_status check_type(const pe_hf *hf, const pe_setting *setting, want kind)
{
    const pe_setting_type type = setting->type;
    const char *expected = NULL;
    if (kind == WANT_NUMBER) {
        if (type != PE_SETTING_INTEGER && type != PE_SETTING_NUMBER)
            expected = "a number";
        else if (!isfinite(setting->number))
            expected = "a finite number";
    } else if (kind == WANT_STRING && type != PE_SETTING_STRING) {
        expected = "a string";
    } else if (kind == WANT_BOOL && type != PE_SETTING_BOOL) {
        expected = "true or false";
    }
    if (expected == NULL)
        return PE_OK;
    if (kind == WANT_NUMBER && type == PE_SETTING_ARRAY)
        return pe_fail(hf->error, PE_E_UNSUPPORTED,
                       "%s is a list, one value for each layer is not read",
                       setting->path);
    const char *quote = type == PE_SETTING_STRING ? "\"" : "";
    return pe_fail(hf->error, PE_E_ARGUMENT, "%s is %s%.60s%s, must be %s",
                   setting->path, quote, setting->text, quote, expected);
}

static void conflict(pe_hf *hf, pe_pick *pick, const pe_setting *loser)
{
    const pe_setting *winner = pick->claim.setting;
    pick->claim.source = PE_CONFLICTING;
    pick->claim.reason =
        pe_arena_format(&hf->model->arena, "%s (%s) wins over %s (%s)", winner->path,
                        winner->text, loser->path, loser->text);
    pe_build_note(hf->model, PE_WARNING, winner,
                  "%s is %s, but %s is %s; the first is used", winner->path,
                  winner->text, loser->path, loser->text);
}

static pe_status consider(pe_hf *hf, const char *name, want kind, pe_pick *pick)
{
    const pe_setting *setting = pe_hf_get(hf, name);
    if (setting == NULL)
        return check_marker(hf, name);
    pe_status status = check_type(hf, setting, kind);
    if (status != PE_OK)
        return status;
    if (pick->claim.setting == NULL) {
        pick->claim.setting = setting;
        pick->claim.source = PE_STATED;
        pick->number = setting->number;
    } else if (!same(pick->claim.setting, setting, kind)) {
        conflict(hf, pick, setting);
    }
    return PE_OK;
}

static pe_status look(pe_hf *hf, const char *const *names, want kind, pe_pick *pick)
{
    memset(pick, 0, sizeof *pick);
    for (; *names != NULL; names++) {
        pe_status status = PE_OK;
        if (**names != '*') {
            status = consider(hf, *names, kind, pick);
        } else {
            for (size_t i = 0; status == PE_OK && i < PE_COUNT(hf->dicts); i++) {
                char name[PATH_SIZE];
                if (hf->dicts[i] == NULL)
                    continue;
                snprintf(name, sizeof name, "%s.%s", hf->dicts[i], *names + 1);
                status = consider(hf, name, kind, pick);
            }
        }
        if (status != PE_OK)
            return status;
    }
    return PE_OK;
}

pe_status pe_hf_number(pe_hf *hf, const char *const *names, pe_pick *pick)
{
    return look(hf, names, WANT_NUMBER, pick);
}

pe_status pe_hf_integer(pe_hf *hf, const char *const *names, int64_t min, int64_t max,
                        int64_t *out, pe_pick *pick)
{
    pe_status status = look(hf, names, WANT_NUMBER, pick);
    if (status != PE_OK || pick->claim.setting == NULL)
        return status;
    const double value = pick->number;
    if (value != floor(value) || value < (double)min || value > (double)max)
        return pe_fail(hf->error, PE_E_ARGUMENT,
                       "%s is %.40s, must be an integer in %lld..%lld",
                       pick->claim.setting->path, pick->claim.setting->text,
                       (long long)min, (long long)max);
    *out = (int64_t)value;
    return PE_OK;
}

pe_status pe_hf_string(pe_hf *hf, const char *const *names, pe_pick *pick)
{
    return look(hf, names, WANT_STRING, pick);
}

pe_status pe_hf_bool(pe_hf *hf, const char *const *names, int32_t otherwise,
                     int32_t *out, pe_pick *pick)
{
    pe_status status = look(hf, names, WANT_BOOL, pick);
    if (status == PE_OK)
        *out = pick->claim.setting == NULL ? otherwise
                                           : (int32_t)pick->claim.setting->integer;
    return status;
}
