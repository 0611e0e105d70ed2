// Matrix factorizations: known values, singular and non-finite matrices, refusals, derivatives that JAX does not have.
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/shape.h"
#include "rlx/runtime/session.h"
#include "rlx/tensor/visit.h"
#include "rlx/transforms/jvp.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/error_text.h"
#include "tests/support/run_op.h"
#include "tests/support/samples.h"
#include "tests/support/values.h"

namespace rlx {
namespace {

using test::contains;
using test::infer_error;

Tensor rows_of_numbers(std::int64_t rows, std::int64_t columns, const std::vector<double>& values,
                       DType t = DType::F64) {
  Tensor out = Tensor::zeros(Shape({rows, columns}, t));
  for (std::int64_t i = 0; i < out.num_elements(); ++i) out.set(i, values[static_cast<std::size_t>(i)]);
  return out;
}

Tensor drawn(std::int64_t rows, std::int64_t columns, DType t, std::uint64_t seed = 1) {
  return test::draw(Shape({rows, columns}, t), Fill::Normal, 1, seed);
}

// The results of the compiled program.
std::vector<Tensor> compiled(const OpBox& op, const std::vector<Tensor>& inputs) {
  Graph g;
  std::vector<Value> operands;
  NamedTensors values;
  for (const Tensor& t : inputs) {
    const std::string name = "in" + std::to_string(operands.size());
    operands.push_back(g.input(name, t.shape()));
    values.emplace(name, t);
  }
  const Expr first = g.add(op, operands);
  std::vector<Value> outputs;
  for (std::uint32_t r = 0; r < g.node(first.value().node).num_results(); ++r) outputs.push_back(first.result(r));
  g.set_outputs(std::move(outputs));
  return Session().compile(std::move(g)).run_typed(values);
}

// By the reference rule and by the compiled program.
template <class F>
void both_ways(const OpBox& op, const std::vector<Tensor>& inputs, F&& look) {
  for (const bool by_rule : {true, false}) {
    INFO((by_rule ? "rule" : "compiled"));
    look(by_rule ? evaluate_op(op, inputs) : compiled(op, inputs));
  }
}

// The largest |a b - c| of F64 matrices; complex matrices by real and imaginary parts.
double product_error(const Tensor& a, const Tensor& b, const Tensor& c) {
  const Tensor x = test::widened(a), y = test::widened(b), z = test::widened(c);
  const Tensor p = evaluate_op(ops::MatMul{}, std::vector<Tensor>{x, y})[0];
  return test::distance(p, z);
}
Tensor adjoint(const Tensor& a) {
  Tensor t = evaluate_op(ops::Transpose{{1, 0}}, std::vector<Tensor>{a})[0];
  if (!is_complex(a.dtype())) return t;
  Tensor out = Tensor::copy_of(t.data(), t.shape());
  for (std::int64_t i = 0; i < t.num_elements(); ++i)
    store_element(out.mutable_data(), out.dtype(), i,
                  std::conj(load_element<std::complex<double>>(t.data(), t.dtype(), i)));
  return out;
}
Tensor identity(std::int64_t n, DType t) {
  Tensor out = Tensor::zeros(Shape({n, n}, t));
  for (std::int64_t i = 0; i < n; ++i) out.set(i * n + i, 1);
  return out;
}
double tolerance(const Tensor& a) {
  const bool single = a.dtype() == DType::F32 || a.dtype() == DType::C64;
  return (single ? 2e-6 : 4e-15) * static_cast<double>(std::max(a.dim(0), a.dim(1)) + 3);
}
Tensor scaled_rows(const Tensor& s, const Tensor& vh) {  // diag(s) vh
  Tensor out = test::widened(vh);
  const std::int64_t n = vh.dim(1);
  for (std::int64_t i = 0; i < out.num_elements(); ++i)
    store_element(out.mutable_data(), out.dtype(), i,
                  load_element<std::complex<double>>(out.data(), out.dtype(), i) * s.at(i / n));
  return out;
}

constexpr DType kTypes[] = {DType::F32, DType::F64, DType::C64, DType::C128};
constexpr std::int64_t kOrders[] = {1, 2, 7, 31, 33, 64, 97};

}  // namespace

TEST_CASE("factors: known values") {
  both_ways(ops::Cholesky{}, {rows_of_numbers(2, 2, {4, 99, 2, 10})}, [](const std::vector<Tensor>& out) {
    test::expect_close(out[0], rows_of_numbers(2, 2, {2, 0, 1, 3}), 1e-15);
  });
  both_ways(ops::Lu{}, {rows_of_numbers(2, 2, {1, 2, 4, 6})}, [](const std::vector<Tensor>& out) {
    test::expect_close(out[0], rows_of_numbers(2, 2, {4, 6, 0.25, 0.5}), 1e-15);
    CHECK(out[1].at(0) == 1);
    CHECK(out[1].at(1) == 1);
    CHECK(out[2].at(0) == 1);
    CHECK(out[2].at(1) == 0);
  });
  both_ways(ops::Qr{}, {rows_of_numbers(2, 2, {3, 5, 4, 5})}, [](const std::vector<Tensor>& out) {
    test::expect_close(out[0], rows_of_numbers(2, 2, {-0.6, -0.8, -0.8, 0.6}), 1e-15);
    test::expect_close(out[1], rows_of_numbers(2, 2, {-5, -7, 0, -1}), 1e-15);
  });
  const double h = std::sqrt(0.5);
  both_ways(ops::Eigh{}, {rows_of_numbers(2, 2, {2, 99, 1, 2})}, [&](const std::vector<Tensor>& out) {
    test::expect_close(out[0], test::doubles({2}, {1, 3}), 1e-15);
    test::expect_close(out[1], rows_of_numbers(2, 2, {h, h, -h, h}), 1e-15);
  });
  both_ways(ops::Svd{}, {rows_of_numbers(2, 2, {0, -2, 3, 0})}, [](const std::vector<Tensor>& out) {
    test::expect_close(out[0], rows_of_numbers(2, 2, {0, 1, 1, 0}), 1e-15);
    test::expect_close(out[1], test::doubles({2}, {3, 2}), 1e-15);
    test::expect_close(out[2], rows_of_numbers(2, 2, {1, 0, 0, -1}), 1e-15);
  });
  both_ways(ops::TriangularSolve{}, {rows_of_numbers(2, 2, {2, 99, 1, 4}), rows_of_numbers(2, 1, {2, 9})},
            [](const std::vector<Tensor>& out) {
              test::expect_close(out[0], rows_of_numbers(2, 1, {1, 2}), 1e-15);
            });
}

TEST_CASE("factors: what is multiplied again is the matrix, in every dtype and at many orders") {
  for (const DType t : kTypes)
    for (const std::int64_t n : kOrders)
      for (const std::int64_t m : {n, n / 2 + 1, 3 * n + 1}) {
        INFO(dtype_name(t), " [", m, ", ", n, "]");
        const Tensor a = drawn(m, n, t, static_cast<std::uint64_t>(m * 1000 + n));
        const double bound = tolerance(a) * 8, unit = tolerance(a);
        for (const bool full : {false, true}) {
          const auto qr = compiled(ops::Qr{full}, {a});
          CHECK(product_error(qr[0], qr[1], a) <= bound);
          CHECK(product_error(adjoint(qr[0]), qr[0], identity(qr[0].dim(1), t)) <= unit);
          const auto svd = compiled(ops::Svd{full}, {a});
          const std::int64_t k = std::min(m, n);
          CHECK(product_error(adjoint(svd[0]), svd[0], identity(svd[0].dim(1), t)) <= unit);
          CHECK(product_error(svd[2], adjoint(svd[2]), identity(svd[2].dim(0), t)) <= unit);
          for (std::int64_t i = 1; i < k; ++i) CHECK(svd[1].at(i) <= svd[1].at(i - 1));
          CHECK(svd[1].at(k - 1) >= 0);
          if (!full) CHECK(product_error(svd[0], scaled_rows(svd[1], svd[2]), a) <= bound);
        }
        const auto lu = compiled(ops::Lu{}, {a});
        const std::int64_t k = std::min(m, n);
        Tensor l = Tensor::zeros(Shape({m, k}, t)), u = Tensor::zeros(Shape({k, n}, t)), p = Tensor::zeros(a.shape());
        const auto move = [&](Tensor& to, std::int64_t at, const Tensor& from, std::int64_t place) {
          store_element(to.mutable_data(), t, at, load_element<std::complex<double>>(from.data(), t, place));
        };
        for (std::int64_t i = 0; i < m; ++i)
          for (std::int64_t j = 0; j < n; ++j) {
            if (j < i && j < k) move(l, i * k + j, lu[0], i * n + j);
            if (j >= i && i < k) move(u, i * n + j, lu[0], i * n + j);
            move(p, i * n + j, a, static_cast<std::int64_t>(lu[2].at(i)) * n + j);
          }
        for (std::int64_t i = 0; i < k; ++i) l.set(i * k + i, 1);
        CHECK(product_error(l, u, p) <= bound * 4);
        if (m != n) continue;
        const auto eigh = compiled(ops::Eigh{}, {a});
        Tensor hermitian = Tensor::copy_of(a.data(), a.shape());
        for (std::int64_t i = 0; i < n; ++i)
          for (std::int64_t j = i; j < n; ++j) {
            const auto v = load_element<std::complex<double>>(a.data(), t, j * n + i);
            store_element(hermitian.mutable_data(), t, i * n + j, i == j ? v.real() : std::conj(v));
          }
        CHECK(product_error(adjoint(eigh[1]), eigh[1], identity(n, t)) <= unit);
        CHECK(product_error(eigh[1], scaled_rows(eigh[0], adjoint(eigh[1])), hermitian) <= bound);
        for (std::int64_t i = 1; i < n; ++i) CHECK(eigh[0].at(i) >= eigh[0].at(i - 1));
        // a^H a + 1, which is positive definite, computed in F64 and rounded to t.
        Tensor square = evaluate_op(ops::MatMul{}, std::vector<Tensor>{adjoint(a), a})[0];
        for (std::int64_t i = 0; i < n; ++i)
          store_element(square.mutable_data(), t, i * n + i,
                        load_element<std::complex<double>>(square.data(), t, i * n + i).real() + 1);
        const auto l2 = compiled(ops::Cholesky{}, {square});
        CHECK(product_error(l2[0], adjoint(l2[0]), square) <= bound * static_cast<double>(n));
      }
}

TEST_CASE("factors: singular, repeated and graded matrices") {
  both_ways(ops::Cholesky{}, {rows_of_numbers(2, 2, {1, 0, 2, 1})},
            [](const std::vector<Tensor>& out) {  // not definite
              CHECK(std::isnan(out[0].at(0)));
              CHECK(out[0].at(1) == 0);
              CHECK(std::isnan(out[0].at(3)));
            });
  both_ways(ops::Cholesky{}, {rows_of_numbers(1, 1, {0})},
            [](const std::vector<Tensor>& out) { CHECK(std::isnan(out[0].at(0))); });
  both_ways(ops::Lu{}, {rows_of_numbers(2, 2, {0, 1, 0, 2})}, [](const std::vector<Tensor>& out) {
    CHECK(out[0].at(0) == 0);
    CHECK(out[0].at(2) == 0);
    CHECK(out[0].at(3) == 2);
  });
  both_ways(ops::TriangularSolve{}, {rows_of_numbers(2, 2, {0, 0, 1, 1}), rows_of_numbers(2, 1, {1, 0})},
            [](const std::vector<Tensor>& out) {
              CHECK(out[0].at(0) == test::kInf);
              CHECK(out[0].at(1) == -test::kInf);
            });
  for (const double v : {0.0, 1.0}) {
    const Tensor a = rows_of_numbers(3, 3, {v, 0, 0, 0, v, 0, 0, 0, v});
    both_ways(ops::Svd{}, {a}, [&](const std::vector<Tensor>& out) {
      for (int i = 0; i < 3; ++i) CHECK(out[1].at(i) == v);
      CHECK(product_error(adjoint(out[0]), out[0], identity(3, DType::F64)) <= 1e-15);
      CHECK(product_error(out[2], adjoint(out[2]), identity(3, DType::F64)) <= 1e-15);
    });
    both_ways(ops::Eigh{}, {a}, [&](const std::vector<Tensor>& out) {
      for (int i = 0; i < 3; ++i) CHECK(out[0].at(i) == v);
      CHECK(product_error(adjoint(out[1]), out[1], identity(3, DType::F64)) <= 1e-15);
    });
  }
  // A matrix of rank one and order 40, and magnitudes from 1 to 1e-30 in both directions.
  Tensor one = Tensor::zeros(Shape({40, 40}, DType::F64)), falls = one, rises = one;
  one = Tensor::full(one.shape(), 1);
  falls = Tensor::zeros(one.shape());
  rises = Tensor::zeros(one.shape());
  for (std::int64_t i = 0; i < 40; ++i)
    for (std::int64_t j = 0; j < 40; ++j) {
      falls.set(i * 40 + j, std::pow(10, -0.75 * static_cast<double>(std::max(i, j))));
      rises.set((39 - i) * 40 + 39 - j, falls.at(i * 40 + j));
    }
  for (const Tensor* a : {&one, &falls, &rises}) {
    const auto svd = compiled(ops::Svd{}, {*a});
    CHECK(product_error(svd[0], scaled_rows(svd[1], svd[2]), *a) <= 4e-14);
    CHECK(product_error(adjoint(svd[0]), svd[0], identity(40, DType::F64)) <= 4e-14);
    const auto eigh = compiled(ops::Eigh{}, {*a});
    CHECK(product_error(eigh[1], scaled_rows(eigh[0], adjoint(eigh[1])), *a) <= 4e-14);
    CHECK(product_error(adjoint(eigh[1]), eigh[1], identity(40, DType::F64)) <= 4e-14);
  }
  // Numbers close to the largest and the smallest.
  for (const double scale : {1e300, 1e-300}) {
    const auto out = compiled(ops::Svd{}, {rows_of_numbers(2, 2, {3 * scale, 0, 4 * scale, 0})});
    CHECK(out[1].at(0) == doctest::Approx(5 * scale));
    const auto qr = compiled(ops::Qr{}, {rows_of_numbers(2, 1, {3 * scale, 4 * scale})});
    CHECK(qr[1].at(0) == doctest::Approx(-5 * scale));
  }
}

TEST_CASE("factors: a matrix with what is not finite has NaN factors, its neighbours their own") {
  for (const double bad : {test::kNan, test::kInf}) {
    Tensor a = Tensor::zeros(Shape({3, 2, 2}, DType::F64));
    for (const std::int64_t b : {0, 1, 2}) a.set(b * 4, 2), a.set(b * 4 + 3, 1);
    a.set(4 + 2, bad);
    for (const OpBox& op : {OpBox(ops::Eigh{}), OpBox(ops::Svd{}), OpBox(ops::Cholesky{}), OpBox(ops::Qr{})})
      both_ways(op, {a}, [&](const std::vector<Tensor>& out) {
        for (const Tensor& t : out) {
          const std::int64_t size = t.num_elements() / 3;
          bool nan = false;
          for (std::int64_t i = 0; i < size; ++i) {
            CHECK(std::isfinite(t.at(i)));
            CHECK(std::isfinite(t.at(2 * size + i)));
            nan = nan || !std::isfinite(t.at(size + i));
          }
          CHECK(nan);
        }
      });
  }
}

TEST_CASE("factors: what is not finite is NaN beyond the first block too, and nothing hangs") {
  const std::int64_t n = 70;
  for (const DType t : {DType::F32, DType::F64, DType::C128})
    for (const double bad : {test::kNan, test::kInf, -test::kInf})
      for (const auto& place : {std::pair<std::int64_t, std::int64_t>{0, 0}, {40, 3}, {69, 33}, {50, 50}, {69, 69}}) {
        const std::int64_t row = place.first, column = place.second;
        INFO(dtype_name(t), " ", bad, " at ", row, ", ", column);
        Tensor a = drawn(n, n, t, 7);
        for (std::int64_t i = 0; i < n; ++i) a.set(i * n + i, 80);
        a.set(row * n + column, bad);
        const auto broken = [](const Tensor& x) {
          std::int64_t count = 0;
          for (std::int64_t i = 0; i < x.num_elements(); ++i) {
            const auto v = load_element<std::complex<double>>(x.data(), x.dtype(), i);
            count += std::isfinite(v.real()) && std::isfinite(v.imag()) ? 0 : 1;
          }
          return count;
        };
        for (const bool by_rule : {true, false}) {
          INFO((by_rule ? "rule" : "compiled"));
          const auto run = [&](const OpBox& op, std::vector<Tensor> in) {
            return by_rule ? evaluate_op(op, in) : compiled(op, in);
          };
          if (!by_rule || bad == test::kNan) {  // all NaN: not definite, or an iteration that cannot start
            const auto l = run(ops::Cholesky{}, {a});
            CHECK(broken(l[0]) > 0);
            const auto eigh = run(ops::Eigh{}, {a}), svd = run(ops::Svd{}, {a});
            CHECK(broken(eigh[0]) == n);
            CHECK(broken(eigh[1]) == n * n);
            CHECK(broken(svd[0]) == n * n);
            CHECK(broken(svd[1]) == n);
            CHECK(broken(svd[2]) == n * n);
          }
          const auto lu = run(ops::Lu{}, {a}), qr = run(ops::Qr{}, {a});
          CHECK(broken(lu[0]) > 0);
          CHECK(broken(qr[1]) > 0);
          // The columns before it are those of the finite matrix.
          if (column > 0) CHECK(std::isfinite(qr[1].at(0)));
          if (column > 0) CHECK(std::isfinite(lu[0].at(0)));
          if (row > column) CHECK(broken(qr[0]) > 0);
          const auto x = run(ops::TriangularSolve{}, {a, drawn(n, 3, t)});
          // Elements divided by an infinity are 0.
          if (row > column || bad != bad) CHECK(broken(x[0]) > 0);
        }
      }
}

TEST_CASE("factors: values that come without vectors are the same to rounding") {
  for (const DType t : kTypes)
    for (const std::int64_t n :
         {std::int64_t{1}, std::int64_t{2}, std::int64_t{6}, std::int64_t{33}, std::int64_t{130}}) {
      INFO(dtype_name(t), " ", n);
      const Tensor a = drawn(n, n, t, static_cast<std::uint64_t>(n));
      for (const bool svd : {false, true}) {
        Graph g;
        const Expr x = g.input("x", a.shape());
        const ExprList all = svd ? g.svd(x) : g.eigh(x);
        g.set_outputs({all[svd ? 1 : 0]});
        const Tensor alone = Session().compile(std::move(g)).run_typed({{"x", a}})[0];
        const Tensor with = svd ? compiled(ops::Svd{}, {a})[1] : compiled(ops::Eigh{}, {a})[0];
        CHECK(test::distance(alone, with) <= tolerance(a) * 4);
      }
    }
}

TEST_CASE("factors: orders beyond the depth of a packed product, with odd edges") {
  for (const DType t : {DType::F32, DType::F64, DType::C64}) {
    const std::int64_t n = 301;
    INFO(dtype_name(t));
    const Tensor a = drawn(n, n, t, 3);
    const double bound = tolerance(a) * 8, unit = tolerance(a);
    const auto qr = compiled(ops::Qr{}, {a});
    CHECK(product_error(qr[0], qr[1], a) <= bound);
    CHECK(product_error(adjoint(qr[0]), qr[0], identity(n, t)) <= unit);
    const auto svd = compiled(ops::Svd{}, {a});
    CHECK(product_error(svd[0], scaled_rows(svd[1], svd[2]), a) <= bound);
    const auto eigh = compiled(ops::Eigh{}, {a});
    CHECK(product_error(adjoint(eigh[1]), eigh[1], identity(n, t)) <= unit);
    const auto lu = compiled(ops::Lu{}, {a});
    Tensor l = identity(n, t), u = Tensor::zeros(a.shape()), p = Tensor::zeros(a.shape());
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        const auto v = load_element<std::complex<double>>(lu[0].data(), t, i * n + j);
        store_element((j < i ? l : u).mutable_data(), t, i * n + j, v);
        store_element(p.mutable_data(), t, i * n + j,
                      load_element<std::complex<double>>(a.data(), t, static_cast<std::int64_t>(lu[2].at(i)) * n + j));
      }
    CHECK(product_error(l, u, p) <= bound * 8);
  }
}

TEST_CASE("factors: the triangle that is not read is not looked at") {
  Tensor a = rows_of_numbers(3, 3, {4, test::kNan, test::kInf, 1, 5, test::kNan, 2, 1, 6});
  for (const OpBox& op : {OpBox(ops::Cholesky{}), OpBox(ops::Eigh{})})
    both_ways(op, {a}, [](const std::vector<Tensor>& out) {
      for (std::int64_t i = 0; i < out[0].num_elements(); ++i) CHECK(std::isfinite(out[0].at(i)));
    });
  Tensor unit = rows_of_numbers(2, 2, {test::kNan, test::kNan, 3, test::kNan});
  both_ways(ops::TriangularSolve{true, true, false, false, true}, {unit, rows_of_numbers(2, 1, {1, 5})},
            [](const std::vector<Tensor>& out) { CHECK(out[0].at(1) == 2); });
}

TEST_CASE("factors: what is refused") {
  const auto f32 = [](Dims d) { return Shape(std::move(d), DType::F32); };
  CHECK(contains(infer_error(ops::Cholesky{}, {f32({2, 3})}), "not square"));
  CHECK(contains(infer_error(ops::Eigh{}, {f32({3})}), "two axes"));
  const std::string half = infer_error(ops::Svd{}, {Shape({2, 2}, DType::BF16)});
  CHECK(contains(half, "bf16"));
  CHECK(contains(half, "cast it to f32"));
  CHECK(contains(infer_error(ops::Qr{}, {Shape({2, 2}, DType::I32)}), "f32 or f64"));
  CHECK(contains(infer_error(ops::TriangularSolve{}, {f32({2, 2}), f32({3, 1})}), "3 rows"));
  CHECK(contains(infer_error(ops::TriangularSolve{false}, {f32({2, 2}), f32({1, 3})}), "3 columns"));
  CHECK(contains(infer_error(ops::TriangularSolve{}, {f32({4, 2, 2}), f32({3, 2, 1})}), "leading axes"));
  CHECK(contains(infer_error(ops::TriangularSolve{}, {f32({2, 2}), Shape({2, 1}, DType::F64)}), "f64"));
  CHECK(contains(infer_error(ops::Lu{}, {f32({Dim::symbol("m"), 3})}), "symbolic"));
  CHECK(infer_error(ops::Lu{}, {f32({Dim::symbol("b"), 4, 3})}).empty());
  CHECK(infer_error(ops::Svd{}, {f32({Dim::symbol("n"), Dim::symbol("n")})}).empty());
}

TEST_CASE("factors: derivatives that do not exist say why") {
  for (const OpBox& op : {OpBox(ops::Qr{true}), OpBox(ops::Svd{true})}) {
    Graph g;
    const Expr x = g.input("x", Shape({4, 2}, DType::F64));
    g.set_outputs({g.sum(g.add(op, {x}))});
    try {
      vjp(g, {Wrt("x")});
      FAIL_CHECK("a derivative of any columns");
    } catch (const Error& e) {
      CHECK(e.code() == ErrorCode::Unsupported);
      CHECK(contains(e.what(), "are not unique"));
      CHECK(contains(e.what(), "full = false"));
    }
  }
  Graph g;  // singular values alone have a derivative
  const Expr x = g.input("x", Shape({4, 2}, DType::F64));
  g.set_outputs({g.sum(g.svd(x, true)[1])});
  CHECK_NOTHROW(vjp(g, {Wrt("x")}));
}

TEST_CASE("factors: forward mode of the singular values of a full decomposition, where nobody reads the vectors") {
  const Tensor a = test::doubles({2, 4}, {1, 2, 0.5, -1, 3, -2, 0.25, 1}),
               da = test::doubles({2, 4}, {0.5, 1, -1, 2, 0, 1, 1, -3});
  const auto tangent_of = [&](bool full) {
    Graph g;
    g.set_outputs({g.svd(g.input("x", a.shape()), full)[1]});
    const GradResult forward = jvp(g, {Wrt("x")});
    return evaluate(forward.graph, {{"x", a}, {forward.added_inputs[0], da}})[1];
  };
  CHECK(test::distance(tangent_of(true), tangent_of(false)) < 1e-14);
  for (const std::uint32_t vectors : {0U, 2U}) {
    Graph g;
    const ExprList svd = g.svd(g.input("x", a.shape()), true);
    g.set_outputs({svd[1], g.sum(svd[vectors])});
    CHECK(contains(test::error_text([&] { (void)jvp(g, {Wrt("x")}); }), "are not unique"));
  }
}

TEST_CASE("factors: derivatives of complex matrices without elements") {
  for (const OpBox& op : {OpBox(ops::Eigh{}), OpBox(ops::Svd{}), OpBox(ops::Qr{}), OpBox(ops::Lu{})}) {
    Graph g;
    const Expr x = g.input("x", Shape({2, 0, 0}, DType::C64));
    const Expr factors = g.add(op, {x});
    g.set_outputs({factors, factors.result(1)});
    const NamedTensors values{{"x", Tensor::zeros(Shape({2, 0, 0}, DType::C64))}};
    for (const bool forward : {true, false}) {
      const TransformResult d = forward ? jvp(g, {Wrt("x")}) : vjp(g, {Wrt("x")});
      NamedTensors all = values;
      for (const std::string& name : d.added_inputs)
        all.emplace(name, Tensor::zeros(d.graph.shape(d.graph.find_leaf(OpKind::Input, name))));
      CHECK(evaluate(d.graph, all).back().num_elements() == 0);
    }
  }
}

TEST_CASE("factors: symbolic leading extents") {
  Graph g;
  const Expr x = g.input("x", Shape({Dim::symbol("b"), 3, 3}, DType::F64));
  const ExprList svd = g.svd(x);
  g.set_outputs({g.matmul(svd[0] * g.unsqueeze(svd[1], 1), svd[2])});
  auto program = Session().compile(std::move(g));
  for (const std::int64_t b : {1, 5, 0}) {
    const Tensor a = test::draw(Shape({b, 3, 3}, DType::F64), Fill::Normal, 1, 3);
    CHECK(test::distance(program.run_typed({{"x", a}})[0], a) <= 1e-13);
  }
}

}  // namespace rlx
