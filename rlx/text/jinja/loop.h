// The variable `loop` of a for loop.
#pragma once

#include "rlx/text/jinja/value.h"

namespace rlx::jinja {

/// Reads the iterable one item ahead where the template needs it, like jinja2's LoopContext.
struct LoopObject final : Object {
  LoopObject(Heap& heap, Value over) : iterable(over), cursor(heap, std::move(over)) {}
  bool advance(Heap& heap);
  std::int64_t total(Heap& heap);
  const Value& peek();  // Missing after the last item

  Value iterable;
  Cursor cursor;
  std::int64_t index0 = -1;
  std::optional<std::int64_t> length;
  Value after, current, before;
  Value changed;               // the last argument of loop.changed()
  const void* body = nullptr;  // the For node when the loop is recursive
  void* frame = nullptr;       // the activation around that node
  std::int64_t depth0 = 0;
};

inline bool LoopObject::advance(Heap&) {
  Value next;
  if (!after.missing()) {
    next = std::exchange(after, Value());
  } else if (!cursor.next(next)) {
    return false;
  }
  ++index0;
  before = std::exchange(current, std::move(next));
  return true;
}

inline const Value& LoopObject::peek() {
  if (after.missing()) {
    Value next;
    if (cursor.next(next)) after = std::move(next);
  }
  return after;
}

inline std::int64_t LoopObject::total(Heap& heap) {
  if (length) return *length;
  length = length_of(iterable);
  if (!length) {  // length unknown in advance: read all items, as Python does
    std::vector<Value> rest;
    for (Value item; cursor.next(item);) rest.push_back(std::move(item));
    const auto count = static_cast<std::int64_t>(rest.size());
    cursor = Cursor(heap, heap.list(std::move(rest)));
    length = count + index0 + 1 + (after.missing() ? 0 : 1);
  }
  return *length;
}

}  // namespace rlx::jinja
