// The compute pipelines of one device, cached by WGSL text.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "rlx/backends/wgpu/gpu.h"

namespace rlx::wgpu {

/// A kernel to compile. `where` is the node for which it was written.
struct KernelText {
  std::string_view name, text, where;
  int bindings = 0;  // without the numbers
};

using Pipeline = std::shared_ptr<std::remove_pointer_t<abi::ComputePipeline>>;

class Pipelines {
 public:
  /// The most pipelines that are kept. Beyond that, pipelines that no program holds are evicted, least recently
  /// requested first.
  static constexpr std::size_t kKept = 512;

  explicit Pipelines(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;
  /// The compiled kernel of each text; new ones are compiled on a few threads. Internal, with the text and the driver's
  /// message, for a kernel that does not compile.
  std::vector<Pipeline> get(std::span<const KernelText> wanted);
  std::size_t size() const;

 private:
  struct Entry {
    Pipeline pipeline{};
    bool busy = true;
    std::uint64_t asked = 0;
  };
  Pipeline compile(const KernelText& kernel) const;
  void trim();

  std::shared_ptr<Gpu> gpu_;
  mutable std::mutex mutex_;
  std::condition_variable compiled_;
  std::map<std::string, Entry, std::less<>> known_;
  std::uint64_t asked_ = 0;
};

}  // namespace rlx::wgpu
