// Recurrent layers against numbers of ONNX Runtime and PyTorch, scans against single steps, causal convolution in
// parts.
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "rlx/functions/sequence.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/sequence.h"
#include "rlx/runtime/session.h"
#include "rlx/transforms/reverse.h"
#include "rlx/transforms/vmap.h"
#include "tests/support/error_text.h"
#include "tests/support/needs.h"
#include "tests/support/run_op.h"
#include "tests/support/values.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;
using test::expect_close;
using test::infer_error;

// sin(f (i + 1)) of element i.
Tensor wave(std::vector<std::int64_t> dims, double f, DType t = DType::F32) {
  Tensor out = Tensor::zeros(Shape(Dims(dims.begin(), dims.end()), t));
  for (std::int64_t i = 0; i < out.num_elements(); ++i) out.set(i, std::sin(f * static_cast<double>(i + 1)));
  return out;
}

// Compares the reference rule and the cpu with the numbers.
void check_results(const Graph& g, const NamedTensors& in, const std::vector<std::vector<double>>& want) {
  const auto by_rule = evaluate(g, in);
  CompiledGraph f = Session().with_threads(2).compile(Graph(g));
  const auto by_cpu = f.run_typed(in);
  for (std::size_t r = 0; r < want.size(); ++r) {
    CAPTURE(r);
    expect_close(by_rule[r], want[r], 2e-6);
    expect_close(by_cpu[r], want[r], 2e-6);
  }
}

// -- the ONNX ops: 3 steps, 2 sequences, 2 inputs, 2 hidden units, both directions; numbers of ONNX Runtime 1.x in F32
// --

struct OnnxCase {
  bool lengths = false, peepholes = false;
  std::vector<std::int32_t> steps{2, 3};
};
template <class Op>
void check_onnx(Op op, std::int64_t gates, const OnnxCase& c, const std::vector<std::vector<double>>& want) {
  Graph g;
  NamedTensors in;
  std::vector<std::pair<std::string_view, Expr>> operands;
  const auto add = [&](const char* name, Tensor value) {
    operands.emplace_back(name, g.input(name, value.shape()));
    in.emplace(name, std::move(value));
  };
  add("x", wave({3, 2, 2}, 0.7));
  add("w", wave({2, gates * 2, 2}, 0.3));
  add("r", wave({2, gates * 2, 2}, 0.9));
  add("bias", wave({2, gates * 4}, 1.1));
  if (c.lengths) add("lengths", test::ints({2}, c.steps));
  add("h0", wave({2, 2, 2}, 1.3));
  if (gates == 4) add("c0", wave({2, 2, 2}, 1.7));
  if (c.peepholes) add("peepholes", wave({2, 6}, 2.1));
  op.direction = RecurrentDirection::Bidirectional;
  const Expr y = g.add_named(op, operands);
  std::vector<Value> outputs;
  for (std::uint32_t r = 0; r < want.size(); ++r) outputs.push_back(y.result(r));
  g.set_outputs(outputs);
  check_results(g, in, want);
}

TEST_CASE("lstm: peepholes, lengths, coupled gates, clip and functions are those of ONNX") {
  check_onnx(ops::Lstm{}, 4, {true, true},
             {{-0.07676478, -0.3607843,  -0.4663008,   -0.08699413,  0.4004798, 0.02921686,  0.1985878,  0.2054404,
               0.03562052,  -0.04420803, -0.007136418, -0.007005658, 0.3849408, -0.04137447, 0.04691641, 0.04707282,
               0,           0,           -0.4416745,   -0.3965638,   0,         0,           -0.1322772, 0.596992},
              {0.03562052, -0.04420803, -0.4416745, -0.3965638, 0.4004798, 0.02921686, 0.1985878, 0.2054404},
              {0.1895696, -0.3280826, -0.652158, -0.8103912, 0.8943074, 0.04046772, 0.4028226, 0.3393528}});
  ops::Lstm coupled;
  coupled.clip = 0.4, coupled.input_forget = true;
  check_onnx(coupled, 4, {},
             {{0.06999446,  -0.1907066,  -0.3216043,  -0.01384949, 0.1693851, 0.08514035, 0.04169269,  0.1687858,
               0.1020477,   -0.01808781, -0.08184583, 0.0538545,   0.1055684, 0.01230817, -0.0595663,  0.1295523,
               -0.05668883, -0.1255552,  -0.1801297,  -0.1027201,  0.3326222, -0.2721093, -0.08597014, 0.3288453},
              {-0.05668883, -0.1255552, -0.1801297, -0.1027201, 0.1693851, 0.08514035, 0.04169269, 0.1687858},
              {-0.1160082, -0.2455708, -0.3104806, -0.1732894, 0.3137592, 0.1431822, 0.07887254, 0.321737}});
  ops::Lstm functions;
  functions.activations = {ActivationKind::HardSigmoid, ActivationKind::Softsign, ActivationKind::Tanh,
                           ActivationKind::Sigmoid,     ActivationKind::Elu,      ActivationKind::Softsign};
  functions.alpha = {0.3, 0, 0, 0, 0.5, 0}, functions.beta = {0.45, 0, 0, 0, 0, 0};
  check_onnx(functions, 4, {},
             {{0.1184471,  -0.3244216, -0.340088,  -0.03760169, 0.2325299,  0.1929627,  0.1694373,    0.1749106,
               0,          0,          0,          0,           0.08198342, 0.0606987,  -0.007015435, 0.04641126,
               0.01337065, -0.2054871, -0.2890448, -0.4289143,  0.3703585,  -0.2079957, -0.04611225,  0.3517596},
              {0.01337065, -0.2054871, -0.2890448, -0.4289143, 0.2325299, 0.1929627, 0.1694373, 0.1749106},
              {0.0287772, -0.4579739, -0.3716758, -0.6272472, 0.6955193, 0.4118116, 0.4924805, 0.4697601}});
}

TEST_CASE("gru and rnn: both places of the reset gate, clip, lengths and functions are those of ONNX") {
  check_onnx(ops::Gru{}, 3, {true},
             {{0.9388942, 0.4896068, -0.7425014, -0.7552918, 0.2521956, 0.988795,  0.2293625, 0.8821016,
               0.8004329, 0.6296828, -0.8529195, 0.04875576, 0.1912881, 0.9817817, 0.2593675, 0.7845597,
               0,         0,         -0.8548995, 0.08774948, 0,         0,         0.2792235, 0.7901284},
              {0.8004329, 0.6296828, -0.8548995, 0.08774948, 0.2521956, 0.988795, 0.2293625, 0.8821016}});
  ops::Gru behind;
  behind.linear_before_reset = true, behind.clip = 0.3;
  check_onnx(behind, 3, {},
             {{0.5558972,   0.1721556, -0.5190524, -0.3835236, 0.1791817, 0.3906271, -0.01285381, 0.1539546,
               0.1953607,   0.2228638, -0.422136,  -0.0432968, 0.096113,  0.5246875, -0.04377376, -0.03145944,
               -0.01174676, 0.1868172, -0.3664631, 0.03002135, 0.2475443, 0.697576,  0.1396075,   -0.1849454},
              {-0.01174676, 0.1868172, -0.3664631, 0.03002135, 0.1791817, 0.3906271, -0.01285381, 0.1539546}});
  ops::Rnn rnn;
  rnn.activations = {ActivationKind::HardSigmoid, ActivationKind::Softsign};
  rnn.alpha = {0.3, 0}, rnn.beta = {0.45, 0};
  check_onnx(rnn, 1, {true, false, {3, 1}},
             {{1,         0.8891072, 0.383583, 0.7326902, 0.6858117,   0.7048998, 0.6425622, 0.5487786,
               0.9860554, 0.0911116, 0,        0,         -0.5839434,  0.353183,  0,         0,
               1,         0.7090511, 0,        0,         -0.04097028, 0.6826274, 0,         0},
              {1, 0.7090511, 0.383583, 0.7326902, 0.6858117, 0.7048998, 0.6425622, 0.5487786}});
}

// -- layers: two layers in both directions, numbers of PyTorch in F64 --

struct TorchLayers {
  Graph g;
  NamedTensors in;
  std::vector<nn::RecurrentWeights> layers;
  nn::RecurrentOptions options;
  Expr x;

  TorchLayers(std::int64_t gates, DType t) {
    const auto add = [&](const std::string& name, Tensor value) {
      const Expr e = g.input(name, value.shape());
      in.emplace(name, std::move(value));
      return e;
    };
    double f = 0.3;
    for (int i = 0; i < 4; ++i) {
      const std::int64_t width = i < 2 ? 2 : 4;
      const auto weight = [&](const char* name, std::vector<std::int64_t> dims) {
        const Expr e = add(name + std::to_string(i), wave(std::move(dims), f, t));
        f += 0.21;
        return e;
      };
      const Expr w = weight("w", {gates * 2, width}), r = weight("r", {gates * 2, 2});
      const Expr b = weight("b_ih", {gates * 2}), c = weight("b_hh", {gates * 2});
      layers.push_back({w, r, b, c});
    }
    options.bidirectional = true;
    options.h0 = add("h0", wave({4, 2, 2}, 1.3, t));
    if (gates == 4) options.c0 = add("c0", wave({4, 2, 2}, 1.7, t));
    x = add("x", wave({3, 2, 2}, 0.7, t));
  }
  void check(const nn::RecurrentResult& r, const std::vector<std::vector<double>>& want) {
    std::vector<Value> outputs{r.y, r.h};
    if (want.size() > 2) outputs.push_back(r.c);
    g.set_outputs(outputs);
    check_results(g, in, want);
  }
};

TEST_CASE("nn::lstm, gru and rnn are PyTorch's layers") {
  for (DType t : {DType::F32, DType::F64}) {
    CAPTURE(dtype_name(t));
    TorchLayers lstm(4, t);
    lstm.check(nn::lstm(lstm.x, lstm.layers, lstm.options),
               {{0.02003293,  0.02564411, -0.08826268, 0.5110921,  0.04920395, 0.3075533, -0.06118089, 0.5705349,
                 -0.01988034, 0.1370214,  -0.1471839,  0.4312653,  0.02536528, 0.1744058, -0.05298433, 0.4942921,
                 -0.04400508, 0.1448948,  -0.09069417, 0.05776781, 0.04371603, 0.1394465, -0.02239584, 0.6266221},
                {-0.101746, -0.2386445, -0.04672321, -0.08414955, -0.06150972, -0.2334973, 0.1235703, -0.1586005,
                 -0.04400508, 0.1448948, 0.04371603, 0.1394465, -0.08826268, 0.5110921, -0.06118089, 0.5705349},
                {-0.8762113, -1.352562, -0.851965, -1.353145, -0.2473155, -0.6506155, 0.3836706, -0.3556165, -0.2323698,
                 0.2193676, 0.3292978, 0.1749771, -0.5798325, 1.142148, -0.4991612, 1.387524}});
    TorchLayers gru(3, t);
    gru.check(nn::gru(gru.x, gru.layers, gru.options),
              {{-0.6447155, 0.411917,  -0.9784358, 0.5738461,  0.8005849, 0.7533586, -0.9365913, 0.770988,
                -0.5911138, 0.9580972, -0.9793017, 0.7947846,  0.6803317, 0.984136,  -0.9392021, 0.9535141,
                -0.3688118, 0.9739061, -0.9377289, 0.04731467, 0.5700316, 0.9034519, -0.4846909, 0.9144648},
               {0.07254838, -0.8195606, -0.5643236, -0.665542, -0.1572497, -0.124485, -0.2727427, -0.6968558,
                -0.3688118, 0.9739061, 0.5700316, 0.9034519, -0.9784358, 0.5738461, -0.9365913, 0.770988}});
    TorchLayers rnn(1, t);
    rnn.check(nn::rnn(rnn.x, rnn.layers, rnn.options),
              {{-0.7509931, -0.9492357, 0.6922351,  0.9267139, 0.5068644, -0.8655521, 0.6552467, 0.887809,
                0.9498004,  -0.9942943, -0.4938718, 0.8026222, 0.9899079, -0.9877318, -0.424502, 0.7993736,
                0.9453002,  -0.9766586, 0.7951779,  0.9693622, 0.9622441, -0.9768962, 0.6426647, 0.9507289},
               {0.996396, 0.9997191, 0.9982767, 0.999954, 0.9997106, -0.9895703, 0.9993166, -0.9532979, 0.9453002,
                -0.9766586, 0.9622441, -0.9768962, 0.6922351, 0.9267139, 0.6552467, 0.887809}});
  }
}

TEST_CASE("cells are layers of one step, and a batch in front is the same layer") {
  const DType t = DType::F64;
  Graph g;
  NamedTensors in;
  const auto add = [&](const std::string& name, Tensor value) {
    const Expr e = g.input(name, value.shape());
    in.emplace(name, std::move(value));
    return e;
  };
  const nn::RecurrentWeights four{
      add("w4", wave({12, 2}, 0.3, t)), add("r4", wave({12, 3}, 0.4, t)), add("b4", wave({12}, 0.5, t)), {}};
  const nn::RecurrentWeights three{add("w3", wave({9, 2}, 0.3, t)), add("r3", wave({9, 3}, 0.4, t)), {}, {}};
  const nn::RecurrentWeights one{add("w1", wave({3, 2}, 0.3, t)), add("r1", wave({3, 3}, 0.4, t)), {}, {}};
  const Expr x = add("x", wave({2, 4, 2}, 0.7, t));  // [S, B, I]
  Expr h4 = g.constant(wave({4, 3}, 0.2, t)), c4 = g.constant(wave({4, 3}, 0.6, t)), h3 = h4, h1 = h4;
  nn::RecurrentOptions options;
  options.h0 = g.unsqueeze(h4, 0), options.c0 = g.unsqueeze(c4, 0);
  nn::RecurrentOptions without;
  without.h0 = options.h0, without.batch_first = true;
  const Expr turned = g.transpose(x, {1, 0, 2});
  const nn::RecurrentResult l4 = nn::lstm(x, {four}, options), l3 = nn::gru(turned, {three}, without),
                            l1 = nn::rnn(turned, {one}, without, ActivationKind::Relu);
  for (std::int64_t s = 0; s < 2; ++s) {
    const Expr row = g.squeeze(g.narrow(x, 0, s, 1), 0);
    std::tie(h4, c4) = nn::lstm_cell(row, h4, c4, four);
    h3 = nn::gru_cell(row, h3, three);
    h1 = nn::rnn_cell(row, h1, one, ActivationKind::Relu);
  }
  const auto last = [&](Expr y) { return g.squeeze(g.narrow(y, 1, 1, 1), 1); };
  g.set_outputs({h4, c4, h3, h1, g.squeeze(l4.h, 0), g.squeeze(l4.c, 0), last(l3.y), last(l1.y)});
  const auto out = evaluate(g, in);
  for (std::size_t i = 0; i < 4; ++i) expect_close(out[i + 4], out[i], 1e-14);
}

TEST_CASE("lengths outside of the sequence are clamped, and no length is no step") {
  ops::Lstm op;
  op.present.bits = 1U << 1 | 1U << 4;  // w, lengths
  const Tensor x = wave({3, 4, 2}, 0.7, DType::F64), w = wave({1, 8, 2}, 0.3, DType::F64),
               r = wave({1, 8, 2}, 0.9, DType::F64);
  const auto some = evaluate_op(op, std::vector<Tensor>{x, w, r, test::ints({4}, {-5, 0, 3, 99})});
  op.present.bits = 1U << 1;
  const auto all = evaluate_op(op, std::vector<Tensor>{x, w, r});
  for (std::int64_t b = 0; b < 4; ++b)
    for (std::int64_t j = 0; j < 2; ++j) {
      const double h = some[1].at(b * 2 + j);
      CHECK(h == (b < 2 ? 0 : all[1].at(b * 2 + j)));
    }
}

TEST_CASE("recurrences: what is wrong is said") {
  const auto f32 = [](Dims d) { return Shape(std::move(d), DType::F32); };
  ops::Lstm op;
  op.present.bits = 1U << 1;
  const std::vector<Shape> good{f32({3, 2, 5}), f32({1, 8, 5}), f32({1, 8, 2})};
  CHECK(infer_error(op, good).empty());
  CHECK(contains(infer_error(op, {f32({3, 5}), good[1], good[2]}), "x must be [S, B, I], got [3, 5] f32"));
  CHECK(contains(infer_error(op, {good[0], f32({1, 8, 4}), good[2]}), "w must be [1, 8, 5]"));
  CHECK(contains(infer_error(op, {good[0], good[1], f32({1, 7, 2})}), "r must be [1, 8, 2]"));
  CHECK(contains(infer_error(op, {good[0], good[1], Shape({1, 8, 2}, DType::F64)}), "r must be f32 like x"));
  CHECK(contains(infer_error(op, {Shape({3, 2, 5}, DType::I32), good[1], good[2]}), "x must be float"));
  op.activations = {ActivationKind::Tanh, ActivationKind::Tanh};
  CHECK(contains(infer_error(op, good), "needs 3 activations for each of 1 directions"));
  op.activations = {ActivationKind::Tanh, ActivationKind::Not, ActivationKind::Tanh};
  CHECK(contains(infer_error(op, good), "does not accept floats"));
  op.activations.clear();
  op.alpha = {1};
  CHECK(contains(infer_error(op, good), "one number for each of the 0 activations"));
  op.alpha.clear();
  op.clip = -1;
  CHECK(contains(infer_error(op, good), "clip must be above 0"));
  op.clip = test::kNan;
  CHECK(contains(infer_error(op, good), "clip must be above 0"));
  op.clip.reset();
  op.present.bits = 0;
  CHECK(contains(infer_error(op, {f32({3, 2, 5}), good[2]}), "without w, x must be the projection with 8 columns"));
  op.present.bits = 1U << 4;
  CHECK(contains(infer_error(op, {f32({3, 2, 8}), good[2], f32({2})}), "lengths must be i32 or i64"));
  CHECK(contains(infer_error(op, {f32({3, 2, 8}), good[2], Shape({3}, DType::I32)}), "lengths must be [2]"));
  ops::Gru gru;
  gru.linear_before_reset = true;
  CHECK(contains(infer_error(gru, {f32({3, 2, 6}), f32({1, 6, 2})}), "bias [D, H] is missing"));
  gru.linear_before_reset = false;
  gru.present.bits = 1U << 3;
  CHECK(contains(infer_error(gru, {f32({3, 2, 6}), f32({1, 6, 2}), f32({1, 2})}), "without w there must be no bias"));

  Graph g;
  const Expr x = g.input("x", f32({3, 2, 5})), w = g.input("w", f32({8, 5})), r = g.input("r", f32({8, 2}));
  nn::RecurrentOptions both;
  both.bidirectional = true;
  CHECK(contains(error_text([&] { nn::lstm(x, {}); }), "the weights have 0 entries"));
  CHECK(contains(error_text([&] { nn::lstm(x, {{w, r, {}, {}}}, both); }), "not a multiple of 2 directions"));
  CHECK(contains(error_text([&] { nn::lstm(x, {{g.narrow(w, 0, 0, 7), r, {}, {}}}); }), "does not hold 4 gates"));
  CHECK(contains(error_text([&] { nn::gru(2.0, {{w, r, {}, {}}}); }), "x must be a value of a graph"));
}

// -- scans --

TEST_CASE("scans in pieces are the scans step by step, also over many steps with a state to begin with") {
  const DType t = DType::F64;
  const std::int64_t steps = 75;
  ops::GatedDeltaNet delta;
  delta.present.bits = 1U << 5;
  Tensor g = wave({2, steps, 4}, 0.37, t), beta = wave({2, steps, 4}, 0.91, t);
  for (std::int64_t i = 0; i < g.num_elements(); ++i) {
    g.set(i, -0.3 * std::fabs(g.at(i)));
    beta.set(i, std::fabs(beta.at(i)));
  }
  const std::vector<Tensor> of_delta{
      wave({2, steps, 2, 3}, 0.7, t), wave({2, steps, 2, 3}, 0.5, t), wave({2, steps, 4, 5}, 0.3, t), g, beta,
      wave({2, 4, 3, 5}, 1.1, t)};
  ops::Mamba2 mamba;
  mamba.present.bits = 0b1111U << 5, mamba.dt_softplus = true;
  const std::vector<Tensor> of_mamba{wave({2, steps, 4, 3}, 0.7, t),
                                     wave({2, steps, 4}, 0.5, t),
                                     test::doubles({4}, {-0.5, -1, -2, -0.01}),
                                     wave({2, steps, 2, 6}, 0.3, t),
                                     wave({2, steps, 2, 6}, 0.4, t),
                                     wave({4, 3}, 0.9, t),
                                     wave({2, steps, 4, 3}, 0.2, t),
                                     wave({4}, 1.9, t),
                                     wave({2, 4, 3, 6}, 1.1, t)};
  test::Share share(2);
  for (std::int64_t chunk : {1, 2, 16, 64, 128}) {
    if (!share.next()) continue;
    CAPTURE(chunk);
    delta.chunk = mamba.chunk = chunk;
    test::run_op(delta, of_delta, 1e-11);
    test::run_op(mamba, of_mamba, 1e-11);
  }
}

// u = (v - k^T S) beta with equal unit keys and beta = 1 replaces the value of the key. Powers of the matrix that each
// chunk inverts would grow without bound.
TEST_CASE("the delta rule in pieces stays exact where keys repeat") {
  const std::int64_t steps = 64;
  ops::GatedDeltaNet op;
  op.chunk = 64, op.scale = 1;
  Tensor key = Tensor::zeros(Shape({1, steps, 1, 2}, DType::F32)), v = wave({1, steps, 1, 3}, 0.3);
  Tensor one = Tensor::zeros(Shape({1, steps, 1}, DType::F32)), none = Tensor::zeros(Shape({1, steps, 1}, DType::F32));
  for (std::int64_t i = 0; i < steps; ++i) key.set(2 * i, 1), one.set(i, 1);
  Graph g;
  std::vector<Expr> operands;
  NamedTensors in;
  for (const Tensor& t : {key, key, v, none, one}) {
    const std::string name = "x" + std::to_string(operands.size());
    operands.push_back(g.input(name, t.shape()));
    in.emplace(name, t);
  }
  g.set_outputs(decompose_into(g, op, operands));
  const Tensor y = evaluate(g, in)[0];
  for (std::int64_t i = 0; i < y.num_elements(); ++i) CHECK(y.at(i) == doctest::Approx(v.at(i)).epsilon(1e-5));
}

TEST_CASE("gradient graphs of recurrences and scans do not grow with the steps") {
  const auto nodes = [](std::int64_t steps, int which) {
    Graph g;
    const auto in = [&](const char* name, Dims dims) { return g.param(name, Shape(std::move(dims), DType::F32)); };
    Expr y;
    if (which == 0) {
      y = nn::lstm(in("x", {steps, 2, 3}), {{in("w", {8, 3}), in("r", {8, 2}), in("b", {8}), {}}}).y;
    } else if (which == 1) {
      y = nn::selective_scan(in("x", {1, steps, 3}), in("d", {1, steps, 3}), in("a", {3, 2}), in("b", {1, steps, 2}),
                             in("c", {1, steps, 2}))
              .y;
    } else if (which == 2) {
      y = nn::gated_delta_net(in("q", {1, steps, 1, 2}), in("k", {1, steps, 1, 2}), in("v", {1, steps, 1, 3}),
                              in("g", {1, steps, 1}), in("beta", {1, steps, 1}))
              .y;
    } else {
      y = nn::mamba2(in("x", {1, steps, 2, 3}), in("dt", {1, steps, 2}), in("a", {2}), in("b", {1, steps, 1, 2}),
                     in("c", {1, steps, 1, 2}))
              .y;
    }
    g.set_outputs({g.sum(y)});
    std::vector<Wrt> wrt;
    for (NodeId id : g.leaves(OpKind::Param)) wrt.emplace_back(std::string(g.leaf_name(id)));
    return value_and_grad(g, wrt).graph.num_nodes();
  };
  for (int which = 0; which < 4; ++which) {
    CAPTURE(which);
    const std::size_t few = nodes(256, which), many = nodes(2048, which);
    CHECK(few == many);
    CHECK(many < 400);
  }
}

TEST_CASE("a batch is folded into that of the op; with weights of each member what reads them is batched") {
  for (bool weights : {false, true}) {
    Graph g;
    const Expr x = g.input("x", Shape({4, 2, 3}, DType::F64)), w = g.input("w", Shape({8, 3}, DType::F64)),
               r = g.input("r", Shape({8, 2}, DType::F64)), v = g.input("v", Shape({2, 4, 3}, DType::F64));
    const nn::ScanResult s = nn::selective_scan(v, v, g.narrow(w, 0, 0, 3), v, v);
    g.set_outputs({nn::lstm(x, {{w, r, {}, {}}}).y, s.y});
    InAxes batched{{"x", 0}, {"v", 0}};
    if (weights) batched.emplace("w", 0);
    const Graph many = vmap(g, batched, 5).graph;
    std::size_t kept = 0;
    for (const Node& n : many.nodes()) kept += n.kind() == OpKind::Lstm || n.kind() == OpKind::SelectiveScan;
    CHECK(kept == (weights ? 1U : 2U));  // a batched w affects the matmul only, a batched a every step
  }
}

TEST_CASE("scans: what is wrong is said") {
  const auto f32 = [](Dims d) { return Shape(std::move(d), DType::F32); };
  const std::vector<Shape> good{f32({2, 3, 4}), f32({2, 3, 4}), f32({4, 5}), f32({2, 3, 5}), f32({2, 3, 5})};
  const auto but = [](std::vector<Shape> all, std::size_t i, Shape s) {
    all[i] = std::move(s);
    return all;
  };
  ops::SelectiveScan scan;
  CHECK(infer_error(scan, good).empty());
  CHECK(contains(infer_error(scan, but(good, 0, f32({3, 4}))), "x must be [B, S, H]"));
  CHECK(contains(infer_error(scan, but(good, 1, f32({2, 3, 1}))), "delta must be [2, 3, 4]"));
  CHECK(contains(infer_error(scan, but(good, 2, f32({3, 5}))), "a must be [4, 5]"));
  CHECK(contains(infer_error(scan, but(good, 4, Shape({2, 3, 5}, DType::BF16))), "c must be f32"));
  scan.present.bits = 1U << 8;
  auto started = good;
  started.push_back(f32({2, 5, 4}));
  CHECK(contains(infer_error(scan, started), "state must be [2, 4, 5] f32"));
  ops::Mamba2 mamba;
  const std::vector<Shape> of_mamba{f32({2, 3, 4, 6}), f32({2, 3, 4}), f32({4}), f32({2, 3, 2, 5}), f32({2, 3, 2, 5})};
  CHECK(infer_error(mamba, of_mamba).empty());
  CHECK(contains(infer_error(mamba, but(of_mamba, 3, f32({2, 3, 3, 5}))), "not a multiple of the groups"));
  mamba.chunk = 0;
  CHECK(contains(infer_error(mamba, of_mamba), "chunk must be between 1 and 4096"));
  ops::GatedDeltaNet delta;
  const std::vector<Shape> of_delta{f32({2, 3, 2, 6}), f32({2, 3, 2, 6}), f32({2, 3, 4, 5}), f32({2, 3, 4}),
                                    f32({2, 3, 4})};
  CHECK(infer_error(delta, of_delta).empty());
  CHECK(contains(infer_error(delta, but(of_delta, 1, f32({2, 3, 2, 5}))), "k must be [2, 3, 2, 6]"));
  CHECK(contains(infer_error(delta, but(of_delta, 2, f32({2, 3, 3, 5}))), "not a multiple of the heads of q"));
  delta.chunk = 24;
  CHECK(contains(infer_error(delta, of_delta), "chunk must be a power of two"));
  delta.chunk = 32, delta.scale = test::kInf;
  CHECK(contains(infer_error(delta, of_delta), "scale must be finite"));
  CHECK(contains(error_text([] { nn::selective_scan(1.0, 1.0, 1.0, 1.0, 1.0); }), "x must be a value of a graph"));
}

// -- causal convolution --

TEST_CASE("nn::causal_conv1d reaches back alone, and goes on where the call before it ended") {
  const Tensor x = wave({2, 5, 3}, 0.7, DType::F64), w = wave({3, 4}, 0.3, DType::F64),
               bias = wave({3}, 0.9, DType::F64);
  Graph g;
  const Expr in = g.input("x", x.shape()), filter = g.input("w", w.shape()), b = g.input("bias", bias.shape());
  nn::CausalConvOptions options;
  options.bias = b, options.activation = ActivationKind::Silu;
  const nn::CausalConvResult whole = nn::causal_conv1d(in, filter, options);
  const nn::CausalConvResult first = nn::causal_conv1d(g.narrow(in, 1, 0, 2), g.reshape(filter, {3, 1, 1, 4}), options);
  options.context = first.context;
  const nn::CausalConvResult rest = nn::causal_conv1d(g.narrow(in, 1, 2, 3), filter, options);
  g.set_outputs({whole.y, g.concat({first.y, rest.y}, 1), whole.context, rest.context});
  const auto out = evaluate(g, {{"x", x}, {"w", w}, {"bias", bias}});
  std::vector<double> want;
  for (std::int64_t n = 0; n < 2; ++n)
    for (std::int64_t t = 0; t < 5; ++t)
      for (std::int64_t c = 0; c < 3; ++c) {
        double sum = bias.at(c);
        for (std::int64_t j = 0; j < 4; ++j)
          if (t - 3 + j >= 0) sum += w.at(c * 4 + j) * x.at((n * 5 + t - 3 + j) * 3 + c);
        want.push_back(sum / (1 + std::exp(-sum)));
      }
  expect_close(out[0], want, 1e-13);
  expect_close(out[1], want, 1e-13);
  expect_close(out[3], out[2], 0);
  CHECK(contains(error_text([&] { nn::causal_conv1d(filter, filter); }), "x is [3, 4]"));
  CHECK(contains(error_text([&] { nn::causal_conv1d(in, in); }), "w is [2, 5, 3]"));
  CHECK(contains(error_text([&] { nn::causal_conv1d(1.0, filter); }), "x must be a value of a graph"));
  CHECK(contains(error_text([&] { nn::causal_conv1d(in, filter, {.context = in}); }), "context [2, 5, 3]"));
  CHECK(contains(error_text([&] { nn::causal_conv1d(in, filter, {.bias = filter}); }), "bias [3, 4]"));
}

}  // namespace
}  // namespace rlx
