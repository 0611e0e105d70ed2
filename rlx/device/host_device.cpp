// The host device: heap blocks as buffers, and synchronous copies.
#include "rlx/device/host_device.h"

#include <atomic>
#include <cstring>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "rlx/device/device.h"
#include "rlx/error.h"

namespace rlx {
namespace {

using Counters = std::array<std::atomic<std::size_t>, kNumBufferUses>;

void copy_bytes(const std::byte* from, std::byte* to, std::size_t bytes) {
  if (bytes != 0) std::memcpy(to, from, bytes);
}

// Checks a view as `require_place` does, and refuses memory of another device, whose bytes have no host address. `way`
// is "from" or "to".
void require_host_access(std::string_view what, std::size_t bytes, std::string_view way, const BufferView& place) {
  require_place(what, bytes, way, place);
  if (bytes != 0 && !place.host)
    throw Error(ErrorCode::InvalidArgument,
                concat_text(what, " of ", bytes, " bytes ", way, " memory of device ",
                            device_text(place.buffer->device()), ", which the host cannot access"),
                "use a stream of that device");
}

// Demand-zero memory: the system creates its pages when they are first touched. A KV cache for long texts then costs
// nothing at start, and takes memory as it fills. Large blocks begin at a multiple of the size of a huge page, so that
// the system can use huge pages (madvise). Null when there is no memory.
#if defined(__linux__)
std::shared_ptr<std::byte> map_demand_zero(std::size_t bytes) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  const std::size_t mapped = bytes < 2 * kHugePage ? bytes : bytes + kHugePage;
  void* const map = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return nullptr;
  auto* data = static_cast<std::byte*>(map);
  if (mapped != bytes) {
    data += (kHugePage - reinterpret_cast<std::uintptr_t>(map) % kHugePage) % kHugePage;
    (void)::madvise(data, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  }
  return {data, [map, mapped](std::byte*) { ::munmap(map, mapped); }};
}
#endif

class HostBuffer final : public Buffer {
 public:
  HostBuffer(DeviceId id, std::byte* data, std::size_t bytes, std::shared_ptr<const void> owner, bool zeros,
             BufferUse use, std::shared_ptr<Counters> counters)
      : Buffer(id, bytes, data),
        owner_(std::move(owner)),
        zeros_(zeros),
        counter_((*counters)[static_cast<std::size_t>(use)]),
        counters_(std::move(counters)) {
    counter_ += this->bytes();
  }
  ~HostBuffer() override { counter_ -= bytes(); }
  bool was_zeros() const { return zeros_; }
  std::uintptr_t native() const override { return reinterpret_cast<std::uintptr_t>(host()); }
  void read(std::span<std::byte> to) const override {
    require_place("a read", to.size(), "from", BufferView(host(), bytes()));
    copy_bytes(host(), to.data(), to.size());
  }

 private:
  std::shared_ptr<const void> owner_;
  bool zeros_;
  std::atomic<std::size_t>& counter_;
  std::shared_ptr<Counters> counters_;  // holds `counter_`; buffers may outlive the device
};

class HostStream final : public Stream {
 public:
  void upload(std::span<const std::byte> from, const BufferView& to) override {
    require_host_access("an upload", from.size(), "to", to);
    copy_bytes(from.data(), to.host, from.size());
  }
  void download(const BufferView& from, std::span<std::byte> to) override {
    require_host_access("a download", to.size(), "from", from);
    copy_bytes(from.host, to.data(), to.size());
  }
  void copy(const BufferView& from, const BufferView& to) override {
    require_host_access("a copy", to.bytes, "from", from);
    require_host_access("a copy", to.bytes, "to", to);
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
      throw Error(ErrorCode::InvalidArgument, "a native stream cannot be used: the host has no streams of its own",
                  "call stream() without a native stream");
    return std::make_shared<HostStream>();
  }
  void drain() override {}
  std::shared_ptr<Buffer> allocate(std::size_t bytes, BufferUse use) override {
    (void)buffer_use_name(use);                          // throws for an invalid value, before it is an index
    constexpr std::size_t kMost = std::size_t{1} << 56;  // no machine has as much; sums of sizes below do not overflow
    const bool zeros = use == BufferUse::States;
#if defined(__linux__)
    constexpr std::size_t kLeastMapped = std::size_t{1} << 16;  // the size from which a mapping of its own pays off
    if (zeros && bytes >= kLeastMapped && bytes < kMost) {
      const std::shared_ptr<std::byte> memory = map_demand_zero(bytes);
      if (!memory) throw_no_memory(bytes, use, 0);
      return std::make_shared<HostBuffer>(id_, memory.get(), bytes, memory, zeros, use, counters_);
    }
#endif
    auto memory = std::make_shared<Tensor>();  // its allocation uses huge pages when they pay off
    const Shape shape({Dim(bytes)}, DType::U8);
    try {
      if (bytes < kMost) *memory = zeros ? Tensor::zeros(shape) : Tensor::uninitialized(shape);
    } catch (const Error& e) {
      if (e.code() != ErrorCode::OutOfMemory) throw;
    }
    if (memory->empty()) throw_no_memory(bytes, use, 0);
    std::byte* const data = memory->mutable_data();
    return std::make_shared<HostBuffer>(id_, data, bytes, std::move(memory), zeros, use, counters_);
  }

 private:
  DeviceId id_;
  std::shared_ptr<Counters> counters_;
};

}  // namespace

bool allocated_as_zeros(const Buffer& buffer) {
  const auto* host = dynamic_cast<const HostBuffer*>(&buffer);
  return host && host->was_zeros();
}

std::shared_ptr<OpenDevice> open_host_device(DeviceId id) { return std::make_shared<HostDevice>(id); }

}  // namespace rlx
