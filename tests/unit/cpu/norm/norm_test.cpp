// Norms, softmax, pooling and rotary embedding of every instruction set against plain loops in double.
#include "rlx/functions/stats.h"
#include "rlx/runtime/session.h"
#include "tests/support/values.h"
#include "tests/unit/cpu/kernel_test.h"

namespace rlx::cpu::test {
namespace {

constexpr std::int64_t kColumnLengths[] = {1, 3, 4, 7, 8, 15, 16, 17, 33, 64, 100, 384, 1000};

TEST_CASE("layer norm and rms norm, with bias, residual, sum output") {
  for (const KernelTable* t : tables()) {
    for (const std::int64_t cols : kColumnLengths) {
      for (int bits = 0; bits < 32; ++bits) {
        const std::int64_t rows = 3, ld = cols + 2;
        Buffer x(rows * ld), residual(rows * ld), bias(cols), gamma(cols), beta(cols), y(rows * ld, 5.0F),
            sum(rows * ld), mean(rows), rstd(rows);
        randomize(x, 1, -3, 5);
        randomize(residual, 2);
        randomize(bias, 3);
        randomize(gamma, 4);
        randomize(beta, 5);
        NormF32 n;
        n.cols = cols, n.x = x.data(), n.ld_x = ld, n.y = y.data(), n.ld_y = ld, n.eps = 1e-3F;
        if ((bits & 1) != 0) n.bias = bias.data();
        if ((bits & 2) != 0) n.residual = residual.data(), n.ld_residual = ld;
        if ((bits & 4) != 0) n.gamma = gamma.data();
        if ((bits & 8) != 0) n.beta = beta.data();
        if ((bits & 16) != 0) n.sum_out = sum.data(), n.ld_sum = ld;
        n.mean_out = mean.data(), n.rstd_out = rstd.data();
        for (const bool rms : {false, true}) {
          (rms ? t->rms_norm_f32 : t->layer_norm_f32)(n, 0, rows);
          CAPTURE(isa_name(t->isa));
          CAPTURE(cols);
          CAPTURE(bits);
          CAPTURE(rms);
          for (std::int64_t r = 0; r < rows; ++r) {
            std::vector<double> s(static_cast<std::size_t>(cols));
            double m = 0, var = 0;
            for (std::int64_t j = 0; j < cols; ++j) {
              double v = static_cast<double>(x[r * ld + j]);
              if (n.bias != nullptr) v += static_cast<double>(bias[j]);
              if (n.residual != nullptr) v += static_cast<double>(residual[r * ld + j]);
              s[static_cast<std::size_t>(j)] = v;
              m += v / static_cast<double>(cols);
              if (n.sum_out != nullptr) CHECK(sum[r * ld + j] == doctest::Approx(v).epsilon(1e-5));
            }
            if (rms) m = 0;
            for (const double v : s) var += (v - m) * (v - m) / static_cast<double>(cols);
            const double scale = 1 / std::sqrt(var + static_cast<double>(n.eps));
            Worst worst;
            for (std::int64_t j = 0; j < cols; ++j) {
              double v = (s[static_cast<std::size_t>(j)] - m) * scale;
              if (n.gamma != nullptr) v *= static_cast<double>(gamma[j]);
              if (n.beta != nullptr) v += static_cast<double>(beta[j]);
              worst.add(static_cast<double>(y[r * ld + j]), v);
            }
            CHECK(worst.value() < 3e-5);
            CHECK(rstd[r] == doctest::Approx(scale).epsilon(1e-4));
            if (!rms) CHECK(mean[r] == doctest::Approx(m).epsilon(1e-5));
            CHECK(y[r * ld + cols] == 5.0F);
          }
          CHECK(y.intact());
          CHECK(sum.intact());
        }
      }
    }
  }
}

TEST_CASE("layer norm: mean far above the deviation; in place") {
  for (const KernelTable* t : tables()) {
    Buffer x(400);
    for (int i = 0; i < 400; ++i) x[i] = 10000.0F + static_cast<float>(i % 2);
    NormF32 n;
    n.cols = 400, n.x = x.data(), n.ld_x = 400, n.y = x.data(), n.ld_y = 400, n.eps = 0;
    t->layer_norm_f32(n, 0, 1);
    for (int i = 0; i < 400; ++i) CHECK(x[i] == doctest::Approx(i % 2 == 0 ? -1.0 : 1.0).epsilon(5e-3));
  }
}

// Rows that are constant or nearly constant, that have one infinity, or whose mean is far above the deviation.
double variance_sample(std::int64_t row, std::int64_t i) {
  switch (row) {
    case 0: return 3;
    case 1: return i % 2 == 0 ? 0 : 1e-21;
    case 2: return i == 1 ? HUGE_VAL : 1;
    default: return 1000 + static_cast<double>((i * i + 7 * row) % 31);
  }
}
TEST_CASE("variances of rows are those of norms whose results nobody reads") {
  for (const KernelTable* t : tables())
    for (const DType dtype : {DType::F32, DType::F64})
      for (const std::int64_t cols : {1, 2, 7, 16, 33, 100, 1000}) {
        CAPTURE(isa_name(t->isa));
        CAPTURE(cols);
        constexpr std::int64_t kRows = 5;
        std::vector<double> x;
        for (std::int64_t i = 0; i < kRows * cols; ++i) x.push_back(variance_sample(i / cols, i % cols));
        Graph g;
        const Expr in = g.input("x", Shape({kRows, cols}, dtype)), cube = g.reshape(in, {kRows, 1, cols});
        g.set_outputs({stats::var(in, {-1}), stats::var(cube, {1, 2}, 0, true), stats::std(in, {1})});
        CompiledGraph f = Session().with_isa(std::string(isa_name(t->isa))).compile(std::move(g));
        CHECK(f.compile_result().fusion.fused_count("variance") >= 2);
        const Tensor given = rlx::test::doubles({kRows, cols}, x).cast(dtype);
        NamedTensors leaves;
        leaves.emplace("x", given);
        const std::vector<Tensor> got = f.run_typed(leaves);
        for (std::int64_t r = 0; r < kRows; ++r) {
          CAPTURE(r);
          double mean = 0, variance = 0;
          for (std::int64_t i = 0; i < cols; ++i) mean += given.at(r * cols + i);
          mean /= static_cast<double>(cols);
          for (std::int64_t i = 0; i < cols; ++i) {
            const double d = given.at(r * cols + i) - mean;
            variance += d * d / static_cast<double>(cols);
          }
          if (std::isnan(variance)) {
            for (const Tensor& y : got) CHECK(std::isnan(y.at(r)));
            continue;
          }
          CHECK(got[1].at(r) == got[0].at(r));
          if (r == 0) CHECK(got[0].at(r) == 0);
          const double rounding = dtype == DType::F32 ? 4e-6 : 1e-13, smallest = dtype == DType::F32 ? 1e-44 : 0;
          CHECK(std::abs(got[0].at(r) - variance) <= rounding * variance + smallest);
          CHECK(std::abs(got[2].at(r) - std::sqrt(variance)) <= 10 * rounding * std::sqrt(variance) + 1e-22);
        }
      }
}
TEST_CASE("variances of which more is read, of long groups and along other axes stay reductions") {
  const auto fused = [](auto build) {
    Graph g;
    const Expr x = g.input("x", Shape({2, 20000}, DType::F32));
    g.set_outputs(build(g, x));
    return Session().compile(std::move(g)).compile_result().fusion.fused_count("variance");
  };
  CHECK(fused([](Graph& g, const Expr& x) { return std::vector<Expr>{stats::var(g.narrow(x, 1, 0, 9000), {1})}; }) ==
        1);
  CHECK(fused([](Graph&, const Expr& x) { return std::vector<Expr>{stats::var(x, {1})}; }) == 0);
  CHECK(fused([](Graph&, const Expr& x) { return std::vector<Expr>{stats::var(x, {0})}; }) == 0);
  CHECK(fused([](Graph& g, const Expr& x) {
          const Expr near = g.narrow(x, 1, 0, 9), distance = near - g.mean(near, {1}, true);
          return std::vector<Expr>{g.sum(g.square(distance), {1}), distance};
        }) == 0);
}

TEST_CASE("softmax and log softmax") {
  for (const KernelTable* t : tables()) {
    for (const std::int64_t cols : kColumnLengths) {
      const std::int64_t rows = 4, ld = cols + 1;
      Buffer x(rows * ld), y(rows * ld, 5.0F), z(rows * ld, 5.0F);
      randomize(x, 7, -30, 30);
      if (cols > 2) x[1 * ld + 1] = -kInf;
      t->softmax_f32(x.data(), ld, y.data(), ld, cols, 0, rows);
      t->log_softmax_f32(x.data(), ld, z.data(), ld, cols, 0, rows);
      for (std::int64_t r = 0; r < rows; ++r) {
        double top = -INFINITY, sum = 0;
        for (std::int64_t j = 0; j < cols; ++j) top = std::max(top, static_cast<double>(x[r * ld + j]));
        for (std::int64_t j = 0; j < cols; ++j) sum += std::exp(static_cast<double>(x[r * ld + j]) - top);
        for (std::int64_t j = 0; j < cols; ++j) {
          const double l = static_cast<double>(x[r * ld + j]) - top - std::log(sum);
          CHECK(y[r * ld + j] == doctest::Approx(std::exp(l)).epsilon(1e-5));
          if (std::isinf(l)) {
            CHECK(z[r * ld + j] == -kInf);
          } else {
            CHECK(std::fabs(static_cast<double>(z[r * ld + j]) - l) < 1e-5);
          }
        }
        CHECK(y[r * ld + cols] == 5.0F);
      }
      CHECK(y.intact());
      for (std::int64_t j = 0; j < cols; ++j) x[j] = -kInf;  // all elements are masked
      t->log_softmax_f32(x.data(), ld, z.data(), ld, cols, 0, 1);
      for (std::int64_t j = 0; j < cols; ++j) CHECK(z[j] == -kInf);
      x[0] = kNan;
      t->softmax_f32(x.data(), ld, x.data(), ld, cols, 0, 1);  // in place
      for (std::int64_t j = 0; j < cols; ++j) CHECK(std::isnan(x[j]));
    }
  }
}

TEST_CASE("rope: both pairings, partial, positions, in place") {
  for (const KernelTable* t : tables()) {
    for (const std::int64_t d : {2, 8, 20, 64}) {
      for (int bits = 0; bits < 8; ++bits) {
        const std::int64_t b = 2, s = 3, h = 2, n_rot = (bits & 2) != 0 && d > 2 ? d / 4 * 2 : d;
        Buffer x(b * s * h * d), y(b * s * h * d), c(10 * d), si(10 * d);
        randomize(x, 1);
        randomize(c, 2);
        randomize(si, 3);
        const std::int32_t positions[] = {4, 0, 9, 1, 1, 2};
        RopeF32 r;
        r.batch = b, r.seq = s, r.heads = h, r.head_dim = d, r.n_rot = n_rot, r.interleaved = (bits & 1) != 0;
        r.x = x.data(), r.x_batch_stride = s * h * d, r.x_seq_stride = h * d, r.x_head_stride = d;
        r.y = y.data(), r.y_batch_stride = s * h * d, r.y_seq_stride = h * d, r.y_head_stride = d;
        r.cos = c.data(), r.sin = si.data(), r.table_stride = d, r.table_rows = 10, r.position_offset = 2;
        if ((bits & 4) != 0) r.positions = positions, r.pos_batch_stride = s, r.pos_seq_stride = 1;
        t->rope_f32(r, 0, b * s);
        for (std::int64_t row = 0; row < b * s; ++row) {
          const std::int64_t p = (bits & 4) != 0 ? positions[row] : row % s + 2;
          for (std::int64_t head = 0; head < h; ++head) {
            const float* in = x.data() + (row * h + head) * d;
            const float* out = y.data() + (row * h + head) * d;
            for (std::int64_t i = 0; i < n_rot / 2; ++i) {
              const std::int64_t i0 = r.interleaved ? 2 * i : i, i1 = r.interleaved ? 2 * i + 1 : i + n_rot / 2;
              const double co = static_cast<double>(c[p * d + i]), sn = static_cast<double>(si[p * d + i]);
              const double a = static_cast<double>(in[i0]), e = static_cast<double>(in[i1]);
              CHECK(std::fabs(static_cast<double>(out[i0]) - (a * co - e * sn)) < 1e-6);
              CHECK(std::fabs(static_cast<double>(out[i1]) - (e * co + a * sn)) < 1e-6);
            }
            for (std::int64_t i = n_rot; i < d; ++i) CHECK(out[i] == in[i]);
          }
        }
        r.y = x.data();
        t->rope_f32(r, 0, b * s);
        CHECK(std::memcmp(x.data(), y.data(), static_cast<std::size_t>(x.size()) * 4) == 0);
      }
    }
  }
}

}  // namespace
}  // namespace rlx::cpu::test
