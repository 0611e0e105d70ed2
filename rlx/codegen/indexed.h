// Axes that index values name: where the block of an index lies in a table, as kernels of Gather and Scatter find it.
#pragma once

#include <string>
#include <vector>

#include "rlx/codegen/moves.h"

namespace rlx::codegen {

/// A table is seen as [outer, others..]: the axes before the first indexed one together, and the others that no index
/// names; what is picked of it as [outer, count of indices, others..].
class IndexedAxes {
 public:
  /// The index operands are `axes.size()` from operand `first` on.
  IndexedAxes(NodeKernels& node, std::vector<std::int64_t> axes, int first);

  /// `table`, dense and perhaps with an axis of words, as [outer, others..]; `rank` axes are its own.
  Ref target(const Ref& table, int rank) const;
  /// What is picked, dense, as [outer, count, others..].
  Ref picked(const Ref& flat, const Ref& target) const;
  /// How many indices there are.
  Dim count() const { return indices_[0].elements(); }
  /// Strides of the indexed axes in `table`.
  std::vector<Dim> strides(const Ref& table) const;

  /// Where the block of index `n`, a name, begins: an offset in units of m, and whether the index is inside (always
  /// when it is clamped), both of names that the statements define.
  struct Place {
    std::string statements, offset, inside;
  };
  Place place(const Mover& m, KernelBuilder& k, const Ref& table, const std::string& n, bool clamp) const;
  Place place(Mover& m, const Ref& table, const std::string& n, bool clamp) const {
    return place(m, m.k(), table, n, clamp);
  }
  /// The same in elements.
  Place place(KernelBuilder& k, const Ref& table, const std::string& n, bool clamp) const {
    return find(k, n, clamp, extents(table), strides(table));
  }
  /// The number of the block of index `n` among all positions that indices name, as a u32.
  Place target_number(KernelBuilder& k, const Ref& table, const std::string& n, bool clamp) const;
  /// Where the block with that number, a name, begins: no index is read.
  Place place_of_number(Mover& m, const Ref& table, const std::string& number) const;

  /// Coordinates of what is picked as those of the table: without that of the index.
  static std::vector<std::string> without_count(std::vector<std::string> c);

 private:
  Place find(KernelBuilder& k, const std::string& n, bool clamp, const Dims& extents,
             const std::vector<Dim>& strides) const;
  Dims extents(const Ref& table) const;
  std::vector<std::int64_t> axes_;
  std::vector<Ref> indices_;
};

}  // namespace rlx::codegen
