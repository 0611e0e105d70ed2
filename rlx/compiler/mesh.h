// The mesh of ranks that a program is compiled for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx {

struct MeshAxis {
  std::string name;
  std::int64_t ranks = 1;
};
/// Ranks as a grid of named axes. Ranks along the last axis are adjacent. Without axes the mesh is one rank.
struct Mesh {
  std::vector<MeshAxis> axes;
  /// The product of the ranks of all axes.
  std::int64_t ranks() const;
};

/// Throws for a mesh that has an axis without ranks or two axes of one name. Throws for a collective of `g`, or of its
/// bodies, over axes that the mesh does not have, or over a different number of ranks. Throws for a mesh of several
/// ranks on a device without a communicator. Each error names the node and has a hint.
void check_mesh(const Graph& g, const Mesh& mesh, std::string_view device, bool communicator);

}  // namespace rlx
