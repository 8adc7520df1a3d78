// SPDX-License-Identifier: MIT
//
// raii.cc - the same header from C++17: a plan in a unique_ptr, exceptions from pe_error
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <posenc/posenc.h>
#include <stdexcept>

struct rope_delete {
    void operator()(pe_rope *rope) const { pe_rope_destroy(rope); }
};
using rope_ptr = std::unique_ptr<pe_rope, rope_delete>;

static rope_ptr make_rope(int dim, double theta)
{
    pe_rope_spec spec{};
    spec.struct_size = sizeof spec;
    spec.head_dim = dim;
    spec.pairs.pairing = PE_HALF_SPLIT;
    spec.freqs.rope_theta = theta;

    pe_rope *rope = nullptr;
    pe_error error;
    if (pe_rope_create(&rope, &spec, nullptr, &error) != PE_OK)
        throw std::invalid_argument(error.message);
    return rope_ptr(rope);
}

int main()
{
    const rope_ptr rope = make_rope(8, 10000);
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8], back[8];
    pe_positions at{};
    pe_tensor tx, ty, tb;
    at.start = 3;
    pe_tensor_bshd(&tx, PE_F32, x, 1, 1, 1, 8);
    pe_tensor_bshd(&ty, PE_F32, y, 1, 1, 1, 8);
    pe_tensor_bshd(&tb, PE_F32, back, 1, 1, 1, 8);
    if (pe_rope_apply(rope.get(), &at, &tx, &ty, nullptr) != PE_OK ||
        pe_rope_inverse(rope.get(), &at, &ty, &tb, nullptr) != PE_OK)
        return 1;
    double worst = 0;
    for (int i = 0; i < 8; i++)
        worst = std::max(worst, std::abs(double(back[i]) - double(x[i])));
    std::printf("there and back within %.1g\n", worst);
    try {
        make_rope(65, 10000);
    } catch (const std::invalid_argument &error) {
        std::printf("%s\n", error.what());
        return worst < 2e-6 && std::strstr(error.what(), "65") != nullptr ? 0 : 1;
    }
    return 1;
}
