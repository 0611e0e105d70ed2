// oneDNN's f32 matmul with weights in the layout that it asks for: requests "M N K seconds" in, JSON lines out. Built
// by bench/gemm against the oneDNN of its environment; threads come from OMP_NUM_THREADS.
#include <cstdio>
#include <unordered_map>

#include <dnnl.hpp>

#include "gemm_loop.h"

int main() {
  using dnnl::memory;
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto* v = dnnl::version();
  std::printf("{\"version\":\"oneDNN %d.%d.%d\"}\n", v->major, v->minor, v->patch);
  std::fflush(stdout);
  answer_gemm_requests([&](std::int64_t m, std::int64_t n, std::int64_t k) {
    const auto f32 = memory::data_type::f32;
    const auto ab = memory::format_tag::ab;
    const memory::desc a_desc({m, k}, f32, ab), b_plain({k, n}, f32, ab), c_desc({m, n}, f32, ab);
    const memory::desc b_any({k, n}, f32, memory::format_tag::any);
    const dnnl::matmul::primitive_desc pd(engine, a_desc, b_any, c_desc);
    dnnl::matmul product(pd);
    memory a(a_desc, engine), b(b_plain, engine), packed(pd.weights_desc(), engine), c(c_desc, engine);
    const std::unordered_map<int, memory> args{{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, packed}, {DNNL_ARG_DST, c}};
    GemmSide side;
    side.a = static_cast<float*>(a.get_data_handle());
    side.b = static_cast<float*>(b.get_data_handle());
    side.c = static_cast<const float*>(c.get_data_handle());
    side.pack = [&stream, b, packed]() mutable {
      dnnl::reorder(b, packed).execute(stream, b, packed);
      stream.wait();
    };
    side.run = [&stream, product, args] {
      product.execute(stream, args);
      stream.wait();
    };
    side.kernel = pd.impl_info_str();
    return side;
  });
  return 0;
}
