// Checks that a shared object may be written: it has no other owner, and all earlier writes by others are visible.
#pragma once

#include <memory>

namespace rlx {

/// True when `p` is the only owner. Everything that others did through it before they released it is then visible to
/// this thread.
template <class T>
bool sole_owner(const std::shared_ptr<T>& p) {
  if (p.use_count() != 1) return false;
  // use_count() alone orders nothing. Taking and dropping a reference orders this thread after the others' releases.
  std::shared_ptr<T> probe = p;  // NOLINT(performance-unnecessary-copy-initialization)
  return probe.use_count() == 2;
}

}  // namespace rlx
