// One program for every length: a symbol in runtime mode needs no compile per value.
#include <rlx/rlx.h>

#include <cstdio>

int main() {
  rlx::Graph g("pool");
  auto rows = g.symbol("rows", {.min = 1, .max = 4096});
  auto x = g.input("x", {{rows, 2}, rlx::DType::F32});
  auto share = g.softmax(g.sum(x, {1}, true), 0);  // [rows, 1]
  g.set_outputs({g.sum(x * share, {0}), g.cumsum(x, 0)});

  rlx::CompileOptions options;
  options.symbol_modes["rows"] =
      rlx::SymbolMode::runtime(1000);  // planned for up to 1000 rows; the default bound is 4096
  auto pool = rlx::Session().compile_with(std::move(g), options);  // the only compile
  const auto* compiled = &pool.compile_result();

  for (std::vector<float> x_values : {std::vector<float>{1, 1}, {1, 1, 3, 3}, {0, 0, 0, 0, 0, 0}}) {
    const auto n = static_cast<std::int64_t>(x_values.size()) / 2;
    auto y = pool.run_typed({{"x", rlx::Tensor::of<float>({n, 2}, x_values)}});
    std::printf("%lld rows: mean %.3f, last sum %g\n", static_cast<long long>(n), y[0].at(0), y[1].at(2 * n - 1));
  }
  std::printf("compiled once: %s\n", compiled == &pool.compile_result() ? "yes" : "no");
  try {
    pool.run_typed({{"x", rlx::Tensor::zeros({{1001, 2}, rlx::DType::F32})}});
  } catch (const rlx::Error& e) {
    std::printf("%s\n", e.diagnostic().message.c_str());
  }
}
