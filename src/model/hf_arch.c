/* SPDX-License-Identifier: MIT
 *
 * hf_arch.c - what a model_type means beyond its settings
 *
 * config.json never states the pairing, and leaves out what its class defaults to.
 * Sources: the model code and configuration classes of Hugging Face transformers 5.x;
 * remote-code models (baichuan, RefinedWeb, mpt's ancestors, kimi) from their own. */
#include "model/hf.h"

#include <string.h>

enum {
    HALF = PE_HALF_SPLIT,
    PAIR = PE_INTERLEAVED,
    MLA_V3 = PE_HF_MLA | PE_HF_DEEPSEEK_MSCALE
};

/* clang-format off */
static const pe_hf_arch archs[] = {
    /* half-split over the whole head */
    {"llama", .method = PE_HF_ROPE, .pairing = HALF},
    {"mllama", .method = PE_HF_ROPE, .pairing = HALF, .theta = 5e5},
    {"mllama_text_model", .method = PE_HF_ROPE, .pairing = HALF, .theta = 5e5},
    {"mistral", .method = PE_HF_ROPE, .pairing = HALF},
    {"mixtral", .method = PE_HF_ROPE, .pairing = HALF, .theta = 1e6},
    {"ministral", .method = PE_HF_ROPE, .pairing = HALF},
    {"ministral3", .method = PE_HF_ROPE, .pairing = HALF, .head_dim = 128, .theta = 1e6},
    {"qwen2", .method = PE_HF_ROPE, .pairing = HALF},
    {"qwen2_moe", .method = PE_HF_ROPE, .pairing = HALF},
    {"qwen3", .method = PE_HF_ROPE, .pairing = HALF, .head_dim = 128},
    {"qwen3_moe", .method = PE_HF_ROPE, .pairing = HALF},
    {"gemma", .method = PE_HF_ROPE, .pairing = HALF, .head_dim = 256},
    {"gemma2", .method = PE_HF_ROPE, .pairing = HALF, .head_dim = 256},
    {"phi3", .method = PE_HF_ROPE, .pairing = HALF},
    {"phimoe", .method = PE_HF_ROPE, .pairing = HALF, .theta = 1e6},
    {"falcon", .method = PE_HF_ROPE, .pairing = HALF, .flags = PE_HF_THETA_IN_CODE, .context = 2048},
    {"RefinedWeb", .method = PE_HF_ROPE, .pairing = HALF, .flags = PE_HF_THETA_IN_CODE, .context = 2048},
    {"RefinedWebModel", .method = PE_HF_ROPE, .pairing = HALF, .flags = PE_HF_THETA_IN_CODE, .context = 2048},
    {"baichuan", .method = PE_HF_ROPE, .pairing = HALF, .flags = PE_HF_THETA_IN_CODE},
    {"olmo", .method = PE_HF_ROPE, .pairing = HALF},
    {"olmo2", .method = PE_HF_ROPE, .pairing = HALF},
    {"olmoe", .method = PE_HF_ROPE, .pairing = HALF},
    {"granite", .method = PE_HF_ROPE, .pairing = HALF},
    {"granitemoe", .method = PE_HF_ROPE, .pairing = HALF},
    {"starcoder2", .method = PE_HF_ROPE, .pairing = HALF},
    {"stablelm_epoch", .method = PE_HF_ROPE, .pairing = HALF, .partial = 0.25},
    {"gpt_oss", .method = PE_HF_ROPE, .pairing = HALF, .head_dim = 64, .theta = 150000},
    {"hunyuan_v1_dense", .method = PE_HF_ROPE, .pairing = HALF},
    {"hunyuan_v1_moe", .method = PE_HF_ROPE, .pairing = HALF},
    {"seed_oss", .method = PE_HF_ROPE, .pairing = HALF},
    {"arcee", .method = PE_HF_ROPE, .pairing = HALF},
    {"internlm2", .method = PE_HF_ROPE, .pairing = HALF},
    {"internlm3", .method = PE_HF_ROPE, .pairing = HALF},
    {"minicpm", .method = PE_HF_ROPE, .pairing = HALF},
    {"deepseek", .method = PE_HF_ROPE, .pairing = HALF},
    {"esm", .method = PE_HF_ROPE, .pairing = HALF,
     .flags = PE_HF_THETA_IN_CODE | PE_HF_ENCODER, .context = 1026},
    {"nanochat", .method = PE_HF_ROPE, .pairing = HALF, .flags = PE_HF_REVERSED},
    /* half-split over a part of the head */
    {"gpt_neox", .method = PE_HF_ROPE, .pairing = HALF, .partial = 0.25},
    {"phi", .method = PE_HF_ROPE, .pairing = HALF, .partial = 0.5},
    {"stablelm", .method = PE_HF_ROPE, .pairing = HALF, .partial = 0.25},
    {"persimmon", .method = PE_HF_ROPE, .pairing = HALF, .partial = 0.5, .theta = 25000},
    {"nemotron", .method = PE_HF_ROPE, .pairing = HALF, .partial = 0.5},
    {"qwen3_next", .method = PE_HF_ROPE, .pairing = HALF, .flags = PE_HF_LINEAR_BETWEEN,
     .head_dim = 256, .partial = 0.25},
    {"minimax_m2", .method = PE_HF_ROPE, .pairing = HALF, .theta = 5e6},
    {"glm4_moe", .method = PE_HF_ROPE, .pairing = HALF, .partial = 0.5},
    /* several axes */
    {"qwen2_vl", .method = PE_HF_ROPE, .pairing = HALF, .flags = PE_HF_MROPE},
    {"qwen2_vl_text", .method = PE_HF_ROPE, .pairing = HALF, .flags = PE_HF_MROPE},
    {"qwen2_5_vl", .method = PE_HF_ROPE, .pairing = HALF, .flags = PE_HF_MROPE},
    {"qwen2_5_vl_text", .method = PE_HF_ROPE, .pairing = HALF, .flags = PE_HF_MROPE},
    {"qwen2_5_omni_text", .method = PE_HF_ROPE, .pairing = HALF, .flags = PE_HF_MROPE},
    {"qwen3_vl", .method = PE_HF_ROPE, .pairing = HALF, .flags = PE_HF_MROPE_INTERLEAVED,
     .head_dim = 128, .theta = 5e6},
    {"qwen3_vl_text", .method = PE_HF_ROPE, .pairing = HALF, .flags = PE_HF_MROPE_INTERLEAVED,
     .head_dim = 128, .theta = 5e6},
    {"qwen3_vl_moe_text", .method = PE_HF_ROPE, .pairing = HALF, .flags = PE_HF_MROPE_INTERLEAVED,
     .theta = 5e6},
    {"qwen3_5_text", .method = PE_HF_ROPE, .pairing = HALF,
     .flags = PE_HF_MROPE_INTERLEAVED | PE_HF_LINEAR_BETWEEN, .head_dim = 256,
     .partial = 0.25},
    /* layers that differ */
    {"gemma3", .method = PE_HF_ROPE, .pairing = HALF, .flags = PE_HF_LOCAL_BASE,
     .head_dim = 256, .sliding_period = 6, .theta = 1e6},
    {"gemma3_text", .method = PE_HF_ROPE, .pairing = HALF, .flags = PE_HF_LOCAL_BASE, .head_dim = 256,
     .sliding_period = 6, .theta = 1e6},
    {"gemma4_text", .method = PE_HF_ROPE, .pairing = HALF, .head_dim = 256, .sliding_period = 6},
    {"olmo3", .method = PE_HF_ROPE, .pairing = HALF, .flags = PE_HF_SCALED_ON_FULL,
     .sliding_period = 4, .theta = 5e5},
    {"smollm3", .method = PE_HF_ROPE, .pairing = HALF, .flags = PE_HF_NOPE_EVERY_4, .theta = 2e6},
    {"exaone4", .method = PE_HF_ROPE, .pairing = HALF, .flags = PE_HF_ROPE_ON_SLIDING,
     .sliding_period = 4},
    {"modernbert", .method = PE_HF_ROPE, .pairing = HALF,
     .flags = PE_HF_LOCAL_BASE | PE_HF_FULL_FIRST | PE_HF_ENCODER, .sliding_period = 3,
     .theta = 160000},
    {"mimo_v2_flash", .method = PE_HF_ROPE, .pairing = HALF, .flags = PE_HF_LOCAL_BASE,
     .head_dim = 192, .theta = 5e6, .partial = 0.334},
    {"step3p5", .method = PE_HF_ROPE, .pairing = HALF,
     .flags = PE_HF_LAYER_LISTS | PE_HF_SCALED_ON_FULL},
    {"step3p7", .method = PE_HF_ROPE, .pairing = HALF,
     .flags = PE_HF_LAYER_LISTS | PE_HF_SCALED_ON_FULL},
    {"laguna", .method = PE_HF_ROPE, .pairing = HALF},
    /* interleaved */
    {"gptj", .method = PE_HF_ROPE, .pairing = PAIR, .flags = PE_HF_THETA_IN_CODE},
    {"codegen", .method = PE_HF_ROPE, .pairing = PAIR, .flags = PE_HF_THETA_IN_CODE},
    {"cohere", .method = PE_HF_ROPE, .pairing = PAIR},
    {"cohere2", .method = PE_HF_ROPE, .pairing = PAIR, .flags = PE_HF_ROPE_ON_SLIDING,
     .sliding_period = 4},
    {"glm", .method = PE_HF_ROPE, .pairing = PAIR, .partial = 0.5},
    {"glm4", .method = PE_HF_ROPE, .pairing = PAIR, .partial = 0.5},
    {"ernie4_5", .method = PE_HF_ROPE, .pairing = PAIR, .theta = 5e5},
    {"ernie4_5_moe", .method = PE_HF_ROPE, .pairing = PAIR, .theta = 5e5},
    {"helium", .method = PE_HF_ROPE, .pairing = PAIR},
    {"llama4", .method = PE_HF_ROPE, .pairing = PAIR, .flags = PE_HF_NOPE_EVERY_4,
     .head_dim = 128, .theta = 5e5},
    {"llama4_text", .method = PE_HF_ROPE, .pairing = PAIR, .flags = PE_HF_NOPE_EVERY_4,
     .head_dim = 128, .theta = 5e5},
    {"roformer", .method = PE_HF_ROPE, .pairing = PAIR,
     .flags = PE_HF_THETA_IN_CODE | PE_HF_ENCODER},
    {"chatglm", .method = PE_HF_ROPE, .pairing = PAIR,
     .flags = PE_HF_THETA_IN_CODE | PE_HF_THETA_RATIO, .partial = 0.5},
    {"glm4v_text", .method = PE_HF_ROPE, .pairing = PAIR, .flags = PE_HF_MROPE,
     .partial = 0.5},
    {"ernie4_5_vl_moe_text", .method = PE_HF_ROPE, .pairing = PAIR,
     .flags = PE_HF_MROPE_ERNIE, .theta = 5e5},
    {"moonshine", .method = PE_HF_ROPE, .pairing = PAIR, .partial = 0.9},
    {"deepseek_v2", .method = PE_HF_ROPE, .pairing = PAIR, .flags = MLA_V3},
    {"deepseek_v4", .method = PE_HF_ROPE, .pairing = PAIR,
     .flags = PE_HF_MLA | PE_HF_COMPRESS | PE_HF_SCALED_ON_FULL, .head_dim = 512},
    /* vision towers: rows and columns of patches */
    {"pixtral", .method = PE_HF_ROPE, .pairing = HALF,
     .flags = PE_HF_VISION | PE_HF_ENCODER},
    {"dinov3_vit", .method = PE_HF_ROPE, .pairing = HALF,
     .flags = PE_HF_VISION | PE_HF_ENCODER, .theta = 100},
    /* interleaved in, half-split out */
    {"deepseek_v3", .method = PE_HF_ROPE, .pairing = PAIR, .out_pairing = HALF, .flags = MLA_V3},
    {"deepseek_v32", .method = PE_HF_ROPE, .pairing = PAIR, .out_pairing = HALF, .flags = MLA_V3},
    {"kimi_k2", .method = PE_HF_ROPE, .pairing = PAIR, .out_pairing = HALF, .flags = MLA_V3},
    {"kimi_k25", .method = PE_HF_ROPE, .pairing = PAIR, .out_pairing = HALF, .flags = MLA_V3},
    {"glm4_moe_lite", .method = PE_HF_ROPE, .pairing = PAIR, .out_pairing = HALF, .flags = MLA_V3},
    {"glm_moe_dsa", .method = PE_HF_ROPE, .pairing = PAIR, .out_pairing = HALF, .flags = MLA_V3},
    {"longcat_flash", .method = PE_HF_ROPE, .pairing = PAIR, .out_pairing = HALF, .flags = MLA_V3},
    {"mistral4", .method = PE_HF_ROPE, .pairing = PAIR, .out_pairing = HALF, .flags = PE_HF_MLA},
    /* learned tables */
    {"openai-gpt", .method = PE_HF_LEARNED, .context = 512},
    {"gpt2", .method = PE_HF_LEARNED, .context = 1024},
    {"gpt_bigcode", .method = PE_HF_LEARNED, .context = 1024},
    {"gpt_neo", .method = PE_HF_LEARNED, .context = 2048},
    {"opt", .method = PE_HF_LEARNED, .offset = 2, .context = 2048},
    {"biogpt", .method = PE_HF_LEARNED, .offset = 2, .context = 1024},
    {"bert", .method = PE_HF_LEARNED, .flags = PE_HF_ENCODER, .context = 512},
    {"electra", .method = PE_HF_LEARNED, .flags = PE_HF_ENCODER, .context = 512},
    {"albert", .method = PE_HF_LEARNED, .flags = PE_HF_ENCODER, .context = 512},
    {"distilbert", .method = PE_HF_LEARNED, .flags = PE_HF_ENCODER, .context = 512},
    {"roberta", .method = PE_HF_LEARNED, .flags = PE_HF_ENCODER, .offset = -1},
    {"xlm-roberta", .method = PE_HF_LEARNED, .flags = PE_HF_ENCODER, .offset = -1},
    {"camembert", .method = PE_HF_LEARNED, .flags = PE_HF_ENCODER, .offset = -1},
    {"bart", .method = PE_HF_LEARNED, .offset = 2, .context = 1024},
    {"mbart", .method = PE_HF_LEARNED, .offset = 2, .context = 1024},
    {"clip_text_model", .method = PE_HF_LEARNED, .context = 77},
    {"vit", .method = PE_HF_LEARNED, .flags = PE_HF_ENCODER},
    {"deit", .method = PE_HF_LEARNED, .flags = PE_HF_ENCODER},
    {"whisper", .method = PE_HF_SINUSOIDAL},
    {"marian", .method = PE_HF_SINUSOIDAL},
    {"pegasus", .method = PE_HF_SINUSOIDAL},
    {"m2m_100", .method = PE_HF_SINUSOIDAL},
    {"nllb-moe", .method = PE_HF_SINUSOIDAL},
    {"xglm", .method = PE_HF_SINUSOIDAL},
    {"detr", .method = PE_HF_SINUSOIDAL, .flags = PE_HF_ENCODER},
    /* biases on scores */
    {"bloom", .method = PE_HF_ALIBI, .context = 2048},
    {"mpt", .method = PE_HF_ALIBI, .context = 2048},
    {"jais", .method = PE_HF_ALIBI},
    {"t5", .method = PE_HF_T5, .context = 512},
    {"mt5", .method = PE_HF_T5, .context = 1024},
    {"umt5", .method = PE_HF_T5, .context = 512},
    /* positions inside the attention's own terms, or none */
    {"xlnet", .method = PE_HF_RELATIVE},
    {"transfo-xl", .method = PE_HF_RELATIVE},
    {"deberta", .method = PE_HF_RELATIVE, .flags = PE_HF_ENCODER},
    {"deberta-v2", .method = PE_HF_RELATIVE, .flags = PE_HF_ENCODER},
    {"nemotron_h", .method = PE_HF_NONE},
    {"jamba", .method = PE_HF_NONE},
    {"mamba", .method = PE_HF_NONE},
    {"mamba2", .method = PE_HF_NONE},
    /* no rotation of pairs: an element's partner turns by another angle */
    {"vjepa2", .method = PE_HF_REFUSED, .pairing = PAIR},
};
/* clang-format on */

const pe_hf_arch *pe_hf_find_arch(const char *model_type)
{
    static const pe_hf_arch unknown = {.model_type = ""};
    for (size_t i = 0; i < PE_COUNT(archs); i++) {
        if (strcmp(archs[i].model_type, model_type) == 0)
            return &archs[i];
    }
    return &unknown;
}
