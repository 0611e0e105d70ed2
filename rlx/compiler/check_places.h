// The part of the plan checker that needs no history: every field is within its range, every value lies where the graph
// and the kernels allow it, and every output and state receives its value.
#pragma once

#include <string>
#include <vector>

#include "rlx/compiler/memory_plan.h"

namespace rlx {

/// What of a plan and of its bodies names something that `g` or the plan does not have. The other checks need an empty
/// answer, because they look up what the plan names.
std::vector<std::string> check_names(const Graph& g, const LirBufferPlan& plan);

/// What lies in a wrong place, is never computed, or never reaches its output or state.
std::vector<std::string> check_places(const Graph& g, const LirBufferPlan& plan, const PlanCheck& how);

/// All checks of a plan, and of its bodies, but those of names.
std::vector<std::string> check_named_plan(const Graph& g, const LirBufferPlan& plan, const PlanCheck& how);

/// What is wrong with the bodies of one node.
std::vector<std::string> check_bodies(const Graph& g, const LirBufferPlan& plan, const LirBodies& bodies,
                                      const PlanCheck& how);

/// The problems of one kind of check. A broken plan breaks in many places, so only the first ones are kept.
class PlanProblems {
 public:
  static constexpr std::size_t kMost = 64;
  template <class... Parts>
  void add(const Parts&... parts) {
    if (!full()) list_.push_back(concat_text(parts...));
  }
  bool full() const { return list_.size() >= kMost; }
  bool empty() const { return list_.empty(); }
  std::vector<std::string> take() && { return std::move(list_); }

 private:
  std::vector<std::string> list_;
};

}  // namespace rlx
