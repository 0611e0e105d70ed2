// For every sample of every op, in F64: jvp and vjp against central differences, <g, jvp u> = <vjp g, u>, and both for
// the second derivative.
#include <algorithm>
#include <cmath>

#include "rlx/transforms/jvp.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/samples.h"

namespace rlx::test {
namespace {

// A sample in F64 with its drawn operands and its differentiable leaves.
struct Case {
  Graph graph;
  NamedTensors values;
  std::vector<std::string> names;    // of inexact operands
  std::vector<std::size_t> outputs;  // inexact outputs
  bool usable() const { return !names.empty() && !outputs.empty(); }
  std::vector<Wrt> wrt() const { return {names.begin(), names.end()}; }
};

Case make_case(const OpDef& def, const Sample& sample) {
  Case c;
  if (def.is_leaf() || def.level == Level::Lir || (!def.reference.has() && !def.reference.derived())) return c;
  if (def.kind == OpKind::Bitcast) return c;  // its bits depend on the dtypes, and its derivative is 0
  c.graph = to_f64(sample_graph(sample));
  std::vector<Tensor> operands = draw_operands(sample);
  for (Tensor& t : operands) t = widened(t);
  c.values = bind_operands(operands);
  for (const auto& [name, tensor] : c.values)
    if (is_inexact(tensor.dtype())) c.names.push_back(name);
  for (std::size_t i = 0; i < c.graph.outputs().size(); ++i)
    if (is_inexact(c.graph.shape(c.graph.outputs()[i]).dtype())) c.outputs.push_back(i);
  return c;
}

Tensor direction(const Shape& shape, std::uint64_t seed) { return draw(shape, Fill::Unit, 1, seed); }

NamedTensors moved(const NamedTensors& values, const NamedTensors& by, double step) {
  NamedTensors out = values;
  for (const auto& [name, u] : by) out[name] = add_scaled(values.at(name), step, u);
  return out;
}

// The derivative of every output of `g` in the direction `u`, by central differences.
std::vector<Tensor> differences(const Graph& g, const NamedTensors& values, const NamedTensors& u) {
  constexpr double kStep = 1e-5;
  std::vector<Tensor> up = evaluate(g, moved(values, u, kStep)), down = evaluate(g, moved(values, u, -kStep));
  for (std::size_t i = 0; i < up.size(); ++i) {
    if (!is_inexact(up[i].dtype())) continue;
    Tensor d = add_scaled(up[i], -1, down[i]);
    for (std::int64_t k = 0; k < d.num_elements(); ++k)  // equal infinities on both sides have derivative 0
      if (!is_complex(d.dtype()) && std::isinf(up[i].at(k)) && up[i].at(k) == down[i].at(k)) d.set(k, 0);
    up[i] = add_scaled(Tensor::zeros(d.shape()), 1 / (2 * kStep), d);
  }
  return up;
}

// The tangents of all outputs of `g` by jvp.
std::vector<Tensor> tangents(const Graph& g, NamedTensors values, const NamedTensors& u) {
  std::vector<Wrt> wrt;
  for (const auto& [name, t] : u) wrt.push_back(name);
  TransformResult r = jvp(g, wrt);
  std::size_t k = 0;
  for (const auto& [name, t] : u) values[r.added_inputs[k++]] = t;
  std::vector<Tensor> all = evaluate(r.graph, values);
  return {all.begin() + static_cast<std::ptrdiff_t>(g.outputs().size()), all.end()};
}

bool has_rules(const OpDef& def) {
  return (def.vjp.has() || def.vjp.derived()) && (def.jvp.has() || def.jvp.derived());
}

constexpr double kDifferenceTolerance = 3e-7;  // of central differences with step 1e-5 on values around 1
constexpr double kAdjointTolerance = 1e-10;

TEST_CASE("jvp agrees with central differences") {
  for_each_sample([](const OpDef& def, const Sample& sample) {
    Case c = make_case(def, sample);
    if (!c.usable() || !sample.differentiable) return;
    NamedTensors all;
    for (std::size_t k = 0; k < c.names.size(); ++k)
      all.emplace(c.names[k], direction(c.values.at(c.names[k]).shape(), 77 + k));
    std::vector<NamedTensors> directions{all};
    if (all.size() > 1)  // each operand alone: the others have no tangent
      for (const auto& [name, u] : all) directions.push_back({{name, u}});
    for (const NamedTensors& u : directions) {
      std::vector<Tensor> expected = differences(c.graph, c.values, u), actual = tangents(c.graph, c.values, u);
      for (std::size_t i : c.outputs) {
        INFO((u.size() == all.size() ? std::string("all operands") : u.begin()->first), ", result ", i, ": ",
             actual[i].text(), " expected ", expected[i].text());
        CHECK(distance(actual[i], expected[i]) <= kDifferenceTolerance);
      }
    }
  });
}

TEST_CASE("vjp agrees with central differences and is the adjoint of jvp") {
  for_each_sample([](const OpDef& def, const Sample& sample) {
    Case c = make_case(def, sample);
    if (!c.usable()) return;
    if (!has_rules(def)) {  // the error must give the reason
      try {
        vjp(c.graph, c.wrt());
        if (!def.vjp.has() && !def.vjp.derived()) FAIL_CHECK("an op without a rule was differentiated");
      } catch (const Error& e) {
        CHECK(e.code() == ErrorCode::Unsupported);
        CHECK(std::string(e.what()).find(def.vjp.reason()) != std::string::npos);
      }
      return;
    }
    NamedTensors u, values = c.values;
    for (std::size_t k = 0; k < c.names.size(); ++k)
      u.emplace(c.names[k], direction(c.values.at(c.names[k]).shape(), 99 + k));
    GradResult r = vjp(c.graph, c.wrt());
    REQUIRE(r.added_inputs.size() == c.outputs.size());
    std::vector<Tensor> cotangents;
    for (std::size_t k = 0; k < c.outputs.size(); ++k) {
      cotangents.push_back(direction(c.graph.shape(c.graph.outputs()[c.outputs[k]]), 555 + k));
      values[r.added_inputs[k]] = cotangents.back();
    }
    std::vector<Tensor> outputs = evaluate(r.graph, values);
    REQUIRE(outputs.size() == c.graph.outputs().size() + c.names.size());
    double from_vjp = 0, scale = 1;
    for (std::size_t k = 0; k < c.names.size(); ++k) {
      const Tensor& gradient = outputs[c.graph.outputs().size() + k];
      REQUIRE(gradient.shape() == c.values.at(c.names[k]).shape());
      double term = dot(gradient, u.at(c.names[k]));
      from_vjp += term;
      scale += std::fabs(term);
    }
    auto paired = [&](const std::vector<Tensor>& t) {
      double sum = 0;
      for (std::size_t k = 0; k < c.outputs.size(); ++k) sum += dot(cotangents[k], t[c.outputs[k]]);
      return sum;
    };
    double from_jvp = paired(tangents(c.graph, c.values, u));
    INFO("<vjp g, u> = ", from_vjp, ", <g, jvp u> = ", from_jvp);
    CHECK(std::fabs(from_vjp - from_jvp) <= kAdjointTolerance * scale);
    if (!sample.differentiable) return;
    double from_differences = paired(differences(c.graph, c.values, u));
    INFO("<g, difference> = ", from_differences);
    CHECK(std::fabs(from_vjp - from_differences) <= kDifferenceTolerance * scale);
  });
}

TEST_CASE("a composite's own rules equal those of its decomposition") {
  for_each_sample([](const OpDef& def, const Sample& sample) {
    if (def.kind == OpKind::FakeQuantize) return;  // its derivative deliberately ignores the rounding
    Case c = make_case(def, sample);
    if (!c.usable() || !def.decompose.has() || !(def.vjp.has() || def.jvp.has())) return;
    Graph plain("decomposed");
    std::vector<Expr> operands;
    for (NodeId id : c.graph.leaves(OpKind::Input))
      operands.push_back(plain.input(c.graph.leaf_name(id), c.graph.shape(id)));
    const Node& node = c.graph.node(c.graph.outputs()[0].node);
    plain.set_outputs(decompose_into(plain, node.op, operands));
    NamedTensors values = c.values, u;
    for (std::size_t k = 0; k < c.names.size(); ++k)
      u.emplace(c.names[k], direction(c.values.at(c.names[k]).shape(), 61 + k));
    GradResult own = vjp(c.graph, c.wrt()), derived = vjp(plain, c.wrt());
    REQUIRE(own.added_inputs == derived.added_inputs);
    for (std::size_t k = 0; k < c.outputs.size(); ++k)
      values[own.added_inputs[k]] = direction(c.graph.shape(c.graph.outputs()[c.outputs[k]]), 71 + k);
    std::vector<Tensor> a = evaluate(own.graph, values), b = evaluate(derived.graph, values);
    for (std::size_t i = 0; i < a.size(); ++i) {
      INFO("reverse, output ", i, ": ", a[i].text(), " derived ", b[i].text());
      CHECK(distance(a[i], b[i]) <= kAdjointTolerance);
    }
    a = tangents(c.graph, c.values, u);
    b = tangents(plain, c.values, u);
    for (std::size_t i = 0; i < a.size(); ++i) {
      INFO("forward, output ", i, ": ", a[i].text(), " derived ", b[i].text());
      CHECK(distance(a[i], b[i]) <= kAdjointTolerance);
    }
  });
}

TEST_CASE("second derivatives agree with central differences of first ones") {
  for_each_sample([](const OpDef& def, const Sample& sample) {
    Case c = make_case(def, sample);
    if (!c.usable() || !sample.differentiable || !has_rules(def)) return;
    GradResult r = vjp(c.graph, c.wrt());
    NamedTensors values = c.values, u;
    for (std::size_t k = 0; k < c.outputs.size(); ++k)
      values[r.added_inputs[k]] = direction(c.graph.shape(c.graph.outputs()[c.outputs[k]]), 31 + k);
    for (std::size_t k = 0; k < c.names.size(); ++k)
      u.emplace(c.names[k], direction(c.values.at(c.names[k]).shape(), 41 + k));
    std::vector<Tensor> expected = differences(r.graph, values, u), actual = tangents(r.graph, values, u);
    for (std::size_t i = c.graph.outputs().size(); i < actual.size(); ++i) {
      INFO("derivative of the gradient of operand ", c.names[i - c.graph.outputs().size()], ": ", actual[i].text(),
           " expected ", expected[i].text());
      CHECK(distance(actual[i], expected[i]) <= 10 * kDifferenceTolerance);
    }
  });
}

}  // namespace
}  // namespace rlx::test
