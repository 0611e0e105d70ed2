// oneDNN's f32 matrix product with weights in the layout it asks for: requests "M N K seconds" in, JSON lines out.
// Built by bench/gemm against the oneDNN of its environment; threads come from OMP_NUM_THREADS.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <unordered_map>
#include <vector>

#include <dnnl.hpp>

using Clock = std::chrono::steady_clock;
static double us_since(Clock::time_point t) { return std::chrono::duration<double, std::micro>(Clock::now() - t).count(); }

int main() {
  using dnnl::memory;
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto* v = dnnl::version();
  std::printf("{\"version\":\"oneDNN %d.%d.%d\"}\n", v->major, v->minor, v->patch);
  std::fflush(stdout);
  long long m = 0, n = 0, k = 0;
  double seconds = 0;
  while (std::scanf("%lld %lld %lld %lf", &m, &n, &k, &seconds) == 4) {
    const auto f32 = memory::data_type::f32;
    const memory::desc a_desc({m, k}, f32, memory::format_tag::ab), b_plain({k, n}, f32, memory::format_tag::ab), b_any({k, n}, f32, memory::format_tag::any),
        c_desc({m, n}, f32, memory::format_tag::ab);
    const dnnl::matmul::primitive_desc pd(engine, a_desc, b_any, c_desc);
    dnnl::matmul product(pd);
    memory a(a_desc, engine), b(b_plain, engine), packed(pd.weights_desc(), engine), c(c_desc, engine);
    auto* pa = static_cast<float*>(a.get_data_handle());
    auto* pb = static_cast<float*>(b.get_data_handle());
    const auto* pc = static_cast<const float*>(c.get_data_handle());
    for (long long i = 0; i < m * k; ++i) pa[i] = static_cast<float>(i * 7919 % 1000) / 500.0F - 1.0F;
    for (long long i = 0; i < k * n; ++i) pb[i] = static_cast<float>(i * 104729 % 1000) / 500.0F - 1.0F;
    dnnl::reorder(b, packed).execute(stream, b, packed);
    stream.wait();
    const std::unordered_map<int, memory> args{{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, packed}, {DNNL_ARG_DST, c}};
    const auto run = [&] {
      product.execute(stream, args);
      stream.wait();
    };
    const auto warm = Clock::now();
    while (us_since(warm) < 0.05e6) run();
    std::vector<double> us;
    const auto begin = Clock::now();
    while (us_since(begin) < seconds * 1e6 || us.size() < 5) {
      const auto t = Clock::now();
      run();
      us.push_back(us_since(t));
    }
    std::sort(us.begin(), us.end());
    double error = 0;
    for (long long t = 0; t < 50; ++t) {
      const long long i = t * 37 % m, j = t * 101 % n;
      double x = 0;
      for (long long d = 0; d < k; ++d) x += static_cast<double>(pa[i * k + d]) * static_cast<double>(pb[d * n + j]);
      error = std::max(error, std::fabs(x - static_cast<double>(pc[i * n + j])));
    }
    std::printf("{\"p50_us\":%.3f,\"p10_us\":%.3f,\"n\":%zu,\"error\":%.2e,\"kernel\":\"%s\"}\n", us[us.size() / 2], us[us.size() / 10], us.size(), error,
                pd.impl_info_str());
    std::fflush(stdout);
  }
  return 0;
}
