// What is special to a device that takes whole programs: several devices of one plug-in, bytes that are used where they
// lie, programs kept on disk, what others see run in its order across the host, attention whose values hold NaN. Run on
// whatever plug-in is there.
#include <doctest/doctest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <mutex>
#include <thread>

#include "rlx/device/registry.h"
#include "rlx/ir/custom_op.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/ops/attention.h"
#include "rlx/runtime/device_ext.h"
#include "rlx/runtime/dlpack.h"
#include "tests/devices/test_device.h"
#include "tests/support/custom_ops.h"
#include "tests/support/error_text.h"
#include "tests/support/paths.h"
#include "tests/support/shapes.h"
#include "tests/support/values.h"

namespace rlx {
namespace {

namespace fs = std::filesystem;
using test::contains;
using test::error_text;
using test::f32;
using test::tpu_here;

bool on_the_processor() { return contains(backend_for(Device::Tpu)->describe(Device::Tpu), "(CPU plug-in)"); }

// A folder that goes with the test.
struct Folder {
  Folder() : path(fs::temp_directory_path() / concat_text("rlx-tpu-test-", ::getpid(), "-", count++)) {
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::vector<fs::path> files() const {
    std::vector<fs::path> out;
    for (const auto& entry : fs::directory_iterator(path)) out.push_back(entry.path());
    return out;
  }
  static inline int count = 0;
  fs::path path;
};

// Floats where a plug-in may use them in place, or a little beside.
struct Lent {
  explicit Lent(std::vector<float> values, std::size_t beside = 0) : room(64 + values.size() * 4) {
    const auto at = reinterpret_cast<std::uintptr_t>(room.data());
    data = reinterpret_cast<float*>(room.data() + (64 - at % 64) % 64 + beside);
    std::copy(values.begin(), values.end(), data);
  }
  std::vector<std::byte> room;
  float* data;
};

template <class T>
bool gone(const std::weak_ptr<T>& p) {  // a plug-in may let go of it on a thread of its own
  for (int i = 0; i < 500 && !p.expired(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return p.expired();
}

Tensor on_device(std::shared_ptr<Buffer> buffer, Stream& stream, const Shape& shape) {
  buffer->set_written(stream.record());
  return Tensor::on_device(std::move(buffer), shape);
}

Graph doubles() {
  Graph g("doubles");
  g.set_outputs({g.input("x", f32({4})) * 2.0});
  return g;
}

// 2 x, noting the number that the op carries.
struct Notes {
  std::mutex mutex;
  std::vector<std::int64_t> ran;
};
Notes& notes() {
  static Notes n;
  return n;
}
void note_reference(const RefArgs& a) {
  std::lock_guard lock(notes().mutex);
  notes().ran.push_back(std::get<0>(custom_attrs<std::int64_t>(a.box)));
  for (std::int64_t i = 0; i < a.in(0).num_elements(); ++i) a.out().set(i, 2 * a.in(0).at(i));
}
Expr note(Graph& g, const Expr& x, std::int64_t number) {
  static const bool once = [] {
    OpDef def = test::plain_record("test.device_note");
    def.what = "2 x, and others see it run.";
    def.trait = OpTrait::Ordered;
    def.reference = note_reference;
    register_op(def);
    return true;
  }();
  (void)once;
  return g.add(custom_op("test.device_note", number), {x});
}
std::vector<std::int64_t> taken() {
  std::lock_guard lock(notes().mutex);
  return std::exchange(notes().ran, {});
}
Expr sum_of_ranks(Graph& g, const Expr& x) { return g.all_reduce(x, ReduceKind::Sum, "data", 1); }

}  // namespace

TEST_CASE("tpu: a session on the second device compiles for that one alone") {
  if (!tpu_here() || !on_the_processor()) return;
  const DeviceOptions options{{"client", "cpu_device_count=2"}};
  const Folder texts;
  ::setenv("RLX_TPU_HLO_DUMP", concat_text(texts.path.string(), "/").c_str(), 1);
  const Session session({Device::Tpu, 1}, options);
  CompiledGraph f = session.compile(doubles());
  ::unsetenv("RLX_TPU_HLO_DUMP");
  CHECK(texts.files().size() == 1);
  CHECK(f.run({{"x", {1, 2, 3, 4}}})[0] == std::vector<float>{2, 4, 6, 8});
  CHECK(texts.files().size() == 1);
  CHECK(contains(error_text([&] { Session({Device::Tpu, 2}, options); }), "there is no device tpu:2"));
  // Values go from one to the other by way of the host, and are refused as they are.
  const Session first(Device::Tpu, options);
  CompiledGraph g = first.compile(doubles());
  const Tensor there = f.run_device({{"x", Tensor::full(f32({4}), 1)}})[0];
  CHECK(contains(error_text([&] { (void)g.run_device({{"x", there}}); }), "is on tpu:1"));
  CHECK(g.run_device({{"x", there.to_host()}})[0].to_host().to_f32() == std::vector<float>(4, 4));
}

TEST_CASE("tpu: bytes of an owner are used where they lie, and are never written over") {
  if (!tpu_here()) return;
  const Session session(Device::Tpu);
  const std::shared_ptr<OpenDevice>& device = session.open_device();
  const std::shared_ptr<Stream> stream = device->stream();
  CompileOptions options;
  options.donate = {{"x", 0}};
  CompiledGraph f = session.compile_with(doubles(), options);
  const std::int64_t dims[] = {4};
  for (const std::size_t beside : {0, 4}) {
    CAPTURE(beside);
    auto here = std::make_shared<const Lent>(std::vector<float>{1, 2, 3, 4}, beside);
    const std::weak_ptr<const Lent> alive = here;
    const auto put = [&] {
      return device->put({reinterpret_cast<const std::byte*>(here->data), DType::F32, dims, 16}, here,
                         BufferUse::Values, *stream);
    };
    NamedTensors in{{"x", on_device(put(), *stream, f32({4}))}};
    CHECK(f.run_device(std::move(in))[0].to_host().to_f32() == std::vector<float>{2, 4, 6, 8});
    CHECK(std::vector<float>(here->data, here->data + 4) == std::vector<float>{1, 2, 3, 4});
    Tensor there = on_device(put(), *stream, f32({4}));
    here.reset();
    CHECK(there.to_host().to_f32() == std::vector<float>{1, 2, 3, 4});
    there = Tensor();
    device->drain();
    CHECK(gone(alive));
  }
}

TEST_CASE("tpu: memory of the plug-in's device is adopted as it is, with its owner") {
  if (!tpu_here() || !on_the_processor()) return;
  const Session session(Device::Tpu);
  const std::shared_ptr<OpenDevice>& device = session.open_device();
  CompiledGraph f = session.compile(doubles());
  auto here = std::make_shared<const Lent>(std::vector<float>{1, 2, 3, 4});
  const std::weak_ptr<const Lent> alive = here;
  const auto native = reinterpret_cast<std::uintptr_t>(here->data);
  Tensor there;
  {
    std::shared_ptr<Buffer> buffer = device->adopt(native, f32({4}), here, Event());
    REQUIRE(buffer);
    CHECK(buffer->native() == native);
    there = Tensor::on_device(std::move(buffer), f32({4}));
  }
  here.reset();
  CHECK_FALSE(alive.expired());
  CHECK(f.run_device({{"x", there}})[0].to_host().to_f32() == std::vector<float>{2, 4, 6, 8});
  CHECK(there.to_host().to_f32() == std::vector<float>{1, 2, 3, 4});
  // DLPack has no type for the device; a copy on the host has one.
  CHECK(
      contains(error_text([&] { (void)to_dlpack(there); }),
               "a tensor on tpu, a device without a DLPack type\n  hint: copy it to the host first: value.to_host()"));
  const Tensor back = adopt(to_dlpack(there.to_host()));
  CHECK(to(back, Device::Tpu).to_host().to_f32() == std::vector<float>{1, 2, 3, 4});
  there = Tensor();
  CHECK(gone(alive));
  CHECK(contains(error_text([&] { (void)device->adopt(0, f32({4}), nullptr, Event()); }), "is null"));
}

TEST_CASE("tpu: whatever lies in the folder of kept programs, sessions start and run") {
  if (!tpu_here()) return;
  const Folder kept;
  const DeviceOptions options{{"cache", kept.path.string()}};
  const auto start = [&] {
    CompiledGraph f = Session(Device::Tpu, options).compile(doubles());
    CHECK(f.run({{"x", {1, 2, 3, 4}}})[0] == std::vector<float>{2, 4, 6, 8});
  };
  start();
  REQUIRE(kept.files().size() == 1);
  const fs::path file = kept.files()[0];
  const std::string whole = test::read_file(file);
  start();
  const auto write = [&](const std::string& bytes) {
    std::ofstream(file, std::ios::binary) << bytes;
    start();
    const std::string anew = test::read_file(file);
    CHECK(anew != bytes);
    CHECK(anew.substr(0, 8) == whole.substr(0, 8));
    CHECK(anew.size() > whole.size() / 2);
  };
  write("");
  write(whole.substr(0, 20));
  write(whole.substr(0, whole.size() - 1));
  write(whole + "x");
  write(std::string(whole.size(), 'x'));
  std::string damaged = whole;
  damaged[whole.size() / 2] = static_cast<char>(damaged[whole.size() / 2] ^ 1);
  write(damaged);
  fs::remove(file);
  fs::create_directories(file / "in the way");
  start();
}

TEST_CASE("tpu: what others see run keeps its order, on the device and by the host") {
  if (!tpu_here()) return;
  Graph g("ordered");
  const Expr x = g.input("x", f32({4})), pred = g.input("pred", Shape({}, DType::Bool));
  Expr y = note(g, sum_of_ranks(g, x), 1);
  note(g, sum_of_ranks(g, y + 1.0), 2);  // nobody reads it
  y = g.scan({y}, {},
             [](Graph& b, const ExprList& c, const ExprList&) {
               return LoopStep(note(b, sum_of_ranks(b, c[0] * 0.25), 3));
             },
             {Dim(3)})
          .carries[0];
  y = g.cond(
      pred, {sum_of_ranks(g, y)}, [](Graph& b, const ExprList& in) { return ExprList{note(b, in[0], 4)}; },
      [](Graph& b, const ExprList& in) { return ExprList{note(b, in[0] - 1.0, 5)}; })[0];
  g.set_outputs({note(g, sum_of_ranks(g, y), 6)});
  CompiledGraph f = Session(Device::Tpu).compile(Graph(g));
  CHECK(contains(test::host_part(f), "test.device_note"));
  for (const double flag : {1.0, 0.0}) {
    const NamedTensors values{{"x", Tensor::of<float>({4}, {1, 2, 3, 4})}, {"pred", Tensor::scalar(DType::Bool, flag)}};
    (void)taken();
    const std::vector<Tensor> exact = evaluate(g, values);
    CHECK(taken() == std::vector<std::int64_t>{1, 2, 3, 3, 3, flag != 0 ? 4 : 5, 6});
    for (int run = 0; run < 2; ++run) {
      const std::vector<Tensor> got = f.run_typed(values);
      CHECK(taken() == std::vector<std::int64_t>{1, 2, 3, 3, 3, flag != 0 ? 4 : 5, 6});
      test::expect_close(got[0], exact[0], 1e-6);
    }
  }
}

TEST_CASE("tpu: collectives of one rank, in order through branches and loops, all on the device") {
  if (!tpu_here()) return;
  Graph g("collectives");
  const Expr x = g.input("x", f32({4})), pred = g.input("pred", Shape({}, DType::Bool));
  Expr y = sum_of_ranks(g, x);
  sum_of_ranks(g, y * 2.0);
  y = g.scan({y}, {},
             [&](Graph& b, const ExprList& c, const ExprList&) {
               return LoopStep(b.cond(
                   pred, {c[0]}, [](Graph& t, const ExprList& in) { return ExprList{sum_of_ranks(t, in[0] + 1.0)}; },
                   [](Graph&, const ExprList& in) { return ExprList{in[0] * 2.0}; })[0]);
             },
             {Dim(3)})
          .carries[0];
  y = g.while_loop(
           {y}, [](Graph& b, const ExprList& c) { return b.lt(b.sum(c[0]), 1000.0); },
           [](Graph& b, const ExprList& c) { return LoopStep(sum_of_ranks(b, c[0] * 3.0)); }, {.max_iterations = 20})
          .carries[0];
  g.set_outputs({y});
  CompiledGraph f = Session(Device::Tpu).compile(Graph(g));
  CHECK(test::host_part(f).empty());
  CHECK(contains(f.code(), "!stablehlo.token"));
  for (const double flag : {1.0, 0.0}) {
    const NamedTensors values{{"x", Tensor::of<float>({4}, {1, 2, 3, 4})}, {"pred", Tensor::scalar(DType::Bool, flag)}};
    test::expect_close(f.run_typed(values)[0], evaluate(g, values)[0], 1e-6);
  }
}

TEST_CASE("tpu: attention takes its wide product only in runs whose values are not all finite") {
  if (!tpu_here()) return;
  constexpr std::int64_t kKeys = 128;
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  struct Case {
    MaskKind mask;
    HeadLayout layout;
    bool lengths;
    DType dtype;
  };
  for (const Case& c : {Case{MaskKind::Causal, HeadLayout::Merged, false, DType::F32},
                        Case{MaskKind::Bias, HeadLayout::HeadsFirst, true, DType::F32},
                        Case{MaskKind::None, HeadLayout::HeadsInner, true, DType::BF16}}) {
    const auto dims = [&](std::int64_t heads, std::int64_t rows, std::int64_t depth) {
      return c.layout == HeadLayout::Merged       ? Shape({1, rows, heads * depth}, c.dtype)
             : c.layout == HeadLayout::HeadsFirst ? Shape({1, heads, rows, depth}, c.dtype)
                                                  : Shape({1, rows, heads, depth}, c.dtype);
    };
    Graph g("attention");
    ops::Attention op;
    op.num_heads = 2, op.kv_heads = 1, op.head_dim = 2, op.v_head_dim = 3, op.mask = c.mask, op.layout = c.layout;
    std::vector<std::pair<std::string_view, Expr>> in{{"q", g.input("q", dims(2, 5, 2))},
                                                      {"k", g.input("k", dims(1, kKeys, 2))},
                                                      {"v", g.input("v", dims(1, kKeys, 3))}};
    if (c.mask == MaskKind::Bias) in.emplace_back("mask", g.input("mask", Shape({5, kKeys}, c.dtype)));
    if (c.lengths) in.emplace_back("kv_len", g.input("kv_len", Shape({1}, DType::I32)));
    const Expr y = g.add_named(op, in);
    g.set_outputs({y, y.result(1)});
    CompiledGraph f = Session(Device::Tpu).compile(Graph(g));
    CHECK(test::host_part(f).empty());
    CHECK(contains(f.code(), "\"stablehlo.if\""));
    NamedTensors values;
    for (NodeId id : g.leaves(OpKind::Input)) {
      Tensor t = Tensor::zeros(g.shape(id));
      for (std::int64_t i = 0; i < t.num_elements(); ++i) t.set(i, std::sin(static_cast<double>(i * i + id.index)));
      values.emplace(g.leaf_name(id), std::move(t));
    }
    if (c.lengths) values.at("kv_len").set(0, 100);
    if (c.mask == MaskKind::Bias)
      for (std::int64_t i = 0; i < 5 * kKeys; i += 3) values.at("mask").set(i, -inf);
    const Tensor finite = values.at("v");
    for (const std::vector<double>& odd : {std::vector<double>{}, {nan}, {inf}, {-inf}, {inf, -inf}, {inf, nan}})
      for (const std::int64_t key : {0, 60, 99, 126}) {  // seen, seen by some, hidden
        CAPTURE(key);
        Tensor v = finite.cast(DType::F64);
        for (std::size_t i = 0; i < odd.size(); ++i) v.set((key + static_cast<std::int64_t>(i)) * 3 + 1, odd[i]);
        values.insert_or_assign("v", v.cast(c.dtype));
        const std::vector<Tensor> got = f.run_typed(values), want = evaluate(g, values);
        const double tolerance = c.dtype == DType::BF16 ? 0.02 : 1e-5;
        for (std::size_t r = 0; r < want.size(); ++r)
          for (std::int64_t i = 0; i < want[r].num_elements(); ++i) {
            const double a = got[r].at(i), b = want[r].at(i);
            const bool close = a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= tolerance;
            CHECK_MESSAGE(close, "result ", r, " element ", i, ": ", a, " in place of ", b);
          }
      }
  }
}

}  // namespace rlx
