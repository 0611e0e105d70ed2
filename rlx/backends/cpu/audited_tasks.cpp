// Pieces as steps whose threads meet.
#include "rlx/backends/cpu/audited_tasks.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

namespace rlx::cpu {

/// A piece as a step of an audited run.
struct AuditedPiece {
  AuditedPiece(const Piece& p, std::string kernel_name, std::string label)
      : piece(p), kernel(std::move(kernel_name)), node(std::move(label)) {}
  static void run(void* ctx, std::int64_t chunk) {
    AuditedPiece& a = *static_cast<AuditedPiece*>(ctx);
    a.threads.store(run_threads(), std::memory_order_relaxed);
    a.watch.enter(a.piece.chunks, a.node);
    a.piece.run(a.piece.ctx, chunk);
  }
  const Piece& piece;
  std::string kernel, node;
  ChunkWatch watch;
  std::atomic<int> threads{1};  // of the run
};

AuditedPieces::~AuditedPieces() = default;

// Every piece is a step that waits for the one before, so that threads which wait for each other in one step are not
// waited for in another.
AuditedPieces::AuditedPieces(LoweredProgram& program) {
  std::vector<ScheduleStep> out;
  const std::size_t n = program.pieces().size();
  pieces_.reserve(n);
  std::vector<std::int32_t> before(n);
  for (std::size_t i = 0; i < program.lir().plan.schedule.size(); ++i)
    for (std::size_t k = program.first_piece(i); k < program.first_piece(i + 1); ++k) {
      const Piece& p = program.pieces()[k];
      pieces_.push_back(std::make_unique<AuditedPiece>(
          p, program.row(i).kernel, node_label(program.lir().graph, program.lir().plan.schedule[i].node)));
      before[k] = static_cast<std::int32_t>(k) - 1;
      out.push_back({p.chunks, AuditedPiece::run, pieces_.back().get(), std::span(before).subspan(k, k == 0 ? 0 : 1)});
    }
  schedule_ = StepSchedule(out);
}

void AuditedPieces::run(int threads, ChunkAudit& audit) {
  for (const auto& a : pieces_) a->watch.reset();
  ThreadPool::process().run(schedule_, threads);
  AuditedRun run;
  for (const auto& a : pieces_) {
    run.threads = std::max(run.threads, a->threads.load(std::memory_order_relaxed));
    run.steps.push_back({a->kernel, a->node, a->piece.chunks, a->watch.threads()});
  }
  audit.publish(std::move(run));
}

}  // namespace rlx::cpu
