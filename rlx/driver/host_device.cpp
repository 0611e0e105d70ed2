// Heap blocks as buffers, and copies made at once.
#include "rlx/driver/host_device.h"

#include <atomic>
#include <cstring>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

#include "rlx/driver/device.h"
#include "rlx/error.h"

namespace rlx {
namespace {

using Counters = std::array<std::atomic<std::size_t>, kNumBufferUses>;

void copy_bytes(const std::byte* from, std::byte* to, std::size_t bytes) {
  if (bytes != 0) std::memcpy(to, from, bytes);
}

// A place of other memory than the host's is refused too: its bytes have no address here.
void require_reached(std::string_view what, std::size_t bytes, std::string_view way, const BufferView& place) {
  require_place(what, bytes, way, place);
  if (bytes != 0 && !place.host)
    throw Error(ErrorCode::InvalidArgument,
                concat_text(what, " of ", bytes, " bytes ", way, " memory of device ",
                            device_text(place.buffer->device()), ", which the host does not reach"),
                "use a stream of that device");
}

class HostBuffer final : public Buffer {
 public:
  HostBuffer(DeviceId id, Tensor bytes, BufferUse use, std::shared_ptr<Counters> counters)
      : Buffer(id, bytes.size_bytes(), bytes.mutable_data()),
        bytes_(std::move(bytes)),
        counter_((*counters)[static_cast<std::size_t>(use)]),
        counters_(std::move(counters)) {
    counter_ += this->bytes();
  }
  ~HostBuffer() override { counter_ -= bytes(); }
  std::uintptr_t native() const override { return reinterpret_cast<std::uintptr_t>(host()); }
  void read(std::span<std::byte> to) const override {
    require_place("a read", to.size(), "from", BufferView(host(), bytes()));
    copy_bytes(host(), to.data(), to.size());
  }

 private:
  Tensor bytes_;  // its memory lies in huge pages where that pays
  std::atomic<std::size_t>& counter_;
  std::shared_ptr<Counters> counters_;
};

class HostStream final : public Stream {
 public:
  void upload(std::span<const std::byte> from, const BufferView& to) override {
    require_reached("an upload", from.size(), "to", to);
    copy_bytes(from.data(), to.host, from.size());
  }
  void download(const BufferView& from, std::span<std::byte> to) override {
    require_reached("a download", to.size(), "from", from);
    copy_bytes(from.host, to.data(), to.size());
  }
  void copy(const BufferView& from, const BufferView& to) override {
    require_reached("a copy", to.bytes, "from", from);
    require_reached("a copy", to.bytes, "to", to);
    copy_bytes(from.host, to.host, to.bytes);
  }
  Event record() override { return {}; }
  void wait(const Event& event) override { event.wait(); }
};

class HostDevice final : public OpenDevice {
 public:
  explicit HostDevice(DeviceId id) : id_(id), counters_(std::make_shared<Counters>()) {}
  DeviceId id() const override { return id_; }
  MemoryModel memory_model() const override { return MemoryModel::Host; }
  DeviceMemory memory() const override {
    DeviceMemory m;
#if defined(__unix__) || defined(__APPLE__)
    const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGE_SIZE);
    if (pages > 0 && page > 0) m.total = static_cast<std::size_t>(pages) * static_cast<std::size_t>(page);
#endif
    for (std::size_t i = 0; i < m.in_use.size(); ++i) m.in_use[i] = (*counters_)[i];
    return m;
  }
  std::shared_ptr<Stream> stream(std::uintptr_t native) override {
    if (native != 0)
      throw Error(ErrorCode::InvalidArgument, "the host has no streams of its own: a native stream was given",
                  "ask for a stream without one");
    return std::make_shared<HostStream>();
  }
  void drain() override {}
  std::shared_ptr<Buffer> allocate(std::size_t bytes, BufferUse use) override {
    (void)buffer_use_name(use);
    constexpr std::size_t kMost = std::size_t{1} << 56;  // far beyond any machine, and countable
    Tensor memory;
    try {
      if (bytes < kMost) memory = Tensor::uninitialized(Shape({Dim(bytes)}, DType::U8));
    } catch (const Error& e) {
      if (e.code() != ErrorCode::OutOfMemory) throw;
    }
    if (memory.empty()) throw_no_memory(bytes, use, 0);
    return std::make_shared<HostBuffer>(id_, std::move(memory), use, counters_);
  }

 private:
  DeviceId id_;
  std::shared_ptr<Counters> counters_;
};

}  // namespace

std::shared_ptr<OpenDevice> open_host_device(DeviceId id) { return std::make_shared<HostDevice>(id); }

}  // namespace rlx
