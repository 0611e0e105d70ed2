// Compiles kernels. A thread that needs a kernel that another thread compiles waits for it.
#include "rlx/backends/wgpu/pipelines.h"

#include <algorithm>
#include <exception>
#include <thread>

namespace rlx::wgpu {
namespace {

constexpr std::size_t kMostThreads = 8;

/// The text with line numbers, as messages name them.
std::string numbered(std::string_view text) {
  std::string out;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += concat_text(line < 10 ? "  " : line < 100 ? " " : "", line, " ", text.substr(0, end), "\n");
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace

std::size_t Pipelines::size() const {
  std::lock_guard lock(mutex_);
  return known_.size();
}

Pipeline Pipelines::compile(const KernelText& k) const {
  const abi::Api& api = gpu_->api;
  CallError error;
  abi::ShaderSourceWgsl source;
  source.code = abi::view(k.text);
  abi::LabelDescriptor module_of;
  module_of.next = &source.chain, module_of.label = abi::view(k.name);
  gpu_->require();
  const abi::PipelineLayout layout = gpu_->layout(k.bindings).pipeline;
  const abi::ShaderModule module =
      gpu_->call([&] { return api.DeviceCreateShaderModule(gpu_->device(), &module_of); }, error);
  abi::ComputePipeline pipeline = nullptr;
  if (error.type == abi::ErrorType{}) {
    abi::ComputePipelineDescriptor d;
    d.label = abi::view(k.name), d.layout = layout, d.compute.module = module,
    d.compute.entry_point = abi::view("main");
    pipeline = gpu_->call([&] { return api.DeviceCreateComputePipeline(gpu_->device(), &d); }, error);
  }
  const auto one = gpu_->serial();
  if (module) api.ShaderModuleRelease(module);
  const auto release = [gpu = gpu_](abi::ComputePipeline p) {
    if (!p || gpu->forked()) return;
    const auto alone = gpu->serial();
    gpu->api.ComputePipelineRelease(p);
  };
  Pipeline out(pipeline, release);
  if (error.type == abi::ErrorType{}) return out;
  gpu_->require();
  if (error.type == abi::ErrorType::OutOfMemory) gpu_->raise(error, concat_text("kernel ", k.name));
  throw Error(Diagnostic{ErrorCode::Internal,
                         concat_text("device ", gpu_->text, ": kernel ", k.name, " does not compile: ", error.message,
                                     "\n", numbered(k.text)),
                         std::string(k.where), "please report it with this text"});
}

// Pipelines of the current request are held by its result and stay.
void Pipelines::trim() {
  if (known_.size() <= kKept) return;
  std::vector<decltype(known_)::iterator> free;
  for (auto it = known_.begin(); it != known_.end(); ++it)
    if (!it->second.busy && it->second.pipeline.use_count() == 1) free.push_back(it);
  const std::size_t most = std::min(free.size(), known_.size() - kKept);
  const auto earlier = [](const auto& a, const auto& b) { return a->second.asked < b->second.asked; };
  std::partial_sort(free.begin(), free.begin() + static_cast<std::ptrdiff_t>(most), free.end(), earlier);
  for (std::size_t i = 0; i < most; ++i) known_.erase(free[i]);
}

std::vector<Pipeline> Pipelines::get(std::span<const KernelText> wanted) {
  std::vector<const KernelText*> ours;
  std::unique_lock lock(mutex_);
  for (const KernelText& k : wanted)
    if (known_.find(k.text) == known_.end()) {
      known_.emplace(k.text, Entry{});
      ours.push_back(&k);
    }
  lock.unlock();
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  const auto work = [&] {
    for (std::size_t i; (i = next++) < ours.size();) {
      Pipeline made;
      std::exception_ptr failed;
      try {
        made = compile(*ours[i]);
      } catch (...) {
        failed = std::current_exception();
      }
      std::lock_guard guard(mutex_);
      const auto it = known_.find(ours[i]->text);
      it->second.pipeline = made, it->second.busy = false;
      if (!made) known_.erase(it);
      if (failed && !failure) failure = failed;
      compiled_.notify_all();
    }
  };
  const std::size_t most =
      gpu_->adapter.gl() ? 1 : std::min<std::size_t>(kMostThreads, std::thread::hardware_concurrency());
  std::vector<std::thread> helpers;
  try {
    for (std::size_t t = 1; t < std::min(most, ours.size()); ++t) helpers.emplace_back(work);
  } catch (const std::system_error&) {  // continue with fewer threads
  }
  work();
  for (std::thread& t : helpers) t.join();
  if (failure) std::rethrow_exception(failure);
  std::vector<Pipeline> out;
  lock.lock();
  for (const KernelText& k : wanted) {
    auto it = known_.find(k.text);
    compiled_.wait(lock, [&] {
      it = known_.find(k.text);
      return it == known_.end() || !it->second.busy;
    });
    if (it == known_.end()) {  // another thread's attempt failed, so this one reports the reason
      lock.unlock();
      const std::vector<Pipeline> again = get(std::span(&k, 1));
      lock.lock();
      out.push_back(again.front());
      continue;
    }
    it->second.asked = ++asked_;
    out.push_back(it->second.pipeline);
  }
  trim();
  return out;
}

}  // namespace rlx::wgpu
