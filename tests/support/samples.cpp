// Op samples in tests.
#include "tests/support/samples.h"

#include <cmath>
#include <complex>

#include "rlx/tensor/visit.h"

namespace rlx::test {
namespace {

using C = std::complex<double>;

C element(const Tensor& t, std::int64_t i) { return load_element<C>(t.data(), t.dtype(), i); }

}  // namespace

Graph sample_graph(const Sample& sample) {
  Graph g("sample");
  std::vector<Value> operands;
  for (const SampleInput& in : sample.inputs)
    operands.push_back(g.input("x" + std::to_string(operands.size()), in.shape));
  Expr e = g.add(sample.op, operands);
  std::vector<Value> outputs;
  for (std::uint32_t r = 0; r < g.node(e.value().node).num_results(); ++r) outputs.push_back(e.result(r));
  g.set_outputs(std::move(outputs));
  return g;
}

NamedTensors bind_operands(const std::vector<Tensor>& operands) {
  NamedTensors out;
  for (std::size_t i = 0; i < operands.size(); ++i) out.emplace("x" + std::to_string(i), operands[i]);
  return out;
}

double distance(const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape())) return kApart;
  Worst worst;
  for (std::int64_t i = 0; i < a.num_elements(); ++i) {
    if (is_int(a.dtype()) || a.dtype() == DType::Bool) {
      if (a.at_i64(i) != b.at_i64(i)) return kApart;
      continue;
    }
    C x = element(a, i), y = element(b, i);
    for (auto [p, q] : {std::pair{x.real(), y.real()}, std::pair{x.imag(), y.imag()}}) {
      worst.add(p, q, std::isfinite(std::abs(y)) ? std::max(1.0, std::abs(y)) : 1);
    }
  }
  return worst.value();
}

double dot(const Tensor& a, const Tensor& b) {
  check(a.shape() == b.shape(), "dot of unequal shapes");
  C sum = 0;
  for (std::int64_t i = 0; i < a.num_elements(); ++i) sum += element(a, i) * element(b, i);
  return sum.real();
}

Tensor add_scaled(const Tensor& a, double factor, const Tensor& b) {
  Tensor out = Tensor::zeros(a.shape());
  for (std::int64_t i = 0; i < a.num_elements(); ++i)
    store_element(out.mutable_data(), a.dtype(), i, element(a, i) + factor * element(b, i));
  return out;
}

}  // namespace rlx::test
