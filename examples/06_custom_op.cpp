// A custom op: its record (shape, reference, gradient), a kernel for the CPU, samples that rlx checks the rules and the
// kernel with, and the gradient of the op in a compiled graph.
#include <rlx/rlx.h>

#include <rlx/backends/cpu/custom_kernel.h>
#include <rlx/testing/check_op.h>
#include <rlx/testing/op_samples.h>

#include <cmath>
#include <cstdio>

namespace {

// acme.soft_clip(x) = limit tanh(x / limit): close to x for small x, and within [-limit, limit].
double limit_of(const rlx::OpBox& op) { return std::get<0>(rlx::custom_attrs<double>(op)); }

rlx::Result<rlx::Shapes> infer(const rlx::InferContext& c) {
  if (c.input(0).dtype() != rlx::DType::F32) return c.dtype_error("x must be f32, got ", c.input(0));
  if (!(limit_of(c.box()) > 0)) return c.attr_error("the limit must be positive, got ", limit_of(c.box()));
  return rlx::Shapes{c.input(0)};
}

// The reference rule, which every kernel is compared with.
void reference(const rlx::RefArgs& a) {
  const double limit = limit_of(a.box);
  auto* y = reinterpret_cast<float*>(a.out().mutable_data());
  for (std::int64_t i = 0; i < a.in(0).num_elements(); ++i)
    y[i] = static_cast<float>(limit * std::tanh(a.in(0).at(i) / limit));
}

// dy/dx = 1 - (y / limit)^2, computed from the forward value y.
void vjp(rlx::VjpContext& c) {
  const rlx::Expr r = c.output() / limit_of(c.box());
  c.accumulate(0, c.cotangent() * (1.0 - r * r));
}

std::optional<rlx::Diagnostic> kernel(const rlx::KernelCall& call) {
  const auto x = call.inputs[0].as<float>();
  const auto y = call.outputs[0].as<float>();
  if (!x) return x.error();
  if (!y) return y.error();
  const auto limit = static_cast<float>(limit_of(call.op));
  for (std::size_t i = 0; i < x->size(); ++i) (*y)[i] = limit * std::tanh((*x)[i] / limit);
  return std::nullopt;
}

void samples(rlx::testing::SampleSet& s) {
  s.add("matrix", {rlx::Shape({2, 3}, rlx::DType::F32)}, rlx::custom_op("acme.soft_clip", 2.0));
  s.add("narrow", {rlx::Shape({5}, rlx::DType::F32)}, rlx::custom_op("acme.soft_clip", 0.5));
  s.add_discrete("no elements", {rlx::Shape({0, 3}, rlx::DType::F32)}, rlx::custom_op("acme.soft_clip", 1.0));
}

}  // namespace

int main() {
  rlx::register_op(rlx::CustomOpDef("acme.soft_clip")
                       .what("limit tanh(x / limit).")
                       .inputs("x")
                       .elementwise()
                       .infer(infer)
                       .reference(reference)
                       .vjp(vjp)
                       .cost(rlx::flops_per_element<10>)
                       .kernel(kernel));

  // A test of the op: each sample runs through the reference rule, the kernel, the gradient and the batch rule.
  rlx::testing::add_op_samples("acme.soft_clip", samples);
  const rlx::testing::OpCheck found = rlx::testing::check_op("acme.soft_clip");
  std::printf("%zu samples, %zu checks, %zu problems\n", found.samples, found.checks, found.problems.size());
  for (const std::string& problem : found.problems) std::printf("%s\n", problem.c_str());

  rlx::Graph g("clip");
  auto x = g.input("x", {{4}, rlx::DType::F32});
  auto y = g.add(rlx::custom_op("acme.soft_clip", 2.0), {x});
  g.set_outputs({g.sum(y * y, {0}, false)});
  std::printf("%s", rlx::print_text(g).c_str());

  auto gradient = rlx::value_and_grad(g, {"x"});
  auto f = rlx::Session().compile(std::move(gradient.graph));
  const auto out = f.run({{"x", {-8, -1, 0.5f, 3}}});
  std::printf("loss %.4f\ngradient", static_cast<double>(out[0][0]));
  for (float v : out[1]) std::printf(" %.4f", static_cast<double>(v));
  std::printf("\n");

  // A missing rule is an error that names it; no gradient is left out silently.
  try {
    rlx::jvp(g, {"x"});
  } catch (const rlx::Error& e) {
    std::printf("%s\n", e.diagnostic().message.c_str());
  }
}
