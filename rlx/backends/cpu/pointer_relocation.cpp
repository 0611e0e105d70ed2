// Patches grouped by the buffer that they point into.
#include "rlx/backends/cpu/pointer_relocation.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rlx::cpu {

PointerRelocation::PointerRelocation(std::vector<Patch> given) : patches_(std::move(given)) {
  std::vector<Patch>& patches = patches_;
  std::stable_sort(patches.begin(), patches.end(), [](const Patch& a, const Patch& b) {
    return a.place != b.place ? a.place < b.place : a.index < b.index;
  });
  for (std::size_t i = 0; i < patches.size();) {
    std::size_t end = i;
    while (end < patches.size() && patches[end].place == patches[i].place && patches[end].index == patches[i].index)
      ++end;
    const Place place = patches[i].place;
    (place == Place::Input || place == Place::Output ? callers_ : binding_generation_)
        .push_back({place, patches[i].index, i, end, nullptr});
    i = end;
  }
}

void PointerRelocation::follow(const RunArguments& a) {
  for (Relocated& f : callers_) follow(f, f.place == Place::Input ? a.inputs : a.outputs);
  if (a.binding_generation == seen_generation_) return;
  seen_generation_ = kNoGeneration;  // until all pointers are relocated
  for (Relocated& f : binding_generation_) {
    if (f.place == Place::State) {
      follow(f, a.states);
    } else {
      check(f.index < a.weights.size(), "a run got too few weights");
      point(f, a.weights[f.index].host);
    }
  }
  seen_generation_ = a.binding_generation;
}

void PointerRelocation::follow(Relocated& f, std::span<const RunSlot> slots) {
  check(f.index < slots.size(), "a run got too few buffers");
  point(f, slots[f.index].view.host);
}

void PointerRelocation::point(Relocated& f, const std::byte* base) {
  if (base == f.last) return;
  f.last = base;
  for (std::size_t i = f.begin; i < f.end; ++i) {
    const Patch& p = patches_[i];
    const std::byte* at = base + p.offset;
    std::memcpy(p.field, &at, sizeof at);
  }
}

}  // namespace rlx::cpu
