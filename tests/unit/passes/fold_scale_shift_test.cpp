// Scales and shifts of channels after convolutions and matmuls of weights: random chains give the same results folded,
// run on the cpu and with other weights set later, and each chain that can be folded is.
#include <map>
#include <string>

#include "rlx/functions/norms.h"
#include "rlx/ir/ops/conv.h"
#include "rlx/runtime/session.h"
#include "tests/support/closeness.h"
#include "tests/support/shapes.h"
#include "tests/unit/passes/pass_test.h"

using namespace rlx;
using namespace rlx::test;

namespace {

constexpr const char* kPatterns[] = {"conv_batch_norm", "conv_scale_shift", "matmul_batch_norm", "matmul_scale_shift"};

// What stops a fold.
enum class Stop : std::uint8_t { None, Output, Readers, Mutable, Weight, SharedWeight };

// A product of weights and a chain that scales and shifts its channels.
class RandomChain {
 public:
  RandomChain(std::uint64_t seed, DType dtype) : state_(seed * 0x9e3779b97f4a7c15ULL + 1), dtype_(dtype) {
    if (below(3) == 0) stop_ = static_cast<Stop>(1 + below(5));
    Expr y = root();
    const std::size_t steps = 1 + below(4);
    for (std::size_t i = 0; i < steps; ++i) {
      if (below(4) == 0) y = moved(y);
      y = step(y);
    }
    if (!scaled_) y = g_.mul(y, vector(y));
    if (below(2)) y = g_.relu(y);
    outputs_.push_back(y);
    outputs_.insert(outputs_.end(), kept_.begin(), kept_.end());
    g_.set_outputs(outputs_);
  }
  const Graph& graph() const { return g_; }
  Stop stop() const { return stop_; }

  // Values of every leaf; what divides, and variances, are positive.
  NamedTensors values(std::uint64_t seed) const {
    NamedTensors out;
    for (OpKind kind : {OpKind::Input, OpKind::Param})
      for (NodeId id : g_.leaves(kind)) {
        Tensor t = random_tensor(g_.node(id).shape(), ++seed);
        if (g_.leaf_name(id).rfind("positive", 0) == 0)
          for (std::int64_t i = 0; i < t.num_elements(); ++i) t.set(i, 1 + 0.5 * t.at(i));
        out.emplace(g_.leaf_name(id), std::move(t));
      }
    return out;
  }

 private:
  std::uint64_t next() {
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return state_ >> 8;
  }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(next() % n); }
  Shape shape(Dims dims) const { return Shape(std::move(dims), dtype_); }
  std::string fresh(const char* name) { return concat_text(name, count_++); }

  Expr weight(Dims dims) {
    if (stop_ == Stop::Weight) return g_.input("w", shape(std::move(dims)));
    if (stop_ != Stop::SharedWeight && below(6) == 0) return g_.constant(random_tensor(shape(std::move(dims)), next()));
    return g_.param("w", shape(std::move(dims)));
  }

  Expr root() {
    const bool shares = stop_ == Stop::SharedWeight;
    Expr w, y;
    switch (below(7)) {
      case 0:
      case 1: {  // channels first, maybe in groups, in one to three dimensions
        const std::size_t space = 1 + below(3);
        ops::Conv op;
        op.groups = below(3) == 0 ? 2 : 1;
        Dims x{Dim(2), Dim(4)}, k{Dim(6), Dim(4 / op.groups)};
        for (std::size_t i = 0; i < space; ++i) {
          x.push_back(Dim(4)), k.push_back(Dim(static_cast<std::int64_t>(1 + below(3))));
          op.strides.push_back(static_cast<std::int64_t>(1 + below(2)));
          op.low.push_back(static_cast<std::int64_t>(below(2))), op.high.push_back(1);
          op.rhs_dilation.push_back(1);
        }
        w = weight(k);
        y = g_.conv(g_.input("x", shape(x)), w, op);
        axis_ = 1;
        break;
      }
      case 2: {  // channels last
        ops::Conv op;
        op.low = op.high = {1, 1};
        op.lhs_spec = op.out_spec = {0, 3, 1, 2};
        op.rhs_spec = {3, 2, 0, 1};
        w = weight({3, 3, 2, 5});
        y = g_.conv(g_.input("x", shape({2, 4, 3, 2})), w, op);
        axis_ = 3;
        break;
      }
      case 3:  // one tap: canonicalize-convs makes a product, maybe with the filter on the left
        w = weight({6, 4, 1, 1});
        y = g_.conv(g_.input("x", shape({static_cast<std::int64_t>(1 + below(2)), 4, 3, 2})), w, ops::Conv{});
        axis_ = 1;
        break;
      case 4:
        w = weight({4, 5});
        y = g_.matmul(g_.input("x", shape({2, 3, 4})), w);
        axis_ = 2;
        break;
      case 5:
        w = weight({5, 4});
        y = g_.matmul(g_.input("x", shape({3, 4})), g_.t(w));
        axis_ = 1;
        break;
      default:
        w = weight({5, 4});
        y = g_.matmul(w, g_.input("x", shape({4, 3})));
        axis_ = 0;
        break;
    }
    if (shares) kept_.push_back(g_.sum(g_.square(w), {0}));
    return y;
  }

  // The value with its axes in another order, or with all axes before the channels, or after them, as one.
  Expr moved(Expr y) {
    if (below(2)) {
      std::vector<std::int64_t> perm(static_cast<std::size_t>(y.rank()));
      for (std::size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<std::int64_t>(i);
      for (std::size_t i = perm.size(); i > 1; --i) std::swap(perm[i - 1], perm[below(i)]);
      axis_ = static_cast<int>(std::find(perm.begin(), perm.end(), axis_) - perm.begin());
      return g_.transpose(y, perm);
    }
    std::int64_t before = 1, after = 1;
    for (int a = 0; a < y.rank(); ++a)
      if (a != axis_) (a < axis_ ? before : after) *= y.dim(a).value();
    Dims dims{Dim(before), y.dim(axis_)};
    if (after > 1) dims.push_back(Dim(after));
    axis_ = 1;
    return g_.reshape(y, dims);
  }

  Expr leaf(const char* name, Dims dims, DType dtype) {
    const Shape s(std::move(dims), dtype);
    if (stop_ == Stop::Mutable) return g_.param(fresh(name), s, ParamMode::Mutable);
    if (below(5) == 0 && std::string(name) == "v") return g_.constant(random_tensor(s, next()));
    return g_.param(fresh(name), s);
  }
  // One number for each channel, in one of the ways to write it.
  Expr vector(Expr y, const char* name = "v") {
    Dims dims(static_cast<std::size_t>(y.rank() - axis_), Dim(1));
    dims[0] = y.dim(axis_);
    if (below(2)) dims.insert(dims.begin(), static_cast<std::size_t>(axis_), Dim(1));
    Expr v = below(2) ? leaf(name, dims, dtype_) : g_.reshape(leaf(name, {y.dim(axis_)}, dtype_), dims);
    if (below(4) == 0) v = g_.exp(v);
    if (below(4) == 0) v = g_.expand(v, y.shape().dims());
    return v;
  }

  Expr step(Expr y) {
    if (stop_ == Stop::Output && outputs_.empty()) outputs_.push_back(y);
    if (stop_ == Stop::Readers && kept_.empty()) kept_.push_back(g_.sigmoid(y));
    switch (below(8)) {
      case 0: return g_.add(vector(y), y);
      case 1: return g_.sub(y, vector(y));
      case 2: return g_.sub(vector(y), y);
      case 3: return g_.mul(y, g_.scalar(0.5, dtype_));
      case 4: scaled_ = true; return g_.mul(vector(y), y);
      case 5: scaled_ = true; return g_.div(y, vector(y, "positive"));
      default: break;
    }
    scaled_ = true;
    const Dims c{y.dim(axis_)};
    const Expr mean = leaf("v", c, dtype_), var = leaf("positive", c, dtype_);
    std::optional<Operand> gamma, beta;
    if (below(2)) gamma = leaf("v", c, dtype_);
    if (below(2)) beta = leaf("v", c, dtype_);
    return nn::batch_norm(y, mean, var, gamma, beta, 1e-3, axis_);
  }

  std::uint64_t state_;
  DType dtype_;
  Graph g_{"chain"};
  int axis_ = 0;
  int count_ = 0;
  bool scaled_ = false;
  Stop stop_ = Stop::None;
  std::vector<Expr> outputs_, kept_;
};

int folds(const FusionReport& report) {
  int n = 0;
  for (const char* pattern : kPatterns) n += report.fused_count(pattern);
  return n;
}

// The difference relative to the largest value: sums that cancel keep the error of their terms.
double apart(const std::vector<Tensor>& want, const std::vector<Tensor>& got) {
  REQUIRE(want.size() == got.size());
  Worst largest, most;
  largest.add(1);
  for (std::size_t i = 0; i < want.size(); ++i) {
    REQUIRE(want[i].shape() == got[i].shape());
    for (std::int64_t k = 0; k < want[i].num_elements(); ++k) {
      largest.add(want[i].at(k), 0);
      most.add(got[i].at(k), want[i].at(k));
    }
  }
  REQUIRE(largest.value() < kApart);
  return most.value() / largest.value();
}

CompileResult compiled_for_cpu(const Graph& g) {
  return CompilePipeline(Session(Device::Cpu).target()).compile_graph(Graph(g));
}

}  // namespace

TEST_CASE("chains of scales and shifts are folded, and give the same results") {
  std::map<std::string, int> fused;
  std::map<MissReason, int> missed;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const DType dtype = seed % 2 ? DType::F32 : DType::F64;
    const double tolerance = dtype == DType::F32 ? 1e-5 : 1e-13;
    const RandomChain chain(seed, dtype);
    const Graph& g = chain.graph();
    CAPTURE(seed);
    INFO(print_text(g));
    FusionReport report;
    PassContext context;
    context.report = &report;
    const Graph after = run_all(g, context);
    INFO(print_text(after));
    CHECK(folds(report) == (chain.stop() == Stop::None ? 1 : 0));
    NamedTensors values = chain.values(seed);
    CHECK(apart(evaluate(g, values), evaluate(after, values)) <= tolerance);
    for (const auto& [pattern, count] : report.fused) fused[pattern] += count;
    for (const MissedFusion& m : report.missed) ++missed[m.reason];
    if (seed % 4 > 1) continue;
    // Weights may be set again, all or one.
    CompiledGraph f = Session(Device::Cpu).compile(Graph(g));
    for (std::uint64_t run = 0; run < 3; ++run) {
      if (run == 1) values = chain.values(seed + 1000);
      NamedTensors inputs;
      for (NodeId id : g.leaves(OpKind::Input)) inputs.emplace(g.leaf_name(id), values.at(g.leaf_name(id)));
      for (NodeId id : g.leaves(OpKind::Param)) {
        const std::string& name = g.leaf_name(id);
        if (run == 2) values.at(name) = chain.values(seed + 2000).at(name);
        f.set_param(name, values.at(name));
        if (run == 2) break;
      }
      CHECK(apart(evaluate(g, values), f.run_typed(inputs)) <= tolerance);
    }
  }
  for (const char* pattern : kPatterns) CHECK_MESSAGE(fused[pattern] >= 20, pattern);
  for (MissReason reason : {MissReason::IsOutput, MissReason::MultiConsumer, MissReason::WeightNotConstant})
    CHECK_MESSAGE(missed[reason] >= 10, miss_reason_name(reason));
}

TEST_CASE("batch norm and activation are part of the kernel of the convolution before them") {
  Graph g("digits");
  Expr x = g.input("x", f32({4, 1, 8, 8}));
  std::int64_t channels = 1;
  for (int layer = 0; layer < 2; ++layer) {
    const std::int64_t out = layer == 0 ? 16 : 32;
    const auto vector = [&](const char* name) { return g.param(concat_text(name, layer), f32({out})); };
    ops::Conv conv;
    conv.low = conv.high = {1, 1};
    x = g.conv(x, g.param(concat_text("w", layer), f32({out, channels, 3, 3})), conv);
    x = g.relu(nn::batch_norm(x, vector("mean"), vector("var"), vector("gamma"), vector("beta")));
    channels = out;
  }
  g.set_outputs({x});
  const CompileResult result = compiled_for_cpu(g);
  CHECK(result.fusion.fused_count("conv_batch_norm") == 2);
  CHECK(result.fusion.fused_count("conv_bias_act") == 2);
  CHECK(result.fusion.missed.empty());
  CHECK(count_ops(result.lir.graph, OpKind::FusedConv) == 2);
  CHECK(count_ops(result.lir.graph, OpKind::BatchNorm) == 0);
  CHECK(count_ops(result.lir.graph, OpKind::Binary) == 0);
}

// They are too large to be folded at compile time.
TEST_CASE("constant weights are scaled once, when weights are prepared") {
  Graph g("constants");
  const Expr x = g.input("x", f32({4, 256}));
  const Expr w = g.constant(random_tensor(f32({256, 256}), 1)), s = g.constant(random_tensor(f32({256}), 2));
  g.set_outputs({g.relu(g.matmul(x, w) * s)});
  const CompileResult result = compiled_for_cpu(g);
  CHECK(result.fusion.fused_count("matmul_scale_shift") == 1);
  CHECK(count_ops(result.lir.graph, OpKind::Binary) == 0);
  CHECK(count_ops(result.lir.prepare, OpKind::Binary) == 1);
  const NamedTensors values{{"x", random_tensor(f32({4, 256}), 3)}};
  CHECK(apart(evaluate(g, values), Session(Device::Cpu).compile(Graph(g)).run_typed(values)) <= 1e-5);
}
