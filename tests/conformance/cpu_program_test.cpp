// Whole programs on the cpu backend: prepacked weights with every epilogue, encoder and decoder layers, states.
#include <bit>
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "rlx/backends/cpu/kernels.h"
#include "rlx/ir/ops/blocks.h"
#include "rlx/runtime/session.h"
#include "tests/support/exported_graphs.h"
#include "tests/support/guarded_program.h"
#include "tests/support/samples.h"
#include "tests/support/shapes.h"

namespace rlx {
namespace {

/// Values for every input and param of a graph. Names with "mask" get 0 and 1, names with "ids" small integers.
NamedTensors values_for(const Graph& g) {
  NamedTensors values;
  std::uint64_t seed = 1;
  for (OpKind kind : {OpKind::Input, OpKind::Param}) {
    for (NodeId id : g.leaves(kind)) {
      const std::string& name = g.leaf_name(id);
      const bool mask = name.find("mask") != std::string::npos, ids = name.find("ids") != std::string::npos;
      Tensor t = test::draw(g.shape(id), mask ? Fill::Boolean : ids ? Fill::Index : Fill::Normal, 5, ++seed);
      if (kind == OpKind::Param && is_float(t.dtype()))  // the magnitude of trained weights, so that sums stay near 1
        for (std::int64_t i = 0; i < t.num_elements(); ++i) t.set(i, t.at(i) * (t.rank() == 2 ? 0.2 : 1.0));
      values.emplace(name, std::move(t));
    }
  }
  return values;
}

CompiledGraph compiled(const Graph& g, const NamedTensors& values, int threads, const std::string& isa = "") {
  CompiledGraph f = Session().with_threads(threads).with_isa(isa).compile(g);
  for (NodeId id : g.leaves(OpKind::Param)) f.set_param(g.leaf_name(id), values.at(g.leaf_name(id)));
  return f;
}

NamedTensors inputs_of(const Graph& g, const NamedTensors& values) {
  NamedTensors inputs;
  for (NodeId id : g.leaves(OpKind::Input)) inputs.emplace(g.leaf_name(id), values.at(g.leaf_name(id)));
  return inputs;
}

/// Runs the graph in every configuration and compares with the evaluator. Returns "kernel kernel .." of the last
/// program.
std::string expect_agrees(const Graph& g, double tolerance = 2e-5) {
  const NamedTensors values = values_for(g);
  const std::vector<Tensor> expected = evaluate(g, values);
  std::string kernels;
  for (const std::string& isa : test::isas()) {
    for (int threads : {1, 2}) {
      CompiledGraph f = compiled(g, values, threads, isa);
      for (int run = 0; run < 2; ++run) {  // the second run finds used memory
        const std::vector<Tensor> got = f.run_typed(inputs_of(g, values));
        INFO(isa, ", ", threads, " threads");
        REQUIRE(got.size() == expected.size());
        for (std::size_t i = 0; i < got.size(); ++i) CHECK(test::distance(got[i], expected[i]) <= tolerance);
      }
      kernels.clear();
      std::vector<Tensor> held;
      std::vector<TensorView> views;
      for (const IoInfo& in : f.inputs()) held.push_back(values.at(in.name));
      for (const Tensor& t : held) views.push_back(t.view());
      for (const NodeTime& t : f.profile(views)) kernels += t.kernel.substr(0, t.kernel.find(' ')) + " ";
    }
  }
  return kernels;
}

int count(const std::string& text, const std::string& word) {
  int n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

using test::f32;

Graph encoder_layer(std::int64_t batch, std::int64_t seq, std::int64_t heads, std::int64_t head_dim, std::int64_t inner,
                    MaskKind mask) {
  Graph g("encoder");
  const std::int64_t e = heads * head_dim;
  std::vector<Expr> x{g.input("x", f32({batch, seq, e}))};
  for (const char* part : {"q", "k", "v", "o"}) {
    x.push_back(g.param(concat_text("w_", part), f32({e, e})));
    x.push_back(g.param(concat_text("b_", part), f32({e})));
  }
  x.push_back(g.param("ln1_gamma", f32({e})));
  x.push_back(g.param("ln1_beta", f32({e})));
  x.push_back(g.param("w_up", f32({e, inner})));
  x.push_back(g.param("b_up", f32({inner})));
  x.push_back(g.param("w_down", f32({inner, e})));
  x.push_back(g.param("b_down", f32({e})));
  x.push_back(g.param("ln2_gamma", f32({e})));
  x.push_back(g.param("ln2_beta", f32({e})));
  if (mask == MaskKind::Custom) x.push_back(g.input("mask", f32({batch, 1, 1, seq})));
  g.set_outputs({g.encoder_block({heads, head_dim, mask, 1e-12, ActivationKind::Gelu}, x)});
  return g;
}

}  // namespace

TEST_CASE("cpu: packed products with every epilogue, at several row counts") {
  struct Operands {
    Graph& g;
    Expr dot, bias, r, s;
  };
  using Epilogue = Expr (*)(const Operands&);
  constexpr Epilogue kForms[] = {
      [](const Operands& o) { return o.dot; },
      [](const Operands& o) { return o.dot + o.bias; },
      [](const Operands& o) { return o.g.gelu(o.dot + o.bias); },
      [](const Operands& o) { return o.g.gelu_approx(o.dot + o.bias); },
      [](const Operands& o) { return o.g.relu(o.dot); },
      [](const Operands& o) { return o.g.silu(o.dot * 0.5 + o.bias); },
      [](const Operands& o) { return o.g.tanh(o.dot + o.bias + o.r); },
      [](const Operands& o) { return o.g.sigmoid(o.dot) * o.s; },
      [](const Operands& o) { return o.g.relu(o.dot + o.bias) + o.r; },
      [](const Operands& o) { return o.dot / 4.0 + o.r; },
      [](const Operands& o) { return (o.dot + o.bias) * o.s + o.r; },
  };
  for (std::size_t form = 0; form < std::size(kForms); ++form) {
    for (std::int64_t m : {1, 2, 7, 33}) {
      for (bool transposed : {false, true}) {
        Graph g;
        Expr x = g.input("x", f32({m, 40})), r = g.input("r", f32({m, 50})), s = g.input("s", f32({m, 50})),
             b = g.param("b", f32({50}));
        Expr w = transposed ? g.t(g.param("w", f32({50, 40}))) : g.param("w", f32({40, 50}));
        g.set_outputs({kForms[form]({g, g.matmul(x, w), b, r, s})});
        const std::string kernels = expect_agrees(g);
        INFO("form ", form, ": ", kernels);
        CHECK(kernels == "gemm_packed_f32 ");
      }
    }
  }
}

TEST_CASE("cpu: scales behind a product round as steps of their own") {
  // Each row of x has a single nonzero element and w is 1, so row i of the matmul is values[i].
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {0,     -0.0F, 8e-30F,  -8e-30F,  1e-40F,  0x9p-149F, 1,    0.7F,
                                     -5.6F, 8e20F, 0x1p60F, 0x1p126F, 3.3e38F, -8e36F,    kInf, 8e36F};
  const auto m = static_cast<std::int64_t>(values.size());
  std::vector<float> rows(values.size() * 8);
  for (std::size_t i = 0; i < values.size(); ++i) rows[i * 8] = values[i];
  struct Chain {
    const char* name;
    Expr (*apply)(Expr y);
    bool fused;  // whether the whole epilogue fuses into the matmul
  };
  const Chain kChains[] = {
      {"y / 1e-40", [](Expr y) { return y / 1e-40; }, false},
      {"y / 3", [](Expr y) { return y / 3.0; }, false},
      {"y / 3e38", [](Expr y) { return y / 3e38; }, false},
      {"y / 2^127", [](Expr y) { return y / 0x1p127; }, false},  // 2^-127 is subnormal
      {"y / 2^-149", [](Expr y) { return y / 0x1p-149; }, false},
      {"y / 0", [](Expr y) { return y / 0.0; }, false},
      {"3 / y", [](Expr y) { return 3.0 / y; }, false},
      {"y * 1e-30 * 1e-30", [](Expr y) { return y * 1e-30 * 1e-30; }, false},
      {"y * 1e30 * 1e30", [](Expr y) { return y * 1e30 * 1e30; }, false},
      {"y * 1e30 / 1e30", [](Expr y) { return y * 1e30 / 1e30; }, false},
      {"y * 2^100 / 2^100", [](Expr y) { return y * 0x1p100 / 0x1p100; }, false},
      {"y / 4 / 4", [](Expr y) { return y / 4.0 / 4.0; }, false},  // 9 units of the smallest subnormal become 2, then 0
      {"(y / 3 + 1) * 0.3", [](Expr y) { return (y / 3.0 + 1.0) * 0.3; }, false},
      {"y * 0", [](Expr y) { return y * 0.0; }, true},
      {"0.37 * y", [](Expr y) { return 0.37 * y; }, true},
      {"y * -1e-40", [](Expr y) { return y * -1e-40; }, true},
      {"y / 4", [](Expr y) { return y / 4.0; }, true},
      {"y / -2^126", [](Expr y) { return y / -0x1p126; }, true},
      {"y / 2^-127", [](Expr y) { return y / 0x1p-127; }, true},
  };
  for (const Chain& chain : kChains) {
    for (const bool packed : {true, false}) {
      Graph g;
      Expr x = g.input("x", f32({m, 8}));
      Expr w = packed ? g.param("w", f32({8, 20})) : g.input("w", f32({8, 20}));
      g.set_outputs({chain.apply(g.matmul(x, w))});
      const NamedTensors given{{"x", Tensor::of<float>({m, 8}, rows)},
                               {"w", Tensor::of<float>({8, 20}, std::vector<float>(160, 1.0F))}};
      const std::vector<float> expected = evaluate(g, given)[0].to_f32();
      for (const std::string& isa : test::isas()) {
        for (const bool skip_fusion : {false, true}) {
          const std::string weight = packed ? ", packed, " : ", ";
          const std::string fusion = skip_fusion ? ", not fused" : "";
          INFO(std::string(chain.name), weight, isa, fusion);
          CompileOptions options;
          options.fusion.skip_fusion = skip_fusion;
          CompiledGraph f = Session().with_isa(isa).compile_with(g, options);
          if (packed) f.set_param("w", given.at("w"));
          const std::vector<float> got = f.run_typed(inputs_of(g, given))[0].to_f32();
          for (std::size_t i = 0; i < got.size(); ++i) {
            if (std::isnan(got[i]) && std::isnan(expected[i])) continue;
            CHECK_MESSAGE(std::bit_cast<std::uint32_t>(got[i]) == std::bit_cast<std::uint32_t>(expected[i]), "of ",
                          values[i / 20], ": ", got[i], ", not ", expected[i]);
          }
          // Ops that do not fuse run on the elementwise kernels.
          const std::vector<Tensor> held = [&] {
            std::vector<Tensor> out;
            for (const IoInfo& in : f.inputs()) out.push_back(given.at(in.name));
            return out;
          }();
          std::vector<TensorView> views;
          for (const Tensor& t : held) views.push_back(t.view());
          const std::vector<NodeTime> steps = f.profile(views);
          CHECK(steps[0].kernel.starts_with(packed ? "gemm_packed_f32" : "gemm_strided_f32"));
          for (std::size_t i = 1; i < steps.size(); ++i) CHECK(steps[i].kernel.starts_with("tape"));
          if (!skip_fusion) CHECK((steps.size() == 1) == chain.fused);
        }
      }
    }
  }
}

TEST_CASE("cpu: a scaled product has the bits of a product and a scale") {
  for (double scale : {0.37, 1.0 / 3.0, 8.0}) {
    for (const bool divide : {false, true}) {
      std::vector<Tensor> results;
      for (const bool skip_fusion : {false, true}) {
        Graph g;
        Expr y = g.matmul(g.input("x", f32({7, 40})), g.param("w", f32({40, 50})));
        g.set_outputs({(divide ? y / scale : y * scale) + g.param("b", f32({50}))});
        const NamedTensors values = values_for(g);
        CompileOptions options;
        options.fusion.skip_fusion = skip_fusion;
        CompiledGraph f = Session().compile_with(g, options);
        for (const char* name : {"w", "b"}) f.set_param(name, values.at(name));
        results.push_back(f.run_typed(inputs_of(g, values))[0]);
      }
      const std::string sign = divide ? "y / " : "y * ";
      INFO(sign, scale);
      CHECK(results[0].identical(results[1]));
    }
  }
}

TEST_CASE("cpu: an encoder layer runs on its tuned kernels alone") {
  for (MaskKind mask : {MaskKind::None, MaskKind::Custom}) {
    for (std::int64_t seq : {1, 5, 16}) {
      const std::string kernels = expect_agrees(encoder_layer(2, seq, 4, 8, 48, mask));
      INFO(kernels);
      CHECK(count(kernels, "gemm_packed_f32") == 4);  // q, k and v are one matmul
      CHECK(count(kernels, "attention_f32") == 1);
      CHECK(count(kernels, "generic") == 0);
      CHECK(count(kernels, "copy") == 0);  // attention reads its slices in place
    }
  }
}

TEST_CASE("cpu: a decoder layer") {
  Graph g("decoder");
  const std::int64_t batch = 2, seq = 6, heads = 4, kv = 2, d = 8, inner = 24, e = heads * d;
  std::vector<Expr> x{
      g.input("x", f32({batch, seq, e})), g.param("ln1", f32({e})),           g.param("w_q", f32({e, e})),
      g.param("w_k", f32({e, kv * d})),   g.param("w_v", f32({e, kv * d})),   g.param("w_o", f32({e, e})),
      g.param("ln2", f32({e})),           g.param("w_gate", f32({e, inner})), g.param("w_up", f32({e, inner})),
      g.param("w_down", f32({inner, e})), g.input("cos", f32({seq, d / 2})),  g.input("sin", f32({seq, d / 2}))};
  g.set_outputs({g.llama_decoder_block({heads, kv, d, MaskKind::Causal, 1e-6}, x)});
  const std::string kernels = expect_agrees(g);
  INFO(kernels);
  CHECK(count(kernels, "generic") == 0);
  CHECK(count(kernels, "rope_f32") == 2);
}

TEST_CASE("cpu: products of run-time operands through transposed and sliced views") {
  Graph g;
  Expr q = g.input("q", f32({2, 5, 3, 8})), k = g.input("k", f32({2, 7, 3, 8})), a = g.input("a", f32({6, 9})),
       b = g.input("b", f32({9, 6}));
  Expr scores = g.matmul(g.transpose(q, {0, 2, 1, 3}), g.transpose(k, {0, 2, 3, 1}));  // [2, 3, 5, 7]
  g.set_outputs({g.softmax(scores), g.matmul(g.t(a), g.t(b)), g.matmul(g.narrow(a, 1, 2, 4), g.narrow(b, 0, 1, 4)),
                 g.matmul(a, b) + 1.0, g.sum(g.transpose(q, {3, 1, 0, 2}), {1}), g.reverse(g.narrow(a, 0, 1, 3), {1})});
  expect_agrees(g);
}

TEST_CASE("cpu: a kernel never writes over an operand it still reads") {
  Graph g;
  Expr x = g.input("x", f32({37, 96})), w = g.param("w", f32({96, 96})), gamma = g.param("gamma", f32({96})),
       beta = g.param("beta", f32({96}));
  Expr h = g.relu(x);
  Expr y = g.matmul(h, w) + h;  // the residual is the matmul's own operand
  Expr z = g.relu(y), wide = g.expand(g.reshape(g.narrow(z, 0, 0, 1), {96}), {37, 96});
  g.set_outputs({y, g.rms_norm(z + z, gamma, beta), z * wide, g.tanh(z) * z});
  expect_agrees(g);
}

TEST_CASE("cpu: an operand that is another one too is not written over") {
  Graph g;
  Expr x = g.input("x", f32({96})), r = g.input("r", f32({96}));
  Expr next = g.mod(g.iota(Shape({96}, DType::I32), 0) + 1, 96);
  Expr h = g.tanh(x), places = g.mod(next * 5, 96);
  Expr a = g.tanh(r), b = g.sin(r), c = g.cos(r), d = g.exp(r);
  g.set_outputs({g.scatter_add(h, next, h), g.scatter(ScatterKind::Set, places, places, places),  //
                 g.layer_norm(a + b, b, b), g.rms_norm(c + d, c, d)});
  expect_agrees(g);
}

TEST_CASE("cpu: states are read before they are written, and may change places") {
  Graph g;
  Expr x = g.input("x", f32({3}));
  Expr a = g.state("a", Tensor::of<float>({3}, std::vector<float>{1, 2, 3})),
       b = g.state("b", Tensor::of<float>({3}, std::vector<float>{4, 5, 6}));
  Expr n = g.state("n", Tensor::zeros(f32({4, 3})));
  Expr at = g.constant(Tensor::of<std::int32_t>({2}, std::vector<std::int32_t>{2, 0}));
  g.set_state("a", b);
  g.set_state("b", a);
  g.set_state("n", g.dynamic_update_slice(n, g.reshape(x, {1, 3}), at));
  g.set_outputs({a + x, a});
  for (int threads : {1, 2}) {
    CompiledGraph f = Session().with_threads(threads).compile(g);
    NamedTensors states, in{{"x", Tensor::of<float>({3}, std::vector<float>{10, 20, 30})}};
    for (int run = 0; run < 3; ++run) {
      NamedTensors values = in;
      for (const auto& [name, t] : states) values.emplace(name, t);
      const EvaluateResult expected = evaluate_with_states(g, values);
      const std::vector<Tensor> got = f.run_typed(in);
      for (std::size_t i = 0; i < got.size(); ++i) CHECK(test::distance(got[i], expected.outputs[i]) == 0);
      for (const auto& [name, t] : expected.states) CHECK(test::distance(f.read_state(name), t) == 0);
      states = expected.states;
    }
  }
}

TEST_CASE("cpu: a state takes the old value of one that is written in the same run") {
  Graph g;
  Expr x = g.input("x", f32({3}));
  Expr a = g.state("a", Tensor::of<float>({3}, std::vector<float>{1, 2, 3}));
  g.state("b", Tensor::of<float>({3}, std::vector<float>{4, 5, 6}));
  g.set_state("a", x);
  g.set_state("b", a);
  g.set_outputs({x + 1.0});
  CompiledGraph f = Session().compile(std::move(g));
  f.run({{"x", {10, 20, 30}}});
  CHECK(f.read_state("b").to_f32() == std::vector<float>{1, 2, 3});
  CHECK(f.read_state("a").to_f32() == std::vector<float>{10, 20, 30});
}

TEST_CASE("cpu: threads do not change results") {
  const Graph g = encoder_layer(2, 77, 4, 16, 256, MaskKind::None);
  const NamedTensors values = values_for(g);
  const Tensor one = compiled(g, values, 1).run_typed(inputs_of(g, values))[0];
  for (int threads : {2, 3, 5}) {
    CompiledGraph f = compiled(g, values, threads);
    for (int i = 0; i < 20; ++i) CHECK(f.run_typed(inputs_of(g, values))[0].identical(one));
  }
}

TEST_CASE("cpu: a layer written out of primitives runs on the kernels of the block") {
  const std::string kernels = expect_agrees(test::exported_encoder_layer(2, 9, 2, 8, 12), 5e-5);
  // The mask arithmetic is separate here; the block does it inside.
  CHECK(kernels ==
        "gemm_packed_f32 tape_region attention_f32 gemm_packed_f32 residual_layer_norm_f32 gemm_packed_f32 "
        "gemm_packed_f32 residual_layer_norm_f32 ");
}

}  // namespace rlx
