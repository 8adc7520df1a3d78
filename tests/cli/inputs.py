# SPDX-License-Identifier: MIT
#
# inputs.py - the files that the transcripts' commands read
#
# q.npy and k.npy fit llama.json (head_dim 16, 6 heads, 2 for keys): batch 2, 5 tokens.
import random
import shutil

import npy


def make(folder, data):
    shutil.copytree(data, folder, dirs_exist_ok=True)
    rng = random.Random(5)

    def values(shape):
        return [rng.uniform(-2, 2) for _ in range(npy.product(shape))]

    def write(name, descr, shape):
        npy.write(f"{folder}/{name}", descr, shape, values(shape))

    write("q.npy", "<f4", (2, 5, 6, 16))
    write("k.npy", "<f4", (2, 5, 2, 16))
    write("q_bhsd.npy", "<f4", (2, 6, 5, 16))
    write("q_half.npy", "<f2", (5, 6, 16))
    write("q_narrow.npy", "<f4", (2, 5, 6, 8))
    write("q_five.npy", "<f4", (1, 1, 5, 6, 16))
    write("q_double.npy", "<f8", (5, 16))
    write("k_short.npy", "<f4", (2, 4, 2, 16))
    bits = [npy.bf16_bits(v) for v in values((5, 16))]
    npy.write(f"{folder}/q_bf16.npy", "<u2", (5, 16), bits)
    npy.write(f"{folder}/ids.npy", "<i8", (5,), [7, 8, 9, 0, 1])
    npy.write(f"{folder}/ids_rows.npy", "<i4", (2, 5), [0, 1, 2, 3, 4, 9, 8, 7, 6, 5])
    npy.write(f"{folder}/ids_long.npy", "<i8", (6,), range(6))
    npy.write(f"{folder}/ids_float.npy", "<f4", (5,), range(5))
    npy.write(f"{folder}/q_none.npy", "<f4", (2**40, 0, 6, 16), [])
    npy.write(f"{folder}/q_no_batch.npy", "<f4", (0, 5, 6, 16), [])
    npy.write(f"{folder}/ids_none.npy", "<i8", (2**20, 2**20, 0), [])
    # x.npy and rows.npy fit gpt2.json (model_dim 48, 1024 rows).
    write("x.npy", "<f4", (2, 5, 48))
    write("x_half.npy", "<f2", (5, 48))
    write("x_narrow.npy", "<f4", (2, 5, 47))
    write("rows.npy", "<f4", (1024, 48))
    write("rows_few.npy", "<f4", (7, 48))
    write("rows_narrow.npy", "<f4", (1024, 47))
    write("rows_cube.npy", "<f4", (2, 4, 48))
    with open(f"{folder}/q.npy", "rb") as file:
        whole = file.read()
    with open(f"{folder}/q_cut.npy", "wb") as file:
        file.write(whole[:-7])
    with open(f"{folder}/broken.json", "w", encoding="utf-8") as file:
        file.write('{"model_type": "llama", "head_dim": 16,')
