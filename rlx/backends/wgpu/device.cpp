// Memory and streams on the one queue of an adapter.
#include "rlx/backends/wgpu/device.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rlx/device/device.h"
#include "rlx/exec/fetching.h"

namespace rlx::wgpu {
namespace {

// Bindings of vec4 cover whole vectors, so buffers are padded to a multiple of 16 bytes.
constexpr std::size_t kPadding = 16;
constexpr std::size_t kNothingBytes = 256 * 16;

/// Host results are kept in host memory, as mapped device memory has no stable address.
class ReadbackBuffer final : public rlx::Buffer {
 public:
  ReadbackBuffer(std::shared_ptr<OpenDevice> device, std::shared_ptr<std::byte[]> memory, std::size_t bytes,
                 std::shared_ptr<std::atomic<std::size_t>> counter)
      : rlx::Buffer(device->id(), bytes, memory.get()),
        device_(std::move(device)),
        memory_(std::move(memory)),
        counter_(std::move(counter)) {
    *counter_ += bytes;
  }
  ~ReadbackBuffer() override { *counter_ -= bytes(); }
  void read(std::span<std::byte> to) const override {
    written().wait();
    require_place("a read", to.size(), "from", BufferView(host(), bytes()));
    if (!to.empty()) std::memcpy(to.data(), host(), to.size());
  }
  const OpenDevice* opened() const override { return device_.get(); }
  /// For a download. The device holds the download, and this buffer holds the device.
  std::shared_ptr<const void> memory() const { return memory_; }

 private:
  std::shared_ptr<OpenDevice> device_;
  std::shared_ptr<std::byte[]> memory_;
  std::shared_ptr<std::atomic<std::size_t>> counter_;
};

void require_granule(const BufferView& v) {
  check(v.offset % 4 == 0, "a copy has an offset that is not a multiple of 4");
}

}  // namespace

// -- buffers --

WgpuBuffer::WgpuBuffer(std::shared_ptr<OpenDevice> device, std::shared_ptr<Gpu> gpu, std::size_t bytes,
                       abi::Buffer handle, std::shared_ptr<std::atomic<std::size_t>> counter, std::uint64_t serial)
    : rlx::Buffer(device->id(), bytes, nullptr),
      device_(std::move(device)),
      gpu_(std::move(gpu)),
      handle_(handle),
      counter_(std::move(counter)),
      serial_(serial) {
  *counter_ += bytes;
}

// The library keeps buffers that submitted work uses.
WgpuBuffer::~WgpuBuffer() {
  *counter_ -= bytes();
  gpu_->release(handle_);
}

void WgpuBuffer::read(std::span<std::byte> to) const {
  const auto stream = device_->stream();
  stream->wait(written());
  Fetching fetching(*stream);
  stream->download(BufferView(const_cast<WgpuBuffer&>(*this), 0, bytes()), to);  // NOLINT(const-cast): is read
  fetching.finish(stream->record());
}

// -- the device --

WgpuDevice::WgpuDevice(DeviceId id, std::shared_ptr<Gpu> gpu, std::size_t memory_bytes)
    : id_(id),
      gpu_(std::move(gpu)),
      limit_(memory_bytes),
      pipelines_(gpu_),
      downloads_(std::make_shared<Downloads>(gpu_)) {
  for (auto& c : in_use_) c = std::make_shared<std::atomic<std::size_t>>(0);
}

DeviceMemory WgpuDevice::memory() const {
  DeviceMemory m;
  m.total = limit_;
  for (std::size_t i = 0; i < in_use_.size(); ++i) m.in_use[i] = *in_use_[i];
  return m;
}

std::shared_ptr<Stream> WgpuDevice::stream(std::uintptr_t native) {
  if (native != 0)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("device ", device_text(id_), " accepts no streams of other libraries: it has one queue"),
                "call stream() without a native stream");
  gpu_->require();
  return std::make_shared<WgpuStream>(self());
}

std::shared_ptr<rlx::Buffer> WgpuDevice::allocate(std::size_t bytes, BufferUse use) {
  gpu_->require();
  (void)buffer_use_name(use);
  const auto& counter = in_use_[static_cast<std::size_t>(use)];
  if (use == BufferUse::Readback) {
    std::shared_ptr<std::byte[]> memory(new (std::nothrow) std::byte[std::max<std::size_t>(bytes, 1)]);
    if (!memory) throw_no_memory(bytes, use, 0);
    return std::make_shared<ReadbackBuffer>(self(), std::move(memory), bytes, counter);
  }
  const std::uint64_t most = gpu_->limits().buffer_size;
  if (bytes > most - kPadding) throw_no_memory(bytes, use, most);
  if (limit_ != 0 && memory().used() + bytes > limit_) throw_no_memory(bytes, use, limit_);
  abi::BufferDescriptor d;
  d.usage = abi::usage::kStorage | abi::usage::kCopySource | abi::usage::kCopyTarget;
  d.size = std::max(kPadding, round_up(bytes, kPadding));
  abi::Buffer handle = nullptr;
  for (int attempt = 0; attempt < 2 && !handle; ++attempt) {
    CallError error;
    handle = gpu_->call([&] { return gpu_->api.DeviceCreateBuffer(gpu_->device(), &d); }, error);
    if (error.type == abi::ErrorType{}) break;
    if (handle) gpu_->release(std::exchange(handle, nullptr));
    if (error.type != abi::ErrorType::OutOfMemory || gpu_->lost()) gpu_->raise(error, "a buffer");
    gpu_->drain();  // released buffers are freed once the queue has passed them
  }
  if (!handle) throw_no_memory(bytes, use, 0);
  return std::make_shared<WgpuBuffer>(self(), gpu_, bytes, handle, counter, ++serial_);
}

WgpuBuffer& WgpuDevice::buffer_of(const BufferView& v) const {
  auto* const ours = dynamic_cast<WgpuBuffer*>(v.buffer);
  if (!ours || ours->opened() != this)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("device ", device_text(id_), " was given memory of ",
                            v.buffer ? concat_text("device ", device_text(v.buffer->device()),
                                                   v.buffer->device() == id_ ? ", opened with other options" : "")
                                     : std::string("the host")),
                "copy it there with rlx::to(tensor, device)");
  check(v.offset + v.bytes <= ours->bytes(), "a view reaches past its buffer");
  return *ours;
}

abi::Buffer WgpuDevice::nothing() {
  std::lock_guard lock(nothing_mutex_);
  if (!nothing_) nothing_ = gpu_->buffer(kNothingBytes, abi::usage::kStorage | abi::usage::kUniform, "empty values");
  return nothing_.get();
}

// -- streams --

WgpuStream::~WgpuStream() {
  if (copies_) gpu_.release(copies_);
}

void WgpuStream::upload(std::span<const std::byte> from, const BufferView& to) {
  gpu_.require();
  require_place("an upload", from.size(), "to", to);
  require_granule(to);
  if (from.empty()) return;
  flush();
  if (to.host) {
    wait_quietly(*this);
    std::memcpy(to.host, from.data(), from.size());
    return;
  }
  const abi::Buffer handle = device_->buffer_of(to).handle();
  constexpr std::size_t kPart = std::size_t{32} << 20;
  const std::size_t whole = from.size() / 4 * 4;
  for (std::size_t at = 0; at < whole; at += kPart)
    gpu_.write(handle, to.offset + at, from.data() + at, std::min(kPart, whole - at));
  if (whole == from.size()) return;
  std::byte last[4]{};
  std::memcpy(last, from.data() + whole, from.size() - whole);
  gpu_.write(handle, to.offset + whole, last, sizeof last);
}

void WgpuStream::download(const BufferView& from, std::span<std::byte> to) {
  gpu_.require();
  require_place("a download", to.size(), "from", from);
  require_granule(from);
  if (to.empty()) return;
  if (from.host) {
    wait_quietly(*this);
    std::memcpy(to.data(), from.host, to.size());
    return;
  }
  fetch(from, to, nullptr);
}

void WgpuStream::fetch(const BufferView& from, std::span<std::byte> to, std::shared_ptr<const void> kept) {
  const abi::Buffer handle = device_->buffer_of(from).handle();
  if (!filling_) filling_ = device_->downloads()->take();
  filling_->add(from.buffer->shared_from_this(), handle, from.offset, to, std::move(kept));
}

void WgpuStream::copy(const BufferView& from, const BufferView& to) {
  gpu_.require();
  require_place("a copy", to.bytes, "from", from);
  require_granule(from), require_granule(to);
  if (to.bytes == 0) return;
  if (to.host) {  // results for the host
    BufferView part = from;
    part.bytes = to.bytes;
    if (!from.host) {
      const auto* const ours = dynamic_cast<const ReadbackBuffer*>(to.buffer);
      return fetch(part, {to.host, to.bytes},
                   ours        ? ours->memory()
                   : to.buffer ? std::shared_ptr<const void>(to.buffer->shared_from_this())
                               : nullptr);
    }
  }
  if (from.host) {
    wait_quietly(*this);
    return upload({from.host, to.bytes}, to);
  }
  if (filling_) flush();  // its source may be overwritten
  WgpuBuffer &source = device_->buffer_of(from), &target = device_->buffer_of(to);
  const std::size_t bytes = round_up(to.bytes, 4);
  if (!copies_) copies_ = gpu_.encoder();
  if (&source != &target) {
    gpu_.call("a copy", [&] {
      gpu_.api.CommandEncoderCopyBufferToBuffer(copies_, source.handle(), from.offset, target.handle(), to.offset,
                                                bytes);
    });
    return;
  }
  if (!aside_ || aside_->bytes() < bytes) aside_ = device_->allocate(bytes, BufferUse::Slots);
  const abi::Buffer aside = static_cast<WgpuBuffer&>(*aside_).handle();
  gpu_.call("a copy", [&] {
    gpu_.api.CommandEncoderCopyBufferToBuffer(copies_, source.handle(), from.offset, aside, 0, bytes);
    gpu_.api.CommandEncoderCopyBufferToBuffer(copies_, aside, 0, target.handle(), to.offset, bytes);
  });
}

void WgpuStream::flush() {
  if (!copies_ && !filling_) return;
  if (!copies_) copies_ = gpu_.encoder();
  std::unique_ptr<Download> bringing = std::move(filling_);
  const abi::CommandEncoder encoder = std::exchange(copies_, nullptr);
  try {
    if (bringing) bringing->encode(encoder);
  } catch (...) {
    gpu_.release(encoder);
    throw;
  }
  const std::uint64_t submission = gpu_.submit(encoder);
  if (bringing) last_ = device_->downloads()->begin(std::move(bringing), submission);
}

void WgpuStream::submit(abi::CommandEncoder encoder) {
  try {
    flush();
  } catch (...) {
    gpu_.release(encoder);
    throw;
  }
  (void)gpu_.submit(encoder);
}

Event WgpuStream::record() {
  flush();
  return device_->point(gpu_.submit(nullptr), last_);
}

void WgpuStream::wait(const Event& event) {
  if (!event.point()) return;
  const auto* const ours = dynamic_cast<const Point*>(event.point());
  if (!ours || &ours->gpu() != &gpu_) return event.wait();
  gpu_.require();
  // The queue keeps the order. The other stream's pending downloads now count as this stream's too.
  last_ = std::max(last_, ours->download());
}

}  // namespace rlx::wgpu
