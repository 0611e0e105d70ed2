// Compiled kernels of one device, by text.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "rlx/backends/wgpu/gpu.h"

namespace rlx::wgpu {

/// What is wanted of a kernel: `where` is the node for which it was written.
struct KernelText {
  std::string_view name, text, where;
  int bindings = 0;  // but for the numbers
};

class Pipelines {
 public:
  explicit Pipelines(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}
  ~Pipelines();
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;
  /// The kernel of each, compiled once on a few threads. Internal, with the text and what the driver says, for one that
  /// does not compile.
  std::vector<abi::ComputePipeline> get(std::span<const KernelText> wanted);
  std::size_t size() const;

 private:
  struct Entry {
    abi::ComputePipeline pipeline = nullptr;
    bool busy = true;
  };
  abi::ComputePipeline compile(const KernelText& kernel) const;

  std::shared_ptr<Gpu> gpu_;
  mutable std::mutex mutex_;
  std::condition_variable compiled_;
  std::map<std::string, Entry, std::less<>> known_;
};

}  // namespace rlx::wgpu
