/* SPDX-License-Identifier: MIT
 *
 * names.c - the words for the library's enums, in options and in reports
 */
#include "names.h"

#include "posenc/model.h"

const cli_choice cli_angles_names[] = {{"exact", PE_ANGLES_EXACT},
                                       {"hf_f32", PE_ANGLES_HF_F32},
                                       {"ggml_f32", PE_ANGLES_GGML_F32},
                                       {NULL, 0}};

const cli_choice cli_isa_names[] = {{"auto", PE_ISA_AUTO},
                                    {"scalar", PE_ISA_SCALAR},
                                    {"neon", PE_ISA_NEON},
                                    {"avx2", PE_ISA_AVX2},
                                    {"avx512", PE_ISA_AVX512},
                                    {"wasm128", PE_ISA_WASM128},
                                    {NULL, 0}};

const cli_choice cli_pairing_names[] = {
    {"half-split", PE_HALF_SPLIT}, {"interleaved", PE_INTERLEAVED}, {NULL, 0}};

const cli_choice cli_rope_type_names[] = {
    {"default", PE_ROPE_DEFAULT}, {"linear", PE_ROPE_LINEAR},
    {"ntk", PE_ROPE_NTK},         {"dynamic", PE_ROPE_DYNAMIC},
    {"yarn", PE_ROPE_YARN},       {"longrope", PE_ROPE_LONGROPE},
    {"llama3", PE_ROPE_LLAMA3},   {"proportional", PE_ROPE_PROPORTIONAL},
    {"custom", PE_ROPE_CUSTOM},   {NULL, 0}};

const cli_choice cli_mscale_names[] = {{"hf", PE_MSCALE_HF},
                                       {"deepseek", PE_MSCALE_DEEPSEEK},
                                       {"ignore", PE_MSCALE_IGNORE},
                                       {NULL, 0}};

const cli_choice cli_axis_names[] = {{"single", PE_AXIS_SINGLE},
                                     {"chunked", PE_AXIS_CHUNKED},
                                     {"interleaved", PE_AXIS_INTERLEAVED},
                                     {"imrope", PE_AXIS_IMROPE},
                                     {"ernie", PE_AXIS_ERNIE},
                                     {"split", PE_AXIS_SPLIT},
                                     {"custom", PE_AXIS_CUSTOM},
                                     {NULL, 0}};

const cli_choice cli_role_names[] = {{"self", PE_SITE_SELF},
                                     {"cross", PE_SITE_CROSS},
                                     {"indexer", PE_SITE_INDEXER},
                                     {"compress", PE_SITE_COMPRESS},
                                     {"encoder", PE_SITE_ENCODER},
                                     {"vision", PE_SITE_VISION},
                                     {NULL, 0}};

const cli_choice cli_dtype_names[] = {
    {"f32", PE_F32}, {"f16", PE_F16}, {"bf16", PE_BF16}, {"int8", PE_I8}, {NULL, 0}};

const cli_choice cli_float_names[] = {
    {"f32", PE_F32}, {"f16", PE_F16}, {"bf16", PE_BF16}, {NULL, 0}};

const cli_choice cli_bias_names[] = {{"alibi", PE_BIAS_ALIBI},
                                     {"t5", PE_BIAS_T5},
                                     {"kerple-log", PE_BIAS_KERPLE_LOG},
                                     {"kerple-power", PE_BIAS_KERPLE_POWER},
                                     {NULL, 0}};

const cli_choice cli_form_names[] = {{"causal", PE_BIAS_CAUSAL},
                                     {"bidirectional", PE_BIAS_BIDIRECTIONAL},
                                     {"key-only", PE_BIAS_KEY_ONLY},
                                     {NULL, 0}};

const cli_choice cli_recipe_names[] = {
    {"published", PE_SLOPES_PUBLISHED}, {"geometric", PE_SLOPES_GEOMETRIC}, {NULL, 0}};

const cli_choice cli_order_names[] = {{"sin-cos-interleaved", PE_SIN_COS_INTERLEAVED},
                                      {"sin-cos-halves", PE_SIN_COS_HALVES},
                                      {"cos-sin-halves", PE_COS_SIN_HALVES},
                                      {NULL, 0}};

const cli_choice cli_source_names[] = {{"stated", PE_STATED},
                                       {"derived", PE_DERIVED},
                                       {"defaulted", PE_DEFAULTED},
                                       {"conflicting", PE_CONFLICTING},
                                       {NULL, 0}};

const cli_choice cli_level_names[] = {
    {"info", PE_INFO}, {"warning", PE_WARNING}, {NULL, 0}};

int cli_isa_choose(int32_t wanted, pe_isa *out)
{
    static const pe_isa fastest_first[] = {PE_ISA_AVX512, PE_ISA_AVX2, PE_ISA_NEON,
                                           PE_ISA_WASM128};
    if (!pe_isa_available(wanted))
        return cli_fail(CLI_FAILED,
                        "--isa is %s, which does not run here; posenc cpu "
                        "lists what does",
                        pe_isa_name(wanted));
    *out = wanted == PE_ISA_AUTO ? PE_ISA_SCALAR : wanted;
    for (size_t i = CLI_COUNT(fastest_first); wanted == PE_ISA_AUTO && i-- > 0;)
        if (pe_isa_available(fastest_first[i]))
            *out = fastest_first[i];
    return CLI_DONE;
}
