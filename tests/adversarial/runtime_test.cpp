// Guarantees of the runtime for devices with memory of their own and asynchronous work, on the adversarial test device,
// where every violation is visible.
#include <doctest/doctest.h>

#include "rlx/device/device.h"
#include "rlx/device/plugin_backend.h"
#include "rlx/models/sentence_encoder.h"
#include "rlx/runtime/device_ext.h"
#include "rlx/runtime/session.h"
#include "tests/adversarial/adversarial_device.h"
#include "tests/adversarial/adversarial_plugin.h"
#include "tests/support/closeness.h"
#include "tests/support/counter_program.h"
#include "tests/support/decode_loop.h"
#include "tests/support/error_text.h"
#include "tests/support/needs.h"
#include "tests/support/shapes.h"
#include "tests/support/tiny_model.h"

namespace rlx {
namespace {

using test::AdversarialScope;
using test::contains;
using test::counter;
using test::error_text;

struct Arena {
  static test::AdversarialOptions options() { return {}; }
};
struct Opaque {
  static test::AdversarialOptions options() { return test::adversarial_modes()[1]; }
};

using test::f32;

CompiledGraph compiled(Graph g, DeviceId id = AdversarialScope::kDevice) {
  CompiledGraph f = Session(id).compile(std::move(g));
  for (const IoInfo& p : f.params())
    f.set_param(p.name, std::vector<float>(static_cast<std::size_t>(p.shape.num_elements()), 2));
  return f;
}

const std::vector<float> kOnes(4, 1), kTwos(4, 2);

// A cache of 64 rows. Row `at` becomes x, and the output is the sum over the rows up to it.
Graph decode_step() {
  Graph g("decode");
  Expr x = g.input("x", f32({1, 8})), at = g.input("at", Shape({2}, DType::I32));
  Expr cache = g.state("cache", Tensor::zeros(f32({64, 8})));
  Expr grown = g.dynamic_update_slice(cache, x, at);
  g.set_state("cache", grown);
  g.set_outputs({g.sum(grown, {0})});
  return g;
}

}  // namespace

TEST_CASE_TEMPLATE("adversarial: every kind of run, states between runs, weights that change, clones", Mode, Arena,
                   Opaque) {
  AdversarialScope adversary(Mode::options());
  test::check_kinds_of_runs(Session(AdversarialScope::kDevice));
}

TEST_CASE_TEMPLATE("adversarial: weights are set between runs without a bind", Mode, Arena, Opaque) {
  AdversarialScope adversary(Mode::options());
  CompiledGraph f = compiled(counter());
  f.run({{"x", kOnes}});
  const auto before = adversary->counts();
  f.set_param("w", {1, 2, 3, 4});
  CHECK(f.run({{"x", kTwos}})[1] == std::vector<float>{2, 4, 6, 8});
  CHECK(adversary->counts().binds == before.binds);
}

TEST_CASE_TEMPLATE(
    "adversarial: a decode loop binds once, brings one upload of each input a step and fetches each output once", Mode,
    Arena, Opaque) {
  AdversarialScope adversary(Mode::options());
  CompiledGraph f = compiled(decode_step());
  std::vector<float> x(8), y(8);
  std::int32_t row[2] = {0, 0};
  const TensorView in[] = {{x.data(), DType::F32, {}, 32}, {row, DType::I32, {}, 8}};
  const MutableTensorView out[] = {{y.data(), DType::F32, {}, 32}};
  const auto step = [&](int i) {
    row[0] = i % 64;
    for (float& v : x) v = static_cast<float>(i % 64);
    f.run_into(in, out);
  };
  step(0);
  const auto before = adversary->counts();
  constexpr int kSteps = 1000;
  float sum = 0;
  for (int i = 1; i <= kSteps; ++i) {
    step(i);
    if (i < 64) sum += static_cast<float>(i);
    if (i == 63) CHECK(y[0] == sum);
  }
  const auto after = adversary->counts();
  CHECK(after.binds == before.binds);
  CHECK(after.allocations == before.allocations);
  CHECK(after.uploads - before.uploads == 2 * kSteps);
  CHECK(after.downloads - before.downloads == kSteps);
  CHECK(after.copies == before.copies);
  CHECK(f.compile_result().lir.plan.state_copies.empty());
}

TEST_CASE(
    "adversarial: decoding over a cache of full extent by kv_len binds once, allocates nothing and copies no state") {
  using test::DecodeLoop;
  AdversarialScope adversary;
  CompileOptions options;
  options.must_alias = true;  // copying the cache is an error
  CompiledGraph f = Session(AdversarialScope::kDevice).compile_with(DecodeLoop::graph(), options);
  std::vector<float> token, y(DecodeLoop::kBatch * DecodeLoop::kHeads * DecodeLoop::kDepth);
  const auto step = [&](std::int32_t position) {
    token = DecodeLoop::token(position);
    const TensorView in[] = {{token.data(), DType::F32, {}, token.size() * 4}, {&position, DType::I32, {}, 4}};
    const MutableTensorView out[] = {{y.data(), DType::F32, {}, y.size() * 4}};
    f.run_into(in, out);
  };
  step(0);
  const auto before = adversary->counts();
  constexpr int kSteps = 1000;
  for (int i = 1; i <= kSteps; ++i) {
    step(i);
    if (i % 250 != 1) continue;
    const std::vector<double> expected = DecodeLoop::expected(i);
    for (std::size_t e = 0; e < y.size(); ++e) CHECK(y[e] == doctest::Approx(expected[e]).epsilon(1e-5));
  }
  const auto after = adversary->counts();
  CHECK(after.binds == before.binds);
  CHECK(after.allocations == before.allocations);
  CHECK(after.uploads - before.uploads == 2 * kSteps);  // the token and its position
  CHECK(after.downloads - before.downloads == kSteps);
  CHECK(after.copies == before.copies);
  CHECK(f.compile_result().lir.plan.state_copies.empty());
}

TEST_CASE_TEMPLATE("adversarial: runs that nobody waits for yet, in order, and drained", Mode, Arena, Opaque) {
  AdversarialScope adversary(Mode::options());
  test::check_runs_in_flight(Session(AdversarialScope::kDevice));
}

TEST_CASE_TEMPLATE("adversarial: device tensors go from run to run, and to the host when asked", Mode, Arena, Opaque) {
  AdversarialScope adversary(Mode::options());
  test::check_device_tensors(Session(AdversarialScope::kDevice));
  CompiledGraph f = compiled(counter());
  const std::vector<Tensor> out = f.run_device({{"x", Tensor::full(f32({4}), 24)}});
  const auto before = adversary->counts();
  f.run_device({{"x", out[1]}});
  CHECK(adversary->counts().uploads == before.uploads);
  CHECK(adversary->counts().downloads == before.downloads);
  CompiledGraph other = f.clone();
  other.bind_handle("x", out[1]);
  other.bind_handle("out1", out[1]);
  CHECK(other.run()[1] == std::vector<float>(4, 96));
  CHECK(other.read_handle("out1").to_f32() == std::vector<float>(4, 96));
  // Another device.
  const char* const elsewhere = "input 'x' is on directx, but graph 'counter' runs on ";
  CompiledGraph g = compiled(counter(), {AdversarialScope::kDevice, 1}), host = Session().compile(counter());
  CHECK(contains(error_text([&] { g.run_typed({{"x", out[1]}}); }), elsewhere));
  CHECK(g.run_typed({{"x", to(out[1], {AdversarialScope::kDevice, 1})}})[1].to_f32() == std::vector<float>(4, 96));
  CHECK(contains(error_text([&] { g.set_input("x", out[1]); }), elsewhere));
  CHECK(contains(error_text([&] { host.set_input("x", out[1]); }), elsewhere));
  CHECK(contains(error_text([&] { host.bind_handle("x", out[1]); }), "copy it there with rlx::to"));
  // A failed result reports the failure to readers and to runs that get it as an input.
  adversary->fail_step(0, 0, "a unit broke");
  const std::vector<Tensor> broken = f.run_device({{"x", out[1]}});
  CHECK(contains(error_text([&] { (void)broken[1].to_host(); }), "a unit broke"));
  f.reset();
  CHECK(contains(error_text([&] { f.run_device({{"x", broken[1]}}); }), "the computation of this tensor failed"));
  CHECK(f.run_device({{"x", out[1]}})[1].to_host().to_f32() == std::vector<float>(4, 96));
}

TEST_CASE_TEMPLATE("adversarial: what takes host tensors refuses one on a device by name", Mode, Arena, Opaque) {
  AdversarialScope adversary(Mode::options());
  CompiledGraph f = compiled(counter());
  const Tensor there = to(Tensor::full(f32({4}), 1), AdversarialScope::kDevice);
  const Tensor row = to(Tensor::full(f32({1}), 1), AdversarialScope::kDevice);
  const auto refused = [](auto call, const std::string& what) {
    const std::string text = error_text(call);
    CHECK_MESSAGE(contains(text, what), text);
    CHECK_MESSAGE(contains(text, "tensor.to_host()"), text);
  };
  refused([&] { f.set_param("w", there); }, "param 'w' was given a tensor [4] f32 that is on directx");
  refused([&] { f.set_param("w", row, Rows{0, 1}); }, "param 'w' was given a tensor [1] f32 that is on directx");
  refused([&] { f.write_state("total", there); }, "state 'total' was given a tensor [4] f32 that is on directx");
  refused([&] { f.write_state("total", row, Rows{0, 1}); }, "state 'total' was given a tensor [1] f32");
  Graph g("g");
  refused([&] { (void)g.constant(there); }, "a constant got a tensor [4] f32 that lies on a device");
  refused([&] { (void)g.state("s", there); }, "the initial value of state 's' got a tensor [4] f32");
  CHECK(f.run({{"x", kOnes}})[1] == kTwos);  // the state is unchanged
}

TEST_CASE_TEMPLATE("adversarial: two runners that share a state are ordered, each on its stream", Mode, Arena, Opaque) {
  AdversarialScope adversary(Mode::options());
  test::check_shared_states(Session(AdversarialScope::kDevice));
  CompiledGraph a = compiled(counter());
  CompiledGraph elsewhere = compiled(counter(), {AdversarialScope::kDevice, 1});
  const std::string other = error_text([&] { elsewhere.share_state_from(a); });
  CHECK_MESSAGE(
      contains(other,
               "runs on directx:1 (backend 'adversarial'), graph 'counter' on directx (backend 'adversarial'): "
               "they cannot share states"),
      other);
  CHECK_MESSAGE(contains(other, "hint: compile both with one Session"), other);
  CHECK_MESSAGE(contains(other, "copy the states with read_state and write_state"), other);
  CompiledGraph host = Session().compile(counter());
  CHECK(contains(error_text([&] { host.share_state_from(a); }),
                 "graph 'counter' runs on cpu (backend 'cpu'), graph 'counter' on directx (backend 'adversarial')"));
}

TEST_CASE_TEMPLATE(
    "adversarial: a step that fails late fails what is behind it, leaves states invalid, and the next session works",
    Mode, Arena, Opaque) {
  AdversarialScope adversary(Mode::options());
  CompiledGraph f = compiled(counter());
  f.run({{"x", kOnes}});
  adversary->fail_step(0, 1, "a unit broke");
  // The next call after the failure reports it: the rest of the first commit, the second commit, or the wait.
  std::string told = error_text([&] { f.commit_no_wait({{"x", kOnes}}); });
  told += error_text([&] { f.commit_no_wait({{"x", kOnes}}); });
  told += error_text([&] { f.sync_pending(); });
  CHECK(contains(told, "a unit broke"));
  CHECK(f.sync_pending().empty());
  drain_device(AdversarialScope::kDevice);
  CHECK(contains(error_text([&] { f.run({{"x", kOnes}}); }), "a failed run left state"));
  CHECK(contains(error_text([&] { f.read_state("count"); }), "state 'count' is invalid after a failed run"));
  CompiledGraph c = f.clone();
  CHECK(contains(error_text([&] { c.run({{"x", kOnes}}); }), "a failed run left state"));
  f.reset();
  CHECK(f.run({{"x", kTwos}})[0] == std::vector<float>(4, 0));
  CHECK(f.run({{"x", kOnes}})[0] == kTwos);
  // A waiting run throws the failure itself. The caller's result buffers are not written afterwards.
  adversary->fail_step(0, 0, "a unit broke again");
  CHECK(contains(error_text([&] { f.run({{"x", kOnes}}); }), "a unit broke again"));
  // Without a wait the next call reports the failure, and the one after it works.
  f.reset();
  adversary->fail_step(0, 0, "unseen");
  (void)error_text([&] { f.commit_no_wait({{"x", kOnes}}); });
  drain_device(AdversarialScope::kDevice);
  CHECK(contains(error_text([&] { f.run({{"x", kOnes}}); }), "a failed run left state"));
}

TEST_CASE_TEMPLATE("adversarial: a lost device fails all that is there, and a new session has a new one", Mode, Arena,
                   Opaque) {
  AdversarialScope adversary(Mode::options());
  CompiledGraph f = compiled(counter());
  f.run({{"x", kOnes}});
  f.commit_no_wait({{"x", kOnes}});
  adversary->lose(0);
  try {
    f.run({{"x", kOnes}});
    FAIL_CHECK("a run on a lost device");
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::DeviceLost);
    CHECK(contains(e.what(), "device directx, which graph 'counter' was compiled for, was lost"));
  }
  CHECK(contains(error_text([&] { f.reset(); }), "was lost"));
  CHECK(contains(error_text([&] { f.read_state("count"); }), "was lost"));
  CompiledGraph fresh = compiled(counter());
  CHECK(fresh.run({{"x", kOnes}})[1] == kTwos);
}

namespace {
// The error of a doubling program for an `x` passed by `run_typed` and by `run_device`.
std::string refusal(CompiledGraph& f, const Tensor& x, ErrorCode code) {
  std::string told;
  try {
    (void)f.run_typed({{"x", x}});
    FAIL_CHECK("a tensor of another device was taken");
  } catch (const Error& e) {
    CHECK(e.code() == code);
    told = e.what();
  }
  CHECK(told == error_text([&] { (void)f.run_device({{"x", x}}); }));
  return told;
}
}  // namespace

TEST_CASE_TEMPLATE("adversarial: tensors of a device that was lost are refused by programs of the one opened anew",
                   Mode, Arena, Opaque) {
  AdversarialScope adversary(Mode::options());
  CompiledGraph f = compiled(counter());
  const Tensor made = f.run_device({{"x", Tensor::full(f32({4}), 3)}})[1], brought = to(made.to_host(), f.device()),
               late = f.run_device({{"x", made}})[1], count = to(Tensor::scalar_i64(DType::I64, 2), f.device());
  adversary->lose(0);
  CompiledGraph anew = compiled(counter());
  for (const Tensor& t : {made, brought, late}) {
    const std::string told = refusal(anew, t, ErrorCode::DeviceLost);
    CHECK_MESSAGE(contains(told,
                           "input 'x' is in memory of device directx that was lost; graph 'counter' runs on the "
                           "reopened device\n  hint: compute the value again"),
                  told);
    CHECK(contains(error_text([&] { (void)to(t, AdversarialScope::kDevice); }), "was lost"));
  }
  CHECK(anew.run({{"x", kOnes}})[1] == kTwos);
  // Also if the host reads it before the run.
  Graph g("sized");
  const Expr x = g.input("x", f32({4})), n = g.input("n", Shape({}, DType::I64));
  g.set_outputs({g.narrow(x, 0, 0, g.value_dim(n, 4))});
  CompiledGraph sized = compiled(std::move(g));
  CHECK(contains(error_text([&] {
                   (void)sized.run_typed({{"x", Tensor::zeros(f32({4}))}, {"n", count}});
                 }),
                 "input 'n' is in memory of device directx that was lost"));
}

TEST_CASE("adversarial: tensors of a device as another backend or other options opened it are refused by name") {
  const AdversarialScope adversary;
  CompiledGraph arena = compiled(counter());
  const Tensor there = arena.run_device({{"x", Tensor::full(f32({4}), 3)}})[1];
  const test::AdversarialOptions whole = Opaque::options();
  const auto control = test::adversarial_plugin(whole);
  (void)register_plugin(test::adversarial_plugin_table());
  CompiledGraph opaque = compiled(counter());
  const Tensor here = opaque.run_device({{"x", Tensor::full(f32({4}), 4)}})[1];
  const char* const why =
      "input 'x' is on directx, opened by another backend or with other options; graph 'counter' runs on directx "
      "(backend 'adversarial')\n  hint: copy it there with rlx::to(tensor, *session.open_device())";
  std::string told = refusal(opaque, there, ErrorCode::InvalidArgument);
  CHECK_MESSAGE(contains(told, why), told);
  told = refusal(arena, here, ErrorCode::InvalidArgument);
  CHECK_MESSAGE(contains(told, why), told);
  CHECK(opaque.run_typed({{"x", to(there, AdversarialScope::kDevice)}})[1].to_f32() == std::vector<float>(4, 12));
  CHECK(arena.run_typed({{"x", here.to_host()}})[1].to_f32() == std::vector<float>(4, 16));
  const Session small(AdversarialScope::kDevice, {{"memory", "1000000"}});
  CompiledGraph other = small.compile(counter());
  other.set_param("w", kTwos);
  told = refusal(other, here, ErrorCode::InvalidArgument);
  CHECK_MESSAGE(contains(told, "'counter' runs on directx (backend 'adversarial', "), told);
  // Values of a session with options stay on its device.
  const Tensor own = other.run_device({{"x", here.to_host()}})[1];
  CHECK(to(own, AdversarialScope::kDevice).buffer() == own.buffer());
}

TEST_CASE_TEMPLATE("adversarial: weights that were on their way behind work that failed are brought again", Mode, Arena,
                   Opaque) {
  test::AdversarialOptions mode = Mode::options();
  for (mode.seed = 1; mode.seed <= 20; ++mode.seed) {
    CAPTURE(mode.seed);
    AdversarialScope adversary(mode);
    CompiledGraph f = compiled(counter());
    f.run({{"x", kOnes}});
    CompiledGraph sharing = f.clone();
    adversary->fail_step(0, 0, "a unit broke");
    (void)error_text([&] { f.commit_no_wait({{"x", kOnes}}); });
    f.set_param("w", {3, 3, 3, 3});
    (void)error_text([&] { f.commit_no_wait({{"x", kOnes}}); });
    (void)error_text([&] { f.sync_pending(); });
    f.reset();
    CHECK(f.run({{"x", kOnes}})[1] == std::vector<float>(4, 3));
    CHECK(f.clone().run({{"x", kOnes}})[1] == std::vector<float>(4, 3));
    CHECK(sharing.run({{"x", kOnes}})[1] == kTwos);
  }
}

TEST_CASE("adversarial: memory beyond the limit names the device, what is wanted, what is in use") {
  AdversarialScope adversary({1, std::size_t{1} << 20, 2});
  CompiledGraph f = compiled(counter());
  f.run({{"x", kOnes}});
  Graph g("large");
  Expr x = g.input("x", f32({1 << 19}));
  g.set_outputs({g.cumsum(x, 0)});
  const std::string text = error_text([&] {
    CompiledGraph large = Session(AdversarialScope::kDevice).compile(std::move(g));
    large.run({{"x", std::vector<float>(1 << 19)}});
  });
  CHECK_MESSAGE(
      contains(text, "graph 'large': device directx has no memory for 2097152 bytes of slots, the limit is 1048576"),
      text);
  CHECK_MESSAGE(contains(text, " for weights"), text);
  CHECK_MESSAGE(contains(text, " for states"), text);
  CHECK(f.run({{"x", kOnes}})[0] == kOnes);  // the existing program continues to work
  CHECK(Session(AdversarialScope::kDevice).open_device()->memory().used() > 0);
}

TEST_CASE_TEMPLATE("adversarial: devices by ordinal have memory of their own; what is not there is said", Mode, Arena,
                   Opaque) {
  AdversarialScope adversary(Mode::options());
  CompiledGraph a = compiled(counter(), {AdversarialScope::kDevice, 0}),
                b = compiled(counter(), {AdversarialScope::kDevice, 1});
  CHECK(a.run({{"x", kOnes}}) == b.run({{"x", kOnes}}));
  CHECK(Session({AdversarialScope::kDevice, 1}).open_device()->id() == *parse_device_id("directx:1"));
  CHECK(contains(error_text([] { Session({AdversarialScope::kDevice, 2}); }), "there is no device directx:2"));
  CHECK(contains(error_text([] { Session({AdversarialScope::kDevice, -1}); }), "ordinals count from 0 to 1"));
}

TEST_CASE_TEMPLATE("adversarial: values of no bytes, and of bytes that are no multiple of the granule", Mode, Arena,
                   Opaque) {
  AdversarialScope adversary(Mode::options());
  Graph g("small");
  Expr none = g.input("none", Shape({0, 3}, DType::F32)), flags = g.input("flags", Shape({3}, DType::Bool));
  g.set_outputs({g.exp(none), g.logical_not(flags), g.sum(none, {0})});
  CompiledGraph f = Session(AdversarialScope::kDevice).compile(std::move(g));
  const std::uint8_t in[3] = {1, 0, 1};
  const std::vector<Tensor> out = f.run_typed(
      {{"none", Tensor::zeros(Shape({0, 3}, DType::F32))}, {"flags", Tensor::copy_of(in, Shape({3}, DType::Bool))}});
  CHECK(out[0].num_elements() == 0);
  CHECK(out[1].at_i64(0) == 0);
  CHECK(out[1].at_i64(1) == 1);
  CHECK(out[2].to_f32() == std::vector<float>{0, 0, 0});
}

TEST_CASE("adversarial: values fill several arenas, each under the limit, and slices off the alignment are copied") {
  AdversarialScope adversary;
  Graph g("wide");
  Expr x = g.input("x", f32({100, 100}));
  std::vector<Expr> parts;
  for (int i = 0; i < 6; ++i) parts.push_back(g.exp(g.sin(x * (0.1 * i))));
  Expr all = parts[0];
  for (int i = 1; i < 6; ++i) all = g.matmul(all, parts[static_cast<std::size_t>(i)]) * 0.01;
  g.set_outputs({g.narrow(all, 0, 1, 50) + 1.0, g.concat(parts, 0)});
  const Graph copy = g;
  CompiledGraph f = Session(AdversarialScope::kDevice).compile(std::move(g));
  const LirBufferPlan& plan = f.compile_result().lir.plan;
  CHECK(plan.arenas.size() > 1);
  for (std::size_t bytes : plan.arenas) CHECK(bytes <= std::max(test::AdversarialBackend::kArenaBytes, 40192UL));
  const NamedTensors in{{"x", Tensor::full(f32({100, 100}), 0.5)}};
  const std::vector<Tensor> expected = evaluate(copy, in), got = f.run_typed(in);
  for (std::size_t i = 0; i < got.size(); ++i)
    for (std::int64_t k = 0; k < got[i].num_elements(); k += 997)
      CHECK(got[i].at(k) == doctest::Approx(expected[i].at(k)).epsilon(1e-4));
}

namespace {
// The largest difference between text vectors from the adversarial test device and from the cpu.
double largest_difference(const std::string& folder, const std::vector<std::string>& texts) {
  SentenceEncoderOptions there;
  there.device = AdversarialScope::kDevice;
  const Tensor got = SentenceEncoder(folder, there).embed(texts), expected = SentenceEncoder(folder).embed(texts);
  double most = 0;
  for (std::int64_t i = 0; i < expected.num_elements(); ++i)
    most = std::max(most, test::difference(got.at(i), expected.at(i)));
  return most;
}
}  // namespace

TEST_CASE_TEMPLATE("adversarial: a sentence encoder, texts of several lengths in one program", Mode, Arena, Opaque) {
  AdversarialScope adversary(Mode::options());
  const test::TinyModel model;
  CHECK(largest_difference(model.path(), {"a", "a b", "a b c a", "b c"}) < 1e-6);
  CHECK(adversary->counts().binds >= 1);  // it ran there; for opaque devices the cpu prepares the weights
}

TEST_CASE_TEMPLATE("adversarial: the host's streams refuse memory of a device, which they do not reach", Mode, Arena,
                   Opaque) {
  const AdversarialScope adversary(Mode::options());
  const std::shared_ptr<OpenDevice> device = Session(AdversarialScope::kDevice).open_device(),
                                    host = Session(Device::Cpu).open_device();
  const std::shared_ptr<Stream> stream = host->stream();
  const Tensor there = to(Tensor::zeros(f32({4})), AdversarialScope::kDevice);
  const std::shared_ptr<Buffer> here = host->allocate(16, BufferUse::Values);
  const BufferView far(*there.buffer(), 0, 16), near(*here, 0, 16);
  std::byte bytes[16]{};
  const auto refused = [](const auto& what, std::string_view told) {
    const std::string text = error_text(what);
    CHECK_MESSAGE(contains(text, concat_text(told, " memory of device directx, which the host cannot access")), text);
  };
  refused([&] { stream->upload(bytes, far); }, "an upload of 16 bytes to");
  refused([&] { stream->download(far, bytes); }, "a download of 16 bytes from");
  refused([&] { stream->copy(far, near); }, "a copy of 16 bytes from");
  refused([&] { stream->copy(near, far); }, "a copy of 16 bytes to");
  refused([&] { host->get(*there.buffer(), {bytes, DType::F32, {}, 16}, *stream); }, "a download of 16 bytes from");
  CHECK(contains(error_text([&] { stream->copy(near, BufferView(nullptr, 16)); }), "without memory"));
}

TEST_CASE("adversarial: MiniLM" * doctest::test_suite(test::kNeedsModel)) {
  if (test::model_dir().empty()) return test::skip("the MiniLM model");
  for (const test::AdversarialOptions& mode : test::adversarial_modes()) {
    CAPTURE(test::mode_name(mode));
    AdversarialScope adversary(mode);
    CHECK(largest_difference(test::model_dir(), {"A cat sits on the mat.", "Planes fly."}) < 2e-6);
  }
}

}  // namespace rlx
