// Clones run concurrently on several threads, with random delays in their kernels. Every result equals that of a single
// undisturbed thread, bit for bit. The thread sanitizer runs this file too.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "rlx/backends/cpu/executable.h"
#include "rlx/backends/cpu/matmul/matmul_kernels.h"
#include "rlx/device/host_device.h"
#include "rlx/device/registry.h"
#include "rlx/ir/ops/blocks.h"
#include "rlx/runtime/session.h"

namespace rlx {
namespace {

std::atomic<long> delays{0};

// Delays kernels at random, differently on each thread and in each run.
void jitter() {
  static std::atomic<std::uint64_t> seeds{1};
  thread_local std::uint64_t state = seeds.fetch_add(1) * 0x9e3779b97f4a7c15U;
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  if (state % 8 == 0) std::this_thread::yield();
  delays.fetch_add(1, std::memory_order_relaxed);
  if (state % 64 == 1) std::this_thread::sleep_for(std::chrono::microseconds(state / 64 % 300));
}

template <auto Member>
struct Delayed;
template <class R, class... A, R (*cpu::KernelTable::*Member)(A...)>
struct Delayed<Member> {
  static inline R (*original)(A...) = nullptr;
  static R call(A... a) {
    jitter();
    return original(a...);
  }
  static void apply(cpu::KernelTable& t) {
    original = t.*Member;
    t.*Member = call;
  }
};

// The tiles of the records of packed matmuls, with delays.
struct DelayedTiles {
  using Tile = cpu::MatmulTile;
  static constexpr int kVecs = cpu::kMatmulMaxVecs, kRows = cpu::kMatmulMaxRows;
  static inline const cpu::MatmulKernel* original = nullptr;
  static inline cpu::MatmulKernel records[cpu::kNumPackedBKernels];

  template <int kRecord, int kTile>
  static void call(const cpu::MatmulTileCall& c) {
    jitter();
    original[kRecord].tile[kTile / kVecs / kRows][kTile / kRows % kVecs][kTile % kRows](c);
  }
  template <int kRecord, int... kTile>
  static void delay(std::integer_sequence<int, kTile...>) {
    cpu::MatmulKernel& r = records[kRecord] = original[kRecord];
    const auto replace = [&](Tile& tile, Tile with) { tile = tile == nullptr ? nullptr : with; };
    (replace(r.tile[kTile / kVecs / kRows][kTile / kRows % kVecs][kTile % kRows], &call<kRecord, kTile>), ...);
  }
  template <int... kRecord>
  static void apply(cpu::KernelTable& t, std::integer_sequence<int, kRecord...>) {
    original = t.packed_b;
    (delay<kRecord>(std::make_integer_sequence<int, cpu::kMatmulTileKinds * kVecs * kRows>{}), ...);
    t.packed_b = records;
  }
};

// `isa` is that of the target, for which the compiler packs the weights (RLX_CPU_ISA): one in a process.
const cpu::KernelTable& delayed_kernels(cpu::Isa isa) {
  static const cpu::KernelTable table = [isa] {
    using T = cpu::KernelTable;
    T t = cpu::kernels_for(isa);
    Delayed<&T::pack_b_f32>::apply(t);
    DelayedTiles::apply(t, std::make_integer_sequence<int, cpu::kNumPackedBKernels>{});
    Delayed<&T::attention_f32>::apply(t), Delayed<&T::layer_norm_f32>::apply(t), Delayed<&T::softmax_f32>::apply(t);
    Delayed<&T::tape_run>::apply(t), Delayed<&T::reduce_f32>::apply(t);
    Delayed<&T::strided_copy>::apply(t);
    return t;
  }();
  return table;
}

class DelayedCpu final : public Backend {
 public:
  std::string_view name() const override { return "cpu with delays"; }
  Presence probe(Device) const noexcept override { return {1}; }
  std::shared_ptr<OpenDevice> open(DeviceId id, const DeviceOptions&) const override { return open_host_device(id); }
  std::shared_ptr<const Target> target(const BackendOptions& o) const override {
    return backend_for(Device::Cpu)->target(o);
  }
  std::unique_ptr<const Executable> compile_lir(LirModule lir, const BackendOptions& o) const override {
    return std::make_unique<cpu::CpuExecutable>(std::move(lir), delayed_kernels(cpu::parse_isa(o.isa)), o);
  }
};

std::vector<float> ramp(std::size_t n, int seed) {
  std::vector<float> v(n);
  for (std::size_t i = 0; i < n; ++i)
    v[i] = 0.01F * static_cast<float>(static_cast<int>((i * 31 + static_cast<std::size_t>(seed) * 17) % 23) - 11);
  return v;
}

// An encoder layer over [2, seq] tokens. The state accumulates the results of the runs.
Graph encoder() {
  Graph g("encoder");
  Dim seq = g.symbol("seq", {.min = 1, .max = 64});
  Expr x = g.gather(g.param("table", {{50, 32}, DType::F32}), g.input("ids", {{2, seq}, DType::I32}));
  ops::EncoderBlock block;
  block.num_heads = 2, block.head_dim = 16;
  std::vector<Expr> operands{x};
  auto add = [&](const std::string& name, Dims dims) {
    operands.push_back(g.param(name, {std::move(dims), DType::F32}));
  };
  for (std::string n : {"q", "k", "v", "o"}) add(n, {32, 32}), add(n + "_bias", {32});
  add("g1", {32}), add("b1", {32}), add("up", {32, 64}), add("up_bias", {64}), add("down", {64, 32}),
      add("down_bias", {32});
  add("g2", {32}), add("b2", {32});
  Expr y = g.encoder_block(block, operands);
  Expr pooled = g.mean(y, {1}) + g.reshape(g.sum(g.softmax(g.matmul(y, g.t(y)), -1), {1, 2}), {2, 1});
  g.set_state("sum", g.state("sum", Tensor::zeros({{2, 32}, DType::F32})) + pooled);
  g.set_outputs({pooled});
  return g;
}

void set_weights(CompiledGraph& f) {
  int seed = 0;
  for (const IoInfo& p : f.params())
    f.set_param(p.name, ramp(static_cast<std::size_t>(p.shape.num_elements()), ++seed));
}

Tensor ids_of(std::int64_t seq, int seed) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(2 * seq));
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<std::int32_t>((i * 7 + static_cast<std::size_t>(seed) * 3) % 50);
  return Tensor::of<std::int32_t>({2, seq}, ids);
}

constexpr std::int64_t kLengths[] = {1, 5, 24, 64};
constexpr int kInputs = 4;  // one of each length

// The results of the runs with the initial weights, and with other weights "down" and "v".
struct Expected {
  std::vector<std::vector<float>> first, second;
};

void set_others(CompiledGraph& f) {
  f.set_param("down", ramp(64 * 32, 99));
  f.set_param("v", ramp(32 * 32, 98));  // packed together with q and k
}

Expected expected_of(CompiledGraph f) {
  Expected e;
  for (int i = 0; i < kInputs; ++i) e.first.push_back(f.run_typed({{"ids", ids_of(kLengths[i], i)}})[0].to_f32());
  set_others(f);
  for (int i = 0; i < kInputs; ++i) e.second.push_back(f.run_typed({{"ids", ids_of(kLengths[i], i)}})[0].to_f32());
  return e;
}

// One runner: runs in its own order and, if `changes`, sets other weights halfway. Returns the number of wrong results.
int exercise(CompiledGraph f, int self, bool changes, const Expected& expected) {
  int wrong = 0;
  std::vector<float> total(64, 0.0F), out(64);
  f.reset();
  for (int run = 0; run < 32; ++run) {
    if (changes && run == 16) set_others(f);
    const int i = (run * (self % 2 == 0 ? 1 : 3) + self) % kInputs;
    const Tensor ids = ids_of(kLengths[i], i);
    const std::vector<float>& want = changes && run >= 16 ? expected.second[static_cast<std::size_t>(i)]
                                                          : expected.first[static_cast<std::size_t>(i)];
    const std::vector<std::int64_t> dims = ids.dims();
    const TensorView in{ids.data(), DType::I32, dims, ids.size_bytes()};
    if (run % 3 == 0) {
      out = f.run_typed({{"ids", ids}})[0].to_f32();
    } else if (run % 3 == 1) {
      const MutableTensorView room{out.data(), DType::F32, {}, out.size() * 4};
      f.run_into({&in, 1}, {&room, 1});
    } else {
      const Slot slot = f.run_slots({&in, 1})[0];
      const auto* from = reinterpret_cast<const float*>(f.arena_ptr() + slot.offset);
      out.assign(from, from + slot.count);
    }
    wrong += out != want;
    for (std::size_t k = 0; k < total.size(); ++k) total[k] += want[k];
    wrong += f.read_state("sum").to_f32() != total;
    // a clone is made and destroyed here
    if (run == 5 && self < 2) wrong += exercise(f.clone(), self + 4, false, expected);
  }
  return wrong;
}

}  // namespace

TEST_CASE("clones on several threads with delayed kernels: every result is that of one quiet thread") {
  CompiledGraph quiet = Session().with_threads(1).compile(encoder());
  set_weights(quiet);
  const Expected expected = expected_of(std::move(quiet));
  register_backend(Device::OpenGl, std::make_shared<DelayedCpu>());
  for (int threads : {1, 2, 3}) {  // all clones share one pool: one clone gets it, the others run on their own thread
    CAPTURE(threads);
    CompiledGraph f = Session(Device::OpenGl).with_threads(threads).compile(encoder());
    set_weights(f);
    std::vector<int> wrong(4, 0);
    std::vector<std::thread> runners;
    for (int t = 0; t < 4; ++t)  // shapes are compiled and weights are packed while others run
      runners.emplace_back([&wrong, &expected, t, c = f.clone()]() mutable {
        wrong[static_cast<std::size_t>(t)] = exercise(std::move(c), t, t % 2 == 1, expected);
      });
    const int own = exercise(f.clone(), 4, false, expected);
    for (std::thread& r : runners) r.join();
    CHECK(wrong == std::vector<int>(4, 0));
    CHECK(own == 0);
    // All clones are gone; the original sets a weight that it shared with them.
    CHECK(exercise(std::move(f), 0, true, expected) == 0);
  }
  register_backend(Device::OpenGl, nullptr);
  CHECK(delays.load() > 1000);  // checks that the delayed kernels ran
}

}  // namespace rlx
