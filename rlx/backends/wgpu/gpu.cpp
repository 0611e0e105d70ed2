// Calls of wgpu-native, with reported errors turned into exceptions.
//
// The library ends the process when it rejects a submission, or when it waits for a submission that was never made. So
// commands are not submitted if their encoding reported an error, and nothing is submitted once the device is known to
// be lost.
#include "rlx/backends/wgpu/gpu.h"

#include <algorithm>

namespace rlx::wgpu {
namespace {

// The most bytes of writes that the library may hold staged; then `write` waits for the queue.
constexpr std::uint64_t kMostStaged = std::uint64_t{128} << 20;

void on_error(const abi::Device*, abi::ErrorType type, abi::StringView message, void* signals, void*) {
  static_cast<Signals*>(signals)->report(type, abi::text(message));
}

// Needs no reference to the signals, unlike on_done: the library calls it only while the device exists.
void on_lost(const abi::Device*, abi::LostReason, abi::StringView message, void* signals, void*) {
  static_cast<Signals*>(signals)->lose(abi::text(message));
}

void on_done(abi::WorkDoneStatus status, abi::StringView, void* signals, void* number) {
  auto* const s = static_cast<Signals*>(signals);
  const std::uint64_t n = reinterpret_cast<std::uintptr_t>(number);
  if (status == abi::WorkDoneStatus::Success)
    for (std::uint64_t now = s->done; now < n && !s->done.compare_exchange_weak(now, n);) {  // an atomic maximum
    }
  s->drop_reference();
}

struct DeviceRequest {
  abi::Device device = nullptr;
  std::string message;
};
void on_device(abi::RequestDeviceStatus status, abi::Device device, abi::StringView message, void* request, void*) {
  auto* const r = static_cast<DeviceRequest*>(request);
  if (status == abi::RequestDeviceStatus::Success)
    r->device = device;
  else
    r->message = abi::text(message);
}

}  // namespace

// -- signals --

void Signals::drop_reference() {
  if (--references_ == 0) delete this;
}

CallError* Signals::capture(CallError* to) {
  const std::thread::id self = std::this_thread::get_id();
  std::lock_guard lock(mutex_);
  const auto it = std::find_if(captures_.begin(), captures_.end(), [&](const auto& c) { return c.first == self; });
  if (it == captures_.end()) {
    if (to) captures_.emplace_back(self, to);
    return nullptr;
  }
  CallError* const before = std::exchange(it->second, to);
  if (!to) captures_.erase(it);
  return before;
}

void Signals::report(abi::ErrorType type, std::string_view message) {
  // The library reports a loss only in this text.
  if (message.find("device is lost") != std::string_view::npos) lose("the driver reports the loss");
  const std::thread::id self = std::this_thread::get_id();
  std::lock_guard lock(mutex_);
  const auto it = std::find_if(captures_.begin(), captures_.end(), [&](const auto& c) { return c.first == self; });
  // Outside of a capture (a release) nobody could handle the error. Within one the first error is kept.
  if (it == captures_.end() || it->second->type != abi::ErrorType{}) return;
  // wgpu-native 29 reports out of memory as a validation error.
  const bool no_memory = message.find("Not enough memory left") != std::string_view::npos;
  it->second->type = no_memory ? abi::ErrorType::OutOfMemory : type;
  it->second->message = message;
}

void Signals::lose(std::string_view why) {
  std::lock_guard lock(mutex_);
  if (!lost) reason_ = why;
  lost = true;
}

std::string Signals::lost_reason() const {
  std::lock_guard lock(mutex_);
  return reason_;
}

// -- opening --

Gpu::Gpu(const abi::Api& functions, const AdapterFacts& facts, bool browsers, std::string name)
    : api(functions), adapter(facts), text(std::move(name)), as_browsers(browsers) {
  DeviceRequest request;
  abi::DeviceDescriptor d;
  const abi::Feature timestamp = abi::Feature::TimestampQuery;
  timestamps_ = facts.timestamps && !as_browsers;
  if (timestamps_) d.feature_count = 1, d.features = &timestamp;
  if (!as_browsers) d.limits = &facts.limits;
  d.lost.callback = on_lost, d.lost.userdata1 = signals_;
  d.error.callback = on_error, d.error.userdata1 = signals_;
  abi::CallbackInfo<abi::RequestDeviceCallback> on_reply;
  on_reply.callback = on_device, on_reply.userdata1 = &request;
  {
    const auto serial_lock = serial();
    (void)api.AdapterRequestDevice(facts.handle, &d, on_reply);  // runs the callback before it returns
  }
  device_ = request.device;
  if (!device_) {
    signals_->drop_reference();
    throw Error(ErrorCode::DeviceUnavailable,
                concat_text("device ", text, " (", facts.text(), ") cannot be opened: ", request.message),
                "pick one of rlx::available_devices()");
  }
  queue_ = api.DeviceGetQueue(device_);
  (void)api.DeviceGetLimits(device_, &limits_);
  limits_.next = nullptr;
}

Gpu::~Gpu() {
  if (forked()) return;  // it belongs to the parent
  const auto serial_lock = serial();
  for (const auto& l : layouts_) {
    if (!l) continue;
    if (l->pipeline) api.PipelineLayoutRelease(l->pipeline);
    if (l->group) api.BindGroupLayoutRelease(l->group);
  }
  if (queue_) api.QueueRelease(queue_);
  if (device_) api.DeviceRelease(device_);
  signals_->drop_reference();
}

void Gpu::destroy() {
  const auto serial_lock = serial();
  std::lock_guard lock(submit_mutex_);
  api.DeviceDestroy(device_);
  abi::BufferDescriptor d;  // the library reports a loss at the next call
  d.usage = abi::usage::kStorage, d.size = 4;
  CallError ignored;
  release(call([&] { return api.DeviceCreateBuffer(device_, &d); }, ignored));
}

// -- errors --

void Gpu::throw_lost() const {
  if (forked())
    throw Error(ErrorCode::DeviceLost, concat_text("device ", text, " (", adapter.text(), ") ", kForkedAway),
                std::string(kForkHint));
  throw Error(ErrorCode::DeviceLost,
              concat_text("device ", text, " (", adapter.text(), ") was lost: ", signals_->lost_reason()),
              "make a new session, which reopens the device");
}

void Gpu::raise(const CallError& error, std::string_view what) const {
  if (lost()) throw_lost();
  if (error.type == abi::ErrorType::OutOfMemory)
    throw Error(ErrorCode::OutOfMemory, concat_text("device ", text, " has no memory for ", what),
                "free what is not needed, or run it with smaller dimensions");
  throw Error(ErrorCode::Internal, concat_text("device ", text, ", ", what, ": ", error.message), "please report it");
}

// -- work --

abi::CommandEncoder Gpu::encoder() const {
  return make("a command encoder", api.CommandEncoderRelease,
              [&] { return api.DeviceCreateCommandEncoder(device_, nullptr); });
}

Gpu::OwnBuffer Gpu::buffer(std::uint64_t bytes, abi::Flags use, std::string_view what) const {
  abi::BufferDescriptor d;
  d.usage = use, d.size = bytes;
  return {make(what, api.BufferRelease, [&] { return api.DeviceCreateBuffer(device_, &d); }), LetGo{this}};
}

std::uint64_t Gpu::submit(abi::CommandEncoder e) {
  const auto serial_lock = serial();
  abi::CommandBuffer commands = nullptr;
  if (e) {
    CallError error;
    commands = call([&] { return api.CommandEncoderFinish(e, nullptr); }, error);
    api.CommandEncoderRelease(e);
    if (error.type != abi::ErrorType{} || lost()) {
      api.CommandBufferRelease(commands);
      raise(error, "a submission");
    }
  }
  std::lock_guard lock(submit_mutex_);
  if (lost()) {
    if (commands) api.CommandBufferRelease(commands);
    throw_lost();
  }
  if (!e && !written_) return last_;
  last_ = api.QueueSubmitForIndex(queue_, e ? 1 : 0, &commands);
  written_ = false;
  if (commands) api.CommandBufferRelease(commands);
  signals_->add_reference();
  abi::CallbackInfo<abi::WorkDoneCallback> done;
  done.callback = on_done, done.userdata1 = signals_;
  done.userdata2 = reinterpret_cast<void*>(static_cast<std::uintptr_t>(last_));
  (void)api.QueueOnSubmittedWorkDone(queue_, done);
  return last_;
}

std::uint64_t Gpu::submissions() const {
  std::lock_guard lock(submit_mutex_);
  return last_;
}

void Gpu::write(abi::Buffer to, std::uint64_t offset, const void* data, std::size_t bytes) {
  // The library keeps staged writes until a later submission is complete.
  bool full = false;
  {
    std::lock_guard lock(submit_mutex_);
    if (write_bytes_ + bytes > kMostStaged) full = true, write_bytes_ = 0;
    write_bytes_ += bytes;
  }
  if (full) wait(submit(nullptr));
  call("a write", [&] {
    std::lock_guard lock(submit_mutex_);
    api.QueueWriteBuffer(queue_, to, offset, data, bytes);
    written_ = true;
  });
}

void Gpu::note_done(std::uint64_t n) const {
  for (std::uint64_t now = signals_->done; now < n && !signals_->done.compare_exchange_weak(now, n);) {
  }
}

void Gpu::wait(std::uint64_t submission) const {
  if (is_done(submission)) return;
  require();
  {
    const auto serial_lock = serial();
    (void)api.DevicePoll(device_, 1, &submission);
  }
  if (is_done(submission)) return;
  require();
  // The poll has returned, so the submission is complete, although its callback did not say so.
  note_done(submission);
}

bool Gpu::passed(std::uint64_t submission) const {
  if (is_done(submission) || lost()) return true;
  poll();
  return is_done(submission) || lost();
}

void Gpu::poll() const {
  if (lost()) return;
  const auto serial_lock = serial();
  (void)api.DevicePoll(device_, 0, nullptr);
}

void Gpu::drain() noexcept {
  try {
    wait(submit(nullptr));
    poll();
  } catch (const Error&) {  // reported by the wait for an event
  }
}

// Binding 0 is the uniform with the extents of all launches; a dynamic offset selects a launch's part. The storage
// bindings follow. If making the pipeline layout throws, the next call finds the group layout and goes on.
const Gpu::Layout& Gpu::layout(int bindings) {
  std::lock_guard lock(layouts_mutex_);
  const auto n = static_cast<std::size_t>(bindings);
  if (layouts_.size() <= n) layouts_.resize(n + 1);
  if (!layouts_[n]) layouts_[n] = std::make_unique<Layout>();
  Layout& l = *layouts_[n];
  if (!l.group) {
    std::vector<abi::BindGroupLayoutEntry> entries(n + 1);
    for (std::size_t i = 0; i <= n; ++i) {
      entries[i].binding = static_cast<std::uint32_t>(i);
      entries[i].buffer.type = i == 0 ? abi::BufferBinding::Uniform : abi::BufferBinding::Storage;
      entries[i].buffer.dynamic_offset = i == 0 ? 1 : 0;
    }
    abi::BindGroupLayoutDescriptor d;
    d.count = entries.size(), d.entries = entries.data();
    l.group = make("a bind group layout", api.BindGroupLayoutRelease,
                   [&] { return api.DeviceCreateBindGroupLayout(device_, &d); });
  }
  if (!l.pipeline) {
    abi::PipelineLayoutDescriptor p;
    p.count = 1, p.layouts = &l.group;
    l.pipeline = make("a pipeline layout", api.PipelineLayoutRelease,
                      [&] { return api.DeviceCreatePipelineLayout(device_, &p); });
  }
  return l;
}

}  // namespace rlx::wgpu
