// Regions of 16-bit floats and of bitcasts: one pass gives the bits of separate ops. Rounding in registers equals
// rounding at a store.
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>

#include <doctest/doctest.h>

#include "rlx/functions/floats.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/runtime/session.h"
#include "tests/unit/cpu/kernel_test.h"

namespace rlx::cpu::test {
namespace {

Tensor half_draw(DType t, std::vector<std::int64_t> dims, unsigned seed) {
  Tensor x = Tensor::zeros(Shape(Dims(dims.begin(), dims.end()), t));
  std::mt19937 rng(seed);
  std::normal_distribution<double> normal(0, 2);
  for (std::int64_t i = 0; i < x.num_elements(); ++i) {
    const double special[] = {0.0, -0.0, HUGE_VAL, -HUGE_VAL, NAN, 6e-8, -3e-39, 60000};
    x.set(i, rng() % 6 == 0 ? special[rng() % 8] : normal(rng));
  }
  return x;
}

using HalfMaker = std::vector<Expr> (*)(Graph&, const std::vector<Expr>&);

/// Compiles the graph as regions and op by op, and compares bits; all NaN are equal.
void check_half_region(const std::vector<Tensor>& in, HalfMaker make, std::size_t regions = 1, std::size_t others = 0) {
  Graph g;
  std::vector<Expr> x;
  NamedTensors named;
  for (std::size_t i = 0; i < in.size(); ++i) {
    x.push_back(g.input("x" + std::to_string(i), in[i].shape()));
    named.emplace("x" + std::to_string(i), in[i]);
  }
  g.set_outputs(make(g, x));
  for (const KernelTable* t : tables()) {
    const std::string isa(isa_name(t->isa));
    CAPTURE(isa);
    CompileOptions apart;
    apart.fusion.unfuse_elementwise_regions = true;
    const std::vector<Tensor> want = Session(Device::Cpu).with_isa(isa).compile_with(g, apart).run_typed(named);
    for (const int threads : {1, 2}) {
      CAPTURE(threads);
      CompiledGraph f = Session(Device::Cpu).with_isa(isa).with_threads(threads).compile(g);
      const LirModule& lir = f.compile_result().lir;
      std::size_t found = 0;
      for (const LirStep& s : lir.plan.schedule)
        if (lir.graph.node(s.node).kind() == OpKind::ElementwiseRegion) ++found;
      CHECK(found == regions);
      CHECK(lir.plan.schedule.size() == regions + others);
      const std::vector<Tensor> got = f.run_typed(named);
      for (std::size_t o = 0; o < got.size(); ++o) {
        std::int64_t differ = 0;
        const std::size_t bytes = got[o].size_bytes() / static_cast<std::size_t>(got[o].num_elements());
        for (std::int64_t i = 0; i < got[o].num_elements(); ++i) {
          const std::size_t at = static_cast<std::size_t>(i) * bytes;
          const bool same = std::memcmp(static_cast<const std::byte*>(got[o].data()) + at,
                                        static_cast<const std::byte*>(want[o].data()) + at, bytes) == 0;
          differ += same || (std::isnan(got[o].at(i)) && std::isnan(want[o].at(i))) ? 0 : 1;
        }
        CHECK(differ == 0);
      }
    }
  }
}

std::vector<Expr> half_chain(Graph& g, const std::vector<Expr>& x) {
  const Expr sum = x[0] * x[1] + x[2], gate = g.silu(sum) * 0.3 - x[0];
  const Expr far = g.max(g.exp(gate), g.abs(x[2])) / (x[1] * x[1] + 1.0);
  return {g.where(g.gt(gate, x[2]), far - gate, g.tanh(far) * sum)};
}
std::vector<Expr> half_casts(Graph& g, const std::vector<Expr>& x) {
  const Expr wide = g.cast(x[0] * 1.7, DType::F32) + g.cast(x[1], DType::F32) / 3.0;
  const DType t = x[0].dtype(), other = t == DType::BF16 ? DType::F16 : DType::BF16;
  const Expr back = g.cast(wide, t), third = g.cast(back, other) * g.cast(x[2], other);
  const Expr counted = g.cast(back - x[1], DType::I32);
  return {g.cast(third, DType::F32) + g.cast(g.cast(counted, DType::Bool), DType::F32)};
}
std::vector<Expr> half_functions(Graph& g, const std::vector<Expr>& x) {
  const Expr a = g.leaky_relu(g.clamp(x[0] + x[1], -30.0, 30.0) - 0.5, 0.01);
  return {g.floor(a * 3.1) + g.sqrt(g.abs(a)) - g.relu(g.neg(x[2] / a)) * g.erf(a)};
}

TEST_CASE("half regions: the bits of op after op, over lengths around blocks and vectors") {
  for (const DType t : {DType::BF16, DType::F16})
    for (const std::int64_t n : {1, 7, 33, 256, 1031, 9001}) {
      CAPTURE(dtype_name(t));
      CAPTURE(n);
      for (const HalfMaker make : {half_chain, half_casts, half_functions})
        check_half_region({half_draw(t, {n}, 1), half_draw(t, {n}, 2), half_draw(t, {n}, 3)}, make);
    }
}

TEST_CASE("half regions: operands that are broadcast or lie in strides") {
  for (const DType t : {DType::BF16, DType::F16}) {
    check_half_region({half_draw(t, {5, 300}, 1), half_draw(t, {300}, 2), half_draw(t, {5, 1}, 3)}, half_chain, 2, 1);
    check_half_region(
        {half_draw(t, {70, 33}, 1), half_draw(t, {33, 70}, 2)},
        [](Graph& g, const std::vector<Expr>& x) {
          const Expr turned = g.transpose(x[0], {1, 0});
          return std::vector<Expr>{g.exp(turned * x[1]) - turned};
        },
        1, 1);
  }
}

template <class T>
std::vector<Expr> bits_and_numbers(Graph& g, const std::vector<Expr>& x) {
  const DType whole = sizeof(T) == 4 ? DType::I32 : DType::I64;
  const Expr bits = g.bitcast(x[0] * 1.5, whole), next = g.bit_xor(bits, g.bitcast(x[1], whole));
  return {g.bitcast(g.bit_and(next, bits + 7), x[0].dtype()) + x[1], bits};
}
template <class T>
void check_bits(DType t) {
  for (const std::int64_t n : {1, 7, 33, 256, 1031, 9001}) {
    CAPTURE(n);
    const std::vector<Tensor> in{half_draw(t, {n}, 1), half_draw(t, {n}, 2)};
    check_half_region(in, bits_and_numbers<T>);
    check_half_region(
        in, [](Graph&, const std::vector<Expr>& x) { return std::vector<Expr>{floats::nextafter(x[0], x[1])}; });
    Graph g;
    const Expr x = g.input("x", in[0].shape()), y = g.input("y", in[1].shape());
    g.set_outputs({floats::nextafter(x, y)});
    const Tensor got = Session(Device::Cpu).compile(g).run_typed({{"x", in[0]}, {"y", in[1]}})[0];
    std::int64_t differ = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const double want = static_cast<double>(std::nextafter(static_cast<T>(in[0].at(i)), static_cast<T>(in[1].at(i))));
      const bool same =
          std::isnan(want) ? std::isnan(got.at(i)) : got.at(i) == want && std::signbit(got.at(i)) == std::signbit(want);
      differ += same ? 0 : 1;
    }
    CHECK(differ == 0);
  }
}

TEST_CASE("bits in regions: a Bitcast of the same width is one of their ops") {
  check_bits<float>(DType::F32);
  check_bits<double>(DType::F64);
}

TEST_CASE("half regions: rounding in registers leaves what a store and a load leave") {
  constexpr std::int64_t kHigh = 65536;
  const std::uint32_t lows[] = {0, 1, 0x0fff, 0x1000, 0x1001, 0x3000, 0x7fff, 0x8000, 0x8001, 0xffff};
  std::vector<float> x, minus(kHigh, -0.0F);
  for (std::uint32_t i = 0; i < kHigh; ++i) x.push_back(std::bit_cast<float>(i << 16 | lows[i * 7919 / 64 % 10]));
  for (const KernelTable* t : tables())
    for (const bool bf16 : {true, false}) {
      CAPTURE(isa_name(t->isa));
      CAPTURE(bf16);
      Tape tape;
      tape.rank = 1, tape.dims[0] = kHigh, tape.num_inputs = 2;
      tape.inputs[0] = {TapeType::F32, {1}};
      tape.inputs[1] = {TapeType::F32, {1}};
      // Alone, and as the second step after an add.
      TapeInstr instrs[2];
      instrs[0].op = bf16 ? TapeOp::RoundBF16 : TapeOp::RoundF16, instrs[0].dst = 2, instrs[0].a = 0;
      instrs[1].op = TapeOp::Add, instrs[1].dst = 3, instrs[1].a = 0, instrs[1].b = 1, instrs[1].c = kTapeImm;
      instrs[1].then = bf16 ? TapeThen::RoundBF16 : TapeThen::RoundF16;
      tape.instrs = instrs, tape.num_instrs = 2, tape.num_outputs = 3;
      tape.outputs[0] = {TapeType::F32, 2};
      tape.outputs[1] = {TapeType::F32, 3};
      tape.outputs[2] = {bf16 ? TapeType::BF16 : TapeType::F16, 0};
      tape_prepare(tape);
      std::vector<float> alone(kHigh), joined(kHigh), loaded(kHigh);
      std::vector<std::uint16_t> stored(kHigh);
      const void* in[] = {x.data(), minus.data()};
      void* out[] = {alone.data(), joined.data(), stored.data()};
      t->tape_run(tape, in, out, 0, kHigh);
      Tape load;
      load.rank = 1, load.dims[0] = kHigh, load.num_inputs = 1;
      load.inputs[0] = {bf16 ? TapeType::BF16 : TapeType::F16, {1}};
      load.num_outputs = 1, load.outputs[0] = {TapeType::F32, 0};
      tape_prepare(load);
      const void* from[] = {stored.data()};
      void* to[] = {loaded.data()};
      t->tape_run(load, from, to, 0, kHigh);
      CHECK(std::memcmp(alone.data(), loaded.data(), kHigh * 4) == 0);
      CHECK(std::memcmp(joined.data(), loaded.data(), kHigh * 4) == 0);
    }
}

}  // namespace
}  // namespace rlx::cpu::test
