// The line that nodes and errors name while a function of many ops builds for its caller.
#pragma once

#include "rlx/ir/value.h"

namespace rlx {

/// While it lives, what this thread builds stands at `loc`, the line of the user's call, and not at lines of the
/// library; of several the outermost counts.
class LineOfCall {
 public:
  explicit LineOfCall(SourceLoc loc);
  ~LineOfCall();
  LineOfCall(const LineOfCall&) = delete;
  LineOfCall& operator=(const LineOfCall&) = delete;

  /// The line in force: that of the outermost scope, `loc` outside of all.
  static SourceLoc of(SourceLoc loc);

 private:
  SourceLoc loc_;
  bool outermost_;
};

}  // namespace rlx
