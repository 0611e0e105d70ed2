// Compiling kernels. Whoever finds one that another thread compiles waits for that.
#include "rlx/backends/wgpu/pipelines.h"

#include <algorithm>
#include <exception>
#include <thread>

namespace rlx::wgpu {
namespace {

constexpr std::size_t kMostThreads = 8;

/// The text with numbers of lines, as messages name them.
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

Pipelines::~Pipelines() {
  const auto one = gpu_->serial();
  for (const auto& [text, entry] : known_)
    if (entry.pipeline) gpu_->api.ComputePipelineRelease(entry.pipeline);
}

std::size_t Pipelines::size() const {
  std::lock_guard lock(mutex_);
  return known_.size();
}

abi::ComputePipeline Pipelines::compile(const KernelText& k) const {
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
  if (error.type == abi::ErrorType{}) return pipeline;
  if (pipeline) api.ComputePipelineRelease(pipeline);
  gpu_->require();
  if (error.type == abi::ErrorType::OutOfMemory) gpu_->raise(error, concat_text("kernel ", k.name));
  throw Error(Diagnostic{ErrorCode::Internal,
                         concat_text("device ", gpu_->text, ": kernel ", k.name, " does not compile: ", error.message,
                                     "\n", numbered(k.text)),
                         std::string(k.where), "please report it with this text"});
}

std::vector<abi::ComputePipeline> Pipelines::get(std::span<const KernelText> wanted) {
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
      abi::ComputePipeline made = nullptr;
      std::exception_ptr failed;
      try {
        made = compile(*ours[i]);
      } catch (...) {
        failed = std::current_exception();
      }
      std::lock_guard guard(mutex_);
      const auto it = known_.find(ours[i]->text);
      it->second = {made, false};
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
  } catch (const std::system_error&) {  // fewer threads then
  }
  work();
  for (std::thread& t : helpers) t.join();
  if (failure) std::rethrow_exception(failure);
  std::vector<abi::ComputePipeline> out;
  lock.lock();
  for (const KernelText& k : wanted) {
    auto it = known_.find(k.text);
    compiled_.wait(lock, [&] {
      it = known_.find(k.text);
      return it == known_.end() || !it->second.busy;
    });
    if (it == known_.end()) {  // another thread's attempt failed: ours then says why
      lock.unlock();
      const std::vector<abi::ComputePipeline> again = get(std::span(&k, 1));
      lock.lock();
      out.push_back(again.front());
      continue;
    }
    out.push_back(it->second.pipeline);
  }
  return out;
}

}  // namespace rlx::wgpu
