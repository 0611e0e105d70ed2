// Whether a shared object may be written: nobody else holds it, and all that others did with it is visible.
#pragma once

#include <memory>

namespace rlx {

/// True when nobody else holds `p`; what others did through it before they let go is then visible to this thread.
template <class T>
bool sole_owner(const std::shared_ptr<T>& p) {
  if (p.use_count() != 1) return false;
  // use_count() alone orders nothing: taking and dropping a reference puts this thread behind the others' drops.
  std::shared_ptr<T> probe = p;  // NOLINT(performance-unnecessary-copy-initialization)
  return probe.use_count() == 2;
}

}  // namespace rlx
