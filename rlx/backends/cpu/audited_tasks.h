// Runs whose threads meet in every piece, for a ChunkAudit.
#pragma once

#include <memory>
#include <vector>

#include "rlx/backends/cpu/lowered_program.h"
#include "rlx/threads/chunk_audit.h"
#include "rlx/threads/thread_pool.h"

namespace rlx::cpu {

struct AuditedPiece;

/// The schedule of such runs.
class AuditedPieces {
 public:
  explicit AuditedPieces(LoweredProgram& program);
  ~AuditedPieces();
  AuditedPieces(const AuditedPieces&) = delete;
  AuditedPieces& operator=(const AuditedPieces&) = delete;
  void run(int threads, ChunkAudit& audit);

 private:
  std::vector<std::unique_ptr<AuditedPiece>> pieces_;
  StepSchedule schedule_;
};

}  // namespace rlx::cpu
