# SPDX-License-Identifier: MIT
#
# ggml_library.py - the calls of ggml that its peers share, from a library given by path
#
# The path is libggml-cpu.so (or one of its variants for a CPU) or a libggml.so that holds
# all; libraries that it needs are looked for beside it.
import ctypes
import glob
import os

pointer, int32, int64, f32 = (ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64,
                              ctypes.c_float)
F32, F16, I32 = 0, 1, 26  # ggml_type


class InitParams(ctypes.Structure):
    _fields_ = [("mem_size", ctypes.c_size_t), ("mem_buffer", pointer),
                ("no_alloc", ctypes.c_bool)]


class Plan(ctypes.Structure):  # newer versions append to it
    _fields_ = [("work_size", ctypes.c_size_t), ("work_data", pointer),
                ("n_threads", ctypes.c_int), ("threadpool", pointer),
                ("abort_callback", pointer), ("abort_data", pointer),
                ("room", ctypes.c_char * 64)]


class Library:
    """OSError or AttributeError if it is no such library."""

    def __init__(self, path):
        folder = os.path.dirname(os.path.abspath(path))
        for needed in sorted(glob.glob(f"{folder}/libggml-base*.so*")):
            ctypes.CDLL(needed, ctypes.RTLD_GLOBAL)
        self.lib = ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
        self.base = ctypes.CDLL(None)
        self.init = self.function("ggml_init", pointer, InitParams)
        self.free = self.function("ggml_free", None, pointer)
        self.new_tensor = self.function("ggml_new_tensor", pointer, pointer,
                                        ctypes.c_int, ctypes.c_int, pointer)
        self.get_data = self.function("ggml_get_data", pointer, pointer)
        self.new_graph = self.function("ggml_new_graph", pointer, pointer)
        self.expand = self.function("ggml_build_forward_expand", None, pointer, pointer)
        self.plan_of = self.function("ggml_graph_plan", Plan, pointer, ctypes.c_int,
                                     pointer)
        self.compute = self.function("ggml_graph_compute", ctypes.c_int, pointer,
                                     ctypes.POINTER(Plan))
        self.function("ggml_cpu_init", None)()

    def function(self, name, result, *types):
        f = getattr(self.lib, name, None) or getattr(self.base, name)
        f.restype, f.argtypes = result, list(types)
        return f

    def context(self, size):
        return self.init(InitParams(size, None, False))

    def tensor(self, context, kind, array, *shape):
        """A tensor of that shape, the fastest dimension first, with the array's bytes."""
        sizes = (int64 * len(shape))(*shape)
        t = self.new_tensor(context, kind, len(shape), ctypes.addressof(sizes))
        ctypes.memmove(self.get_data(t), array.ctypes.data, array.nbytes)
        return t

    def values(self, numpy, tensor, like):
        """Its elements, as an array of the same type and shape; no copy."""
        room = (ctypes.c_uint8 * like.nbytes).from_address(self.get_data(tensor))
        return numpy.frombuffer(room, like.dtype).reshape(like.shape)

    def planned(self, context, results):
        """What computes them, on one thread."""
        graph = self.new_graph(context)
        for t in results:
            self.expand(graph, t)
        plan = self.plan_of(graph, 1, None)
        work = ctypes.create_string_buffer(plan.work_size + 64)
        plan.work_data = ctypes.addressof(work)
        return lambda: (self.compute(graph, ctypes.byref(plan)), work)
