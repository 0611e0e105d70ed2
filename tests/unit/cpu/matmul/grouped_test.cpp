// Grouped matmuls whose matrices are weights. They use the packed layouts of other matmuls, read only the groups that
// have rows, and give the results of the dequantized or widened matrices.
#include <algorithm>
#include <cmath>
#include <set>

#include "rlx/ir/graph.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/runtime/session.h"
#include "tests/support/closeness.h"
#include "tests/support/needs.h"
#include "tests/unit/cpu/kernel_test.h"

namespace rlx::cpu::test {
namespace {

enum class Stored { F32, BF16, F16, Q4_0, Q8_0, Q6_K };
constexpr std::int64_t kGroups = 5;

struct GroupCase {
  Stored stored;
  bool apart;  // one param [N, K] per matrix; else one param [E, N, K]
  std::int64_t m, k, n;
  MatmulPrecision precision = MatmulPrecision::Exact;
};

std::optional<QuantScheme> scheme_of(Stored s) {
  if (s == Stored::Q4_0) return QuantScheme::Q4_0;
  if (s == Stored::Q8_0) return QuantScheme::Q8_0;
  if (s == Stored::Q6_K) return QuantScheme::Q6_K;
  return std::nullopt;
}
DType dtype_of(Stored s) {
  return s == Stored::F32 ? DType::F32 : s == Stored::BF16 ? DType::BF16 : s == Stored::F16 ? DType::F16 : DType::U8;
}

// Weights as stored, [rows, K] each, and their values.
struct StoredWeights {
  Tensor tensor;
  std::vector<float> numbers;
};
StoredWeights stored_weights(Stored s, std::int64_t rows, std::int64_t k, std::vector<std::int64_t> leading,
                             unsigned seed) {
  std::vector<float> numbers(static_cast<std::size_t>(rows * k));
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0, 0.3F);
  for (float& v : numbers) v = normal(rng);
  Dims dims(leading.begin(), leading.end());
  if (const auto scheme = scheme_of(s)) {
    const BlockLayout& l = block_layout(*scheme);
    dims.push_back(k / l.elements * l.bytes);
    Tensor t = Tensor::zeros(Shape(dims, DType::U8));
    quantize_blocks(*scheme, numbers, {t.mutable_data(), t.size_bytes()});
    dequantize_blocks(*scheme, {t.data(), t.size_bytes()}, numbers);
    return {std::move(t), std::move(numbers)};
  }
  dims.push_back(k);
  Tensor wide = Tensor::zeros(Shape(dims, DType::F32));
  std::copy(numbers.begin(), numbers.end(), wide.mutable_values<float>().begin());
  Tensor t = wide.cast(dtype_of(s));
  const std::vector<double> kept = t.to_f64();
  std::transform(kept.begin(), kept.end(), numbers.begin(), [](double v) { return static_cast<float>(v); });
  return {std::move(t), std::move(numbers)};
}

void check_groups(const GroupCase& c, const std::string& isa) {
  INFO("stored ", static_cast<int>(c.stored), c.apart ? " apart " : " stacked ", c.m, "x", c.k, "x", c.n, " ", isa,
       " products ", static_cast<int>(c.precision));
  Graph g("groups");
  const Expr x = g.input("x", Shape({c.m, c.k}, DType::F32)), ids = g.input("ids", Shape({c.m}, DType::I32));
  const auto scheme = scheme_of(c.stored);
  const auto widened = [&](Expr w) { return scheme ? g.dequantize(w, *scheme) : g.cast(w, DType::F32); };
  std::vector<float> numbers;
  std::vector<std::pair<std::string, Tensor>> params;
  Expr all;
  if (c.apart) {
    std::vector<Expr> parts;
    for (std::int64_t e = 0; e < kGroups; ++e) {
      StoredWeights w = stored_weights(c.stored, c.n, c.k, {c.n}, static_cast<unsigned>(e + 1));
      parts.push_back(g.unsqueeze(g.param(concat_text("w", e), w.tensor.shape()), 0));
      numbers.insert(numbers.end(), w.numbers.begin(), w.numbers.end());
      params.emplace_back(concat_text("w", e), std::move(w.tensor));
    }
    all = widened(g.concat(parts, 0));
  } else {
    StoredWeights w = stored_weights(c.stored, kGroups * c.n, c.k, {kGroups, c.n}, 9);
    all = widened(g.param("w", w.tensor.shape()));
    numbers = std::move(w.numbers);
    params.emplace_back("w", std::move(w.tensor));
  }
  g.set_outputs({g.grouped_dot(x, g.transpose(all, {0, 2, 1}), ids)});
  CompileOptions options;
  options.precision = PrecisionPolicy::with_matmul_precision(c.precision);
  CompiledGraph f = Session().with_isa(isa).with_threads(2).compile_with(std::move(g), options);
  for (const auto& [name, tensor] : params) f.set_param(name, tensor);
  std::mt19937 rng(4);
  std::uniform_real_distribution<float> uniform(-2, 2);
  Tensor rows = Tensor::zeros(Shape({c.m, c.k}, DType::F32)), of = Tensor::zeros(Shape({c.m}, DType::I32));
  for (float& v : rows.mutable_values<float>()) v = uniform(rng);
  // No row of the third group; some rows of no group.
  for (std::int32_t& e : of.mutable_values<std::int32_t>()) e = static_cast<std::int32_t>(rng() % 7) - 1;
  for (std::int32_t& e : of.mutable_values<std::int32_t>()) e = e == 2 ? 3 : e;
  const Tensor y = f.run_typed({{"x", rows}, {"ids", of}})[0];
  std::set<std::string> kernels;
  const std::vector<std::int64_t> x_dims{c.m, c.k}, id_dims{c.m};
  const TensorView inputs[] = {{rows.data(), DType::F32, x_dims, rows.size_bytes()},
                               {of.data(), DType::I32, id_dims, of.size_bytes()}};
  for (const NodeTime& t : f.profile(inputs)) kernels.insert(t.kernel.substr(0, t.kernel.find(' ')));
  CHECK(kernels == std::set<std::string>{scheme ? "grouped_interleaved" : "grouped_packed"});
  Worst worst;
  for (std::int64_t i = 0; i < c.m; ++i) {
    const std::int64_t e = of.at_i64(i);
    for (std::int64_t j = 0; j < c.n; ++j) {
      const float got = y.values<float>()[static_cast<std::size_t>(i * c.n + j)];
      if (e < 0 || e >= kGroups) {
        CHECK(got == 0);
        continue;
      }
      double want = 0, terms = 0, rounded = 0;
      for (std::int64_t k0 = 0; k0 < c.k; k0 += 32) {
        double weights = 0;
        Worst largest;
        for (std::int64_t k = k0; k < std::min(c.k, k0 + 32); ++k) {
          const double xv = rows.values<float>()[static_cast<std::size_t>(i * c.k + k)];
          const double wv = numbers[static_cast<std::size_t>((e * c.n + j) * c.k + k)];
          want += xv * wv, terms += std::fabs(xv * wv);
          largest.add(xv, 0);
          weights += std::fabs(wv);
        }
        rounded += largest.value() / 254 * weights;
      }
      worst.add(static_cast<double>(got), want,
                (c.precision == MatmulPrecision::Int8 ? rounded : 0) + 2e-6 * terms + 1e-30);
    }
  }
  CHECK(worst.value() <= 1);
}

TEST_CASE("products by group read weights in forms, of the groups that have rows") {
  rlx::test::Share share(3);
  for (const KernelTable* t : tables())
    for (const Stored s : {Stored::F32, Stored::BF16, Stored::F16, Stored::Q4_0, Stored::Q8_0, Stored::Q6_K})
      for (const bool apart : {false, true}) {
        const std::int64_t k = s == Stored::Q6_K ? 512 : 96;
        const std::string isa(isa_name(t->isa));
        check_groups({s, apart, 1, k, 33}, isa);
        check_groups({s, apart, 13, k, 80}, isa);
        if (share.next()) check_groups({s, apart, 300, k, 50}, isa);
        if (scheme_of(s)) check_groups({s, apart, 70, k, 70, MatmulPrecision::Int8}, isa);
      }
}

}  // namespace
}  // namespace rlx::cpu::test
