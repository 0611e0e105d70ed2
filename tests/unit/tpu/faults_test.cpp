// Faults of PJRT plug-ins. Each gives a clear error that names device, plug-in and call; no object of the plug-in
// leaks, the process goes on, and a new session works.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "rlx/backends/tpu/abi.h"
#include "rlx/device/registry.h"
#include "rlx/runtime/device_ext.h"
#include "rlx/runtime/session.h"
#include "tests/support/error_text.h"
#include "tests/support/paths.h"
#include "tests/support/shapes.h"
#include "tests/tpu/fake_pjrt.h"

namespace rlx {
namespace {

namespace fs = std::filesystem;
namespace abi = tpu::abi;
using test::contains;
using test::error_text;
using test::f32;
using test::FakeCall;

std::string fake_path() { return test::build_path("tests/fake_pjrt.so"); }

const test::FakeControl& fake() {
  static const auto* const control = [] {
    void* const library = ::dlopen(fake_path().c_str(), RTLD_NOW | RTLD_LOCAL);
    REQUIRE_MESSAGE(library, ::dlerror());
    return static_cast<const test::FakeControl*>(::dlsym(library, "fake_pjrt"));
  }();
  return *control;
}

// A temporary folder of the test.
struct Folder {
  Folder() : path(fs::temp_directory_path() / concat_text("rlx-tpu-", ::getpid(), "-", count++)) {
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  // The fake plug-in under a new file name, so it is opened and asked for a client again.
  std::string plugin() const {
    const fs::path link = path / concat_text("fake-", count++, ".so");
    fs::create_symlink(fake_path(), link);
    return link.string();
  }
  static inline int count = 0;
  fs::path path;
};

DeviceOptions by(std::string path) { return {{"plugin", std::move(path)}}; }

// s += x; the output is the old s. For the fake plug-in both are copies of x.
Graph counter() {
  Graph g("counter");
  const Expr x = g.input("x", f32({2})), s = g.state("s", Tensor::zeros(f32({2})));
  const Expr w = g.param("w", f32({2}));
  g.set_state("s", s + x);
  g.set_outputs({s * w});
  return g;
}

std::vector<float> run_counter(const Session& session) {
  CompiledGraph f = session.compile(counter());
  f.set_param("w", Tensor::full(f32({2}), 1));
  f.run({{"x", {3, 4}}});
  const std::vector<float> out = f.run({{"x", {5, 6}}})[0];
  CHECK(f.read_state("s").to_f32() == std::vector<float>{5, 6});
  return out;
}

void expect_nothing_left(std::size_t clients) {
  constexpr const char* kinds[] = {"errors", "events", "buffers", "executables"};
  for (int k = 0; k < 4; ++k) CHECK_MESSAGE(fake().live(k) == 0, std::string(kinds[k]));
  CHECK(fake().live(4) == clients);
}

}  // namespace

TEST_CASE("tpu: what is no plug-in is told with the way to one") {
  const Folder folder;
  const auto reason = [](const std::string& path) { return error_text([&] { Session(Device::Tpu, by(path)); }); };
  const std::string missing = reason((folder.path / "none.so").string());
  CHECK_MESSAGE(contains(missing, "device TPU is not available: the PJRT plug-in"), missing);
  CHECK_MESSAGE(contains(missing, "No such file"), missing);
  CHECK_MESSAGE(contains(missing, "set RLX_TPU_PLUGIN to the path of a PJRT plug-in"), missing);
  std::ofstream(folder.path / "text.so") << "no library";
  const std::string text = reason((folder.path / "text.so").string());
  CHECK_MESSAGE(contains(text, "text.so cannot be loaded"), text);
  const std::string other = reason("libm.so.6");
  CHECK_MESSAGE(contains(other, "libm.so.6 has no function GetPjrtApi, so it is not a PJRT plug-in"), other);
  CHECK(contains(error_text([] { Session(Device::Tpu, {{"plugins", "x"}}); }), "did you mean 'plugin'"));
}

TEST_CASE("tpu: a table of another version, or one that is cut short") {
  const Folder folder;
  fake().reset();
  fake().version(1, 0);
  const std::string version = error_text([&] { Session(Device::Tpu, by(folder.plugin())); });
  CHECK_MESSAGE(contains(version, "has PJRT 1.99, but this rlx supports version 0"), version);
  fake().version(0, 40);
  const std::string empty = error_text([&] { Session(Device::Tpu, by(folder.plugin())); });
  CHECK_MESSAGE(contains(empty, "has PJRT 0.99 without the function PJRT_Error_Destroy"), empty);
  fake().version(0, 8);
  const std::string none = error_text([&] { Session(Device::Tpu, by(folder.plugin())); });
  CHECK_MESSAGE(contains(none, "returned a table of 8 bytes, which is too short for PJRT"), none);
  fake().version(0, 40 + 8 * 73);  // nothing that was appended since the first versions
  CHECK(run_counter(Session(Device::Tpu, by(folder.plugin()))) == std::vector<float>{5, 6});
  fake().version(0, 0);
  expect_nothing_left(1);
}

TEST_CASE("tpu: no device, several devices, an ordinal that there is not") {
  const Folder folder;
  fake().reset();
  fake().devices(0);
  const std::string none = error_text([&] { Session(Device::Tpu, by(folder.plugin())); });
  CHECK_MESSAGE(contains(none, "found no device"), none);
  fake().devices(3);
  const std::string three = folder.plugin();
  CHECK(run_counter(Session({Device::Tpu, 2}, by(three))) == std::vector<float>{5, 6});
  CHECK(fake().calls(abi::Call<abi::ClientCompile>::index) == 1);  // for that program only
  // A plan for a device that is not available is text, whatever was opened before.
  ::setenv("RLX_TPU_PLUGIN", three.c_str(), 1);
  (void)Session({Device::Tpu, 1});
  CompiledGraph plan = Session::for_target({Device::Tpu, 7}).compile(counter());
  ::unsetenv("RLX_TPU_PLUGIN");
  CHECK(contains(plan.code(), "func.func public @main("));
  const std::string beyond = error_text([&] { Session({Device::Tpu, 3}, by(three)); });
  CHECK_MESSAGE(contains(beyond, "there is no device tpu:3: the machine has 3 of this kind"), beyond);
  fake().reset();
}

TEST_CASE("tpu: an error at every step is told, and leaves nothing behind") {
  struct Step {
    std::size_t index;
    const char* name;
    bool at_open;
  };
#define RLX_STEP(A, at_open) \
  Step { abi::Call<A>::index, abi::Call<A>::name, at_open }
  const Step steps[] = {
      RLX_STEP(abi::PluginInitialize, true),
      RLX_STEP(abi::ClientCreate, true),
      RLX_STEP(abi::ClientPlatformName, true),
      RLX_STEP(abi::ClientPlatformVersion, true),
      RLX_STEP(abi::ClientAddressableDevices, true),
      RLX_STEP(abi::ClientCompile, false),
      RLX_STEP(abi::ClientBufferFromHostBuffer, false),
      RLX_STEP(abi::BufferReadyEvent, false),
      RLX_STEP(abi::LoadedExecutableExecute, false),
      RLX_STEP(abi::BufferToHostBuffer, false),
      RLX_STEP(abi::EventAwait, false),
  };
#undef RLX_STEP
  const Folder folder;
  fake().reset();
  const std::string path = folder.plugin();
  (void)run_counter(Session(Device::Tpu, by(path)));
  std::size_t clients = fake().live(4);
  for (const Step& step : steps) {
    for (const int code : {13, 8, 14, 3, 12}) {
      CAPTURE(std::string(step.name));
      CAPTURE(code);
      const std::string here = step.at_open ? folder.plugin() : path;
      fake().set(step.index, FakeCall::Fails, code);
      const std::string text = error_text([&] { (void)run_counter(Session(Device::Tpu, by(here))); });
      CHECK_MESSAGE(contains(text, step.name), text);
      CHECK_MESSAGE(contains(text, concat_text("(code ", code, "): the board is on fire")), text);
      CHECK_MESSAGE(contains(text, here), text);
      CHECK_MESSAGE((contains(text, "device tpu") || contains(text, "device TPU")), text);
      if (code == 8 && !step.at_open && step.index == abi::Call<abi::ClientBufferFromHostBuffer>::index)
        CHECK_MESSAGE(contains(text, "has no memory for 8 bytes of"), text);
      if (code == 8 && step.index == abi::Call<abi::LoadedExecutableExecute>::index) {
        CHECK_MESSAGE(contains(text, "device tpu has no memory for 1234 bytes of arena, the limit is 1048576"), text);
        CHECK_MESSAGE(contains(text, "graph 'counter'"), text);
      }
      fake().reset();
      CHECK(run_counter(Session(Device::Tpu, by(here))) == std::vector<float>{5, 6});
      clients += step.at_open ? 1 : 0;
      expect_nothing_left(clients);
    }
  }
}

TEST_CASE("tpu: whatever function fails or is not there, it is told or not missed, and a new session works") {
  const Folder folder;
  fake().reset();
  DeviceOptions options = by(folder.plugin());
  options["cache"] = (folder.path / "kept").string();
  CHECK(run_counter(Session(Device::Tpu, options)) == std::vector<float>{5, 6});
  std::size_t functions = 0;
  for (const FakeCall how : {FakeCall::Fails, FakeCall::Absent})
    for (std::size_t index = 0; index < 120; ++index) {
      if (!fake().has(index)) continue;
      ++functions;
      CAPTURE(index);
      for (const bool kept : {false, true}) {  // the program is compiled, or loaded from the cache
        if (!kept) fs::remove_all(folder.path / "kept");
        // Queries that a process makes once are repeated here, and the functions that report errors must work.
        options["plugin"] = folder.plugin();
        const bool tells = index == abi::Call<abi::ErrorMessage>::index ||
                           index == abi::Call<abi::ErrorGetCode>::index || index == abi::Call<abi::ErrorDestroy>::index;
        if (how == FakeCall::Absent || !tells) fake().set(index, how, 13);
        std::vector<float> got;
        const std::string text = error_text([&] { got = run_counter(Session(Device::Tpu, options)); });
        if (text.empty())
          CHECK(got == std::vector<float>{5, 6});
        else if (how == FakeCall::Absent)
          CHECK_MESSAGE(contains(text, "without the function PJRT_"), text);
        else
          CHECK_MESSAGE((contains(text, "the board is on fire") && contains(text, "PJRT_")), text);
        fake().reset();
        CHECK(run_counter(Session(Device::Tpu, options)) == std::vector<float>{5, 6});
        for (int k = 0; k < 4; ++k) CHECK(fake().live(k) == 0);
      }
    }
  CHECK(functions == std::size_t{2} * 32);
}

TEST_CASE("tpu: what makes no sense is refused before a plug-in sees it, which might end the process") {
  const Folder folder;
  fake().reset();
  const Session session(Device::Tpu, by(folder.plugin()));
  const std::shared_ptr<OpenDevice>& device = session.open_device();
  const std::shared_ptr<Stream> stream = device->stream();
  float data[4] = {1, 2, 3, 4};
  const auto put = [&](const void* from, std::vector<std::int64_t> dims, std::size_t bytes) {
    return error_text([&] {
      (void)device->put({static_cast<const std::byte*>(from), DType::F32, dims, bytes}, nullptr, BufferUse::Values,
                        *stream);
    });
  };
  CHECK(put(data, {2, 2}, 16).empty());
  CHECK(put(nullptr, {0, 3}, 0).empty());
  CHECK(contains(put(nullptr, {2, 2}, 16), "is null"));
  CHECK(contains(put(data, {2, 2}, 12), "put was given 12 bytes for a value [2, 2] f32"));
  CHECK(contains(put(data, {-2, -2}, 16), "put was given 16 bytes for a value [-2, -2] f32"));
  const std::int64_t wraps = std::int64_t{1} << 62;
  CHECK(contains(put(data, {wraps, 4}, 0), "put was given 0 bytes"));
  const std::int64_t dims[] = {4};
  const std::shared_ptr<Buffer> there = device->put({reinterpret_cast<const std::byte*>(data), DType::F32, dims, 16},
                                                    nullptr, BufferUse::Values, *stream);
  CHECK(contains(error_text([&] { device->get(*there, {nullptr, DType::F32, dims, 16}, *stream); }), "is null"));
  CHECK(contains(error_text([&] {
                   device->get(*there, {data, DType::F32, dims, 8}, *stream);
                 }),
                 "which transfers whole"));
  CHECK(contains(error_text([&] { (void)device->adopt(0, f32({4}), nullptr, Event()); }), "is null"));
  const Session host(Device::Cpu);
  const std::shared_ptr<Buffer> foreign = host.open_device()->allocate(16, BufferUse::Values);
  CHECK(contains(error_text([&] {
                   device->get(*foreign, {data, DType::F32, dims, 16}, *stream);
                 }),
                 "get was given a buffer of device cpu"));
  const std::shared_ptr<Stream> other = host.open_device()->stream();
  CHECK(contains(error_text([&] {
                   device->get(*there, {data, DType::F32, dims, 16}, *other);
                 }),
                 "a stream of another device"));
}

TEST_CASE("tpu: bytes that are used in place are held until the plug-in is done with them") {
  const Folder folder;
  fake().reset();
  const Session session(Device::Tpu, by(folder.plugin()));
  const std::shared_ptr<OpenDevice>& device = session.open_device();
  const std::shared_ptr<Stream> stream = device->stream();
  const std::int64_t dims[] = {2};
  const auto value = [] { return std::make_shared<std::vector<float>>(std::vector<float>{7, 8}); };
  const auto put = [&](const std::shared_ptr<std::vector<float>>& v) {
    return device->put({reinterpret_cast<const std::byte*>(v->data()), DType::F32, dims, 8}, v, BufferUse::Values,
                       *stream);
  };
  const auto adopt = [&](const std::shared_ptr<std::vector<float>>& v) {
    return device->adopt(reinterpret_cast<std::uintptr_t>(v->data()), f32({2}), v, Event());
  };
  for (const bool adopts : {false, true}) {
    CAPTURE(adopts);
    std::shared_ptr<std::vector<float>> here = value();
    const std::weak_ptr<std::vector<float>> alive = here;
    std::shared_ptr<Buffer> there = adopts ? adopt(here) : put(here);
    REQUIRE(there);
    CHECK(there->native() == reinterpret_cast<std::uintptr_t>(here->data()));
    here.reset();
    CHECK_FALSE(alive.expired());
    std::vector<float> read(2);
    there->read(std::as_writable_bytes(std::span(read)));
    CHECK(read == std::vector<float>{7, 8});
    there.reset();
    CHECK(alive.expired());
    // If the call that would have taken ownership fails, the owner is released.
    here = value();
    const std::weak_ptr<std::vector<float>> refused = here;
    const std::size_t index = adopts ? abi::Call<abi::ClientCreateViewOfDeviceBuffer>::index
                                     : abi::Call<abi::ClientBufferFromHostBuffer>::index;
    fake().set(index, FakeCall::Fails, 3);
    CHECK(contains(error_text([&] { (void)(adopts ? adopt(here) : put(here)); }), "the board is on fire"));
    fake().set(index, FakeCall::Idle, 0);
    CHECK(contains(error_text([&] { (void)(adopts ? adopt(here) : put(here)); }), "returned no buffer"));
    fake().reset();
    if (!adopts) {
      fake().set(abi::Call<abi::EventOnReady>::index, FakeCall::Fails, 13);
      CHECK(contains(error_text([&] { (void)put(here); }), "PJRT_Event_OnReady"));
      fake().reset();
    }
    here.reset();
    CHECK(refused.expired());
  }
  fake().set(abi::Call<abi::ClientCreateViewOfDeviceBuffer>::index, FakeCall::Absent, 0);
  CHECK(adopt(value()) == nullptr);
  fake().reset();
}

TEST_CASE("tpu: settings of a plug-in's client") {
  const Folder folder;
  fake().reset();
  DeviceOptions options = by(folder.plugin());
  options["client"] = "device_count=2,fast=true,share=0.5,name=none such";
  const Session two({Device::Tpu, 1}, options);
  CHECK(run_counter(two) == std::vector<float>{5, 6});
  CHECK(contains(error_text([&] { Session({Device::Tpu, 1}, by(options["plugin"])); }), "has 1 of this kind"));
  for (const char* bad : {"device_count", "=2", "device_count=2,,fast=true"}) {
    options["client"] = bad;
    CHECK_MESSAGE(contains(error_text([&] { Session(Device::Tpu, options); }), "is not NAME=VALUE"), std::string(bad));
  }
}

TEST_CASE("tpu: a plug-in that lacks the newest option of compiles does without it") {
  const Folder folder;
  fake().reset();
  DeviceOptions options = by(folder.plugin());
  options["client"] = "old=true";
  CHECK(run_counter(Session(Device::Tpu, options)) == std::vector<float>{5, 6});
  CHECK(fake().calls(abi::Call<abi::ClientCompile>::index) == 2);
}

TEST_CASE("tpu: calls that say they succeeded and made nothing") {
  const Folder folder;
  fake().reset();
  const std::string path = folder.plugin();
  (void)run_counter(Session(Device::Tpu, by(path)));
  const std::size_t clients = fake().live(4);
  for (const std::size_t index :
       {abi::Call<abi::ClientCompile>::index, abi::Call<abi::ClientBufferFromHostBuffer>::index,
        abi::Call<abi::LoadedExecutableExecute>::index, abi::Call<abi::BufferToHostBuffer>::index}) {
    CAPTURE(index);
    fake().set(index, FakeCall::Idle, 0);
    const std::string text = error_text([&] { (void)run_counter(Session(Device::Tpu, by(path))); });
    CHECK_MESSAGE(contains(text, "reported success, but"), text);
    CHECK_MESSAGE(contains(text, path), text);
    fake().reset();
    CHECK(run_counter(Session(Device::Tpu, by(path))) == std::vector<float>{5, 6});
    expect_nothing_left(clients);
  }
  fake().set(abi::Call<abi::ClientCreate>::index, FakeCall::Idle, 0);
  const std::string other = folder.plugin();
  CHECK(contains(error_text([&] { Session(Device::Tpu, by(other)); }), "returned no client"));
  fake().reset();
  CHECK(run_counter(Session(Device::Tpu, by(other))) == std::vector<float>{5, 6});
}

TEST_CASE("tpu: work that fails late fails at the wait, and what is behind it; then the program works again") {
  const Folder folder;
  fake().reset();
  const Session session(Device::Tpu, by(folder.plugin()));
  CompiledGraph f = session.compile(counter());
  f.set_param("w", Tensor::full(f32({2}), 1));
  f.run({{"x", {3, 4}}});
  for (const std::size_t index : {abi::Call<abi::LoadedExecutableExecute>::index,
                                  abi::Call<abi::BufferToHostBuffer>::index, abi::Call<abi::BufferReadyEvent>::index}) {
    CAPTURE(index);
    fake().set(index, FakeCall::Late, 13);
    const std::string text = error_text([&] { f.run({{"x", {3, 4}}}); });
    CHECK_MESSAGE(contains(text, "device tpu: PJRT_Event_Await of the plug-in"), text);
    CHECK_MESSAGE(contains(text, "the board is on fire"), text);
    fake().reset();
    f.write_state("s", Tensor::zeros(f32({2})));
    CHECK(f.run({{"x", {5, 6}}})[0] == std::vector<float>{5, 6});
  }
}

TEST_CASE("tpu: a device that is lost is opened anew by the next session") {
  const Folder folder;
  fake().reset();
  const std::string path = folder.plugin();
  const Session first(Device::Tpu, by(path));
  CompiledGraph f = first.compile(counter());
  f.set_param("w", Tensor::full(f32({2}), 1));
  const Tensor there = f.run_device({{"x", Tensor::full(f32({2}), 1)}})[0];
  fake().set(abi::Call<abi::LoadedExecutableExecute>::index, FakeCall::Fails, 14);
  CHECK(contains(error_text([&] { f.run({{"x", {3, 4}}}); }), "device lost"));
  fake().reset();
  CHECK(first.open_device()->lost());
  const std::string after = error_text([&] { f.run({{"x", {3, 4}}}); });
  CHECK_MESSAGE(contains(after, "was lost"), after);
  const std::shared_ptr<OpenDevice>& device = first.open_device();
  CHECK(contains(error_text([&] { (void)device->stream(); }), "device tpu was lost, and its values with it"));
  const Session second(Device::Tpu, by(path));
  CHECK(second.open_device() != first.open_device());
  CHECK(run_counter(second) == std::vector<float>{5, 6});
  CompiledGraph g = second.compile(counter());
  g.set_param("w", Tensor::full(f32({2}), 1));
  const std::string foreign = error_text([&] { (void)g.run_device({{"x", there}}); });
  CHECK_MESSAGE(contains(foreign, "device tpu that was lost"), foreign);
}

TEST_CASE("tpu: an input that is donated is given away only by its sole owner") {
  const Folder folder;
  fake().reset();
  const Session session(Device::Tpu, by(folder.plugin()));
  Graph g("adds");
  const Expr x = g.input("x", f32({2}));
  g.set_outputs({x + x});
  CompileOptions options;
  options.donate = {{"x", 0}};
  CompiledGraph f = session.compile_with(std::move(g), options);
  const auto on_device = [&](std::size_t count) {
    const std::shared_ptr<OpenDevice>& device = session.open_device();
    const std::shared_ptr<Stream> stream = device->stream();
    const Tensor here = Tensor::full(f32({2}), static_cast<double>(count));
    const std::int64_t dims[] = {2};
    std::shared_ptr<Buffer> buffer =
        device->put({here.data(), DType::F32, dims, here.size_bytes()}, nullptr, BufferUse::Values, *stream);
    buffer->set_written(stream->record());
    return Tensor::on_device(std::move(buffer), here.shape());
  };
  const Tensor kept = on_device(1);
  NamedTensors in{{"x", kept}};
  (void)f.run_device(std::move(in));  // NOLINT(use-after-move): `kept` holds it
  CHECK(kept.to_host().to_f32() == std::vector<float>{1, 1});
  NamedTensors given{{"x", on_device(2)}};
  const std::size_t before = fake().live(2);
  const std::vector<Tensor> out = f.run_device(std::move(given));
  CHECK(out[0].to_host().to_f32() == std::vector<float>{2, 2});
  CHECK(fake().live(2) == before);  // the buffer of the input was freed, that of the output was created
}

TEST_CASE("tpu: compiled programs are kept in a folder, and what is damaged there is compiled anew") {
  const Folder folder;
  fake().reset();
  const std::string cache = (folder.path / "kept").string();
  const std::string path = folder.plugin();
  DeviceOptions options = by(path);
  options["cache"] = cache;
  constexpr std::size_t compile = abi::Call<abi::ClientCompile>::index;
  constexpr std::size_t load = abi::Call<abi::ExecutableDeserializeAndLoad>::index;
  const auto start = [&] {
    fake().reset();
    CHECK(run_counter(Session(Device::Tpu, options)) == std::vector<float>{5, 6});
    return std::pair(fake().calls(compile), fake().calls(load));
  };
  CHECK(start() == std::pair<std::size_t, std::size_t>(1, 0));
  CHECK(start() == std::pair<std::size_t, std::size_t>(0, 1));
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(cache)) files.push_back(entry.path());
  REQUIRE(files.size() == 1);
  const std::string whole = test::read_file(files[0]);
  for (std::size_t at = 0; at < whole.size(); at += 3) {  // one byte changed
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    std::ofstream(files[0], std::ios::binary) << damaged;
    CHECK(start() == std::pair<std::size_t, std::size_t>(1, 0));
    CHECK(test::read_file(files[0]) == whole);
  }
  std::ofstream(files[0], std::ios::binary) << whole.substr(0, whole.size() / 2);
  CHECK(start() == std::pair<std::size_t, std::size_t>(1, 0));
  // Variables that compilers read themselves.
  for (const char* flags : {"XLA_FLAGS", "LIBTPU_INIT_ARGS"}) {
    ::setenv(flags, "--some_flag=1", 1);
    CHECK(start() == std::pair<std::size_t, std::size_t>(1, 0));
    CHECK(start() == std::pair<std::size_t, std::size_t>(0, 1));
    ::unsetenv(flags);
  }
  CHECK(start() == std::pair<std::size_t, std::size_t>(0, 1));
  // A plug-in that refuses its own serialized program, and one that cannot load or serialize at all.
  fake().set(load, FakeCall::Fails, 3);
  CHECK(run_counter(Session(Device::Tpu, options)) == std::vector<float>{5, 6});
  for (const std::size_t index : {load, abi::Call<abi::ExecutableSerialize>::index}) {
    fs::remove_all(cache);
    fake().reset();
    fake().set(index, FakeCall::Absent, 0);
    CHECK(run_counter(Session(Device::Tpu, options)) == std::vector<float>{5, 6});
    CHECK(run_counter(Session(Device::Tpu, options)) == std::vector<float>{5, 6});
  }
  fake().reset();
  // The cached file of another program, under the name of this one.
  fs::remove_all(cache);
  const auto kept_alone = [&] {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(cache)) found.push_back(entry.path());
    REQUIRE(found.size() == 1);
    return found[0];
  };
  CHECK(start() == std::pair<std::size_t, std::size_t>(1, 0));
  const fs::path mine = kept_alone();
  fs::rename(mine, folder.path / "mine");
  Graph other("other");
  other.set_outputs({other.input("x", f32({3})) * 5.0, other.constant(Tensor::full(f32({2}), 1))});
  (void)Session(Device::Tpu, options).compile(std::move(other));
  fs::rename(kept_alone(), mine);
  CHECK(start() == std::pair<std::size_t, std::size_t>(1, 0));
  CHECK(test::read_file(mine) == test::read_file(folder.path / "mine"));
  // Cache folders that cannot be used: a file of that name, no parent folder, a read-only folder.
  for (const std::string& place : {fake_path(), std::string("/proc/rlx/kept"), std::string("/proc/self")}) {
    options["cache"] = place;
    CHECK(run_counter(Session(Device::Tpu, options)) == std::vector<float>{5, 6});
  }
  // A folder that everybody may write to is neither read nor written.
  const std::string common = (folder.path / "common").string();
  REQUIRE(fs::create_directory(common));
  fs::copy_file(mine, fs::path(common) / mine.filename());
  fs::permissions(common, fs::perms::all);
  options["cache"] = common;
  CHECK(start() == std::pair<std::size_t, std::size_t>(1, 0));
  options["cache"] = cache;
  // A full disk: no file can grow.
  const std::string full = (folder.path / "full").string();
  options["cache"] = full;
  {
    struct rlimit was {};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &was) == 0);
    const struct rlimit none {
      16, was.rlim_max
    };
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &none) == 0);
    const std::string failed = error_text([&] { (void)run_counter(Session(Device::Tpu, options)); });
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &was) == 0);
    std::signal(SIGXFSZ, handler);
    CHECK(failed.empty());
  }
  CHECK(fs::is_empty(full));
  CHECK(run_counter(Session(Device::Tpu, options)) == std::vector<float>{5, 6});
  CHECK(!fs::is_empty(full));
  // A full file system, if this process can mount one for its own thread.
  bool mounted = false;
  std::thread([&] {
    const fs::path small = folder.path / "small";
    fs::create_directories(small);
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("rlx", small.c_str(), "tmpfs", 0, "size=4096,mode=700") != 0)
      return;
    mounted = true;
    std::ofstream(small / "fill") << std::string(4096, 'x');
    DeviceOptions full_disk = options;
    full_disk["cache"] = (small / "").string();
    CHECK(run_counter(Session(Device::Tpu, full_disk)) == std::vector<float>{5, 6});
    fs::remove(small / "fill");
    CHECK(fs::is_empty(small));
    CHECK(run_counter(Session(Device::Tpu, full_disk)) == std::vector<float>{5, 6});
    CHECK(!fs::is_empty(small));
    (void)::umount(small.c_str());
  }).join();
  if (!mounted) MESSAGE("a disk of one page could not be mounted here: files that may not grow stand for it");
  options["cache"] = "off";
  CHECK(run_counter(Session(Device::Tpu, options)) == std::vector<float>{5, 6});
  expect_nothing_left(fake().live(4));
}

TEST_CASE("tpu: texts of programs are written where RLX_TPU_HLO_DUMP says") {
  const Folder folder;
  fake().reset();
  const std::string place = (folder.path / "texts/").string();
  ::setenv("RLX_TPU_HLO_DUMP", place.c_str(), 1);
  (void)run_counter(Session(Device::Tpu, by(folder.plugin())));
  ::unsetenv("RLX_TPU_HLO_DUMP");
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(place)) {
    ++files;
    CHECK(contains(entry.path().string(), "-counter.mlir"));
    CHECK(contains(test::read_file(entry.path()), "func.func public @main("));
  }
  CHECK(files == 1);
  // Where files cannot be written: a full disk, a folder that is a file.
  for (const std::string& bad : {std::string("/dev/full"), fake_path() + "/"}) {
    ::setenv("RLX_TPU_HLO_DUMP", bad.c_str(), 1);
    const std::string text = error_text([&] { (void)run_counter(Session(Device::Tpu, by(folder.plugin()))); });
    ::unsetenv("RLX_TPU_HLO_DUMP");
    CHECK_MESSAGE(contains(text, "RLX_TPU_HLO_DUMP: cannot write \"" + bad), text);
    CHECK(run_counter(Session(Device::Tpu, by(folder.plugin()))) == std::vector<float>{5, 6});
  }
}

TEST_CASE("tpu: threads run programs of one device, and let go of what others made") {
  const Folder folder;
  fake().reset();
  const Session session(Device::Tpu, by(folder.plugin()));
  CompiledGraph first = session.compile(counter());
  first.set_param("w", Tensor::full(f32({2}), 1));
  std::mutex mutex;
  std::vector<Tensor> made;  // made by any thread, dropped by another
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      CompiledGraph f = first.clone();
      for (int run = 0; run < 50; ++run) {
        const float x = static_cast<float>(100 * t + run);
        if (f.run({{"x", {x, x}}})[0] != std::vector<float>{x, x}) ++wrong;
        Tensor there = f.run_device({{"x", Tensor::full(f32({2}), x)}})[0];
        Tensor other;
        {
          std::lock_guard lock(mutex);
          made.push_back(std::move(there));
          if (made.size() > 8) other = std::exchange(made[static_cast<std::size_t>(run) % 8], std::move(made.back()));
          if (made.size() > 8) made.pop_back();
        }
        if (!other.empty() && other.to_host().to_f32().size() != 2) ++wrong;
        if (run % 10 == 0) (void)session.open_device()->memory();
        if (run % 25 == 0) session.open_device()->drain();
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
  made.clear();
}

}  // namespace rlx
