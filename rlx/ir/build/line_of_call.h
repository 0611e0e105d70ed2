// The source line in nodes and errors: that of the user's call, also when the library function called builds many ops.
#pragma once

#include "rlx/ir/value.h"

namespace rlx {

/// During its life, nodes that this thread builds get the line `loc` of the user's call instead of lines of the
/// library. The outermost scope wins.
class LineOfCall {
 public:
  explicit LineOfCall(SourceLoc loc);
  ~LineOfCall();
  LineOfCall(const LineOfCall&) = delete;
  LineOfCall& operator=(const LineOfCall&) = delete;

  /// The line in effect: that of the outermost scope, or `loc` outside of all scopes.
  static SourceLoc of(SourceLoc loc);

 private:
  SourceLoc loc_;
  bool outermost_;
};

}  // namespace rlx
