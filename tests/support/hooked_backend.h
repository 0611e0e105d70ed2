// A wrapper of another backend that passes submits through a function, for tests of faults and of ranges.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "rlx/device/backend.h"

namespace rlx::test {

/// Submits `inner`, a program whose schedule has `steps` steps, in the hook's own way.
using SubmitHook = std::function<Event(Instance& inner, std::size_t steps, const RunArguments&, Stream&)>;

class HookedBackend final : public Backend {
 public:
  HookedBackend(std::shared_ptr<const Backend> inner, SubmitHook hook)
      : inner_(std::move(inner)), hook_(std::move(hook)) {}
  std::string_view name() const override { return "hooked"; }
  Presence probe(Device) const noexcept override { return {1}; }
  std::shared_ptr<OpenDevice> open(DeviceId id, const DeviceOptions& o) const override { return inner_->open(id, o); }
  std::shared_ptr<const Target> target(const BackendOptions& o) const override { return inner_->target(o); }
  std::unique_ptr<const Executable> compile_lir(LirModule lir, const BackendOptions& o) const override {
    return std::make_unique<HookedExecutable>(inner_->compile_lir(std::move(lir), o), hook_);
  }

 private:
  class Bound final : public Instance {
   public:
    Bound(std::unique_ptr<Instance> inner, std::size_t steps, SubmitHook hook)
        : inner_(std::move(inner)), steps_(steps), hook_(std::move(hook)) {}
    Event submit(const RunArguments& arguments, Stream& stream) override {
      return hook_(*inner_, steps_, arguments, stream);
    }

   private:
    std::unique_ptr<Instance> inner_;
    std::size_t steps_;
    SubmitHook hook_;
  };

  class HookedExecutable final : public Executable {
   public:
    HookedExecutable(std::unique_ptr<const Executable> inner, SubmitHook hook)
        : inner_(std::move(inner)), hook_(std::move(hook)) {}
    const LirModule& lir() const override { return inner_->lir(); }
    void encode(NodeId n, std::size_t s, const ColumnRange& c, DType t, const std::byte* v,
                std::byte* f) const override {
      inner_->encode(n, s, c, t, v, f);
    }
    void decode(NodeId n, std::size_t s, const std::byte* f, DType t, std::byte* v) const override {
      inner_->decode(n, s, f, t, v);
    }
    std::unique_ptr<Instance> bind(OpenDevice& device, const LirModule& program,
                                   std::span<const BufferView> arenas) const override {
      return std::make_unique<Bound>(inner_->bind(device, program, arenas), program.plan.schedule.size(), hook_);
    }
    std::string kernel_name(NodeId n) const override { return inner_->kernel_name(n); }

   private:
    std::unique_ptr<const Executable> inner_;
    SubmitHook hook_;
  };

  std::shared_ptr<const Backend> inner_;
  SubmitHook hook_;
};

}  // namespace rlx::test
