/* SPDX-License-Identifier: MIT
 *
 * gguf_arch.c - what llama.cpp does for an architecture that its file does not say
 *
 * The pairing above all: NORM for models whose q and k rows the converter permuted, or
 * that were trained so; NEOX for the others.  Facts from llama.cpp's
 * llama_model_rope_type and its files in src/models, July 2026. */
#include "model/gguf_dialect.h"

#include <string.h>

enum {
    FULL_FIRST = PE_GGUF_FULL_FIRST,
    WINDOW = PE_GGUF_NEEDS_WINDOW,
    OWN_BASE = PE_GGUF_OWN_BASE,
    UNSCALED = PE_GGUF_UNSCALED,
    MLA = PE_GGUF_TAIL,
    MLA_TENTH = PE_GGUF_TAIL | PE_GGUF_LOG_TENTH,
    BOTH_WAYS = PE_GGUF_BIDIRECTIONAL
};

static const pe_gguf_arch unknown = {.name = "", .kind = PE_GGUF_UNKNOWN};

/* clang-format off */
static const pe_gguf_arch arches[] = {
    {"llama",           PE_GGUF_NORM, 0, 0, 0},
    {"llama4",          PE_GGUF_NORM, 4, PE_GGUF_NOPE_EVERY_4 | PE_GGUF_TEMPERATURE, 0},
    {"llama-embed",     PE_GGUF_NORM, 0, BOTH_WAYS, 0},
    {"llada",           PE_GGUF_NORM, 0, BOTH_WAYS, 0},
    {"deci",            PE_GGUF_NORM, 0, 0, 0},
    {"internlm2",       PE_GGUF_NORM, 0, 0, 0},
    {"minicpm",         PE_GGUF_NORM, 0, 0, 0},
    {"xverse",          PE_GGUF_NORM, 0, 0, 0},
    {"command-r",       PE_GGUF_NORM, 0, 0, 0},
    {"cohere2",         PE_GGUF_NORM, 4, PE_GGUF_SLIDING_ROPE, 0},
    {"cohere2moe",      PE_GGUF_NORM, 4, PE_GGUF_SLIDING_ROPE | FULL_FIRST, 0},
    {"olmo",            PE_GGUF_NORM, 0, 0, 0},
    {"arctic",          PE_GGUF_NORM, 0, 0, 0},
    {"baichuan",        PE_GGUF_NORM, 0, 0, 0},
    {"deepseek",        PE_GGUF_NORM, 0, 0, 0},
    {"deepseek2",       PE_GGUF_NORM, 0, MLA_TENTH, 0},
    {"deepseek2-ocr",   PE_GGUF_NORM, 0, 0, 0},
    {"deepseek32",      PE_GGUF_NORM, 0, MLA_TENTH, 0},
    {"glm-dsa",         PE_GGUF_NORM, 0, MLA_TENTH, 0},
    {"mistral4",        PE_GGUF_NORM, 0, MLA_TENTH, 0},
    {"plm",             PE_GGUF_NORM, 0, MLA, 0},
    {"chatglm",         PE_GGUF_NORM, 0, 0, 0},
    {"granite",         PE_GGUF_NORM, 0, PE_GGUF_FINETUNED, 0},
    {"granitemoe",      PE_GGUF_NORM, 0, PE_GGUF_FINETUNED, 0},
    {"granitehybrid",   PE_GGUF_NORM, 0, PE_GGUF_FINETUNED, 0},
    {"chameleon",       PE_GGUF_NORM, 0, 0, 0},
    {"bailingmoe",      PE_GGUF_NORM, 0, 0, 0},
    {"neo-bert",        PE_GGUF_NORM, 0, BOTH_WAYS, 0},
    {"smollm3",         PE_GGUF_NORM, 0, PE_GGUF_NOPE_EVERY_4, 0},
    {"arcee",           PE_GGUF_NORM, 0, 0, 0},
    {"ernie4_5",        PE_GGUF_NORM, 0, 0, 0},
    {"ernie4_5-moe",    PE_GGUF_NORM, 0, 0, 0},
    {"mistral3",        PE_GGUF_NORM, 0, 0, 0},
    {"maincoder",       PE_GGUF_NORM, 0, 0, 0},

    {"falcon",          PE_GGUF_NEOX, 0, 0, 0},
    {"falcon-h1",       PE_GGUF_NEOX, 0, 0, 0},
    {"grok",            PE_GGUF_NEOX, 0, 0, 0},
    {"dbrx",            PE_GGUF_NEOX, 0, 0, 0},
    {"jina-bert-v3",    PE_GGUF_NEOX, 0, BOTH_WAYS, 0},
    {"modern-bert",     PE_GGUF_NEOX, 3, FULL_FIRST | WINDOW | OWN_BASE | BOTH_WAYS, 0},
    {"nomic-bert",      PE_GGUF_NEOX, 0, BOTH_WAYS, 0},
    {"nomic-bert-moe",  PE_GGUF_NEOX, 0, BOTH_WAYS, 0},
    {"eurobert",        PE_GGUF_NEOX, 0, BOTH_WAYS, 0},
    {"stablelm",        PE_GGUF_NEOX, 0, 0, 0},
    {"bitnet",          PE_GGUF_NEOX, 0, 0, 0},
    {"qwen",            PE_GGUF_NEOX, 0, 0, 0},
    {"qwen2",           PE_GGUF_NEOX, 0, 0, 0},
    {"qwen2moe",        PE_GGUF_NEOX, 0, 0, 0},
    {"qwen3",           PE_GGUF_NEOX, 0, 0, 0},
    {"qwen3moe",        PE_GGUF_NEOX, 0, 0, 0},
    {"qwen3next",       PE_GGUF_NEOX, 0, PE_GGUF_EVERY_4TH, 0},
    {"dream",           PE_GGUF_NEOX, 0, BOTH_WAYS, 0},
    {"llada-moe",       PE_GGUF_NEOX, 0, BOTH_WAYS, 0},
    {"rnd1",            PE_GGUF_NEOX, 0, BOTH_WAYS, 0},
    {"olmo2",           PE_GGUF_NEOX, 4, WINDOW | UNSCALED, 0},
    {"olmoe",           PE_GGUF_NEOX, 0, 0, 0},
    {"phi2",            PE_GGUF_NEOX, 0, 0, 0},
    {"phi3",            PE_GGUF_NEOX, 0, 0, 0},
    {"phimoe",          PE_GGUF_NEOX, 0, 0, 0},
    {"plamo",           PE_GGUF_NEOX, 0, 0, 0},
    {"plamo2",          PE_GGUF_NEOX, 0, 0, 0},
    {"plamo3",          PE_GGUF_NEOX, 8, WINDOW | OWN_BASE, 0},
    {"gemma",           PE_GGUF_NEOX, 0, 0, 0},
    {"gemma2",          PE_GGUF_NEOX, 2, 0, 0},
    {"gemma3",          PE_GGUF_NEOX, 6, WINDOW | OWN_BASE, 0},
    {"gemma3n",         PE_GGUF_NEOX, 5, OWN_BASE, 0},
    {"gemma4",          PE_GGUF_NEOX, 6, OWN_BASE | PE_GGUF_FACTORS_FULL, 0},
    {"gemma-embedding", PE_GGUF_NEOX, 6, OWN_BASE | BOTH_WAYS, 0},
    {"starcoder2",      PE_GGUF_NEOX, 0, 0, 0},
    {"openelm",         PE_GGUF_NEOX, 0, 0, 0},
    {"gptneox",         PE_GGUF_NEOX, 0, 0, 0},
    {"codeshell",       PE_GGUF_NEOX, 0, 0, 0},
    {"orion",           PE_GGUF_NEOX, 0, 0, 0},
    {"nemotron",        PE_GGUF_NEOX, 0, 0, 0},
    {"exaone",          PE_GGUF_NEOX, 0, 0, 0},
    {"exaone4",         PE_GGUF_NEOX, 4, WINDOW | PE_GGUF_SLIDING_ROPE, 0},
    {"exaone-moe",      PE_GGUF_NEOX, 4, PE_GGUF_SLIDING_ROPE, 0},
    {"minicpm3",        PE_GGUF_NEOX, 0, MLA, 0},
    {"bailingmoe2",     PE_GGUF_NEOX, 0, 0, 0},
    {"dots1",           PE_GGUF_NEOX, 0, 0, 0},
    {"hunyuan-moe",     PE_GGUF_NEOX, 0, 0, 0},
    {"hunyuan-dense",   PE_GGUF_NEOX, 0, 0, 0},
    {"hy_v3",           PE_GGUF_NEOX, 0, 0, 0},
    {"jais2",           PE_GGUF_NEOX, 0, 0, 0},
    {"gpt-oss",         PE_GGUF_NEOX, 2, 0, 0},
    {"lfm2",            PE_GGUF_NEOX, 0, 0, 0},
    {"lfm2moe",         PE_GGUF_NEOX, 0, 0, 0},
    {"smallthinker",    PE_GGUF_NEOX, 4, FULL_FIRST | WINDOW | PE_GGUF_SLIDING_ROPE, 0},
    {"seed_oss",        PE_GGUF_NEOX, 0, 0, 0},
    {"grovemoe",        PE_GGUF_NEOX, 0, 0, 0},
    {"apertus",         PE_GGUF_NEOX, 0, 0, 0},
    {"minimax-m2",      PE_GGUF_NEOX, 0, 0, 0},
    {"cogvlm",          PE_GGUF_NEOX, 0, 0, 0},
    {"pangu-embedded",  PE_GGUF_NEOX, 0, 0, 0},
    {"afmoe",           PE_GGUF_NEOX, 4, WINDOW | PE_GGUF_NOPE_EVERY_4, 0},
    {"laguna",          PE_GGUF_NEOX, 4, FULL_FIRST | WINDOW | UNSCALED, 0},
    {"mimo2",           PE_GGUF_NEOX, 6, OWN_BASE, 0},
    {"mellum",          PE_GGUF_NEOX, 4, WINDOW, 0},

    {"qwen2vl",         PE_GGUF_MROPE, 0, 0, 0},
    {"paddleocr",       PE_GGUF_MROPE, 0, 0, 0},
    {"qwen3vl",         PE_GGUF_IMROPE, 0, 0, 0},
    {"qwen3vlmoe",      PE_GGUF_IMROPE, 0, 0, 0},
    {"qwen35",          PE_GGUF_IMROPE, 0, PE_GGUF_EVERY_4TH, 0},
    {"qwen35moe",       PE_GGUF_IMROPE, 0, PE_GGUF_EVERY_4TH, 0},
    {"glm4",            PE_GGUF_NORM_MROPE, 0, 0, 0},
    {"glm4moe",         PE_GGUF_NEOX_MROPE, 0, 0, 0},
    {"hunyuan_vl",      PE_GGUF_NEOX_MROPE, 0, 0, 0},

    {"gpt2",            PE_GGUF_LEARNED, 0, 0, 0},
    {"starcoder",       PE_GGUF_LEARNED, 0, 0, 0},
    {"bert",            PE_GGUF_LEARNED, 0, BOTH_WAYS, 0},
    {"mpt",             PE_GGUF_ALIBI, 0, 0, 0},
    {"bloom",           PE_GGUF_ALIBI, 0, 0, 0},
    {"refact",          PE_GGUF_ALIBI, 0, 0, 0},
    {"jais",            PE_GGUF_ALIBI, 0, 0, 0},
    {"jina-bert-v2",    PE_GGUF_ALIBI, 0, BOTH_WAYS, 0},
    {"t5",              PE_GGUF_T5, 0, 0, 0},
    {"t5encoder",       PE_GGUF_T5, 0, BOTH_WAYS, 0},
    {"mamba",           PE_GGUF_NONE, 0, 0, 0},
    {"mamba2",          PE_GGUF_NONE, 0, 0, 0},
    {"jamba",           PE_GGUF_NONE, 0, 0, 0},
    {"rwkv6",           PE_GGUF_NONE, 0, 0, 0},
    {"rwkv6qwen2",      PE_GGUF_NONE, 0, 0, 0},
    {"rwkv7",           PE_GGUF_NONE, 0, 0, 0},
    {"arwkv7",          PE_GGUF_NONE, 0, 0, 0},
    {"nemotron_h",      PE_GGUF_NONE, 0, 0, 0},
    {"nemotron_h_moe",  PE_GGUF_NONE, 0, 0, 0},
    {"kimi-linear",     PE_GGUF_NONE, 0, 0, 0},
    {"wavtokenizer-dec", PE_GGUF_NONE, 0, 0, 0},

    {"clip",            PE_GGUF_REFUSED, 0, 0, 0},
    {"deepseek4",       PE_GGUF_REFUSED, 0, 0, 0}, /* compressed keys, tail window */
    {"step35",          PE_GGUF_REFUSED, 0, 0, 0}, /* theta by layer */
    {"inkling",         PE_GGUF_REFUSED, 0, 0, 0},
    {"eagle3",          PE_GGUF_REFUSED, 0, 0, 0}, /* takes the target model's */
    {"dflash",          PE_GGUF_REFUSED, 0, 0, 0},
    {"gemma4-assistant", PE_GGUF_REFUSED, 0, 0, 0},
};
/* clang-format on */

const pe_gguf_arch *pe_gguf_find_arch(const char *name)
{
    for (size_t i = 0; i < PE_COUNT(arches); i++) {
        if (strcmp(arches[i].name, name) == 0)
            return &arches[i];
    }
    return &unknown;
}
