// Regions that a target refuses for their size: the bounds of the target save work and change no result.
#include "bench/compile_shapes.h"
#include "rlx/device/registry.h"
#include "rlx/ir/ops/fused.h"
#include "tests/support/needs.h"
#include "tests/support/random_program.h"
#include "tests/unit/passes/pass_test.h"

namespace rlx {
namespace {

std::size_t asked_ops = 0;  // ops in the regions that the target was asked about

// The cpu target, with or without its bounds.
class Counting final : public Claims {
 public:
  explicit Counting(bool bounds) : bounds_(bounds) {
    CHECK(cpu_->region_limits().inputs > 0);
    CHECK(cpu_->region_limits().alive > 0);
  }
  const OpSet& kinds() const override { return cpu_->kinds(); }
  const char* refuses(const Graph& g, NodeId id) const override {
    if (const auto* region = g.node(id).op.get_if<ops::ElementwiseRegion>()) asked_ops += region->body->num_nodes();
    return cpu_->refuses(g, id);
  }
  RegionLimits region_limits() const override { return bounds_ ? cpu_->region_limits() : RegionLimits{}; }

 private:
  std::shared_ptr<const Target> cpu_ = backend_for(Device::Cpu)->target({});
  bool bounds_;
};

Graph marked(const Graph& g, bool bounds) {
  const Counting claims(bounds);
  PassContext context;
  context.claims = &claims;
  asked_ops = 0;
  return mark_elementwise_regions.run(g, context).value_or(g);
}

// A random tree of casts, broadcasts, constants and functions over some inputs, with many live values.
Graph tangle(std::uint64_t seed, int inputs, int n) {
  Graph g("tangle");
  std::uint64_t s = seed * 0x9e3779b97f4a7c15ULL + 1;
  const auto pick = [&](std::size_t k) {
    s ^= s << 13, s ^= s >> 7, s ^= s << 17;
    return (s >> 11) % k;
  };
  std::vector<Expr> values;
  for (int i = 0; i < inputs; ++i) {
    const Shape shapes[] = {{{3, 4}, DType::F32}, {{4}, DType::F32}, {{3, 1}, DType::I32}, {{3, 4}, DType::Bool}};
    values.push_back(g.cast(g.input(concat_text("x", i), shapes[pick(4)]), DType::F32));
    if (pick(2) == 0) values.back() = g.expand(values.back(), {3, 4});
  }
  while (values.size() > 1) {
    const std::size_t i = pick(values.size());
    Expr v = values[i];
    if (n-- > 0) {
      switch (pick(6)) {
        case 0: values.push_back(g.sin(v)); continue;
        case 1: values[i] = v * 0.5; continue;
        case 2: values[i] = g.cast(g.cast(v, DType::I32), DType::F32); continue;
        case 3: values[i] = g.clamp(v, -1.0, g.where(g.gt(v, 0.25), v, 1.0)); continue;
        case 4: values[i] = g.cast(g.gt(v, 0.0), DType::F32); continue;
        default: break;
      }
    }
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(i));
    const std::size_t k = pick(values.size());
    values[k] = values[k] + v;
  }
  g.set_outputs({g.expand(values[0], {3, 4})});
  return g;
}

TEST_CASE("regions are the same whether the target gives bounds or refuses what is too large") {
  std::size_t cut = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Graph g = tangle(seed, static_cast<int>(1 + seed % 30), static_cast<int>(seed * 10));
    const Graph with = marked(g, true);
    const std::size_t saved = asked_ops;
    CHECK(print_text(with) == print_text(marked(g, false)));
    CHECK(saved <= asked_ops);
    cut += saved < asked_ops;
  }
  CHECK(cut > 20);
  for (const shapes::Case& c : shapes::kCases) {
    const Graph g = c.make(300);
    CAPTURE(c.name);
    CHECK(print_text(marked(g, true)) == print_text(marked(g, false)));
  }
}

TEST_CASE("what a target is asked about grows with the graph") {
  const int size = test::repetitions(2000);
  for (const shapes::Case& c : shapes::kCases) {
    CAPTURE(c.name);
    (void)marked(c.make(size), true);
    const std::size_t once = asked_ops;
    (void)marked(c.make(2 * size), true);
    CHECK(asked_ops <= 2 * once + once / 10 + 100);
  }
}

}  // namespace
}  // namespace rlx
