// The check of runs for NaN: the error that names the op where a NaN begins, and a scope that turns the check on.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/compiler/pipeline.h"
#include "rlx/error.h"

namespace rlx {

/// One element of a run that is NaN (or infinite, if the check asks for that), and the node that made it from operands
/// that were neither.
struct NanOrigin {
  /// The op as text prints it ("log"), or "input", "param", "state" or "constant" for a value that the program was
  /// given. Empty when the op could not be found; the message says why.
  std::string op;
  std::string label;                  // node_label
  std::string file;                   // the user's line; empty when unknown
  int line = 0;                       // 0: unknown
  std::vector<std::int64_t> element;  // its position in the result of the op, or in the output without an op
  std::string value;                  // "nan", "inf" or "-inf"
  std::vector<std::string> operands;  // of an elementwise op: the values there; otherwise the shape and range of each
  std::vector<std::int64_t> iterations;  // of the loops around the op, outermost first, counted from 0
  std::string reaches;                   // the output or state that has it: "output 'out0'"
};

/// The error of a run whose results hold such an element. Its code is InvalidArgument.
class NotFinite : public Error {
 public:
  NotFinite(Diagnostic d, NanOrigin origin) : Error(std::move(d)), origin_(std::move(origin)) {}
  const NanOrigin& origin() const { return origin_; }

 private:
  NanOrigin origin_;
};

/// During its lifetime, `check` replaces CompileOptions::nan_check in the runs that this thread starts, whatever their
/// program. Scopes end in the reverse order of their begin.
class NanCheckScope {
 public:
  explicit NanCheckScope(NanCheck check);
  ~NanCheckScope();
  NanCheckScope(const NanCheckScope&) = delete;
  NanCheckScope& operator=(const NanCheckScope&) = delete;
  /// The check of the innermost scope of this thread, if any.
  static std::optional<NanCheck> current();
  /// False when no thread is inside a scope.
  static bool any_open() { return open_.load(std::memory_order_relaxed) != 0; }

 private:
  static inline std::atomic<int> open_{0};
  std::optional<NanCheck> before_;
};

/// The check called `text`: "0" or "off", "1" or "nan", "inf" (NaN and infinities). InvalidArgument naming `what` for
/// another text.
NanCheck parse_nan_check(std::string_view text, std::string_view what);

}  // namespace rlx
