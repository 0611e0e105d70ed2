// Binding an LIR to memory, and running it: pointers are final except those into callers' buffers.
#include "rlx/backends/cpu/bound_program.h"

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "rlx/backends/cpu/aligned_bytes.h"
#include "rlx/backends/cpu/audited_pieces.h"
#include "rlx/backends/cpu/final_copies.h"
#include "rlx/backends/cpu/followed_pointers.h"
#include "rlx/backends/cpu/piece_schedules.h"

namespace rlx::cpu {
namespace {

class Bound final : public BoundGraph {
 public:
  Bound(const Executable& exe, const LirModule& lir, std::span<const BufferView> arenas, bool is_body)
      : exe_(exe), program_(exe, lir, arenas, is_body), num_steps_(lir.plan.schedule.size()) {
    if (program_.ranges().empty() || program_.ranges().back().end >= num_steps_) final_copies_.make(program_);
    // Threads that meet in every step would wait for those that are in the step which runs a body.
    if (exe.audit() != nullptr && !is_body)
      audited_.emplace(program_);
    else
      schedules_.emplace(program_);
    Program& p = program_.program();
    if (p.scratch_bytes > 0) {
      const std::size_t stride = round_up(p.scratch_bytes) + kAlignment;  // apart, so that threads share no line
      scratch_ = AlignedBytes(stride * static_cast<std::size_t>(exe.threads()));
      p.scratch = {scratch_.data, exe.threads() == 1 ? 0 : stride};
    }
    pointers_ = FollowedPointers(std::move(p.patches));
  }

  Event submit(const RunArguments& a, Stream&) override {
    pointers_.follow(a);
    const StepRange range = a.range.of(num_steps_);
    if (a.times != nullptr)
      run_timed(*a.times, range);
    else if (audited_ && range == StepRange{0, num_steps_})
      audited_->run(exe_.threads(), *exe_.audit());
    else if (audited_ || schedules_->runs_alone())
      run_in_order(program_.pieces(range.begin, range.end));
    else
      run_by_all(range);
    if (range.end == num_steps_) final_copies_.run(exe_.kernels());
    return {};
  }

 private:
  void run_by_all(const StepRange& range) {
    for (Segment& s : schedules_->of(range)) {
      if (s.alone)
        s.alone->run(s.alone->ctx, 0);
      else
        ThreadPool::process().run(s.schedule, exe_.threads());
    }
  }

  void run_timed(std::vector<StepTime>& times, const StepRange& range) {
    using Clock = std::chrono::steady_clock;
    const auto& steps = program_.lir().plan.schedule;
    times.clear();
    times.reserve(range.end - range.begin);
    for (std::size_t i = range.begin; i < range.end; ++i) {
      const auto start = Clock::now();
      run_in_order(program_.pieces(i, i + 1));
      times.push_back({steps[i].node, std::chrono::duration<double, std::nano>(Clock::now() - start).count()});
    }
  }

  const Executable& exe_;
  LoweredProgram program_;
  std::size_t num_steps_;
  FinalCopies final_copies_;
  std::optional<AuditedPieces> audited_;  // one of the two
  std::optional<PieceSchedules> schedules_;
  AlignedBytes scratch_;
  FollowedPointers pointers_;
};

}  // namespace

std::unique_ptr<BoundGraph> bind_program(const Executable& exe, const LirModule& lir,
                                         std::span<const BufferView> arenas, bool is_body) {
  return std::make_unique<Bound>(exe, lir, arenas, is_body);
}

}  // namespace rlx::cpu
