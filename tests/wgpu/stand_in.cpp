// A library that stands for wgpu-native: buffers are memory of the host, submissions copy, launches are checked by the
// rules of browsers and compute nothing. Calls can be made to fail, and devices to be lost. Misuse for which the real
// library ends the process is noted. A library of its own, so that what sanitizers watch is all there is.
#include "tests/wgpu/stand_in.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace abi = rlx::wgpu::abi;
using rlx::test::StandInAdapter;
using rlx::test::StandInFault;

// -- its objects --

namespace rlx::wgpu::abi {
struct Object {
  virtual ~Object() = default;
};
struct InstanceObject : Object {
  Flags backends = 0;
};
struct AdapterObject : Object {
  StandInAdapter facts;
};
struct DeviceObject : Object {
  Limits limits{};
  CallbackInfo<DeviceLostCallback> lost_info{};
  ErrorCallbackInfo error_info{};
  bool lost = false;
  // Threads that were told so. Others may be on their way with a call already, which nothing can keep back.
  std::vector<std::thread::id> told;
  bool knows() const { return std::find(told.begin(), told.end(), std::this_thread::get_id()) != told.end(); }
  std::uint64_t submitted = 0, done = 0;
  struct Later {
    std::uint64_t submission;
    std::function<void(bool lost)> call;
  };
  std::vector<Later> later;
  ~DeviceObject() override {
    for (const Later& l : later) l.call(true);
  }
};
struct QueueObject : Object {
  std::shared_ptr<DeviceObject> device;
};
struct BufferObject : Object {
  std::shared_ptr<DeviceObject> device;
  Flags usage = 0;
  std::vector<std::byte> bytes;
  std::uint64_t busy_until = 0;
  enum class Map { No, Pending, Yes } map = Map::No;
  std::function<void(MapStatus)> mapped;
};
struct ShaderModuleObject : Object {};
struct BindGroupLayoutObject : Object {
  std::vector<BindGroupLayoutEntry> entries;
};
struct PipelineLayoutObject : Object {
  std::shared_ptr<BindGroupLayoutObject> group;
};
struct ComputePipelineObject : Object {
  std::shared_ptr<PipelineLayoutObject> layout;
};
struct Bound {
  std::shared_ptr<BufferObject> buffer;
  std::uint64_t offset = 0, size = 0;
};
struct BindGroupObject : Object {
  std::shared_ptr<BindGroupLayoutObject> layout;
  std::vector<Bound> bound;
};
struct Commands {
  std::shared_ptr<DeviceObject> device;
  std::vector<std::shared_ptr<BufferObject>> uses;
  std::vector<std::function<void()>> work;
  bool invalid = false;
};
struct CommandEncoderObject : Object {
  std::shared_ptr<Commands> commands;
  bool in_pass = false;
};
struct CommandBufferObject : Object {
  std::shared_ptr<Commands> commands;
};
struct ComputePassEncoderObject : Object {
  std::shared_ptr<CommandEncoderObject> encoder;
  std::shared_ptr<ComputePipelineObject> pipeline;
  std::shared_ptr<BindGroupObject> group;
};
struct QuerySetObject : Object {
  std::uint32_t count = 0;
};
}  // namespace rlx::wgpu::abi

namespace {

struct Fault {
  std::string function;
  std::size_t left = 0;  // calls before it
  StandInFault what{};
  std::size_t times = 1;
};

struct Library {
  std::recursive_mutex mutex;
  std::map<const void*, std::shared_ptr<abi::Object>> held;  // what the caller holds
  std::vector<StandInAdapter> adapters{std::getenv("RLX_STAND_IN_EMPTY") ? 0U : 1U};
  std::optional<Fault> fault;
  bool faulted = false, lazy = false;
  std::string broken, refused;
  std::map<std::string, std::size_t, std::less<>> calls;
};
Library& lib() {
  static Library l;
  return l;
}

void note(std::string what) {
  if (lib().broken.empty()) lib().broken = std::move(what);
}

template <class T, class... A>
T* make(const A&... a) {
  auto object = std::make_shared<T>(a...);
  T* const handle = object.get();
  lib().held.emplace(handle, std::move(object));
  return handle;
}
template <class T>
std::shared_ptr<T> get(T* handle, const char* function) {
  const auto it = lib().held.find(handle);
  if (it == lib().held.end()) {
    note(std::string(function) + " of what is not there");
    return std::make_shared<T>();
  }
  return std::static_pointer_cast<T>(it->second);
}

void report(const abi::DeviceObject& device, abi::ErrorType type, std::string_view message) {
  if (device.error_info.callback)
    device.error_info.callback(nullptr, type, {message.data(), message.size()}, device.error_info.userdata1,
                               device.error_info.userdata2);
}
void say_lost(abi::DeviceObject& device) {
  device.told.push_back(std::this_thread::get_id());
  report(device, abi::ErrorType::Internal, "Parent device is lost");
}

// What goes wrong with this call; a call of a lost device says so.
std::optional<StandInFault> began(const char* function, abi::DeviceObject* device) {
  Library& l = lib();
  ++l.calls[function];
  if (l.fault && l.fault->function == function && l.fault->left != 0) {
    --l.fault->left;
  } else if (l.fault && l.fault->function == function) {
    const StandInFault what = l.fault->what;
    if (--l.fault->times == 0) l.fault.reset();
    l.faulted = true;
    if (device && (what == StandInFault::Lost || what == StandInFault::Silent)) device->lost = true;
    if (what == StandInFault::Silent) return std::nullopt;
    if (device && what == StandInFault::OutOfMemory) report(*device, abi::ErrorType::OutOfMemory, "not enough memory");
    if (device && what == StandInFault::Invalid) report(*device, abi::ErrorType::Validation, "this is not valid");
    if (device && what == StandInFault::Lost) say_lost(*device);
    return what;
  }
  if (device && device->lost) {
    say_lost(*device);
    return StandInFault::Lost;
  }
  return std::nullopt;
}

abi::Limits default_limits() {
  abi::Limits l;
  l.bind_groups = 4, l.storage_buffers_per_stage = 8;
  l.uniform_buffer_binding_size = 64 << 10, l.storage_buffer_binding_size = 128 << 20, l.buffer_size = 256 << 20;
  l.uniform_buffer_offset_alignment = l.storage_buffer_offset_alignment = 256;
  l.workgroup_storage_size = 16384, l.invocations_per_workgroup = l.workgroup_size_x = l.workgroup_size_y = 256;
  l.workgroup_size_z = 64, l.workgroups_per_dimension = 65535;
  return l;
}
abi::Limits limits_of(const StandInAdapter& a) {
  abi::Limits l = default_limits();
  l.storage_buffer_binding_size = a.binding_bytes, l.buffer_size = a.buffer_bytes;
  return l;
}

bool meets(const abi::Bound& a, const abi::Bound& b) {
  return a.buffer == b.buffer && a.offset < b.offset + b.size && b.offset < a.offset + a.size;
}

abi::Flags flag_of(abi::BackendType b) {
  switch (b) {
    case abi::BackendType::Vulkan: return abi::backends::kVulkan;
    case abi::BackendType::OpenGl:
    case abi::BackendType::OpenGlEs: return abi::backends::kGl;
    case abi::BackendType::Metal: return 4;  // as wgpu.h has it
    case abi::BackendType::D3d12: return abi::backends::kDx12;
    default: return 0;
  }
}

using Lock = std::unique_lock<std::recursive_mutex>;
Lock locked() { return Lock(lib().mutex); }

}  // namespace

// -- the interface --

#ifdef __clang__  // `Future` has a default value, which is nothing to C and to how it is returned
#pragma clang diagnostic ignored "-Wreturn-type-c-linkage"
#endif
#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT std::uint32_t wgpuGetVersion() { return 29u << 24; }
EXPORT abi::Instance wgpuCreateInstance(const abi::InstanceDescriptor* d) {
  const Lock lock = locked();
  auto* const i = make<abi::InstanceObject>();
  i->backends = reinterpret_cast<const abi::InstanceExtras*>(d->next)->backends;
  return i;
}
EXPORT std::size_t wgpuInstanceEnumerateAdapters(abi::Instance instance, const void*, abi::Adapter* out) {
  const Lock lock = locked();
  std::size_t n = 0;
  for (const StandInAdapter& a : lib().adapters) {
    if (instance->backends != abi::backends::kAll && (instance->backends & flag_of(a.backend)) == 0) continue;
    if (out) (out[n] = make<abi::AdapterObject>())->facts = a;
    ++n;
  }
  return n;
}
EXPORT abi::Status wgpuAdapterGetInfo(abi::Adapter a, abi::AdapterInfo* info) {
  info->device = abi::view(a->facts.name), info->description = abi::view("a driver");
  info->backend = a->facts.backend, info->type = a->facts.type;
  return abi::Status::Success;
}
EXPORT void wgpuAdapterInfoFreeMembers(abi::AdapterInfo) {}
EXPORT abi::Status wgpuAdapterGetLimits(abi::Adapter a, abi::Limits* l) {
  *l = limits_of(a->facts);
  return abi::Status::Success;
}
EXPORT abi::Bool wgpuAdapterHasFeature(abi::Adapter, abi::Feature) { return 0; }
EXPORT abi::Future wgpuAdapterRequestDevice(abi::Adapter a, const abi::DeviceDescriptor* d,
                                            abi::CallbackInfo<abi::RequestDeviceCallback> asked) {
  const Lock lock = locked();
  if (began("AdapterRequestDevice", nullptr)) {
    asked.callback(abi::RequestDeviceStatus::Error, nullptr, abi::view("the driver says no"), asked.userdata1,
                   asked.userdata2);
    return {};
  }
  auto* const device = make<abi::DeviceObject>();
  device->limits = d->limits ? *d->limits : default_limits();
  const abi::Limits most = limits_of(a->facts);
  device->limits.buffer_size = std::min(device->limits.buffer_size, most.buffer_size);
  device->limits.storage_buffer_binding_size =
      std::min(device->limits.storage_buffer_binding_size, most.storage_buffer_binding_size);
  device->lost_info = d->lost, device->error_info = d->error;
  asked.callback(abi::RequestDeviceStatus::Success, device, {}, asked.userdata1, asked.userdata2);
  return {};
}
EXPORT abi::Queue wgpuDeviceGetQueue(abi::Device d) {
  const Lock lock = locked();
  auto* const q = make<abi::QueueObject>();
  q->device = get(d, "DeviceGetQueue");
  return q;
}
EXPORT abi::Status wgpuDeviceGetLimits(abi::Device d, abi::Limits* l) {
  *l = d->limits;
  return abi::Status::Success;
}
EXPORT abi::Buffer wgpuDeviceCreateBuffer(abi::Device d, const abi::BufferDescriptor* b) {
  const Lock lock = locked();
  auto* const buffer = make<abi::BufferObject>();
  buffer->device = get(d, "DeviceCreateBuffer");
  buffer->usage = b->usage;
  if (began("DeviceCreateBuffer", d)) return buffer;
  if (b->size > d->limits.buffer_size)
    report(*d, abi::ErrorType::Validation, "more than the limit of buffers");
  else
    buffer->bytes.resize(b->size);
  return buffer;
}
EXPORT abi::ShaderModule wgpuDeviceCreateShaderModule(abi::Device d, const abi::LabelDescriptor* l) {
  const Lock lock = locked();
  if (began("DeviceCreateShaderModule", d)) return make<abi::ShaderModuleObject>();
  const abi::StringView code = reinterpret_cast<const abi::ShaderSourceWgsl*>(l->next)->code;
  if (std::string_view(code.data, code.length).find("nonsense") != std::string_view::npos)
    report(*d, abi::ErrorType::Validation, "no definition of nonsense");
  return make<abi::ShaderModuleObject>();
}
EXPORT abi::BindGroupLayout wgpuDeviceCreateBindGroupLayout(abi::Device d, const abi::BindGroupLayoutDescriptor* l) {
  const Lock lock = locked();
  (void)began("DeviceCreateBindGroupLayout", d);
  auto* const layout = make<abi::BindGroupLayoutObject>();
  layout->entries.assign(l->entries, l->entries + l->count);
  return layout;
}
EXPORT abi::PipelineLayout wgpuDeviceCreatePipelineLayout(abi::Device d, const abi::PipelineLayoutDescriptor* l) {
  const Lock lock = locked();
  (void)began("DeviceCreatePipelineLayout", d);
  auto* const layout = make<abi::PipelineLayoutObject>();
  layout->group = get(l->layouts[0], "DeviceCreatePipelineLayout");
  return layout;
}
EXPORT abi::ComputePipeline wgpuDeviceCreateComputePipeline(abi::Device d, const abi::ComputePipelineDescriptor* p) {
  const Lock lock = locked();
  (void)began("DeviceCreateComputePipeline", d);
  auto* const pipeline = make<abi::ComputePipelineObject>();
  pipeline->layout = get(p->layout, "DeviceCreateComputePipeline");
  (void)get(p->compute.module, "DeviceCreateComputePipeline");
  return pipeline;
}
EXPORT abi::BindGroup wgpuDeviceCreateBindGroup(abi::Device d, const abi::BindGroupDescriptor* g) {
  const Lock lock = locked();
  auto* const group = make<abi::BindGroupObject>();
  if (began("DeviceCreateBindGroup", d)) return group;
  group->layout = get(g->layout, "DeviceCreateBindGroup");
  const auto refuse = [&](const char* why) { report(*d, abi::ErrorType::Validation, why); };
  if (g->count != group->layout->entries.size()) refuse("not as many bindings as the layout has");
  std::size_t storage = 0;
  for (std::size_t i = 0; i < g->count; ++i) {
    const abi::BindGroupEntry& e = g->entries[i];
    const abi::Bound b{get(e.buffer, "DeviceCreateBindGroup"), e.offset, e.size};
    const bool uniform =
        i < group->layout->entries.size() && group->layout->entries[i].buffer.type == abi::BufferBinding::Uniform;
    if (e.offset % 256 != 0) refuse("an offset is no multiple of 256");
    if (e.size == 0 || e.size % 4 != 0) refuse("a binding has no size, or one that is no multiple of 4");
    if (e.offset + e.size > b.buffer->bytes.size()) refuse("a binding reaches past its buffer");
    if (!uniform && e.size > d->limits.storage_buffer_binding_size) refuse("a binding is larger than the limit");
    if ((b.buffer->usage & (uniform ? abi::usage::kUniform : abi::usage::kStorage)) == 0) refuse("not for this use");
    storage += !uniform;
    group->bound.push_back(b);
  }
  if (storage > d->limits.storage_buffers_per_stage) refuse("more bindings than the limit");
  return group;
}
EXPORT abi::CommandEncoder wgpuDeviceCreateCommandEncoder(abi::Device d, const abi::LabelDescriptor*) {
  const Lock lock = locked();
  auto* const encoder = make<abi::CommandEncoderObject>();
  encoder->commands = std::make_shared<abi::Commands>();
  encoder->commands->device = get(d, "DeviceCreateCommandEncoder");
  if (began("DeviceCreateCommandEncoder", d)) encoder->commands->invalid = true;
  return encoder;
}
EXPORT abi::QuerySet wgpuDeviceCreateQuerySet(abi::Device d, const abi::QuerySetDescriptor*) {
  const Lock lock = locked();
  (void)began("DeviceCreateQuerySet", d);
  return make<abi::QuerySetObject>();
}
EXPORT bool wgpuDevicePoll(abi::Device handle, abi::Bool wait, const std::uint64_t* submission) {
  Lock lock = locked();
  const std::shared_ptr<abi::DeviceObject> d = get(handle, "DevicePoll");
  if (d->knows()) note("DevicePoll of a device that is known to be lost");
  if (!d->lost) (void)began("DevicePoll", d.get());
  if (wait && submission && *submission > d->submitted) note("DevicePoll waits for what was never submitted");
  if (wait)
    d->done = std::max(d->done, submission ? *submission : d->submitted);
  else if (!lib().lazy && d->done < d->submitted)
    ++d->done;
  std::vector<abi::DeviceObject::Later> now, later;
  const bool lost = d->lost;
  for (abi::DeviceObject::Later& l : d->later) (lost || l.submission <= d->done ? now : later).push_back(std::move(l));
  d->later = std::move(later);
  const bool tell = lost && d->told.empty();
  if (tell) d->told.push_back(std::this_thread::get_id());
  lock.unlock();
  if (tell && d->lost_info.callback)
    d->lost_info.callback(nullptr, abi::LostReason::Unknown, abi::view("the driver fell over"), d->lost_info.userdata1,
                          d->lost_info.userdata2);
  for (const auto& l : now) l.call(lost);
  return true;
}
EXPORT void wgpuDeviceDestroy(abi::Device d) {
  const Lock lock = locked();
  d->lost = true;
}
EXPORT void wgpuQueueWriteBuffer(abi::Queue q, abi::Buffer to, std::uint64_t offset, const void* data,
                                 std::size_t bytes) {
  const Lock lock = locked();
  if (began("QueueWriteBuffer", q->device.get())) return;
  const std::shared_ptr<abi::BufferObject> b = get(to, "QueueWriteBuffer");
  if (offset % 4 != 0 || bytes % 4 != 0 || offset + bytes > b->bytes.size())
    report(*q->device, abi::ErrorType::Validation, "a write off its buffer or granule");
  else
    std::memcpy(b->bytes.data() + offset, data, bytes);
}
EXPORT std::uint64_t wgpuQueueSubmitForIndex(abi::Queue q, std::size_t n, const abi::CommandBuffer* list) {
  const Lock lock = locked();
  abi::DeviceObject& d = *q->device;
  if (d.knows()) note("QueueSubmit to a device that is known to be lost");
  if (!d.lost) (void)began("QueueSubmitForIndex", &d);
  ++d.submitted;
  for (std::size_t i = 0; i < n; ++i) {
    const std::shared_ptr<abi::Commands> c = get(list[i], "QueueSubmit")->commands;
    if (!c || c->invalid) {
      note("QueueSubmit of commands that were refused");
      continue;
    }
    for (const auto& b : c->uses) {
      if (b->map != abi::BufferObject::Map::No) note("QueueSubmit with a buffer that is mapped");
      b->busy_until = d.submitted;
    }
    for (const auto& work : c->work) work();
  }
  return d.submitted;
}
EXPORT abi::Future wgpuQueueOnSubmittedWorkDone(abi::Queue q, abi::CallbackInfo<abi::WorkDoneCallback> asked) {
  const Lock lock = locked();
  q->device->later.push_back({q->device->submitted, [asked](bool lost) {
                                asked.callback(lost ? abi::WorkDoneStatus::Error : abi::WorkDoneStatus::Success, {},
                                               asked.userdata1, asked.userdata2);
                              }});
  return {};
}
EXPORT float wgpuQueueGetTimestampPeriod(abi::Queue) { return 1; }
EXPORT abi::Future wgpuBufferMapAsync(abi::Buffer handle, abi::Flags, std::size_t offset, std::size_t size,
                                      abi::CallbackInfo<abi::MapCallback> asked) {
  Lock lock = locked();
  const std::shared_ptr<abi::BufferObject> b = get(handle, "BufferMapAsync");
  const auto call = [asked](abi::MapStatus s) { asked.callback(s, {}, asked.userdata1, asked.userdata2); };
  const auto fault = began("BufferMapAsync", b->device.get());
  if (fault && *fault != StandInFault::MapFails) {
    lock.unlock();
    call(abi::MapStatus::Error);
    return {};
  }
  if (b->map != abi::BufferObject::Map::No || offset + size > b->bytes.size() || size % 4 != 0)
    report(*b->device, abi::ErrorType::Validation, "a buffer that cannot be mapped so");
  b->map = abi::BufferObject::Map::Pending;
  b->mapped = call;
  const std::weak_ptr<abi::BufferObject> weak = b;
  b->device->later.push_back({b->busy_until, [weak, fails = fault.has_value()](bool lost) {
                                Lock ours = locked();
                                const auto there = weak.lock();
                                if (!there || there->map != abi::BufferObject::Map::Pending) return;
                                const bool good = !lost && !fails;
                                there->map = good ? abi::BufferObject::Map::Yes : abi::BufferObject::Map::No;
                                const auto tell = std::move(there->mapped);
                                ours.unlock();
                                tell(good ? abi::MapStatus::Success : abi::MapStatus::Error);
                              }});
  return {};
}
EXPORT const void* wgpuBufferGetConstMappedRange(abi::Buffer handle, std::size_t offset, std::size_t size) {
  const Lock lock = locked();
  const std::shared_ptr<abi::BufferObject> b = get(handle, "BufferGetConstMappedRange");
  if (began("BufferGetConstMappedRange", b->device.get())) return nullptr;
  if (b->map != abi::BufferObject::Map::Yes || offset + size > b->bytes.size()) return nullptr;
  return b->bytes.data() + offset;
}
EXPORT void wgpuBufferUnmap(abi::Buffer handle) {
  Lock lock = locked();
  const std::shared_ptr<abi::BufferObject> b = get(handle, "BufferUnmap");
  const bool pending = std::exchange(b->map, abi::BufferObject::Map::No) == abi::BufferObject::Map::Pending;
  const auto tell = std::move(b->mapped);
  lock.unlock();
  if (pending && tell) tell(abi::MapStatus::Aborted);
}
EXPORT abi::ComputePassEncoder wgpuCommandEncoderBeginComputePass(abi::CommandEncoder e,
                                                                  const abi::ComputePassDescriptor*) {
  const Lock lock = locked();
  (void)began("CommandEncoderBeginComputePass", e->commands->device.get());
  auto* const pass = make<abi::ComputePassEncoderObject>();
  pass->encoder = get(e, "CommandEncoderBeginComputePass");
  if (std::exchange(e->in_pass, true)) note("a pass in a pass");
  return pass;
}
EXPORT void wgpuCommandEncoderCopyBufferToBuffer(abi::CommandEncoder e, abi::Buffer from, std::uint64_t at,
                                                 abi::Buffer to, std::uint64_t to_at, std::uint64_t bytes) {
  const Lock lock = locked();
  abi::Commands& c = *e->commands;
  if (began("CommandEncoderCopyBufferToBuffer", c.device.get())) {
    c.invalid = true;
    return;
  }
  const std::shared_ptr<abi::BufferObject> source = get(from, "CopyBufferToBuffer"),
                                           target = get(to, "CopyBufferToBuffer");
  if (source == target || at % 4 != 0 || to_at % 4 != 0 || bytes % 4 != 0 || at + bytes > source->bytes.size() ||
      to_at + bytes > target->bytes.size() || e->in_pass) {
    note("a copy inside one buffer, off the granule, past an end or in a pass");
    return;
  }
  c.uses.push_back(source), c.uses.push_back(target);
  c.work.emplace_back(
      [source, target, at, to_at, bytes] { std::memcpy(&target->bytes[to_at], &source->bytes[at], bytes); });
}
EXPORT void wgpuCommandEncoderResolveQuerySet(abi::CommandEncoder e, abi::QuerySet, std::uint32_t, std::uint32_t,
                                              abi::Buffer, std::uint64_t) {
  const Lock lock = locked();
  (void)began("CommandEncoderResolveQuerySet", e->commands->device.get());
}
EXPORT abi::CommandBuffer wgpuCommandEncoderFinish(abi::CommandEncoder e, const abi::LabelDescriptor*) {
  const Lock lock = locked();
  if (began("CommandEncoderFinish", e->commands->device.get())) e->commands->invalid = true;
  if (e->in_pass) note("an encoder is finished in a pass");
  auto* const buffer = make<abi::CommandBufferObject>();
  buffer->commands = e->commands;
  return buffer;
}
EXPORT void wgpuComputePassEncoderSetPipeline(abi::ComputePassEncoder p, abi::ComputePipeline pipeline) {
  const Lock lock = locked();
  p->pipeline = get(pipeline, "SetPipeline");
}
EXPORT void wgpuComputePassEncoderSetBindGroup(abi::ComputePassEncoder p, std::uint32_t, abi::BindGroup group,
                                               std::size_t n, const std::uint32_t* offsets) {
  const Lock lock = locked();
  p->group = get(group, "SetBindGroup");
  const abi::Bound& numbers = p->group->bound.at(0);
  if (n != 1 || offsets[0] % 256 != 0 || offsets[0] + numbers.size > numbers.buffer->bytes.size())
    note("numbers of a launch lie off their buffer");
}
EXPORT void wgpuComputePassEncoderDispatchWorkgroups(abi::ComputePassEncoder p, std::uint32_t x, std::uint32_t y,
                                                     std::uint32_t z) {
  const Lock lock = locked();
  abi::Commands& c = *p->encoder->commands;
  if (began("ComputePassEncoderDispatchWorkgroups", c.device.get())) {
    c.invalid = true;
    return;
  }
  if (x == 0 || y == 0 || x > 65535 || y > 65535 || z != 1) note("a launch of no groups, or of more than there may be");
  if (!p->pipeline || !p->group || p->pipeline->layout->group != p->group->layout) {
    note("a launch with bindings of another layout");
    return;
  }
  const std::vector<abi::Bound>& bound = p->group->bound;
  for (std::size_t i = 1; i < bound.size(); ++i) {
    c.uses.push_back(bound[i].buffer);
    for (std::size_t j = 1; j < i; ++j)  // all of them may be written
      if (meets(bound[i], bound[j])) lib().refused = "a launch is given the same bytes twice, and may write them";
    if (bound[i].buffer == bound[0].buffer) note("a launch writes to the buffer of its numbers");
  }
}
EXPORT void wgpuComputePassEncoderEnd(abi::ComputePassEncoder p) {
  const Lock lock = locked();
  p->encoder->in_pass = false;
}

#define RELEASE(type)                                                             \
  EXPORT void wgpu##type##Release(abi::type handle) {                             \
    const Lock lock = locked();                                                   \
    const std::shared_ptr<abi::Object> last = get(handle, "the end of a " #type); \
    lib().held.erase(handle);                                                     \
  }
RELEASE(Instance)
RELEASE(Adapter)
RELEASE(Device)
RELEASE(Queue)
RELEASE(Buffer)
RELEASE(ShaderModule)
RELEASE(BindGroupLayout)
RELEASE(PipelineLayout)
RELEASE(ComputePipeline)
RELEASE(BindGroup)
RELEASE(QuerySet)
RELEASE(CommandEncoder)
RELEASE(CommandBuffer)
RELEASE(ComputePassEncoder)

#define SAME_CALL(name, ...) static_assert(std::is_same_v<decltype(wgpu##name), abi::Api::name##Function>);
RLX_WGPU_FUNCTIONS(SAME_CALL)

// -- what tests ask --

namespace {

void reset() {
  const Lock lock = locked();
  Library& l = lib();
  l.adapters = {StandInAdapter{}};
  l.fault.reset();
  l.faulted = l.lazy = false;
  l.broken.clear();
  l.refused.clear();
  l.calls.clear();
}

}  // namespace

EXPORT const rlx::test::StandInControl stand_in;
const rlx::test::StandInControl stand_in{
    reset,
    [](const StandInAdapter* list, std::size_t n) {
      const Lock lock = locked();
      lib().adapters.assign(list, list + n);
    },
    [](const char* function, std::size_t nth, StandInFault what, std::size_t times) {
      const Lock lock = locked();
      lib().fault = Fault{function, nth, what, times};
      lib().faulted = false;
    },
    [] {
      const Lock lock = locked();
      return lib().faulted;
    },
    [](bool lazy) {
      const Lock lock = locked();
      lib().lazy = lazy;
    },
    [] {
      const Lock lock = locked();
      return lib().broken.empty() ? static_cast<const char*>(nullptr) : lib().broken.c_str();
    },
    [] {
      const Lock lock = locked();
      return lib().refused.empty() ? static_cast<const char*>(nullptr) : lib().refused.c_str();
    },
    [] {
      const Lock lock = locked();
      return static_cast<std::size_t>(std::count_if(lib().held.begin(), lib().held.end(), [](const auto& h) {
        return dynamic_cast<const abi::InstanceObject*>(h.second.get()) == nullptr;
      }));
    },
    [](const char* function) {
      const Lock lock = locked();
      const auto it = lib().calls.find(std::string_view(function));
      return it == lib().calls.end() ? std::size_t{0} : it->second;
    },
};
