// Plug-ins that violate the table's rules. Each gives a clear error that names device, plug-in, call and remedy; the
// process survives, and a good plug-in in the same place works.
#include <doctest/doctest.h>

#include <array>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "rlx/device/plugin_backend.h"
#include "rlx/device/registry.h"
#include "rlx/runtime/device_ext.h"
#include "rlx/runtime/env.h"
#include "rlx/runtime/session.h"
#include "tests/adversarial/adversarial_plugin.h"
#include "tests/support/error_text.h"
#include "tests/support/shapes.h"

namespace rlx {
namespace {

using test::AdversarialScope;
using test::contains;
using test::error_text;

using test::f32;

// A call that always fails.
template <class... Args>
rlx_code failing(Args... args) {
  rlx_error* const error = std::get<sizeof...(Args) - 1>(std::tuple<Args...>(args...));
  std::strcpy(error->message, "the board is on fire");  // NOLINT: it fits
  std::strcpy(error->hint, "put it out");               // NOLINT: it fits
  return RLX_PLUGIN_INTERNAL;
}
// A call that fails with an unknown code and no text.
template <class... Args>
rlx_code strange(Args...) {
  return 77;
}
// A call that reports success but makes nothing.
template <class... Args>
rlx_code idle(Args...) {
  return RLX_PLUGIN_OK;
}
template <class... Args>
rlx_code throwing(Args...) {
  throw std::runtime_error("thrown in the plug-in");
}

// A failed wait has waited: nothing is written afterwards.
template <rlx_code (*Then)(rlx_event*, rlx_error*)>
rlx_code waited(rlx_event* event, rlx_error* error) {
  (void)test::adversarial_plugin_table()->event_wait(event, error);
  return Then(event, error);
}

struct Call {
  const char* name;
  std::function<void(rlx_plugin&)> fail, confuse, abandon, blow;
};
#define RLX_CALL(m)                                                                                                    \
  Call {                                                                                                               \
#m, [](rlx_plugin & t) { t.m = failing; }, [](rlx_plugin &                                                         \
                                                  t) { t.m = strange; }, [](rlx_plugin &                               \
                                                                            t) { t.m = idle; },                        \
                                                                                             [](rlx_plugin &           \
                                                                                                t) { t.m = throwing; } \
  }
const std::vector<Call>& calls() {
  static const std::vector<Call> all = {
      RLX_CALL(probe),
      RLX_CALL(option_infos),
      RLX_CALL(target_name),
      RLX_CALL(claimed_kinds),
      RLX_CALL(claims),
      RLX_CALL(compile),
      RLX_CALL(device_open),
      RLX_CALL(device_memory),
      RLX_CALL(device_drain),
      RLX_CALL(stream_create),
      RLX_CALL(stream_record),
      RLX_CALL(stream_wait),
      {"event_wait", [](rlx_plugin& t) { t.event_wait = waited<failing>; },
       [](rlx_plugin& t) { t.event_wait = waited<strange>; }, [](rlx_plugin& t) { t.event_wait = waited<idle>; },
       [](rlx_plugin& t) { t.event_wait = waited<throwing>; }},
      RLX_CALL(put),
      RLX_CALL(get),
      RLX_CALL(run),
  };
  return all;
}
#undef RLX_CALL

// Uses every call of the table.
void use_all() {
  Graph g("all");
  Expr x = g.input("x", f32({4})), w = g.param("w", f32({4}));
  Expr s = g.state("s", Tensor::zeros(f32({4})));
  g.set_state("s", s + x);
  g.set_outputs({g.exp(x * w)});
  const Session session(AdversarialScope::kDevice);
  CompiledGraph f = session.compile(std::move(g));
  f.set_param("w", {1, 1, 1, 1});
  const std::vector<Tensor> y = f.run_device({{"x", Tensor::zeros(f32({4}))}});
  const Tensor there = y[0].to_host(), state = f.read_state("s");  // outside CHECK, which catches exceptions
  CHECK(there.to_f32() == std::vector<float>(4, 1));
  CHECK(state.at(0) == 0);
  session.open_device()->drain();
  const DeviceMemory memory = session.open_device()->memory();
  CHECK(memory.used() > 0);
}

// The text of the error from using `table`, and its code.
std::pair<std::string, ErrorCode> told_by(const rlx_plugin& table) {
  try {
    (void)register_plugin(&table);
    use_all();
  } catch (const Error& e) {
    return {e.what(), e.code()};
  }
  return {};
}

}  // namespace

TEST_CASE("plug-ins: a call that fails names device, plug-in, call, reason and way out; the next plug-in works") {
  AdversarialScope adversary(test::adversarial_modes()[1]);
  for (const Call& c : calls()) {
    rlx_plugin table = *test::adversarial_plugin_table();
    c.fail(table);
    const std::string text = told_by(table).first;
    INFO(std::string(c.name), ": ", text);
    CHECK(contains(text, "the plug-in 'adversarial' (a table of this program): "));
    CHECK(contains(text, concat_text(c.name, " failed: the board is on fire")));
    CHECK(contains(text, "put it out"));
    CHECK(contains(text, std::string_view(c.name) == "probe" ? "device DirectX 12" : "device directx"));
    (void)register_plugin(test::adversarial_plugin_table());
    use_all();
  }
}

TEST_CASE("plug-ins: why a probe finds no device is said once, with the plug-in's own hint or none") {
  AdversarialScope adversary(test::adversarial_modes()[1]);
  const auto told = [](auto probe) {
    rlx_plugin table = *test::adversarial_plugin_table();
    table.probe = probe;
    return told_by(table).first;
  };
  CHECK(told([](const char*, std::int32_t*, rlx_error* error) -> rlx_code {
          std::strcpy(error->message, "no board in any slot");  // NOLINT: it fits
          return RLX_PLUGIN_UNAVAILABLE;
        }) ==
        "device unavailable: device DirectX 12 is not available: the plug-in 'adversarial' (a table of this program): "
        "probe "
        "failed: no board in any slot\n  hint: pick one of rlx::available_devices()");
  CHECK(unavailable_reason(AdversarialScope::kDevice) ==
        "the plug-in 'adversarial' (a table of this program): probe failed: no board in any slot");
  CHECK(told(failing<const char*, std::int32_t*, rlx_error*>) ==
        "device unavailable: device DirectX 12 is not available: the plug-in 'adversarial' (a table of this program): "
        "probe "
        "failed: the board is on fire (put it out)\n  hint: pick one of rlx::available_devices()");
}

TEST_CASE("plug-ins: unknown codes, exceptions that leave the table, and calls that make nothing") {
  AdversarialScope adversary(test::adversarial_modes()[1]);
  for (const Call& c : calls()) {
    rlx_plugin table = *test::adversarial_plugin_table();
    c.confuse(table);
    std::string text = told_by(table).first;
    CHECK_MESSAGE(contains(text, concat_text(c.name, " failed with code 77, which the plug-in table does not define")),
                  text);
    CHECK_MESSAGE(contains(text, "without a reason"), text);
    table = *test::adversarial_plugin_table();
    c.blow(table);
    text = told_by(table).first;
    CHECK_MESSAGE(contains(text, "it threw an exception, which the plug-in table forbids: thrown in the plug-in"),
                  text);
  }
  for (const char* name : {"claimed_kinds", "compile", "device_open", "stream_create", "stream_record", "put", "run"})
    for (const Call& c : calls()) {
      if (std::string_view(c.name) != name) continue;
      rlx_plugin table = *test::adversarial_plugin_table();
      c.abandon(table);
      const auto told = told_by(table);
      CHECK_MESSAGE(contains(told.first, concat_text(name, " reported success, but ")), told.first);
      CHECK(told.second == ErrorCode::Internal);
    }
  (void)register_plugin(test::adversarial_plugin_table());
  use_all();
}

TEST_CASE("plug-ins: tables of another version, cut short, with a null member or names that are none") {
  AdversarialScope adversary(test::adversarial_modes()[1]);
  const auto refused = [](auto change, const std::string& why) {
    rlx_plugin table = *test::adversarial_plugin_table();
    change(table);
    const std::string text = error_text([&] { (void)register_plugin(&table); });
    CHECK_MESSAGE(contains(text, why), text);
  };
  refused([](rlx_plugin& t) { t.abi_major = 2; }, "its table has version 2.0, but this rlx reads 1.x");
  refused([](rlx_plugin& t) { t.abi_major = 2; }, "build it with the rlx/device/plugin.h of this rlx, version 1.0");
  refused([](rlx_plugin& t) { t.struct_size = 8; }, "its table is too short: 8 bytes");
  refused([](rlx_plugin& t) { t.struct_size -= 8; }, "its table is too short: ");
  refused([](rlx_plugin& t) { t.graph_version = 1; }, "it reads graphs of version 1, but this rlx writes 2");
  refused([](rlx_plugin& t) { t.run = nullptr; }, "its table has no 'run' (null)");
  refused([](rlx_plugin& t) { t.name = nullptr; }, "its table has no 'name' (null)");
  refused([](rlx_plugin& t) { t.buffer_destroy = nullptr; }, "its table has no 'buffer_destroy' (null)");
  refused([](rlx_plugin& t) { t.devices = "abacus"; }, "it serves 'abacus', which is not a device");
  refused([](rlx_plugin& t) { t.devices = " "; }, "it serves no device");
  CHECK(contains(error_text([] { (void)register_plugin(nullptr); }), "it returns no table for version 1.0"));
  CHECK(contains(error_text([] { (void)load_plugin("/nowhere/libacme.so"); }),
                 "the plug-in /nowhere/libacme.so cannot be loaded"));
  // A later minor version has more members, which are ignored.
  struct Larger {
    rlx_plugin table;
    void* more[4];
  } larger{*test::adversarial_plugin_table(), {}};
  larger.table.struct_size = sizeof larger;
  larger.table.abi_minor = 3;
  (void)register_plugin(&larger.table);
  use_all();
  // A plug-in that was registered before a refused one remains in use.
  refused([](rlx_plugin& t) { t.run = nullptr; }, "(null)");
  use_all();
  rlx_plugin wrong = *test::adversarial_plugin_table();
  wrong.claimed_kinds = [](const rlx_options*, const char** kinds, rlx_error*) -> rlx_code {
    *kinds = "exp activaton";
    return RLX_PLUGIN_OK;
  };
  CHECK(contains(told_by(wrong).first, "which is not an op"));
}

TEST_CASE("plug-ins: what a plug-in refuses is said by its own reason; what RLX_PLUGINS cannot load is said") {
  AdversarialScope adversary(test::adversarial_modes()[1]);
  rlx_plugin table = *test::adversarial_plugin_table();
  table.claims = [](const rlx_options*, const rlx_graph*, const char** reasons, std::size_t nodes,
                    rlx_error*) -> rlx_code {
    for (std::size_t i = 0; i < nodes; ++i) reasons[i] = "it is Sunday";
    return RLX_PLUGIN_OK;
  };
  (void)register_plugin(&table);
  Graph g("all");
  g.set_outputs({g.exp(g.input("x", Shape({4}, DType::F32)))});
  CompileOptions alone;
  alone.kernel_dispatch.emplace().host_fallback = false;
  const std::string text = error_text([&] { Session(AdversarialScope::kDevice).compile_with(Graph(g), alone); });
  CHECK_MESSAGE(contains(text, "it is Sunday"), text);
  // the cpu runs it, and the report gives the reason
  CompiledGraph f = Session(AdversarialScope::kDevice).compile(Graph(g));
  CHECK(contains(f.compile_result().dispatch.text(), "host-fallback: it is Sunday"));
  CHECK(f.run({{"x", {0, 0, 0, 0}}})[0] == std::vector<float>(4, 1));
  const RuntimeOverrides listed("RLX_PLUGINS", "/nowhere/liba.so:/nowhere/libb.so");
  CHECK(contains(unavailable_reason(Device::Cuda), "RLX_PLUGINS: the plug-in /nowhere/liba.so cannot be loaded"));
  CHECK(contains(unavailable_reason(Device::Cuda), "/nowhere/libb.so"));
  CHECK(contains(error_text([] { (void)Session(DeviceId(Device::Cuda)); }), "correct RLX_PLUGINS"));
  CHECK(Session(Device::Cpu).device() == Device::Cpu);
}

// -- a plug-in that uses rlx to open a device --

namespace {

// The function that the outermost `device_open` calls before it opens a device, and the exception of that function.
struct InsideOpen {
  std::function<void()> does;
  std::string told;
};
InsideOpen inside_open;
thread_local int open_depth = 0;

rlx_code open_using_rlx(const char* kind, std::int32_t ordinal, const rlx_options* options, rlx_device** out,
                        rlx_error* error) {
  if (++open_depth == 1) inside_open.told = error_text(inside_open.does);
  --open_depth;
  return test::adversarial_plugin_table()->device_open(kind, ordinal, options, out, error);
}

}  // namespace

TEST_CASE("plug-ins: device_open may use rlx: programs, other devices, registrations; the same device is an error") {
  const auto opening = [](std::function<void()> does) {
    AdversarialScope adversary(test::adversarial_modes()[1]);
    rlx_plugin table = *test::adversarial_plugin_table();
    table.device_open = open_using_rlx;
    (void)register_plugin(&table);
    inside_open = {std::move(does), {}};
    const Session session(AdversarialScope::kDevice);
    Graph g("all");
    g.set_outputs({g.exp(g.input("x", f32({4})))});
    CHECK(session.compile(std::move(g)).run({{"x", {0, 0, 0, 0}}})[0] == std::vector<float>(4, 1));
    return inside_open.told;
  };
  CHECK(opening([] {
          Graph g("host");
          g.set_outputs({g.exp(g.input("x", f32({2})))});
          CHECK(Session(Device::Cpu).compile(std::move(g)).run({{"x", {0, 0}}})[0] == std::vector<float>(2, 1));
          CHECK(probe_device(AdversarialScope::kDevice).count == 2);
          drain_device(Device::Cpu);
        }).empty());
  CHECK(opening([] { Session({AdversarialScope::kDevice, 1}); }).empty());
  CHECK(opening([] { Session(AdversarialScope::kDevice, {{"memory", "1000000"}}); }).empty());
  CHECK(opening([] { (void)register_plugin(test::adversarial_plugin_table()); }).empty());
  CHECK(opening([] { Session other(AdversarialScope::kDevice); }) ==
        "invalid argument: device directx, backend 'adversarial', is requested again by the code that is opening it\n"
        "  hint: a backend may use other devices to open one, but not the same one");
}

TEST_CASE("plug-ins: threads that ask for one device have the same, others need not wait, and no two wait in a ring") {
  AdversarialScope adversary(test::adversarial_modes()[1]);
  rlx_plugin table = *test::adversarial_plugin_table();
  table.device_open = open_using_rlx;
  (void)register_plugin(&table);
  std::shared_ptr<OpenDevice> first, second;
  std::thread asks_too;
  inside_open = {[&] {
                   const Session other({AdversarialScope::kDevice, 1});
                   asks_too = std::thread([&] {
                     ++open_depth;  // it only queries
                     second = Session(AdversarialScope::kDevice).open_device();
                   });
                 },
                 {}};
  first = Session(AdversarialScope::kDevice).open_device();
  asks_too.join();
  CHECK(first == second);
  first.reset(), second.reset();
  // Each of two devices needs the other one to open. One of the threads gets an error.
  struct Ring {
    std::mutex mutex;
    std::condition_variable changed;
    int opening = 0;
  } ring;
  std::array<std::string, 2> told;
  const auto open = [&](int ordinal) {
    const auto backend = backend_for(AdversarialScope::kDevice);
    (void)open_device(backend, {AdversarialScope::kDevice, ordinal});
  };
  struct RingBackend final : Backend {
    std::function<void(int)> needs;
    std::string_view name() const override { return "ring"; }
    Presence probe(Device) const noexcept override { return {2, {}}; }
    std::shared_ptr<OpenDevice> open(DeviceId id, const DeviceOptions&) const override {
      needs(id.ordinal);
      return nullptr;
    }
    std::shared_ptr<const Target> target(const BackendOptions&) const override { return nullptr; }
    std::unique_ptr<const Executable> compile_lir(LirModule, const BackendOptions&) const override { return nullptr; }
  };
  const auto backend = std::make_shared<RingBackend>();
  backend->needs = [&](int ordinal) {
    std::unique_lock lock(ring.mutex);
    if (++ring.opening > 2) return;
    ring.changed.notify_all();
    ring.changed.wait(lock, [&] { return ring.opening >= 2; });
    lock.unlock();
    told[static_cast<std::size_t>(ordinal)] = error_text([&] { open(1 - ordinal); });
  };
  register_backend(AdversarialScope::kDevice, backend);
  std::thread one([&] { open(0); }), two([&] { open(1); });
  one.join(), two.join();
  CHECK(told[0].empty() != told[1].empty());
  CHECK(contains(told[0] + told[1], "is requested again by the code that is opening it"));
}

// -- one buffer for two values --

namespace {

// Replaces the handle that the run made, which is released.
void replace_handle(rlx_buffer*& made, rlx_buffer* by) {
  test::adversarial_plugin_table()->buffer_destroy(std::exchange(made, by));
}
void (*spoil)(rlx_run&) = nullptr;
rlx_code spoilt_run(rlx_program* program, rlx_device* device, rlx_stream* stream, rlx_run* run, rlx_event** done,
                    rlx_error* error) {
  const rlx_code code = test::adversarial_plugin_table()->run(program, device, stream, run, done, error);
  if (code == RLX_PLUGIN_OK) spoil(*run);
  return code;
}

}  // namespace

TEST_CASE("plug-ins: a run that gives one buffer for two values is told so, and the program works on") {
  const auto told = [](void (*how_spoilt)(rlx_run&), const char* how) {
    AdversarialScope adversary(test::adversarial_modes()[1]);
    rlx_plugin table = *test::adversarial_plugin_table();
    spoil = how_spoilt;
    table.run = spoilt_run;
    (void)register_plugin(&table);
    Graph g("two");
    const Expr x = g.input("x", f32({4})), w = g.param("w", f32({4})), s = g.state("s", Tensor::zeros(f32({4})));
    g.set_state("s", s + x);
    g.set_outputs({g.exp(x * w), x + 1.0});
    const Session session(AdversarialScope::kDevice);
    CompiledGraph f = session.compile(std::move(g));
    f.set_param("w", {1, 1, 1, 1});
    const Tensor input = to(Tensor::full(f32({4}), 3), AdversarialScope::kDevice);
    CompiledGraph shares = f.clone();  // so that the state is not donated to the run
    try {
      (void)f.run_device({{"x", input}});
      FAIL_CHECK("a buffer of two values was taken");
    } catch (const Error& e) {
      CHECK(e.code() == ErrorCode::Internal);
      CHECK_MESSAGE(contains(e.what(), concat_text("run reported success, but returned for ", how,
                                                   " the buffer of another value")),
                    e.what());
    }
    CHECK(input.to_host().at(0) == 3);
    CHECK(shares.read_state("s").at(0) == 0);
    session.open_device()->drain();
  };
  told([](rlx_run& r) { replace_handle(r.outputs[1].buffer, r.inputs[0].buffer); }, "output 1");
  told([](rlx_run& r) { replace_handle(r.outputs[1].buffer, r.outputs[0].buffer); }, "output 1");
  told([](rlx_run& r) { replace_handle(r.outputs[0].buffer, r.weights[0]); }, "output 0");
  told([](rlx_run& r) { replace_handle(r.states[0].buffer, r.outputs[1].buffer); }, "state 0");
  told([](rlx_run& r) { replace_handle(r.states[0].buffer, r.inputs[0].buffer); }, "state 0");
}

TEST_CASE("plug-ins: a handle that an earlier run, another program or device holds is told as one of two values") {
  AdversarialScope adversary(test::adversarial_modes()[1]);
  static rlx_buffer* held = nullptr;
  held = nullptr;
  rlx_plugin table = *test::adversarial_plugin_table();
  spoil = [](rlx_run& r) {
    if (held)
      replace_handle(r.outputs[0].buffer, held);
    else
      held = r.outputs[0].buffer;
  };
  table.run = spoilt_run;
  table.put = [](rlx_device* device, rlx_stream* stream, const rlx_value* value, std::uint32_t use, rlx_buffer** buffer,
                 rlx_error* error) {
    const rlx_code code = test::adversarial_plugin_table()->put(device, stream, value, use, buffer, error);
    if (code == RLX_PLUGIN_OK && held && use == 5) replace_handle(*buffer, held);
    return code;
  };
  (void)register_plugin(&table);
  const auto compiled = [](DeviceId id) {
    Graph g("one");
    g.set_outputs({g.exp(g.input("x", f32({4})))});
    return Session(id).compile(std::move(g));
  };
  CompiledGraph f = compiled(AdversarialScope::kDevice), other = compiled(AdversarialScope::kDevice),
                far = compiled({AdversarialScope::kDevice, 1});
  const NamedTensors in{{"x", Tensor::zeros(f32({4}))}};
  std::vector<Tensor> y = f.run_device(in);
  const auto told = [](const auto& what, std::string_view device, std::string_view call) {
    const std::string text = error_text(what);
    CHECK_MESSAGE(
        contains(text, concat_text("device ", device, ", the plug-in 'adversarial' (a table of this program): ", call,
                                   " the buffer of another value")),
        text);
  };
  for (int i = 0; i < 2; ++i) {
    told([&] { (void)f.run_device(in); }, "directx", "run reported success, but returned for output 0");
    told([&] { (void)other.run_device(in); }, "directx", "run reported success, but returned for output 0");
    told([&] { (void)far.run_device(in); }, "directx:1", "run reported success, but returned for output 0");
    told([&] { (void)to(Tensor::zeros(f32({4})), AdversarialScope::kDevice); }, "directx",
         "put reported success, but returned");
  }
  CHECK(y[0].to_host().to_f32() == std::vector<float>(4, 1));
  y.clear();  // released once; from here on the handle may belong to another value
  held = nullptr;
  CHECK(other.run_device(in)[0].to_host().to_f32() == std::vector<float>(4, 1));
}

// -- failures reported by a stream's next call --

namespace {

std::string late_failure;  // of work without a wait
rlx_code telling_record(rlx_stream* stream, rlx_event** event, rlx_error* error) {
  if (late_failure.empty()) return test::adversarial_plugin_table()->stream_record(stream, event, error);
  std::strcpy(error->message, std::exchange(late_failure, {}).c_str());  // NOLINT: it fits
  return RLX_PLUGIN_INTERNAL;
}

}  // namespace

TEST_CASE("plug-ins: a state is written behind work that failed, also where the next call is what tells of it") {
  AdversarialScope adversary(test::adversarial_modes()[1]);
  rlx_plugin table = *test::adversarial_plugin_table();
  table.stream_record = telling_record;
  (void)register_plugin(&table);
  Graph g("late");
  const Expr next = g.state("s", Tensor::zeros(f32({4}))) + g.input("x", f32({4}));
  g.set_state("s", next);
  g.set_outputs({next});
  CompiledGraph f = Session(AdversarialScope::kDevice).compile(std::move(g));
  const NamedTensors ones{{"x", Tensor::full(f32({4}), 1)}};
  f.run_typed(ones);
  late_failure = "a unit broke";
  f.write_state("s", Tensor::full(f32({4}), 7));
  CHECK(late_failure.empty());
  CHECK(f.run_typed(ones)[0].at(0) == 8);
  late_failure = "a unit broke";
  f.reset();
  CHECK(f.run_typed(ones)[0].at(0) == 1);
}

// -- streams, events and buffers of others --

namespace {

int waits_on_device = 0;
rlx_code counted_wait(rlx_stream* stream, rlx_event* event, std::int32_t order_only, rlx_error* error) {
  ++waits_on_device;
  return test::adversarial_plugin_table()->stream_wait(stream, event, order_only, error);
}

}  // namespace

TEST_CASE("plug-ins: what another opening, device or plug-in made is refused by both names, and reaches no function") {
  AdversarialScope adversary(test::adversarial_modes()[1]);
  rlx_plugin table = *test::adversarial_plugin_table(), other_table = table;
  table.stream_wait = counted_wait;
  other_table.name = "other";
  (void)register_plugin(&table);
  const auto opened = [](DeviceId id, const DeviceOptions& options = {}) { return Session(id, options).open_device(); };
  const std::shared_ptr<OpenDevice> lost = opened(AdversarialScope::kDevice),
                                    second = opened({AdversarialScope::kDevice, 1});
  const float bytes[4] = {1, 2, 3, 4};
  const std::int64_t dims[] = {4};
  const auto put = [&](OpenDevice& on, Stream& stream) {
    return on.put({bytes, DType::F32, dims, sizeof bytes}, nullptr, BufferUse::Values, stream);
  };
  struct Foreign {
    std::string text;
    std::shared_ptr<OpenDevice> device;
    std::shared_ptr<Stream> stream;
    std::shared_ptr<Buffer> buffer;
    Event event;
  };
  std::vector<Foreign> foreign;
  const auto add = [&](std::string text, const std::shared_ptr<OpenDevice>& device) {
    Foreign f{std::move(text), device, device->stream(), nullptr, {}};
    f.buffer = put(*device, *f.stream);
    f.event = f.stream->record();
    f.event.wait();
    foreign.push_back(std::move(f));
  };
  const std::string plug_in = ", the plug-in 'adversarial' (a table of this program)";
  add("device directx" + plug_in + ", made before the device was lost", lost);
  adversary->lose(0);
  const std::shared_ptr<OpenDevice> here = opened(AdversarialScope::kDevice);
  CHECK(here != lost);
  add("device directx:1" + plug_in, second);
  add("device directx" + plug_in + ", opened with other options",
      opened(AdversarialScope::kDevice, {{"memory", "1000000"}}));
  (void)register_plugin(&other_table);
  add("device directx, the plug-in 'other' (a table of this program)", opened(AdversarialScope::kDevice));

  const std::shared_ptr<Stream> stream = here->stream();
  const std::shared_ptr<Buffer> buffer = put(*here, *stream);
  float back[4]{};
  const MutableTensorView to{back, DType::F32, dims, sizeof back};
  for (const Foreign& f : foreign) {
    const auto refused = [&](const auto& what, const std::string& told) {
      const std::string text = error_text(what);
      CHECK_MESSAGE(contains(text, "device directx" + plug_in + ": " + told + f.text), text);
    };
    refused([&] { (void)put(*here, *f.stream); }, "put was given a stream of ");
    refused([&] { here->get(*buffer, to, *f.stream); }, "get was given a stream of ");
    refused([&] { here->get(*f.buffer, to, *stream); }, "get was given a buffer of ");
    // Work continues after an event of any owner. The host waits where the device may not know the event.
    waits_on_device = 0;
    stream->wait(f.event);
    stream->wait_order(f.event);
    CHECK(waits_on_device == (f.device == second ? 2 : 0));
    here->get(*buffer, to, *stream);
    stream->record().wait();
    CHECK(back[3] == 4);
  }
  // The host's streams and buffers do not belong to a plug-in.
  const std::shared_ptr<OpenDevice> host = Session(Device::Cpu).open_device();
  CHECK(contains(error_text([&] { (void)put(*here, *host->stream()); }), "put was given a stream of another backend"));
  CHECK(contains(error_text([&] { here->get(*host->allocate(16, BufferUse::Values), to, *stream); }),
                 "get was given a buffer of device cpu"));
}

// -- exceptions from functions without an error argument --

namespace {

template <class... Args>
std::int32_t throwing_answer(Args...) {
  throw std::runtime_error("thrown in the plug-in");
}
template <auto Destroy, class T>
void throwing_destroy(T* handle) {
  (test::adversarial_plugin_table()->*Destroy)(handle);
  throw std::runtime_error("thrown in the plug-in");
}

}  // namespace

TEST_CASE("plug-ins: an exception that leaves a function without an error is told at the next wait") {
  AdversarialScope adversary(test::adversarial_modes()[1]);
  const auto check_told = [](void (*change)(rlx_plugin&), std::string_view call) {
    rlx_plugin table = *test::adversarial_plugin_table();
    change(table);
    const std::pair<std::string, ErrorCode> told = told_by(table);
    CHECK_MESSAGE(contains(told.first,
                           concat_text("device directx, the plug-in 'adversarial' (a table of this program): ", call,
                                       " failed: it threw an exception, which the plug-in table forbids: thrown in the "
                                       "plug-in")),
                  told.first);
    CHECK(told.second == ErrorCode::Internal);
  };
  check_told([](rlx_plugin& t) { t.device_lost = throwing_answer; }, "device_lost");
  // Points are queried while runs overlap.
  const auto overlapping = [](void (*change)(rlx_plugin&), std::string_view call) {
    rlx_plugin table = *test::adversarial_plugin_table();
    change(table);
    (void)register_plugin(&table);
    Graph g("overlap");
    const Expr next = g.state("s", Tensor::zeros(f32({4}))) + g.input("x", f32({4}));
    g.set_state("s", next);
    g.set_outputs({next});
    CompiledGraph f = Session(AdversarialScope::kDevice).compile(std::move(g));
    const NamedTensors in{{"x", Tensor::full(f32({4}), 1)}};
    std::string text;
    for (int i = 0; i < 4; ++i) text += error_text([&] { f.commit_no_wait(in); });
    text += error_text([&] { f.sync_pending(); });
    text += error_text([&] { (void)f.read_state("s"); });
    CHECK_MESSAGE(contains(text, concat_text("the plug-in 'adversarial' (a table of this program): ", call,
                                             " failed: it threw an exception")),
                  text);
  };
  overlapping([](rlx_plugin& t) { t.event_ready = throwing_answer; }, "event_ready");
  overlapping([](rlx_plugin& t) { t.event_failed = throwing_answer; }, "event_failed");

  rlx_plugin table = *test::adversarial_plugin_table();
  table.buffer_native = [](rlx_buffer*) -> std::uintptr_t { throw std::runtime_error("thrown in the plug-in"); };
  (void)register_plugin(&table);
  const Tensor there = to(Tensor::zeros(f32({4})), AdversarialScope::kDevice);
  CHECK(contains(error_text([&] { (void)there.buffer()->native(); }), "buffer_native failed: it threw an exception"));

  // Exceptions of a destroy function cannot be thrown to anyone, so the program continues.
  table = *test::adversarial_plugin_table();
  table.program_destroy = throwing_destroy<&rlx_plugin::program_destroy>;
  table.device_destroy = throwing_destroy<&rlx_plugin::device_destroy>;
  table.stream_destroy = throwing_destroy<&rlx_plugin::stream_destroy>;
  table.event_destroy = throwing_destroy<&rlx_plugin::event_destroy>;
  table.buffer_destroy = throwing_destroy<&rlx_plugin::buffer_destroy>;
  (void)register_plugin(&table);
  use_all();
  (void)register_plugin(test::adversarial_plugin_table());
  use_all();
}

}  // namespace rlx
