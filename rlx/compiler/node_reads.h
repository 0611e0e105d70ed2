// What one node reads, by buffer: answers about each of its operands in logarithmic time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "rlx/ir/value.h"

namespace rlx {

class NodeReads {
 public:
  void clear() { operands_.clear(), reads_.clear(); }
  void add_operand(std::uint32_t buffer, Value v) {
    operands_.push_back(v);
    reads_.push_back({buffer, v, false});
  }
  /// A value that the kernel may read in place of an operand: its quantized values.
  void add_code(std::uint32_t buffer, Value v) { reads_.push_back({buffer, v, true}); }
  /// Call it after the last add.
  void sort() {
    std::sort(operands_.begin(), operands_.end());
    std::sort(reads_.begin(), reads_.end());
  }

  /// The number of operands that are `v`.
  std::ptrdiff_t count(Value v) const {
    const auto same = std::equal_range(operands_.begin(), operands_.end(), v);
    return same.second - same.first;
  }
  /// True when another operand than `v`, or quantized values, lie in `buffer`.
  bool holds_more_than(Value v, std::uint32_t buffer) const {
    const auto first =
        std::partition_point(reads_.begin(), reads_.end(), [&](const Read& r) { return r.buffer < buffer; });
    const auto end = std::partition_point(first, reads_.end(), [&](const Read& r) { return r.buffer == buffer; });
    // Quantized values are sorted last, and operands by value: the two ends of the range show any other read.
    return first != end && (!(first->value == v) || !(std::prev(end)->value == v) || std::prev(end)->code);
  }

 private:
  struct Read {
    std::uint32_t buffer;
    Value value;
    bool code;
    friend bool operator<(const Read& a, const Read& b) {
      return std::tuple(a.buffer, a.code, a.value) < std::tuple(b.buffer, b.code, b.value);
    }
  };
  std::vector<Value> operands_;
  std::vector<Read> reads_;
};

}  // namespace rlx
