// Indexed axes: where kernels of Gather and Scatter find the block of an index in a table.
#pragma once

#include <string>
#include <vector>

#include "rlx/codegen/moves.h"

namespace rlx::codegen {

/// A table is seen as [outer, others..]: the axes before the first indexed one joined, then the axes that no index
/// names. The gathered value is seen as [outer, count of indices, others..].
class IndexedAxes {
 public:
  /// The index operands are operands `first` to `first + axes.size() - 1`.
  IndexedAxes(NodeKernels& node, std::vector<std::int64_t> axes, int first);

  /// `table`, dense, as [outer, others..]. It has `rank` axes of its own and may have one more axis of words.
  Ref target(const Ref& table, int rank) const;
  /// The gathered value, dense, as [outer, count, others..].
  Ref picked(const Ref& flat, const Ref& target) const;
  /// The number of indices.
  Dim count() const { return indices_[0].elements(); }
  /// Strides of the indexed axes in `table`.
  std::vector<Dim> strides(const Ref& table) const;

  /// The block of index `n`, a name: its offset in units of m, and whether the index is in range (always when it is
  /// clamped). Both are names that the statements define.
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
  /// The number of the block of index `n` among all positions that indices can name, as a u32.
  Place target_number(KernelBuilder& k, const Ref& table, const std::string& n, bool clamp) const;
  /// The offset of the block with that number, a name. No index is read.
  Place place_of_number(Mover& m, const Ref& table, const std::string& number) const;

  /// Coordinates of the gathered value as coordinates of the table: the one of the index is removed.
  static std::vector<std::string> without_count(std::vector<std::string> c);

 private:
  Place find(KernelBuilder& k, const std::string& n, bool clamp, const Dims& extents,
             const std::vector<Dim>& strides) const;
  Dims extents(const Ref& table) const;
  std::vector<std::int64_t> axes_;
  std::vector<Ref> indices_;
};

}  // namespace rlx::codegen
