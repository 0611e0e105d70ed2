// A PJRT plug-in for tests: every result of its programs is a copy of the first argument, and each of its functions can
// be made to fail. It ends the process when it is given what makes no sense, as real ones may. A library of its own,
// which is opened as they are.
#include "tests/tpu/fake_pjrt.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "rlx/backends/tpu/abi.h"

namespace abi = rlx::tpu::abi;
using rlx::test::FakeCall;

// -- its objects --
namespace {
enum Kind { kErrors, kEvents, kBuffers, kExecutables, kClients, kKinds };
std::array<std::atomic<std::size_t>, kKinds> live{};
template <Kind K>
struct Counted {
  Counted() { ++live[K]; }
  Counted(const Counted&) { ++live[K]; }
  ~Counted() { --live[K]; }
};
}  // namespace

namespace rlx::tpu::abi {
struct Failure : Counted<kErrors> {
  Code code;
  const char* message;
};
struct Point : Counted<kEvents> {
  Code fails = Code::Ok;
  std::atomic<int> asked{0};
  Buffer* in_place = nullptr;  // the buffer that uses the bytes until it goes
};
struct Device {
  int id = 0;
};
struct Client : Counted<kClients> {
  std::vector<Device> devices;
  std::vector<Device*> list;
  bool old = false;  // an XLA for the processor that lacks an option of compiles
};
struct Buffer : Counted<kBuffers> {
  std::vector<char> bytes;
  const char* lent = nullptr;  // where they are in place of `bytes`
  std::size_t size = 0;
  std::function<void()> at_end;
  bool deleted = false;
  const char* data() const { return lent ? lent : bytes.data(); }
};
struct LoadedExecutable : Counted<kExecutables> {
  std::size_t results = 0, arguments = 0;
  std::vector<std::size_t> donated;  // arguments
};
struct Executable : Counted<kExecutables> {
  const LoadedExecutable* of;
};
struct SerializedExecutable {
  std::string bytes;
};
}  // namespace rlx::tpu::abi

namespace {

constexpr std::size_t kFunctions = 120;
struct Table {
  abi::Api api{};
  abi::Function functions[kFunctions]{};
};
struct Behaviour {
  FakeCall how = FakeCall::Works;
  int code = 13;
};
Behaviour behaviour[kFunctions];
std::atomic<std::size_t> calls[kFunctions];
abi::Function good[kFunctions];
std::size_t device_count = 1;
Table table;

abi::Failure* failure(int code, const char* message = "the board is on fire.") {
  auto* f = new abi::Failure;
  f->code = static_cast<abi::Code>(code);
  f->message = message;
  return f;
}

// The event of what a call started.
abi::Point* event(std::size_t index) {
  auto* e = new abi::Point;
  if (behaviour[index].how == FakeCall::Late) e->fails = static_cast<abi::Code>(behaviour[index].code);
  return e;
}

void expect(bool sense, const char* what) {
  if (sense) return;
  std::fprintf(stderr, "fake_pjrt: %s\n", what);
  std::abort();
}

void work(abi::EventDestroy& a) { delete a.event; }
void work(abi::EventIsReady& a) { a.is_ready = ++a.event->asked > 2; }  // later than at once
abi::Failure* work_or_fail(abi::EventAwait& a) {
  a.event->asked = 3;
  return a.event->fails == abi::Code::Ok ? nullptr : failure(static_cast<int>(a.event->fails));
}
void work(abi::EventOnReady& a) {
  expect(a.callback != nullptr, "no callback");
  if (abi::Buffer* const user = a.event->in_place)
    user->at_end = [callback = a.callback, arg = a.user_arg] { callback(nullptr, arg); };
  else
    a.callback(nullptr, a.user_arg);
}
void work(abi::PluginInitialize&) {}
void work(abi::ClientCreate& a) {
  a.client = new abi::Client;
  std::size_t count = device_count;
  for (std::size_t i = 0; i < a.num_options; ++i) {
    const abi::NamedValue& v = a.create_options[i];
    const std::string name(v.name, v.name_size);
    if (name == "device_count")
      expect(v.type == abi::ValueKind::Int64, name.c_str()), count = static_cast<std::size_t>(v.int64_value);
    if (name == "old") a.client->old = v.bool_value;
    if (name == "fast") expect(v.type == abi::ValueKind::Bool && v.bool_value, name.c_str());
    if (name == "share") expect(v.type == abi::ValueKind::Float && v.float_value == 0.5F, name.c_str());
    if (name == "name")
      expect(v.type == abi::ValueKind::Text && std::string(v.string_value, v.value_size) == "none such", name.c_str());
  }
  a.client->devices.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    a.client->devices[i].id = static_cast<int>(i) + 100;
    a.client->list.push_back(&a.client->devices[i]);
  }
}
void work(abi::ClientDestroy& a) { delete a.client; }
void work(abi::ClientPlatformName& a) {
  a.platform_name = a.client->old ? "cpu" : "fake";
  a.platform_name_size = std::strlen(a.platform_name);
}
void work(abi::ClientPlatformVersion& a) { a.platform_version = "1.2\nlong", a.platform_version_size = 8; }
void work(abi::ClientAddressableDevices& a) {
  a.addressable_devices = a.client->list.data();
  a.num_addressable_devices = a.client->list.size();
}
void work(abi::DeviceGetDescription& a) { a.device_description = reinterpret_cast<abi::DeviceDescription*>(a.device); }
void work(abi::DeviceDescriptionId& a) { a.id = reinterpret_cast<abi::Device*>(a.device_description)->id; }
void work(abi::DeviceDescriptionKind& a) { a.device_kind = "fake v1", a.device_kind_size = 7; }
void work(abi::DeviceMemoryStats& a) { a.bytes_limit = 1 << 20, a.bytes_limit_is_set = true; }

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}
abi::Failure* work_or_fail(abi::ClientCompile& a) {
  if (std::string_view(a.compile_options, a.compile_options_size).find("ynn_fusion_type") != std::string_view::npos &&
      a.client->old)
    return failure(3, "No such compile option: 'xla_cpu_experimental_ynn_fusion_type'");
  const std::string text(a.program->code, a.program->code_size);
  const std::size_t main = text.find("@main("), results = text.find("->", main);
  a.executable = new abi::LoadedExecutable;
  a.executable->results = count(text.substr(results, text.find('\n', results) - results), "tensor<");
  const std::string arguments = text.substr(main, results - main);
  a.executable->arguments = count(arguments, ": tensor<");
  for (std::size_t at = arguments.find("aliasing_output"); at != std::string::npos;
       at = arguments.find("aliasing_output", at + 1))
    a.executable->donated.push_back(count(arguments.substr(0, at), ": tensor<") - 1);
  return nullptr;
}
std::size_t bytes_of(abi::Element type, const std::int64_t* dims, std::size_t num_dims) {
  expect(dims || num_dims == 0, "no dims");
  std::size_t bytes = type == abi::Element::Pred || type == abi::Element::U8 ? 1 : 4;
  for (std::size_t i = 0; i < num_dims; ++i) {
    expect(dims[i] >= 0, "a negative extent");
    expect(!__builtin_mul_overflow(bytes, static_cast<std::size_t>(dims[i]), &bytes), "too many bytes");
  }
  return bytes;
}
void work(abi::ClientBufferFromHostBuffer& a) {
  const std::size_t bytes = bytes_of(a.type, a.dims, a.num_dims);
  expect(a.data || bytes == 0, "a value without an address");
  a.buffer = new abi::Buffer;
  a.buffer->size = bytes;
  a.done_with_host_buffer = new abi::Point;
  const auto* const data = static_cast<const char*>(a.data);
  if (a.host_buffer_semantics == abi::HostBytes::InPlace)
    a.buffer->lent = data, a.done_with_host_buffer->in_place = a.buffer;
  else
    a.buffer->bytes.assign(data, data + bytes);
}
void work(abi::ClientCreateViewOfDeviceBuffer& a) {
  const std::size_t bytes = bytes_of(a.element_type, a.dims, a.num_dims);
  expect(a.device_buffer_ptr || bytes == 0, "a view of nothing");
  a.buffer = new abi::Buffer;
  a.buffer->size = bytes;
  a.buffer->lent = static_cast<const char*>(a.device_buffer_ptr);
  a.buffer->at_end = [end = a.on_delete_callback, memory = a.device_buffer_ptr, arg = a.on_delete_callback_arg] {
    end(memory, arg);
  };
}
void work(abi::BufferDestroy& a) {
  const std::function<void()> end = a.buffer->at_end;
  delete a.buffer;
  if (end) end();
}
void work(abi::BufferIsDeleted& a) { a.is_deleted = a.buffer->deleted; }
void work(abi::BufferToHostBuffer& a) {
  expect(!a.src->deleted, "a buffer that was given away is read");
  expect(a.dst || a.dst_size == 0, "a copy to nowhere");
  std::memcpy(a.dst, a.src->data(), std::min(a.dst_size, a.src->size));
  a.event = event(abi::Call<abi::BufferToHostBuffer>::index);
}
void work(abi::BufferReadyEvent& a) { a.event = event(abi::Call<abi::BufferReadyEvent>::index); }
void work(abi::BufferOpaquePointer& a) { a.device_memory_ptr = const_cast<char*>(a.buffer->data()); }
void work(abi::LoadedExecutableDestroy& a) { delete a.executable; }
void work(abi::LoadedExecutableGetExecutable& a) {
  a.executable = new abi::Executable;
  a.executable->of = a.loaded_executable;
}
void work(abi::ExecutableDestroy& a) { delete a.executable; }
void work(abi::ExecutableSerialize& a) {
  const abi::LoadedExecutable& of = *a.executable->of;
  a.serialized_executable =
      new abi::SerializedExecutable{std::to_string(of.results) + " " + std::to_string(of.arguments)};
  a.serialized_bytes = a.serialized_executable->bytes.data();
  a.serialized_bytes_size = a.serialized_executable->bytes.size();
  a.serialized_executable_deleter = [](abi::SerializedExecutable* e) { delete e; };
}
void work(abi::ExecutableDeserializeAndLoad& a) {
  const std::string bytes(a.serialized_executable, a.serialized_executable_size);
  std::size_t results = 0, arguments = 0;
  expect(std::sscanf(bytes.c_str(), "%zu %zu", &results, &arguments) == 2, "a program that is none");
  a.loaded_executable = new abi::LoadedExecutable;
  a.loaded_executable->results = results;
  a.loaded_executable->arguments = arguments;
}
void work(abi::ExecutableGetCompiledMemoryStats& a) { a.output_size_in_bytes = 1000, a.temp_size_in_bytes = 234; }
void work(abi::LoadedExecutableExecute& a) {
  expect(a.num_devices == 1 && a.num_args == a.executable->arguments, "as many arguments as the program has");
  abi::Buffer* const* const arguments = a.argument_lists[0];
  for (std::size_t i = 0; i < a.num_args; ++i)
    expect(arguments[i] && !arguments[i]->deleted, "an argument that is not there");
  for (std::size_t r = 0; r < a.executable->results; ++r) {
    auto* const made = a.output_lists[0][r] = new abi::Buffer;
    made->size = arguments[0]->size;
    made->bytes.assign(arguments[0]->data(), arguments[0]->data() + made->size);
  }
  for (const std::size_t d : a.executable->donated) {
    const auto* kept = a.options->non_donatable_input_indices;
    const auto* const end = kept + a.options->num_non_donatable_input_indices;
    if (std::find(kept, end, static_cast<std::int64_t>(d)) == end) arguments[d]->deleted = true;
  }
  a.device_complete_events[0] = event(abi::Call<abi::LoadedExecutableExecute>::index);
}

template <class A>
abi::Failure* entry(A* a) {
  constexpr std::size_t index = abi::Call<A>::index;
  ++calls[index];
  if (a->struct_size != abi::Call<A>::size) return failure(3);
  constexpr bool gives_back =  // is done whatever it says
      std::is_same_v<A, abi::EventDestroy> || std::is_same_v<A, abi::BufferDestroy> ||
      std::is_same_v<A, abi::ClientDestroy> || std::is_same_v<A, abi::ExecutableDestroy> ||
      std::is_same_v<A, abi::LoadedExecutableDestroy>;
  if constexpr (gives_back) work(*a);
  if (behaviour[index].how == FakeCall::Fails) return failure(behaviour[index].code);
  if (behaviour[index].how == FakeCall::Idle) return nullptr;
  if constexpr (requires { work_or_fail(*a); }) {
    return work_or_fail(*a);
  } else {
    if constexpr (!gives_back) work(*a);
    return nullptr;
  }
}
template <class A>
void put() {
  good[abi::Call<A>::index] = reinterpret_cast<abi::Function>(&entry<A>);
}

void error_destroy(abi::ErrorDestroy* a) { delete a->error; }
void error_message(abi::ErrorMessage* a) {
  a->message = a->error->message;
  a->message_size = std::strlen(a->message);
}
abi::Failure* error_code(abi::ErrorGetCode* a) {
  a->code = a->error->code;
  return nullptr;
}

void reset() {
  for (Behaviour& b : behaviour) b = {};
  for (auto& c : calls) c = 0;
  std::copy(std::begin(good), std::end(good), std::begin(table.functions));
  device_count = 1;
}

void fill() {
  table.api.struct_size = sizeof table;
  table.api.pjrt_api_version.struct_size = sizeof(abi::Version);
  table.api.pjrt_api_version.minor_version = 99;
  good[abi::Call<abi::ErrorDestroy>::index] = reinterpret_cast<abi::Function>(&error_destroy);
  good[abi::Call<abi::ErrorMessage>::index] = reinterpret_cast<abi::Function>(&error_message);
  good[abi::Call<abi::ErrorGetCode>::index] = reinterpret_cast<abi::Function>(&error_code);
  put<abi::PluginInitialize>(), put<abi::EventDestroy>(), put<abi::EventIsReady>(), put<abi::EventAwait>();
  put<abi::EventOnReady>(), put<abi::ClientCreate>(), put<abi::ClientDestroy>(), put<abi::ClientPlatformName>();
  put<abi::ClientPlatformVersion>(), put<abi::ClientAddressableDevices>(), put<abi::ClientCompile>();
  put<abi::ClientBufferFromHostBuffer>(), put<abi::DeviceGetDescription>(), put<abi::DeviceDescriptionId>();
  put<abi::DeviceDescriptionKind>(), put<abi::DeviceMemoryStats>(), put<abi::ExecutableDestroy>(),
      put<abi::ExecutableSerialize>();
  put<abi::LoadedExecutableDestroy>(), put<abi::LoadedExecutableGetExecutable>(), put<abi::LoadedExecutableExecute>();
  put<abi::ExecutableDeserializeAndLoad>(), put<abi::BufferDestroy>(), put<abi::BufferIsDeleted>();
  put<abi::BufferToHostBuffer>(), put<abi::BufferReadyEvent>(), put<abi::BufferOpaquePointer>();
  put<abi::ExecutableGetCompiledMemoryStats>(), put<abi::ClientCreateViewOfDeviceBuffer>();
  std::copy(std::begin(good), std::end(good), std::begin(table.functions));  // what a test has set before stays
}

void set(std::size_t index, FakeCall how, int code) {
  behaviour[index] = {how, code};
  if (how == FakeCall::Absent) table.functions[index] = nullptr;
}
std::size_t live_of(int kind) { return live[static_cast<std::size_t>(kind)]; }
bool has(std::size_t index) { return good[index] != nullptr; }
std::size_t calls_of(std::size_t index) { return calls[index]; }
void set_version(int major, std::size_t struct_size) {
  table.api.pjrt_api_version.major_version = major;
  table.api.struct_size = struct_size == 0 ? sizeof table : struct_size;
}
void set_devices(std::size_t n) { device_count = n; }

}  // namespace

extern "C" {
__attribute__((visibility("default"))) extern const rlx::test::FakeControl fake_pjrt;
const rlx::test::FakeControl fake_pjrt{set, reset, live_of, has, calls_of, set_version, set_devices};

__attribute__((visibility("default"))) const abi::Api* GetPjrtApi() {
  static const bool filled = (fill(), true);
  (void)filled;
  return &table.api;
}
}
